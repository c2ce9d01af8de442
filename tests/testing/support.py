"""Short ways to write a workflow with its tests, and to run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tramai import build, plan
from tramai.errors import Problem
from tramai.testing import reading, running
from tramai.testing.running import Outcome

HELLO = """\
tramai: 1
name: hello
inputs:
  name: {type: string, default: world}
steps:
  - id: greeting
    local: Hello, ${{ inputs.name }}!
  - id: shout
    shell: {run: 'printf "%s" "$TEXT"', env: {TEXT: "${{ steps.greeting.output }}"}, parse: text}
outputs:
  greeting: ${{ steps.shout.output }}
"""


def made(steps: list[dict[str, Any]], **top: Any) -> plan.Plan:
    """The plan of a workflow given as data."""
    return plan.of(build.build({"tramai": 1, "name": "test", "steps": steps, **top}))


def checked(folder: Path, tests: str, workflow: str = HELLO) -> tuple[Problem, ...]:
    """The problems of a test file, beside its workflow `hello.yaml`."""
    return written(folder, tests, workflow).problems


def written(folder: Path, tests: str, workflow: str = HELLO) -> reading.Loaded:
    """A test file that was read."""
    (folder / "hello.yaml").write_text(workflow, encoding="utf-8")
    file = folder / "hello.tramai-test.yaml"
    file.write_text(tests, encoding="utf-8")
    return reading.check_file(str(file))


def outcomes(folder: Path, tests: str, workflow: str = HELLO) -> list[Outcome]:
    """What all tests of a sound file found."""
    loaded = written(folder, tests, workflow)
    assert loaded.problems == (), [(problem.code, problem.message) for problem in loaded.problems]
    return [running.run(loaded, index) for index, _ in running.cases(loaded)]


def only(folder: Path, tests: str, workflow: str = HELLO) -> Outcome:
    """What the one test of a file found."""
    (outcome,) = outcomes(folder, tests, workflow)
    return outcome


def places(problems: tuple[Problem, ...]) -> list[tuple[str, int, int]]:
    """Code, line and column of each."""
    return [
        (problem.code, problem.position.line, problem.position.column) if problem.position else (problem.code, 0, 0)
        for problem in problems
    ]
