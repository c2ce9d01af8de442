"""Packages of `tests/plugins`, installed for real by pip: once for a session, by whoever needs them first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests" / "plugins"


def installed(name: str, factory: pytest.TempPathFactory) -> Path:
    """The folder that a package of `tests/plugins` was installed to."""
    pytest.importorskip("pip", reason="pip is not installed here")
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    target = shared / f"plugins-{name}"
    with FileLock(shared / f"plugins-{name}.lock"):
        if not target.is_dir():
            # Built from a copy: what a build leaves behind is not to lie in the source tree.
            source = shared / f"source-{name}"
            shutil.copytree(HERE / name, source, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(HERE / "backend.py", source)
            _pip(source, shared / f"half-{name}")
            (shared / f"half-{name}").rename(target)
    return target


def _pip(source: Path, target: Path) -> None:
    line = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    line += ["--disable-pip-version-check", "--no-compile", "--target", str(target), str(source)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def tramai(
    folder: Path, *arguments: str, packages: Sequence[Path] = (), **extra: str
) -> subprocess.CompletedProcess[str]:
    """`tramai` in a folder, in a process of its own, with these packages installed."""
    return subprocess.run(
        [sys.executable, "-m", "tramai", *arguments],
        cwd=folder,
        env=environment(folder, packages, **extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def environment(folder: Path, packages: Sequence[Path], **extra: str) -> dict[str, str]:
    """The environment of such a process."""
    paths = os.pathsep.join([*map(str, packages), str(ROOT)])
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "XDG_CONFIG_HOME": str(folder / "config")}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "COLUMNS": "100", **home, **extra}


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The good package, installed."""
    return installed("example", tmp_path_factory)


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bad one."""
    return installed("broken", tmp_path_factory)


@pytest.fixture
def with_broken(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bad one, found in this process."""
    monkeypatch.syspath_prepend(str(broken))
