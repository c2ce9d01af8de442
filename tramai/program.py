"""Which file the name of a program means, and whether a list of programs names that file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

USUAL = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
"""Folders in which a path is as good as the name, before it is known where the run takes place."""


def spelled(program: str, entry: str) -> bool:
    """Whether an entry may mean a program, as far as the two texts tell; what is on disk is not looked at."""
    if program == entry:
        return True
    if os.path.basename(program) != os.path.basename(entry):
        return False
    if "/" in program and "/" not in entry:
        return os.path.dirname(program) in USUAL
    return True


def named(file: str, entries: Iterable[str], cwd: str) -> bool:
    """Whether a list of allowed programs names a file.

    An entry without a slash means what this process's own PATH has by that name, one with a slash that file, relative
    to `cwd`. Links are followed. The name has to be the same as well, since some files are many programs.
    """
    return any(
        os.path.basename(file) == os.path.basename(entry) and any(_same(file, one) for one in _files(entry, cwd))
        for entry in entries
    )


def denied(file: str, entries: Iterable[str], cwd: str) -> str | None:
    """The entry of a list of denied programs that means a file: by its name, by the file, or by what is in it."""
    names = {os.path.basename(file), os.path.basename(os.path.realpath(file))}
    for entry in entries:
        if entry in names or any(_same(file, one) or _copies(file, one) for one in _files(entry, cwd)):
            return entry
    return None


def _files(entry: str, cwd: str) -> Iterator[str]:
    if "/" in entry:
        yield os.path.join(cwd, entry)
    else:
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        yield from (os.path.join(folder, entry) for folder in folders if os.path.isabs(folder))


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _copies(one: str, other: str) -> bool:
    """Whether two files hold the same."""
    try:
        with open(one, "rb") as ours, open(other, "rb") as theirs:
            size = os.fstat(ours.fileno()).st_size
            if size == 0 or size != os.fstat(theirs.fileno()).st_size:
                return False
            while piece := ours.read(1 << 20):
                if piece != theirs.read(1 << 20):
                    return False
            return True
    except OSError:
        return False
