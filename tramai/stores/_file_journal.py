"""The journal of a run as a file: how it is read, what is wrong with one, and what its entries add up to.

The first line carries the format; every other one is a sealed line, an `Entry`, and is written by one append. So only
the last can ever be torn. What is written is never changed.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from ..errors import CheckpointCorrupt, StoreTooNew
from ..store import Mark, Note, Record, Run
from ._sealed import noun_of, seal, text_of, torn, unseal

FORMAT = 1
BEGINNING = b"tramai journal %d\n"
_BEGINNING = re.compile(rb"tramai journal ([0-9]{1,9})\n")
_FIRST = len(BEGINNING % FORMAT)

DISTANT = ("inputs", "outputs", "error")
"""Texts of a header that may be long."""
_NEAR = 1024
"""Characters up to which such a text stands in the header itself, which is noted anew with every write."""

_Text = TypeVar("_Text", str, None)

FIELDS = Run.__struct_fields__


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One write: the header's fields that it set, the records and events that it added. `n` counts from 1."""

    n: int
    set: dict[str, Any] = {}
    records: tuple[Record, ...] = ()
    notes: tuple[Note, ...] = ()


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the first `length` bytes of a journal add up to.

    A long text of the header is left where it is: `@` and the offset of the entry that set it stand in its place.
    """

    length: int
    n: int
    last: int
    """Where the last entry begins."""
    sha: str
    """The seal of the last entry."""
    seq: int
    notes: int
    run: Run


class Fold:
    """Adds up entries, from the first or from a standing on."""

    def __init__(self, run_id: str, begin: Standing | None = None) -> None:
        self._run_id = run_id
        self._header: dict[str, Any] = {}
        self.length, self.n, self.last, self.sha, self.seq, self.notes = _FIRST, 0, 0, "", 0, 0
        if begin is not None:
            self._header = {name: getattr(begin.run, name) for name in FIELDS}
            self.length, self.n, self.last, self.sha = begin.length, begin.n, begin.last, begin.sha
            self.seq, self.notes = begin.seq, begin.notes

    def take(self, data: bytes, offset: int) -> tuple[list[Entry], bytes]:
        """Add up the entries in the bytes that begin at an offset of the journal; those read, and the torn rest.

        CheckpointCorrupt for anything wrong that is not a last entry whose writing was broken off.
        """
        entries: list[Entry] = []
        place = 0
        while place < len(data):
            line = unseal(data, place)
            if line is None:
                break
            try:
                entry = noun_of(line.payload, Entry)
            except ValueError:
                raise corrupt(self._run_id, f"entry {self.n + 1} cannot be read") from None
            self._add(entry, offset + place)
            entries.append(entry)
            self.sha, place = line.sha, line.end
            self.length = offset + place
        rest = data[place:]
        if rest and not torn(rest):
            raise corrupt(self._run_id, f"entry {self.n + 1} is damaged")
        return entries, rest

    def standing(self) -> Standing:
        """What it adds up to; CheckpointCorrupt when that is no run, or another one."""
        try:
            run = msgspec.convert(self._header, Run)
        except msgspec.ValidationError:
            raise corrupt(self._run_id, "its entries are no run") from None
        if run.run_id != self._run_id:
            raise corrupt(self._run_id, "its folder holds the journal of another run")
        return Standing(
            length=self.length, n=self.n, last=self.last, sha=self.sha, seq=self.seq, notes=self.notes, run=run
        )

    def _add(self, entry: Entry, offset: int) -> None:
        if entry.n != self.n + 1:
            raise corrupt(self._run_id, f"entry {self.n + 1} is missing")
        for record in entry.records:
            self.seq += 1
            if record.seq != self.seq:
                raise corrupt(self._run_id, f"record {self.seq} is missing")
        for note in entry.notes:
            self.notes += 1
            if note.seq != self.notes:
                raise corrupt(self._run_id, f"event {self.notes} is missing")
        self._header.update(entry.set)
        for name in DISTANT:
            if name in entry.set:
                self._header[name] = distant(entry.set[name], offset)
        self.n, self.last = entry.n, offset


def distant(text: _Text, offset: int) -> _Text | str:
    """What stands in a header for a text that the entry at an offset set."""
    if text is None or len(text) <= _NEAR or (text[:1] == "@" and text[:2] != "@@"):
        return text
    return f"@{offset}"


def begins(data: bytes, run_id: str) -> None:
    """Check the first line: StoreTooNew for a later format, CheckpointCorrupt for anything else."""
    found = _BEGINNING.match(data)
    if found is None:
        raise corrupt(run_id, "its journal does not begin as one")
    if int(found[1]) > FORMAT:
        raise StoreTooNew(found=int(found[1]), known=FORMAT)
    if int(found[1]) != FORMAT:
        raise corrupt(run_id, "its journal does not begin as one")


def line_of(entry: Entry) -> tuple[bytes, str]:
    """The line of an entry, and its seal."""
    return seal(text_of(entry))


def head_of(standing: Standing) -> bytes:
    """What is kept beside the journal, so that nobody needs to read all of it to know how the run stands."""
    return seal(text_of(standing))[0]


def standing_of(head: bytes) -> Standing | None:
    """The standing that `head_of` wrote; None when it was torn or damaged, for the journal tells it as well."""
    line = unseal(head)
    if line is None:
        return None
    try:
        return noun_of(line.payload, Standing)
    except ValueError:
        return None


def completed(entries: list[Entry]) -> set[str]:
    """The paths that are completed by these entries."""
    return {record.path for entry in entries for record in entry.records if record.mark is Mark.COMPLETED}


def corrupt(run_id: str, what: str) -> CheckpointCorrupt:
    """The error about a journal."""
    return CheckpointCorrupt(what=f"run {run_id}: {what}", run_id=run_id)
