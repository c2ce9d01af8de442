"""How a run of the `file:` store is read: from the head beside the journal where that can be trusted.

`head` is what the journal adds up to, noted after every acknowledged write and never waited for. It saves reading the
journal, and it bears witness: a journal that ends before its head has lost what was acknowledged. A head that was torn
by a loss of power is simply not believed, and one that is behind is caught up with.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ..errors import CheckpointCorrupt
from ..store import Note, Record, Run
from . import _file_journal as journal
from ._file_blobs import Blobs, is_distant, refers
from ._file_journal import DISTANT, Entry, Fold, Standing, corrupt
from ._file_lease import Terms
from ._files import Folder, read
from ._folder_run import Reading
from ._sealed import noun_of, unseal

JOURNAL, HEAD = "journal", "head"
_TRIES = 3


class Read(Reading):
    """A run as read once. Its header needs the head and the last entry; its records need the whole journal."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id
        self._blobs = Blobs(folder, run_id)
        self._handle = -1
        self.spare: Callable[[os.stat_result], list[Entry] | None] = lambda now: None
        """Gives the entries when somebody has just read them."""

    def header(self) -> Run:
        """The header, long texts left where they are."""
        run = self._standing()
        if run.lease is None:
            return run
        terms = Terms(self._folder, os.O_RDONLY)
        try:
            return replace(run, lease=terms.of(run.lease))
        finally:
            terms.close()

    def _standing(self) -> Run:
        for _ in range(_TRIES):
            head = head_in(self._folder)
            if head is not None:
                break
        handle = self._open()
        check_beginning(handle, self._run_id)
        size = os.fstat(handle).st_size
        known = confirmed(head, handle, self._run_id, size)
        if known is not None and size == known.length:
            return known.run
        fold = Fold(self._run_id, known)
        fold.take(read(handle, fold.length), fold.length)
        return fold.standing().run

    def run(self) -> Run:
        """The header."""
        return whole(self.header(), self._open(), self._blobs)

    def records(self) -> tuple[Record, ...]:
        """The journal."""
        entries = self.spare(os.fstat(self._open())) or self._entries()
        return tuple(self._blobs.whole_record(record) for entry in entries for record in entry.records)

    def notes(self) -> tuple[Note, ...]:
        """The events."""
        return tuple(self._blobs.whole_note(note) for entry in self._entries() for note in entry.notes)

    def close(self) -> None:
        """Give the handle back."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _entries(self) -> list[Entry]:
        head = head_in(self._folder)
        entries, fold = everything(self._open(), self._run_id)
        fold.standing()
        if head is not None and fold.length < head.length:
            if os.fstat(self._open()).st_size < head.length:
                raise lost(self._run_id)
            raise corrupt(self._run_id, f"entry {fold.n + 1} is damaged")
        return entries

    def _open(self) -> int:
        if self._handle < 0:
            try:
                self._handle = self._folder.open(JOURNAL, os.O_RDONLY)
            except FileNotFoundError:
                raise corrupt(self._run_id, "its journal is missing") from None
        return self._handle


def birth(folder: Folder, run_id: str) -> tuple[float, str] | None:
    """When a run was made, and its id, from the head alone: these never change. None when it does not tell."""
    head = head_in(folder)
    return (head.run.created, run_id) if head is not None and head.run.run_id == run_id else None


def claimed_id(folder: Folder, name: str) -> str:
    """The id of the run in a folder whose name does not tell it, as the run itself has it."""
    head = head_in(folder)
    if head is not None:
        return head.run.run_id
    data = folder.read(JOURNAL)
    line = unseal(data, len(journal.BEGINNING % journal.FORMAT))
    with contextlib.suppress(ValueError, KeyError):
        if line is not None:
            return str(noun_of(line.payload, Entry).set["run_id"])
    raise corrupt(name, "its journal is damaged")


def everything(handle: int, run_id: str) -> tuple[list[Entry], Fold]:
    """All entries of a journal, each checked, and what they add up to."""
    data = read(handle, 0)
    journal.begins(data, run_id)
    fold = Fold(run_id)
    entries, _ = fold.take(data[fold.length :], fold.length)
    return entries, fold


def check_beginning(handle: int, run_id: str) -> None:
    """Refuse a journal that does not begin as one, or is of a later format."""
    journal.begins(read(handle, 0, 64), run_id)


def head_in(folder: Folder) -> Standing | None:
    """The head in a run's folder; None when there is none, or it was torn or damaged."""
    try:
        return journal.standing_of(folder.read(HEAD))
    except OSError:
        return None


def confirmed(head: Standing | None, handle: int, run_id: str, size: int) -> Standing | None:
    """The head, if there is one; it must be of this run, and the journal must have what it has seen."""
    if head is None:
        return None
    if head.run.run_id != run_id:
        raise corrupt(run_id, "its folder holds the head of another run")
    if size < head.length:
        raise lost(run_id)
    line = unseal(read(handle, head.last, head.length - head.last))
    if line is None or line.sha != head.sha:
        raise corrupt(run_id, f"entry {head.n} is not what was acknowledged")
    return head


def lost(run_id: str) -> CheckpointCorrupt:
    """The error about a journal that is shorter than it was."""
    what = f"run {run_id}: its journal ends before what was acknowledged"
    hint = "take it back from a copy; if an older one was put there on purpose, remove the file `head` beside it"
    return CheckpointCorrupt(what=what, hint=hint, run_id=run_id)


def whole(run: Run, handle: int, blobs: Blobs) -> Run:
    """The header with its long texts, from the journal or their own files."""
    if not refers(run):
        return run
    news: dict[str, Any] = {}
    for name in DISTANT:
        text = getattr(run, name)
        if is_distant(text):
            text = _set_there(int(text[1:]), name, handle, run.run_id)
        news[name] = blobs.back(text)
    return replace(run, **news)


def _set_there(offset: int, name: str, handle: int, run_id: str) -> Any:
    """What the entry at an offset set a field to."""
    digits = read(handle, offset, 32).partition(b" ")[0]
    if digits.isdigit():
        line = unseal(read(handle, offset, len(digits) + 67 + int(digits)))
        with contextlib.suppress(ValueError, KeyError):
            if line is not None:
                return noun_of(line.payload, Entry).set[name]
    raise corrupt(run_id, f"its {name} are damaged")
