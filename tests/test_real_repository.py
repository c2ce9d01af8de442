"""The ways in which others install this repository, with the real programs: pre-commit, pipx, uv, shiv, pip."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HELLO = ROOT / "workflows" / "hello.yaml"
pytestmark = pytest.mark.real


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(str(Path(sys.executable).parent / name))
    if found is None:
        pytest.skip(f"NOT TESTED, {name}: it is not installed")
    return found


def call(folder: Path, *words: str, status: int = 0) -> str:
    """What a program says; its caches are its own, and pip has the settings of this machine."""
    env = {name: text for name, text in os.environ.items() if not name.startswith(("TRAMAI_", "PYTHON", "VIRTUAL_ENV"))}
    env |= {
        "HOME": str(folder),
        "PRE_COMMIT_HOME": str(folder / ".pre-commit"),
        "PIPX_HOME": str(folder / ".pipx"),
        "UV_CACHE_DIR": str(folder / ".uv"),
        "UV_PYTHON": sys.executable,
        "PIPX_DEFAULT_PYTHON": sys.executable,
        "SHIV_ROOT": str(folder / ".shiv"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A clone of this repository: what a build leaves behind is not to lie here."""
    where = tmp_path / "source"
    call(tmp_path, "git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(where))
    return where


def test_pre_commit_runs_the_hooks(source: Path, tmp_path: Path) -> None:
    pre_commit = program("pre-commit")
    folder = tmp_path / "theirs"
    folder.mkdir()
    head = call(source, "git", "rev-parse", "HEAD").strip()
    ids = re.findall(r"^- id: (\S+)", (source / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"), re.M)
    hooks = "".join(f"      - id: {name}\n" for name in ids if name != "tramai-test")
    config = f"repos:\n  - repo: {source}\n    rev: {head}\n    hooks:\n{hooks}"
    (folder / ".pre-commit-config.yaml").write_text(config, encoding="utf-8")
    (folder / "hello.yaml").write_bytes(HELLO.read_bytes())
    call(folder, "git", "init", "--quiet")
    call(folder, "git", "add", "hello.yaml", ".pre-commit-config.yaml")
    said = call(folder, pre_commit, "run", "--all-files")
    assert said.count("Passed") == 2
    (folder / "hello.yaml").write_text("tramai: 1\nname: x\nsteps: [{id: a, locl: 1}]\n", encoding="utf-8")
    call(folder, "git", "add", "hello.yaml", ".pre-commit-config.yaml")
    said = call(folder, pre_commit, "run", "tramai-validate", status=1)
    assert "error[TRM104]: unknown key `locl`" in said


@pytest.mark.slow
def test_pipx_runs_a_checkout(source: Path, tmp_path: Path) -> None:
    said = call(tmp_path, program("pipx"), "run", "--spec", str(source), "tramai", "run", str(HELLO), "-q")
    assert "greeting: " in said


@pytest.mark.slow
def test_uv_runs_a_checkout(source: Path, tmp_path: Path) -> None:
    said = call(tmp_path, program("uv"), "tool", "run", "--from", str(source), "tramai", "run", str(HELLO), "-q")
    assert "greeting: " in said


@pytest.mark.slow
def test_shiv_makes_one_file_of_it(source: Path, tmp_path: Path) -> None:
    call(source, program("shiv"), "-q", "-c", "tramai", "-o", str(tmp_path / "tramai.pyz"), ".")
    said = call(tmp_path, sys.executable, "tramai.pyz", "run", str(ROOT / "workflows" / "shell.yaml"), "-q")
    assert "matches: 1" in said


def test_the_image_can_be_made(source: Path, tmp_path: Path) -> None:
    """Docker's daemon is seldom at hand: the image's commands are run in a venv, with its context and nothing else."""
    context = tmp_path / "context"
    rules = (source / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in (rule[1:] for rule in rules if rule.startswith("!")):
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        context.mkdir(exist_ok=True)
        copy(source / name, context / name)
    text = (source / "Dockerfile").read_text(encoding="utf-8")
    commands = re.findall(r"^RUN (.*/opt/tramai.*)$", text, re.M)
    assert len(commands) == 3
    for command in commands:
        command = command.replace("/opt/tramai", f"{tmp_path}/opt").replace("/source", str(context))
        call(tmp_path, "sh", "-ec", command.replace("python -m venv", f"{sys.executable} -m venv", 1))
    assert "greeting: " in call(tmp_path, f"{tmp_path}/opt/bin/tramai", "run", str(HELLO), "-q")
