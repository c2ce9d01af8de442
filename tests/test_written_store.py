"""The store that docs/how-to/write-a-store.md shows keeps the contract, and is found by its entry point."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "how-to" / "write-a-store.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page, as an installed package would have them."""
    for name, body in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.M | re.S):
        (tmp_path / name).write_text(body, encoding="utf-8")
    points = re.search(r"^```text\n(\[project\.entry-points.*?)^```$", PAGE, re.M | re.S)
    assert points is not None
    heading, *lines = points[1].splitlines()
    info = tmp_path / "dict_store-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dict-store\nVersion: 1\n")
    group = heading.removeprefix('[project.entry-points."').removesuffix('"]')
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *(line.replace('"', "") for line in lines)]))
    return tmp_path


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": paths, "XDG_CACHE_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_store_of_the_page_keeps_the_contract(folder: Path) -> None:
    found = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "test_dict_store.py")
    assert found.returncode == 0, found.stdout[-3000:]
    counts = re.search(r"(\d+) passed, (\d+) skipped", found.stdout)
    assert counts is not None, found.stdout[-500:]
    assert int(counts[1]) > 150
    reasons = set(re.findall(r"^SKIPPED \[\d+\] \S+ (.*)$", found.stdout, re.M))
    assert reasons == {
        "this store is not shared between processes",
        "the store dict: cannot take whole runs in",
        "the store dict: cannot leave a tombstone in the place of a run",
        "the store dict: cannot give runs to workers",
        "the store dict: cannot keep schedules",
        "this store writes each commit by itself",
    }


def test_a_store_without_its_rules_does_not_keep_it(folder: Path) -> None:
    """A suite that everything passes proves nothing: here the fence of a commit is left out."""
    code = (folder / "dict_store.py").read_text()
    broken = code.replace("if not rules.current(kept.run.lease, lease, change.now):", "if False:")
    assert broken != code
    (folder / "dict_store.py").write_text(broken)
    found = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_dict_store.py", "-k", "replaced")
    assert found.returncode == 1, found.stdout[-3000:]


def test_a_store_is_found_by_its_entry_point(folder: Path) -> None:
    (folder / "hello.yaml").write_bytes((ROOT / "workflows" / "hello.yaml").read_bytes())
    found = python(folder, "-m", "tramai", "run", "hello.yaml", "--store", "dict:x", "-v")
    assert found.returncode == 0, found.stderr
    assert "store dict:x (--store)" in found.stderr
    found = python(folder, "-m", "tramai", "store", "prune", "--older-than", "1d", "--store", "dict:x")
    assert (found.returncode, "the store dict:x cannot leave a tombstone" in found.stderr) == (2, True), found.stderr


def test_an_unknown_scheme_is_told_with_those_that_were_added(folder: Path) -> None:
    found = python(folder, "-m", "tramai", "list", "--store", "dictt:x")
    assert found.returncode == 3
    assert "known stores: dict:, file:, markdown:, memory:" in found.stderr


def test_a_store_that_cannot_be_loaded_is_3_and_named(folder: Path) -> None:
    (folder / "dict_store.py").write_text("import nothing_of_that_name\n")
    found = python(folder, "-m", "tramai", "list", "--store", "dict:x")
    assert found.returncode == 3
    assert "the store `dict` of the package dict-store 1 cannot be loaded: ModuleNotFoundError" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_built_in_scheme_is_not_replaced(folder: Path) -> None:
    points = folder / "dict_store-1.dist-info" / "entry_points.txt"
    points.write_text(points.read_text().replace("dict =", "memory ="))
    code = "from tramai import open_store; print(type(open_store('memory:')).__module__)"
    assert python(folder, "-c", code).stdout == "tramai.stores.memory\n"
