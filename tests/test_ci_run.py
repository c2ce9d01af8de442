"""The gate, `.ci/run`: what has failed is tried once more by itself, and every section answers for its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / ".ci" / "run"
PYTEST = ".venv/bin/python -m pytest -q"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder as the gate makes one: tests that fail, tests that fail among others, and a Python in `.venv`."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = sweep\n    slow\n    real\n", encoding="utf-8")
    (tmp_path / "test_some.py").write_text(SOME, encoding="utf-8")
    return tmp_path


SOME = """\
from pathlib import Path
import pytest

def test_fine():
    pass

def test_bad():
    raise AssertionError

@pytest.mark.sweep
def test_swept():
    pass

@pytest.mark.sweep
def test_unsteady():
    was = Path("tried").exists()
    Path("tried").touch()
    assert was
"""


def gate(folder: Path, *calls: str) -> list[str]:
    """What the functions of the gate said, and `STATUS n` after each of them."""
    lines = "\n".join(f"status=0\n{call} || status=$?\necho STATUS $status" for call in calls)
    # No plugin but the one whose option the retry has.
    env = {"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"}
    done = subprocess.run(
        ["bash", "-c", f". {SCRIPT}\n{lines}"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


def statuses(said: list[str]) -> list[int]:
    return [int(line.split()[1]) for line in said if line.startswith("STATUS")]


DEFAULT = f"""tests default "{PYTEST} -m 'not sweep'" """
SWEEPS = f"""tests sweeps "{PYTEST} -m sweep" """


def test_a_test_that_passes_alone_is_told_and_fails_nothing(copy: Path) -> None:
    said = gate(copy, SWEEPS)
    assert statuses(said) == [0]
    assert any(line.startswith("UNSTEADY: 1 failed among all tests and passed alone") for line in said)


def test_a_section_does_not_answer_for_what_failed_in_another(copy: Path) -> None:
    said = gate(copy, DEFAULT, SWEEPS)
    assert statuses(said) == [1, 0]
    assert any(line.startswith("UNSTEADY") for line in said)
    assert len([line for line in said if line.startswith("FAILED test_some.py::test_bad")]) == 2, "once more, alone"


def test_more_than_a_few_failures_are_no_matter_of_chance(copy: Path) -> None:
    (copy / "test_some.py").write_text("".join(f"def test_{n}():\n    assert 0\n" for n in range(6)), encoding="utf-8")
    said = gate(copy, DEFAULT)
    assert statuses(said) == [1]
    assert not any("once more" in line for line in said)


def test_no_test_at_all_is_a_failure(copy: Path) -> None:
    assert statuses(gate(copy, f'tests default "{PYTEST} -k nothing_of_this_name"')) == [5]


def test_what_goes_beside_is_told_when_it_has_ended_with_its_status(copy: Path) -> None:
    said = gate(copy, "said=$PWD", "beside one sh -c 'echo from inside; exit 3'", "echo meanwhile", "ended one")
    assert said == ["STATUS 0", "STATUS 0", "meanwhile", "STATUS 0", "from inside", "STATUS 3"]


def test_a_check_that_fails_is_named_and_the_next_one_is_made(copy: Path) -> None:
    said = gate(
        copy, "check one false", "check two true", "check three sh -c 'exit 4'", 'printf "%s\\n" "${failed[@]}"'
    )
    assert statuses(said) == [0] * 4
    assert said[-3:-1] == ["one (exit status 1)", "three (exit status 4)"]
    assert [line.partition(" [")[0] for line in said if line.startswith("===")] == ["=== one", "=== two", "=== three"]
