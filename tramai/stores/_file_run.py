"""One run of the `file:` store: its journal, open for writing or read once, and the head kept beside it.

`head` is what the journal adds up to, noted after every acknowledged write and never waited for. It saves reading the
journal, and it bears witness: a journal that ends before its head has lost what was acknowledged. A head that was torn
by a loss of power is simply not believed, and one that is behind is caught up with.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import msgspec
from msgspec.structs import replace

from ..codec import encode
from ..errors import CheckpointCorrupt
from ..store import Definition, Note, Record, Run
from . import _file_journal as journal
from ._file_blobs import Blobs, is_distant, refers
from ._file_journal import DISTANT, FIELDS, Entry, Fold, Standing, corrupt
from ._files import Folder, flush, read, write
from ._folder_run import Kept, Reading
from ._sealed import noun_of, unseal

JOURNAL, HEAD = "journal", "head"
_DEFAULTS = {
    field.name: field.default for field in msgspec.structs.fields(Run) if field.default is not msgspec.NODEFAULT
}
_TRIES = 3


class Journal(Kept):
    """The journal of a run, open for writing."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        super().__init__(folder, run_id)
        self._blobs = Blobs(folder, run_id)
        self._handle = self._head = -1
        self._standing: Standing | None = None
        self._completed: set[str] | None = None
        self._cut = 0

    @staticmethod
    def begun(folder: Folder, run: Run) -> Journal:
        """Write the journal of a new run: its first line, and the entry that is the whole header."""
        kept = Journal(folder, run.run_id)
        for name in DISTANT:
            run = replace(run, **{name: kept._blobs.apart(getattr(run, name))})
        first = {name: getattr(run, name) for name in FIELDS if getattr(run, name) != _DEFAULTS.get(name, _DEFAULTS)}
        line, sha = journal.line_of(Entry(n=1, set=first))
        beginning = journal.BEGINNING % journal.FORMAT
        folder.create(JOURNAL, beginning + line)
        kept._handle = folder.open(JOURNAL, os.O_RDWR)
        kept._completed = set()
        length, last = len(beginning) + len(line), len(beginning)
        kept._note(Standing(length=length, n=1, last=last, sha=sha, seq=0, notes=0, run=_lean(run, last)))
        return kept

    @staticmethod
    def opened(folder: Folder, run_id: str) -> Journal:
        """Open the journal of a run that is there."""
        kept = Journal(folder, run_id)
        try:
            kept._handle = folder.open(JOURNAL, os.O_RDWR)
        except FileNotFoundError:
            raise corrupt(run_id, "its journal is missing") from None
        return kept

    def gone(self) -> bool:
        """Whether another journal stands there now."""
        return os.fstat(self._handle).st_nlink == 0

    def refresh(self) -> None:
        """Learn what others have written since. A torn last entry is cut off; nobody was told of it."""
        size = os.fstat(self._handle).st_size
        if self._standing is None or size != self._standing.length:
            self._learn(size)
        assert self._standing is not None
        self.run, self.last_seq, self.last_note = self._standing.run, self._standing.seq, self._standing.notes

    def completed(self) -> set[str]:
        """The paths that are completed; read from the journal the first time."""
        if self._completed is None:
            entries, _ = _everything(self._handle, self.run_id)
            self._completed = journal.completed(entries)
        return self._completed

    def knows_completed(self, length: int, paths: set[str]) -> None:
        """Spare `completed` the reading, when somebody has just read the journal to this length."""
        if self._completed is None and self._standing is not None and self._standing.length == length:
            self._completed = paths

    def append(self, after: Run, records: tuple[Record, ...], notes: tuple[Note, ...], new: Definition | None) -> None:
        """One append, one flush; then the head, for which nobody waits."""
        before = self._standing
        assert before is not None
        blobs = self._blobs
        news: dict[str, Any] = {}
        for name in FIELDS:
            value, old = getattr(after, name), getattr(before.run, name)
            if name in DISTANT:
                if value is not old:
                    news[name] = blobs.apart(value)
            elif value != old:
                news[name] = value
        if self._cut:
            notes = (*notes, _cut_note(self._cut, before.notes + len(notes) + 1, after.updated))
        entry = Entry(
            n=before.n + 1, set=news, records=tuple(map(blobs.record, records)), notes=tuple(map(blobs.note, notes))
        )
        line, sha = journal.line_of(entry)
        self._write(line, before.length)
        self._cut = 0
        if self._completed is not None:
            self._completed |= journal.completed([entry])
        run = _lean(replace(after, **{name: news[name] for name in DISTANT if name in news}), before.length)
        self._note(
            Standing(
                length=before.length + len(line),
                n=entry.n,
                last=before.length,
                sha=sha,
                seq=before.seq + len(records),
                notes=before.notes + len(notes),
                run=run,
            )
        )

    def whole(self) -> Run:
        """The header with its long texts."""
        return _whole(self.run, self._handle, self._blobs)

    def close(self) -> None:
        """Give the handles back."""
        for handle in (self._handle, self._head):
            if handle >= 0:
                os.close(handle)
        self._handle = self._head = -1
        super().close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _learn(self, size: int) -> None:
        """Read what stands behind what is known, from the head or from the last time."""
        known, self._standing = self._standing, None
        head = _head(self.folder)
        if known is None:
            known = _confirmed(head, self._handle, self.run_id, size)
            _check_beginning(self._handle, self.run_id)
        if known is not None and size < known.length:
            raise _lost(self.run_id)
        fold = Fold(self.run_id, known)
        begin = fold.length
        entries, rest = fold.take(read(self._handle, begin), begin)
        if rest and head is not None and head.length > fold.length:
            raise corrupt(self.run_id, f"entry {fold.n + 1} is damaged")
        standing = fold.standing()
        if entries and (head is None or head.length < standing.length):
            # Whole, but its writer may not have lived to flush it, or may have failed to: it is written again, so that
            # the next flush certainly takes it to the disk.
            write(self._handle, read(self._handle, fold.last, fold.length - fold.last), fold.last)
        if rest:
            os.ftruncate(self._handle, fold.length)
            flush(self._handle)
            self._cut = len(rest)
        if self._completed is not None:
            self._completed |= journal.completed(entries)
        self._standing = standing

    def _write(self, line: bytes, offset: int) -> None:
        """Write and flush; on any failure nothing of it stays, as far as the disk still obeys."""
        known, self._standing = self._standing, None
        try:
            write(self._handle, line, offset)
            flush(self._handle, data_only=True)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, offset)
            raise
        self._standing = known

    def _note(self, standing: Standing) -> None:
        """Remember how the run stands, here and in the head."""
        self._standing = standing
        self.run, self.last_seq, self.last_note = standing.run, standing.seq, standing.notes
        with contextlib.suppress(OSError):  # the journal tells it as well
            if self._head < 0 or os.fstat(self._head).st_nlink == 0:
                stale, self._head = self._head, self.folder.open(HEAD, os.O_WRONLY | os.O_CREAT)
                if stale >= 0:
                    os.close(stale)
            write(self._head, journal.head_of(standing), 0)


class Read(Reading):
    """A run as read once. Its header needs the head and the last entry; its records need the whole journal."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id
        self._blobs = Blobs(folder, run_id)
        self._handle = -1
        self.length = 0
        self.paths: set[str] = set()

    def header(self) -> Run:
        """The header, long texts left where they are."""
        for _ in range(_TRIES):
            head = _head(self._folder)
            if head is not None:
                break
        handle = self._open()
        size = os.fstat(handle).st_size
        known = _confirmed(head, handle, self._run_id, size)
        _check_beginning(handle, self._run_id)
        if known is not None and size == known.length:
            return known.run
        fold = Fold(self._run_id, known)
        fold.take(read(handle, fold.length), fold.length)
        return fold.standing().run

    def run(self) -> Run:
        """The header."""
        return _whole(self.header(), self._open(), self._blobs)

    def records(self) -> tuple[Record, ...]:
        """The journal."""
        entries = self._entries()
        self.paths = journal.completed(entries)
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
        head = _head(self._folder)
        entries, fold = _everything(self._open(), self._run_id)
        fold.standing()
        if head is not None and fold.length < head.length:
            whole = os.fstat(self._open()).st_size >= head.length
            raise corrupt(self._run_id, f"entry {fold.n + 1} is damaged") if whole else _lost(self._run_id)
        self.length = fold.length
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
    head = _head(folder)
    return (head.run.created, run_id) if head is not None and head.run.run_id == run_id else None


def claimed_id(folder: Folder, name: str) -> str:
    """The id of the run in a folder whose name does not tell it, as the run itself has it."""
    head = _head(folder)
    if head is not None:
        return head.run.run_id
    data = folder.read(JOURNAL)
    line = unseal(data, len(journal.BEGINNING % journal.FORMAT))
    with contextlib.suppress(ValueError, KeyError):
        if line is not None:
            return str(noun_of(line.payload, Entry).set["run_id"])
    raise corrupt(name, "its journal is damaged")


def _cut_note(count: int, seq: int, at: float) -> Note:
    text = "the last entry was cut off: its writing had been broken off, and nobody had been told of it"
    return Note(seq=seq, at=at, type="journal.cut", comment=text, data=encode({"bytes": count}))


def _everything(handle: int, run_id: str) -> tuple[list[Entry], Fold]:
    data = read(handle, 0)
    journal.begins(data, run_id)
    fold = Fold(run_id)
    entries, _ = fold.take(data[fold.length :], fold.length)
    return entries, fold


def _check_beginning(handle: int, run_id: str) -> None:
    journal.begins(read(handle, 0, 64), run_id)


def _head(folder: Folder) -> Standing | None:
    try:
        return journal.standing_of(folder.read(HEAD))
    except OSError:
        return None


def _confirmed(head: Standing | None, handle: int, run_id: str, size: int) -> Standing | None:
    """The head, if there is one; it must be of this run, and the journal must have what it has seen."""
    if head is None:
        return None
    if head.run.run_id != run_id:
        raise corrupt(run_id, "its folder holds the head of another run")
    if size < head.length:
        raise _lost(run_id)
    line = unseal(read(handle, head.last, head.length - head.last))
    if line is None or line.sha != head.sha:
        raise corrupt(run_id, f"entry {head.n} is not what was acknowledged")
    return head


def _lost(run_id: str) -> CheckpointCorrupt:
    return corrupt(run_id, "its journal ends before what was acknowledged")


def _lean(run: Run, offset: int) -> Run:
    """The header with the long texts that the entry at an offset has just set left there."""
    news = {}
    for name in DISTANT:
        text = getattr(run, name)
        if journal.distant(text, offset) is not text:
            news[name] = journal.distant(text, offset)
    return replace(run, **news) if news else run


def _whole(run: Run, handle: int, blobs: Blobs) -> Run:
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
