"""A loss of power on a real file system: whatever was acknowledged is there afterwards, and the run goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .support import PLAIN, ROOT, environment, program

TOOLS = ("unshare", "mkfs.ext4", "mount", "umount", "losetup")


def cut(game: str, kind: str, folder: Path, points: int, *, careless: bool = False) -> Any:
    given = {"game": game, "kind": kind, "folder": str(folder), "points": points, "careless": careless}
    return program("tests.faults.power", under=("unshare", "-m"), timeout=3600.0, **given)


@pytest.fixture(scope="module", autouse=True)
def _needs_a_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0:
        pytest.skip("NOT CHECKED: what a loss of power leaves; mounting a disk needs root")
    if missing:
        pytest.skip(f"NOT CHECKED: what a loss of power leaves; install e2fsprogs and util-linux: {', '.join(missing)}")
    given = {"game": "probe", "kind": "file", "folder": str(tmp_path_factory.mktemp("probe")), "points": 1}
    command = ["unshare", "-m", sys.executable, "-m", "tests.faults.power", json.dumps(given)]
    probe = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(
            f"NOT CHECKED: what a loss of power leaves; no disk can be made here: {probe.stderr.strip()[-200:]}"
        )


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("points", [5, pytest.param(13, marks=pytest.mark.slow)])
def test_what_was_acknowledged_survives_a_loss_of_power_after_each_write(
    kind: str, points: int, tmp_path: Path
) -> None:
    found = cut("after", kind, tmp_path, points)
    assert found["violations"] == []
    assert found["points"] == points


def at_any_moment(kind: str, folder: Path, points: int) -> None:
    found = cut("during", kind, folder, points)
    assert found["violations"] == []
    assert found["points"] == points


@pytest.mark.parametrize("kind", PLAIN)
def test_a_loss_of_power_at_any_moment_takes_back_nothing_acknowledged(kind: str, tmp_path: Path) -> None:
    at_any_moment(kind, tmp_path, 4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN)
def test_two_hundred_losses_of_power_take_back_nothing_acknowledged(kind: str, tmp_path: Path) -> None:
    at_any_moment(kind, tmp_path, 200)


@pytest.mark.parametrize("kind", PLAIN)
def test_the_power_is_really_cut(kind: str, tmp_path: Path) -> None:
    """Without flushes each cut loses what was acknowledged: these tests can fail."""
    found = cut("during", kind, tmp_path, 1, careless=True)
    assert len(found["violations"]) == 1
