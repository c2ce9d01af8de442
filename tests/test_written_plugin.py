"""The package that docs/how-to/write-a-plugin.md shows keeps the contract, is found, and is used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .plugin_install import ROOT, environment, tramai

PAGE = (ROOT / "docs" / "how-to" / "write-a-plugin.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page, as an installed package would have them."""
    for name, body in re.findall(r"^```(?:python|yaml with a plugin)\n# (\S+)\n(.*?)^```$", PAGE, re.M | re.S):
        (tmp_path / name).write_text(body, encoding="utf-8")
    (points,) = re.findall(r'^\[project\.entry-points\."([\w.]+)"\]\n(.*?)^```$', PAGE, re.M | re.S)
    info = tmp_path / "tramai_zip-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tramai-zip\nVersion: 1.0\n")
    others = re.findall(r'`(\w+ = "\w+:\w+")` under `([\w.]+)`', PAGE)
    text = f"[{points[0]}]\n{points[1]}" + "".join(f"[{group}]\n{line}\n" for line, group in others)
    (info / "entry_points.txt").write_text(text.replace('"', ""))
    return tmp_path


def test_the_step_of_the_page_keeps_the_contract(folder: Path) -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_zip_step.py"]
    found = subprocess.run(
        line, cwd=folder, env=environment(folder, (folder,)), capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stdout
    counts = re.search(r"(\d+) passed, 1 skipped", found.stdout)  # it is given no secret
    assert counts is not None, found.stdout
    assert int(counts[1]) >= 13


def test_the_workflow_of_the_page_runs(folder: Path) -> None:
    found = tramai(folder, "validate", "pack.yaml", packages=(folder,))
    assert found.returncode == 0, found.stdout
    found = tramai(folder, "run", "pack.yaml", "--json", packages=(folder,))
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1])["outputs"] == {"size": (folder / "report.zip").stat().st_size}


def test_its_mistakes_are_found(folder: Path) -> None:
    text = (folder / "pack.yaml").read_text()
    (folder / "pack.yaml").write_text(text.replace("level: 9", "level: 12").replace("report.zip", "report.tar"))
    found = tramai(folder, "validate", "pack.yaml", packages=(folder,))
    assert "`plugin.with.level` of step `archive` must be at most 9" in found.stdout
    (folder / "pack.yaml").write_text(text.replace("report.zip", "report.tar"))
    found = tramai(folder, "validate", "pack.yaml", packages=(folder,))
    assert "`report.tar` is no .zip" in found.stdout


def test_the_provider_and_the_observer_of_the_page_are_found(folder: Path) -> None:
    (folder / "tramai.toml").write_text('observers = ["count"]\n')
    (folder / "w.yaml").write_text("tramai: 1\nname: w\nsteps: [{id: a, ai: {model: 'parrot:any', prompt: hello}}]\n")
    found = tramai(folder, "run", "w.yaml", packages=(folder,))
    assert found.returncode == 0, found.stderr
