"""What other repositories take from this one: the hooks of pre-commit, the action of GitHub, the image of Docker."""

from __future__ import annotations

import fnmatch
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
TRAMAI = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m tramai "$@"\n'
HELLO = "tramai: 1\nname: hello\nsteps:\n  - {id: hi, local: hello}\n"
WRONG = "tramai: 1\nname: wrong\nsteps:\n  - {id: hi, locl: hello}\n"


def read(name: str) -> Any:
    return YAML(typ="safe", pure=True).load((ROOT / name).read_text(encoding="utf-8"))


# Hooks.


@pytest.mark.parametrize("hook", read(".pre-commit-hooks.yaml"), ids=lambda hook: hook["id"])
def test_a_hook_is_a_command_that_exists(hook: dict[str, Any], tmp_path: Path) -> None:
    assert set(hook) >= {"id", "name", "description", "entry", "language", "types_or"}
    program, verb, *flags = hook["entry"].split()
    assert program == "tramai"
    assert hook["id"] == f"tramai-{verb}"
    command: Any = importlib.import_module(f"tramai.cli.{verb}").command
    assert {flag for flag in flags if flag.startswith("-")} <= {
        name for parameter in command.params for name in parameter.opts
    }
    assert hook["language"] == "python"
    assert hook["pass_filenames"] is False, "which files are workflows is seen in the files, not in their names"


@pytest.mark.parametrize("hook", read(".pre-commit-hooks.yaml"), ids=lambda hook: hook["id"])
def test_a_hook_takes_the_workflows_of_a_repository_and_leaves_the_rest(hook: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("name: not a workflow\n", encoding="utf-8")
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "hello.yaml").write_text(HELLO, encoding="utf-8")
    suite = "workflow: hello.yaml\ntests:\n  - {name: it says hello, expect: {status: completed}}\n"
    (tmp_path / "flows" / "hello.tramai-test.yaml").write_text(suite, encoding="utf-8")
    words = [*hook["entry"].split()[1:], *hook["args"]]
    assert tramai(tmp_path, *words).returncode == 0
    (tmp_path / "flows" / "hello.yaml").write_text(WRONG, encoding="utf-8")
    assert tramai(tmp_path, *words).returncode != 0


def tramai(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tramai", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# The action.

ACTION = read("action.yml")
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
GIVEN = {name: str(said.get("default", "")) for name, said in ACTION["inputs"].items()}


def test_no_input_is_written_into_a_script() -> None:
    """An expression in a script is text of whoever opened the pull request, read by a shell."""
    assert [step["name"] for step in STEPS if "${{" in step["run"]] == []
    assert all(step["shell"] == "bash" for step in STEPS)
    assert not any("uses" in step for step in STEPS), "the actions of others could be changed under us"


def test_every_input_is_described_and_used() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name, said in ACTION["inputs"].items():
        assert set(said) == {"description", "default"}, name
        assert f"${{{{ inputs.{name} }}}}" in text, name
    named = re.findall(r"inputs\.([\w-]+)", text)
    assert set(named) == set(ACTION["inputs"])


def value(text: str, inputs: dict[str, str]) -> str:
    """What a runner makes of an expression of the action."""
    if match := re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text):
        return inputs[match[1]]
    assert text == "${{ github.action_path }}"
    return str(ROOT)


class Runner:
    """Does the steps of the action as a runner of GitHub does, with a pip that only says what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temp = folder / "temp"
        self.output = folder / "output"
        self.output.touch()
        (folder / "work").mkdir()
        program = self.temp / "tramai" / "bin" / "tramai"
        program.parent.mkdir(parents=True)
        program.write_text(TRAMAI, encoding="utf-8")
        program.chmod(0o755)
        pip = folder / "python"
        pip.write_text(
            f'#!/bin/sh\nif [ "$1" = -c ]; then exec {shlex.quote(sys.executable)} "$@"; fi\n'
            f'if [ "$2" = venv ]; then cp "$0" "$3/bin/python"; else printf \'%s\\n\' "$@" >{folder}/pip; fi\n'
        )
        pip.chmod(0o755)

    def step(self, index: int, **inputs: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[index]
        given = GIVEN | {name.replace("_", "-"): text for name, text in inputs.items()}
        given |= {"python": str(self.folder / "python")}
        where = value(step["working-directory"], given) if "working-directory" in step else "."
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / "work" / where,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "GITHUB_ACTIONS": "true",
                "CI": "true",
                "RUNNER_TEMP": str(self.temp),
                "GITHUB_OUTPUT": str(self.output),
                **{name: value(text, given) for name, text in step["env"].items()},
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def write(self, name: str, text: str) -> None:
        (self.folder / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / "work" / name).write_text(text, encoding="utf-8")


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ({}, str(ROOT)),
        ({"extras": "ai,mcp"}, f"{ROOT}[ai,mcp]"),
        ({"version": "0.1.0"}, "tramai==0.1.0"),
        ({"version": "1.2rc1", "extras": "ai"}, "tramai[ai]==1.2rc1"),
    ],
)
def test_the_action_installs_what_is_asked_for(inputs: dict[str, str], asked: str, runner: Runner) -> None:
    done = runner.step(0, **inputs)
    assert done.returncode == 0, done.stderr
    assert (runner.folder / "pip").read_text(encoding="utf-8").splitlines()[-2:] == ["--", asked]


@pytest.mark.parametrize(
    "inputs",
    [
        {"version": "1.0 @ https://example.com/x"},
        {"version": "$(touch pwned)"},
        {"version": "-r requirements.txt"},
        {"extras": "ai] @ https://example.com/x #"},
        {"extras": "`touch pwned`"},
    ],
)
def test_the_action_installs_nothing_else(inputs: dict[str, str], runner: Runner) -> None:
    done = runner.step(0, **inputs)
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=tramai::the input ")
    assert not (runner.folder / "pip").exists()
    assert not (runner.folder / "work" / "pwned").exists()


def test_the_action_annotates_what_is_wrong(runner: Runner) -> None:
    runner.write("flows/wrong.yaml", WRONG)
    done = runner.step(1, files="flows\n")
    assert done.returncode == 1
    assert "::error file=flows/wrong.yaml,line=4," in done.stdout
    assert runner.output.read_text(encoding="utf-8") == "exit-status=1\n"


def test_the_action_runs_in_a_folder_with_arguments(runner: Runner) -> None:
    runner.write(
        "sub/say.yaml",
        "tramai: 1\nname: say\ninputs: {what: {type: string}}\n"
        "steps:\n  - {id: say, local: '${{ inputs.what }}'}\noutputs: {said: '${{ steps.say.output }}'}\n",
    )
    done = runner.step(
        1, command="run", working_directory="sub", files="say.yaml", arguments="-i\nwhat=$(touch pwned); `id`"
    )
    assert done.returncode == 0, done.stderr
    assert "$(touch pwned); `id`" in done.stdout
    assert not list(runner.folder.rglob("pwned"))
    assert (runner.folder / "work" / "sub" / ".tramai" / "tramai.db").is_file()


@pytest.mark.parametrize(
    "inputs",
    [
        {"command": "validate; touch pwned"},
        {"command": "store"},
        {"files": "$(touch pwned)"},
        {"files": "--output=pwned"},
        {"files": "x\n; touch pwned"},
    ],
)
def test_the_action_reads_no_input_as_a_command(inputs: dict[str, str], runner: Runner) -> None:
    runner.write("hello.yaml", HELLO)
    assert runner.step(1, **inputs).returncode in {2, 3}
    assert not list(runner.folder.rglob("pwned"))


def test_a_suspended_run_can_be_told_from_a_failed_one(runner: Runner) -> None:
    runner.write("ask.yaml", "tramai: 1\nname: ask\nsteps:\n  - {id: ok, gate: {ask: Go on?}}\n")
    assert runner.step(1, command="run", files="ask.yaml").returncode == 11
    told = dict(line.split("=", 1) for line in runner.output.read_text(encoding="utf-8").splitlines())
    assert set(told) == set(ACTION["outputs"])
    assert (told["exit-status"], told["status"]) == ("11", "waiting")
    assert runner.step(1, command="resume", files=told["run-id"]).returncode == 11


# The image.


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.M)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_image_has_a_pinned_base_and_runs_as_nobody_in_particular() -> None:
    found = instructions()
    bases = [rest.split()[0] for word, rest in found if word == "FROM"]
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", bases[0])
    last = found[max(index for index, (word, _) in enumerate(found) if word == "FROM") :]
    users = [rest for word, rest in last if word == "USER"]
    assert users == ["1000"], "a number, so that Kubernetes can see that it is not root"
    assert ("ENTRYPOINT", '["tramai"]') in last
    assert not any(word == "ADD" or "apt-get" in rest for word, rest in found)
    assert ("COPY", "--from=build /opt/tramai /opt/tramai") in last
    assert not any(word == "COPY" and not rest.startswith("--from=build") for word, rest in last)


def test_the_image_is_made_of_what_the_wheel_needs() -> None:
    """What is not let in by `.dockerignore` is not in the context; a wheel must be possible without it."""
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    assert all((ROOT / name).exists() for name in let_in)
    assert {"tramai", "schemas", "pyproject.toml", "README.md", "LICENSE"} <= let_in
    for private in (".env", ".tramai", ".git", ".venv"):
        assert not any(fnmatch.fnmatch(private, name) for name in let_in)


def test_the_scripts_of_the_image_are_shell() -> None:
    for word, rest in instructions():
        if word == "RUN":
            subprocess.run(["sh", "-n", "-c", rest], check=True, timeout=60)
