"""Keeps the plan of a checked file, so that an unchanged file is not read, checked and parsed again.

An entry is found by what it was made from: the file's bytes, this version of tramai, the schema and the Python that
wrote it. It lies in the user's own cache folder, never beside the workflow: a repository must not be able to bring a
plan that differs from the file a person has reviewed. An entry that is not the owner's alone is ignored; deleting the
folder is always safe.
"""

from __future__ import annotations

import marshal
import os
import sys
from typing import Any

import msgspec

from . import __version__, expression, plan
from .errors import Pointer, Position
from .hashing import sha256
from .plan import Plan

LARGEST = 1 << 20
"""A file over this many bytes is refused by the reader anyway."""
_KEPT = 500
"""Entries kept; the oldest go first."""


class Source:
    """What a plan from the cache knows of its file: the text, and the place of every step."""

    def __init__(self, file: str, text: str, format: str, places: dict[Pointer, tuple[int, int, int, int]]) -> None:
        self.file = file
        self.text = text
        self.format = format
        self._places = places

    def position(self, pointer: Pointer, *, key: bool = False) -> Position:
        """The place of a step, or of the step around what the pointer names."""
        while pointer and pointer not in self._places:
            pointer = pointer[:-1]
        return Position(self.file, *self._places.get(pointer, (1, 1, 1, 2)))


def load(path: str) -> Plan | None:
    """The plan of an unchanged file, None when there is none to be trusted."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
        entry = marshal.loads(_read(_entry(content)))  # noqa: S302 - the entry is ours: see `_read`
        canonical, version, text, format, places, trees, others = entry
        if not all(_is_same(other, digest) for other, digest in others):
            return None
    except (OSError, ValueError, EOFError, TypeError):
        return None
    expression.remember(trees)
    found = plan.restore(canonical, version)
    source = Source(path, text, format, places)
    return plan.Plan(msgspec.structs.replace(found.workflow, document=source), canonical=canonical)


def save(path: str, made: Plan) -> None:
    """Keep a plan that was checked without any problem; failing to is no failure.

    Not one with a step of another package: that changes without this file, or this tramai.
    """
    if any(node.verb == "plugin" for each in (made.workflow, *made.calls) for node in each.walk()):
        return
    from .linking import sources  # a run that is in the cache reads no files

    document = made.workflow.document
    places = {}
    for node in made.nodes.values():
        at = document.position(node.at)
        places[node.at] = (at.line, at.column, at.end_line, at.end_column)
    others = [*sources(made.workflow).items()]
    entry = (made.canonical, made.workflow.version, document.text, document.format, places, expression.known(), others)
    try:
        with open(path, "rb") as file:
            target = _entry(file.read(LARGEST + 1))
        _write(target, marshal.dumps(entry))
    except (OSError, ValueError):
        return


def _is_same(path: str, digest: str) -> bool:
    """Whether a file that the plan was made from besides its own is as it was."""
    with open(path, "rb") as file:
        return sha256(file.read(LARGEST + 1)) == digest


def folder() -> str:
    """The user's cache folder for plans."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tramai", "plans")


def _entry(content: bytes) -> str:
    from .schema import schema_bytes

    parts = (sha256(content), sha256(schema_bytes()), __version__, sys.version, str(marshal.version))
    return os.path.join(folder(), sha256("\0".join(parts).encode()))


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(path)
        return file.read()


def _write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(content)
    os.replace(temporary, path)
    _trim(os.path.dirname(path))


def _trim(where: str) -> None:
    with os.scandir(where) as entries:
        found: list[tuple[float, Any]] = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries]
    for _, path in sorted(found)[:-_KEPT]:
        os.unlink(path)
