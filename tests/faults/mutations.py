"""Takes away one guard at a time and tells which test notices: `python -m tests.faults.mutations [--only WORD]`.

A guard that nobody has seen fail proves nothing. Each mutation is one change of text in a copy of the project; the
tests it names are run there, and at least one of them must fail. Whatever survives is listed: then the status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .guards import MUTATIONS, Mutation
from .support import ROOT, environment

COPIED = ("tramai", "tests", "schemas", "workflows", "docs", "README.md", "pyproject.toml")
PATIENCE = 600


class Verdict(NamedTuple):
    """What became of one mutation."""

    mutation: Mutation
    red: str | None
    """The first test that noticed; None when all were content."""
    seconds: float


def tried(mutation: Mutation) -> Verdict:
    """Take one guard away in a copy, and run the tests that are to notice; who notices must be content with it back."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tramai-mutation-") as folder:
        copy = Path(folder)
        _copy(copy)
        place = copy / mutation.file
        whole = place.read_text()
        place.write_text(changed(mutation, whole))
        red = _first_red(copy, mutation.tests)
        place.write_text(whole)
        if red is not None and _first_red(copy, (red,)) is not None:
            raise SystemExit(f"{mutation.guard}: {red} fails anyway")
    return Verdict(mutation, red, time.monotonic() - began)


def _copy(folder: Path) -> None:
    for name in COPIED:
        there = ROOT / name
        if there.is_dir():
            shutil.copytree(there, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif there.exists():
            shutil.copy(there, folder / name)


def _first_red(folder: Path, tests: tuple[str, ...]) -> str | None:
    """The first test that fails there."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "-rfE"]
    command += ["-m", "not slow and not real", *tests]
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if ended.returncode not in (0, 1):
        raise SystemExit(f"pytest {' '.join(tests)}: it ended with {ended.returncode}\n{ended.stdout[-3000:]}")
    red = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return red[0].partition(" ")[2].partition(" - ")[0] if red else None


def changed(mutation: Mutation, text: str) -> str:
    """The text of the file with the guard taken away; the guard must stand there exactly once."""
    count = text.count(mutation.old)
    if count != 1:
        raise SystemExit(f"{mutation.guard}: its text stands {count} times in {mutation.file}; update this list")
    return text.replace(mutation.old, mutation.new)


def main() -> None:
    """Try them all, or those whose guard has a word in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="only guards that have this text")
    parser.add_argument("--list", action="store_true", help="print the guards and try nothing")
    given = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if given.only in mutation.guard]
    survived = 0
    for mutation in chosen:
        if given.list:
            print(mutation.guard)
            continue
        try:
            verdict = tried(mutation)
        except SystemExit as failed:  # the list is wrong, not the guard: the others are tried all the same
            print(failed, flush=True)
            survived += 1
            continue
        survived += verdict.red is None
        print(f"| {mutation.guard} | {verdict.red or 'NOBODY NOTICED'} | {verdict.seconds:.0f} s |", flush=True)
    sys.exit(survived > 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
