"""One run of the `markdown:` store: its checkpoint, open for writing or read once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ..errors import CheckpointCorrupt
from ..store import Definition, Mark, Note, Record, Run
from ._files import Folder, Stamp, stamp
from ._folder_run import Content, Kept, Reading
from ._markdown_text import (
    Damaged,
    Front,
    Written,
    birth_of,
    content_of,
    front_of,
    note_section,
    plain,
    record_section,
    render,
)
from ._markdown_words import scalar
from ._segments import segment

CHECKPOINT = "checkpoint.md"
_CONFLICT = re.compile(rb"^(<{7}|>{7})", re.M)
_ENOUGH = 16 * 1024
"""Bytes that hold the front matter of nearly every checkpoint."""

_T = TypeVar("_T")


class _TooShort(Exception):
    """The front matter does not end in what was read."""


class Checkpoint(Kept):
    """The checkpoint of a run, open for writing: each write is a whole new file."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        super().__init__(folder, run_id)
        self._stamp: Stamp | None = None
        self._definitions: tuple[Definition, ...] = ()
        self._journal = ""
        self._completed: set[str] = set()

    @staticmethod
    def begun(folder: Folder, content: Content) -> Checkpoint:
        """Write the first checkpoint of a new run."""
        kept = Checkpoint(folder, content.run.run_id)
        kept._keep(content, lambda data: folder.create(CHECKPOINT, data))
        return kept

    def refresh(self) -> None:
        """Read the checkpoint again, if it is not the one known."""
        found = self.folder.stat(CHECKPOINT)
        if found is not None and self._stamp == stamp(found):
            return
        if self._stamp is None:
            self._clean()
        self._stamp = None
        data, now = _load(self.folder, self.run_id)
        content = _content(data, self.run_id)
        records = content.records()
        self.run, self._definitions, self._journal = content.run(), content.definitions(), content.journal
        self.last_seq, self.last_note = len(records), len(content.notes())
        self._completed = {record.path for record in records if record.mark is Mark.COMPLETED}
        self._stamp = stamp(now)

    def completed(self) -> set[str]:
        """The paths that are completed."""
        return self._completed

    def append(self, after: Run, records: tuple[Record, ...], notes: tuple[Note, ...], new: Definition | None) -> None:
        """Replace the whole file: the old or the new one is there, entirely."""
        journal = "".join((self._journal, *map(record_section, records), *map(note_section, notes)))
        definitions = self._definitions
        if new is not None and all(kept.digest != new.digest for kept in definitions):
            definitions = (*definitions, new)
        text = render(after, definitions, journal)
        self._stamp = None
        made = self.folder.replace(CHECKPOINT, text.encode())
        self.run, self._definitions, self._journal = after, definitions, journal
        self.last_seq, self.last_note = self.last_seq + len(records), self.last_note + len(notes)
        self._completed.update(record.path for record in records if record.mark is Mark.COMPLETED)
        self._stamp = stamp(made)

    def rewrite(self, content: Content) -> None:
        """Replace the whole file, as every write does."""
        self._stamp = None
        self._keep(content, lambda data: self.folder.replace(CHECKPOINT, data))

    def definitions(self) -> tuple[Definition, ...]:
        """The sources in the checkpoint."""
        return self._definitions

    def tidy(self) -> int:
        """Of a tombstone, let go of the definition."""
        if not self.run.status.tombstone or not self._definitions:
            return 0
        freed = sum(len(kept.text) + len(kept.canonical) for kept in self._definitions)
        self._definitions = ()
        self.append(self.run, (), (), None)
        return freed

    def whole(self) -> Run:
        """The header."""
        return self.run

    def _keep(self, content: Content, write: Callable[[bytes], os.stat_result]) -> None:
        journal = "".join((*map(record_section, content.records), *map(note_section, content.notes)))
        made = write(render(content.run, content.definitions, journal).encode())
        self.run, self._definitions, self._journal = content.run, content.definitions, journal
        self.last_seq, self.last_note = len(content.records), len(content.notes)
        self._completed = {record.path for record in content.records if record.mark is Mark.COMPLETED}
        self._stamp = stamp(made)

    def _clean(self) -> None:
        """Remove what a killed writer left behind."""
        for name in self.folder.names():
            if name.endswith(".part"):
                self.folder.remove(name)


class Read(Reading):
    """A checkpoint as read once."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id
        self._content: Written | None = None

    def header(self) -> Run:
        """The header, its texts left out: the front matter tells it."""
        return front(self._folder, self._run_id).run

    def run(self) -> Run:
        """The header."""
        return self._whole().run()

    def records(self) -> tuple[Record, ...]:
        """The journal."""
        return self._whole().records()

    def notes(self) -> tuple[Note, ...]:
        """The events."""
        return self._whole().notes()

    def definitions(self) -> tuple[Definition, ...]:
        """The sources kept in it."""
        return self._whole().definitions()

    def _whole(self) -> Written:
        if self._content is None:
            self._content = _content(_load(self._folder, self._run_id)[0], self._run_id)
        return self._content


def front(folder: Folder, run_id: str) -> Front:
    """The front matter of a checkpoint, without reading the rest of a long one."""
    return _beginning(folder, run_id, front_of)[0]


def birth(folder: Folder, run_id: str) -> tuple[float, str]:
    """When a run was made, and its id."""
    return _beginning(folder, run_id, birth_of)


def _beginning(folder: Folder, run_id: str, read: Callable[[str, Damaged], _T]) -> _T:
    data, _ = _load(folder, run_id, _ENOUGH)
    if len(data) == _ENOUGH:
        try:
            return read(plain(data[: data.rfind(b"\n") + 1], _short), _short)
        except _TooShort:
            data, _ = _load(folder, run_id)
    damaged = partial(_damaged, data, run_id)
    return read(plain(data, damaged), damaged)


def _short() -> CheckpointCorrupt:
    raise _TooShort


def refuse_if_started(folder: Folder, run_id: str, key: str) -> None:
    """Of a checkpoint that cannot be trusted: raise when it may be the run of a start key, which must not run twice."""
    data, _ = _load(folder, run_id, _ENOUGH)
    if f"start_key: {scalar(key)}\n".encode() in data.replace(b"\r\n", b"\n"):
        raise _damaged(data, run_id)


def unreadable(folder: Folder, run_id: str) -> CheckpointCorrupt:
    """What is said of a checkpoint that cannot be trusted, or is not there."""
    try:
        return _damaged(_load(folder, run_id, _ENOUGH)[0], run_id)
    except CheckpointCorrupt as missing:
        return missing


def _load(folder: Folder, run_id: str, limit: int = -1) -> tuple[bytes, os.stat_result]:
    try:
        return folder.load(CHECKPOINT, limit)
    except FileNotFoundError:
        raise CheckpointCorrupt(what=f"run {run_id}: {_file(run_id)} is missing", run_id=run_id) from None


def _content(data: bytes, run_id: str) -> Written:
    damaged = partial(_damaged, data, run_id)
    content = content_of(plain(data, damaged), damaged)
    if content.run_id != run_id:
        what = f"run {run_id}: {_file(run_id)} is the checkpoint of another run"
        raise CheckpointCorrupt(what=what, run_id=run_id)
    return content


def _damaged(data: bytes, run_id: str) -> CheckpointCorrupt:
    """What is said of a file that is not as it was written."""
    hint = "take it back from a copy or from version control; tramai never goes on from a changed record"
    if not data.strip(b"\0\r\n "):
        what = "is empty"
    elif _CONFLICT.search(data):
        what = "has Git's conflict markers in it"
        hint = "take one side of it whole: `git checkout --ours` (or `--theirs`) and its name"
    else:
        what = "was edited or damaged since it was written"
    return CheckpointCorrupt(what=f"run {run_id}: {_file(run_id)} {what}", hint=hint, run_id=run_id)


def _file(run_id: str) -> str:
    name = segment(run_id)
    return f"its {CHECKPOINT}" if name == run_id else f"{name}/{CHECKPOINT}"
