"""One run of the `file:` store, open for writing: an append and a flush, then the head beside the journal."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import msgspec
from msgspec.structs import replace

from ..codec import encode
from ..store import Definition, Lease, Mark, Note, Record, Run
from . import _file_journal as journal
from ._file_blobs import Blobs
from ._file_journal import DISTANT, FIELDS, Entry, Fold, Standing, corrupt
from ._file_lease import Terms
from ._file_read import HEAD, JOURNAL, check_beginning, confirmed, head_in, lost, whole
from ._files import Folder, flush, read, write
from ._folder_run import Content, Kept

_DEFAULTS = {
    field.name: field.default for field in msgspec.structs.fields(Run) if field.default is not msgspec.NODEFAULT
}


class Journal(Kept):
    """The journal of a run, open for writing."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        super().__init__(folder, run_id)
        self._blobs = Blobs(folder, run_id)
        self._terms = Terms(folder)
        self._handle = self._head = -1
        self._standing: Standing | None = None
        self._completed: set[str] = set()
        self._spare: list[Entry] | None = None
        self._cut = 0

    @staticmethod
    def begun(folder: Folder, content: Content) -> Journal:
        """Write the journal of a new run: its first line, and an entry that holds all there is."""
        kept = Journal(folder, content.run.run_id)
        lines, standing = kept._first(content)
        folder.create(JOURNAL, lines)
        Terms.prepare(folder)
        kept._opened_anew(standing, content)
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
        """Whether another journal stands there now, or another lock."""
        return super().gone() or os.fstat(self._handle).st_nlink == 0

    def refresh(self) -> None:
        """Learn what others have written since. A torn last entry is cut off; nobody was told of it."""
        size = os.fstat(self._handle).st_size
        if self._standing is None or size != self._standing.length:
            self._learn(size)
        assert self._standing is not None
        self._stand(self._standing)

    def completed(self) -> set[str]:
        """The paths that are completed."""
        return self._completed

    def spare(self, now: os.stat_result) -> list[Entry] | None:
        """The entries of the journal as it is now, when they were read for a claim and nobody has asked since."""
        found, self._spare = self._spare, None
        same = self._standing is not None and self._standing.length == now.st_size
        return found if same and os.fstat(self._handle).st_ino == now.st_ino else None

    def append(self, after: Run, records: tuple[Record, ...], notes: tuple[Note, ...], new: Definition | None) -> None:
        """One append, one flush; then the head, for which nobody waits."""
        try:
            self._append(after, records, notes)
        except BaseException:
            self._blobs.forget()
            raise

    def _append(self, after: Run, records: tuple[Record, ...], notes: tuple[Note, ...]) -> None:
        before = self._standing
        assert before is not None
        blobs = self._blobs
        news: dict[str, Any] = {}
        for name in FIELDS:
            value, old = getattr(after, name), getattr(before.run, name)
            if name in DISTANT:
                if value is not old:
                    news[name] = blobs.apart(value)
            elif value != old and not (name == "lease" and _renewed(old, value)):
                news[name] = value
        if self._cut:
            notes = (*notes, _cut_note(self._cut, before.notes + len(notes) + 1, after.updated))
        entry = Entry(
            n=before.n + 1, set=news, records=tuple(map(blobs.record, records)), notes=tuple(map(blobs.note, notes))
        )
        line, sha = journal.line_of(entry)
        self._write(line, before.length)
        self._cut = 0
        self._completed |= journal.completed([entry])
        if records:
            self._spare = None
        elif self._spare is not None:
            self._spare.append(entry)
        lease = news.get("lease", before.run.lease)
        run = replace(after, lease=lease, **{name: news[name] for name in DISTANT if name in news})
        self._note(
            Standing(
                length=before.length + len(line),
                n=entry.n,
                last=before.length,
                sha=sha,
                seq=before.seq + len(records),
                notes=before.notes + len(notes),
                run=_lean(run, before.length),
            )
        )

    def renew(self, lease: Lease) -> None:
        """Move the end of the lease: one write beside the journal, one flush."""
        self._terms.renew(lease)
        self.run = replace(self.run, lease=lease)

    def rewrite(self, content: Content) -> None:
        """A new journal in the place of the old. The head goes first: one that has seen more would bear witness."""
        self._standing = None
        with contextlib.suppress(FileNotFoundError):
            self.folder.remove(HEAD)
        self.folder.flush()
        lines, standing = self._first(content)
        self.folder.replace(JOURNAL, lines)
        self._opened_anew(standing, content)
        self._blobs.prune(lines)

    def tidy(self) -> int:
        """Remove long texts that the journal does not refer to."""
        return self._blobs.prune(read(self._handle, 0))

    def whole(self) -> Run:
        """The header with its long texts."""
        return whole(self.run, self._handle, self._blobs)

    def close(self) -> None:
        """Give the handles back."""
        for handle in (self._handle, self._head):
            if handle >= 0:
                os.close(handle)
        self._handle = self._head = -1
        self._terms.close()
        super().close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _first(self, content: Content) -> tuple[bytes, Standing]:
        """The lines of a journal that begins with all this, and what they add up to; long texts are written."""
        run, blobs = content.run, self._blobs
        for name in DISTANT:
            run = replace(run, **{name: blobs.apart(getattr(run, name))})
        entry = Entry(
            n=1,
            set={name: getattr(run, name) for name in FIELDS if getattr(run, name) != _DEFAULTS.get(name, _DEFAULTS)},
            records=tuple(map(blobs.record, content.records)),
            notes=tuple(map(blobs.note, content.notes)),
        )
        line, sha = journal.line_of(entry)
        beginning = journal.BEGINNING % journal.FORMAT
        last, seq, notes = len(beginning), len(content.records), len(content.notes)
        length = last + len(line)
        standing = Standing(length=length, n=1, last=last, sha=sha, seq=seq, notes=notes, run=_lean(run, last))
        return beginning + line, standing

    def _opened_anew(self, standing: Standing, content: Content) -> None:
        stale, self._handle = self._handle, self.folder.open(JOURNAL, os.O_RDWR)
        if stale >= 0:
            os.close(stale)
        self._completed = {record.path for record in content.records if record.mark is Mark.COMPLETED}
        self._spare = None
        self._note(standing)

    def _learn(self, size: int) -> None:
        """Read what others have written since; all of the journal the first time, before anything is added to it."""
        known, self._standing, self._spare = self._standing, None, None
        head = head_in(self.folder)
        if known is None:
            check_beginning(self._handle, self.run_id)
            confirmed(head, self._handle, self.run_id, size)
            self._completed = set()
        elif size < known.length:
            raise lost(self.run_id)
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
        self._completed |= journal.completed(entries)
        self._spare = entries if known is None else None
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

    def _stand(self, standing: Standing) -> None:
        self._standing = standing
        run = standing.run
        self.run = run if run.lease is None else replace(run, lease=self._terms.of(run.lease))
        self.last_seq, self.last_note = standing.seq, standing.notes

    def _note(self, standing: Standing) -> None:
        """Remember how the run stands, here and in the head."""
        self._stand(standing)
        with contextlib.suppress(OSError):  # the journal tells it as well
            if self._head < 0 or os.fstat(self._head).st_nlink == 0:
                stale, self._head = self._head, self.folder.open(HEAD, os.O_WRONLY | os.O_CREAT)
                if stale >= 0:
                    os.close(stale)
            write(self._head, journal.head_of(standing), 0)


def _renewed(old: Lease | None, new: Lease | None) -> bool:
    """Whether a lease is the old one with another end, which does not stand in the journal."""
    return old is not None and new is not None and old.token == new.token


def _cut_note(count: int, seq: int, at: float) -> Note:
    text = "the last entry was cut off: its writing had been broken off, and nobody had been told of it"
    return Note(seq=seq, at=at, type="journal.cut", comment=text, data=encode({"bytes": count}))


def _lean(run: Run, offset: int) -> Run:
    """The header with the long texts that the entry at an offset has just set left there."""
    news = {}
    for name in DISTANT:
        text = getattr(run, name)
        if journal.distant(text, offset) is not text:
            news[name] = journal.distant(text, offset)
    return replace(run, **news) if news else run
