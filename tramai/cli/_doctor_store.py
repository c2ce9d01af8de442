"""What `doctor` says of the store and of the folder of logs. Nothing is made, and nothing is changed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import Any

from ._machine_documents import HealthFinding
from ._session import Session

_LITTLE = 100_000_000
"""Bytes that should be free where runs are kept."""


def store(session: Session) -> Iterator[HealthFinding]:
    """Whether it can be opened, its format, who else may read it, and whether it can be written."""
    from ..errors import TramaiError
    from ..stores import older, peek, shown

    url = session.settings.store
    try:
        before = older(url)
        if before is not None:
            yield from _older(session, shown(url), *before)
            return
        there = peek(url) is not None or not _is_file(url)
        found = session.looking()
    except TramaiError as error:
        yield _of("store", "error", f"{shown(url)}: {error.message}", error.hint)
        return
    info: Any = None
    if hasattr(found, "info"):
        try:
            info = found.info()
        except TramaiError as error:
            yield _of("store", "error", f"{shown(url)}: {error.message}", error.hint)
            return
    if not there:
        yield _of("store", "ok", f"{shown(url)}: nothing is stored yet; the first run makes it")
        where = url.partition(":")[2].partition("?")[0]
        yield from _place(os.path.abspath(where or ".tramai"), new=True)
    elif info is None:
        yield _of("store", "ok", f"{shown(url)}: opens")
    else:
        yield from _described(info)
    yield from _logs(session)


def _older(session: Session, shown: str, found: int, present: int) -> Iterator[HealthFinding]:
    """It is not opened: that alone would bring it up to date, and older versions would be refused from then on."""
    text = f"{shown}: format {found}; the next command that opens it brings it to format {present}, for good"
    yield _of("store", "warning", text, "back up first, drain older workers, then: tramai store migrate")
    yield from _logs(session)


def _of(name: str, state: str, text: str, hint: str | None = None) -> HealthFinding:
    return HealthFinding(section="store", name=name, state=state, text=text, hint=hint)  # type: ignore[arg-type]


def _is_file(url: str) -> bool:
    return url.partition(":")[0] in ("sqlite", "file", "markdown")


def _described(info: Any) -> Iterator[HealthFinding]:
    runs = sum(info.runs.values())
    form = f", format {info.format}" if info.format is not None else ""
    yield _of("store", "ok", f"{info.url}{form}, {runs} run{'s' if runs != 1 else ''}")
    for lock in info.locks:
        yield _of("lock", "ok", lock)
    for hint in info.hints:
        yield _of("note", "ok", hint)
    if info.place is not None and os.path.exists(info.place):
        yield from _place(info.place, new=False)


def _place(path: str, *, new: bool) -> Iterator[HealthFinding]:
    """Permissions, room, and the kind of disk."""
    from ..stores._files import network_kind

    folder = path if os.path.isdir(path) else os.path.dirname(path)
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)  # what will be made
    for one in (folder,) if new else (folder, path):
        if not os.access(one, os.W_OK):
            yield _of("place", "error", f"{one} cannot be written by you", "give yourself the right, or use --store")
            return
    yield _of("place", "ok", f"{path} can be written" if not new else f"{folder} can be written")
    if not new and (mode := os.stat(path).st_mode & 0o077):
        hint = f"chmod {'go-rwx' if os.path.isdir(path) else '600'} {shlex.quote(path)}"
        yield _of("place", "warning", f"others on this machine have rights to {path} ({mode:03o})", hint)
    kind = network_kind(folder)
    if kind is not None:
        text = f"{folder} is on a network file system ({kind}), where locks and flushes may not hold"
        yield _of("disk", "warning", text, "keep runs on a local disk, or in PostgreSQL")
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if free < _LITTLE:
        yield _of("disk", "warning", f"only {free // 1_000_000} MB are free in {folder}", "make room")


def _logs(session: Session) -> Iterator[HealthFinding]:
    folder = session.logs_folder()
    there = folder
    while not os.path.isdir(there) and os.path.dirname(there) != there:
        there = os.path.dirname(there)
    if os.access(there, os.W_OK | os.X_OK):
        yield _of("logs", "ok", folder)
    else:
        text = f"{folder} cannot be written: what steps write is not kept"
        yield _of("logs", "warning", text, "start it in a folder of your own")
