"""Long texts of a run, each in a file named by the SHA-256 of its content: a text that is stored again costs nothing.

In an entry, `@` and a SHA-256 stand for such a text, and `@@` for a text that begins with `@` itself.
"""

from __future__ import annotations

import contextlib
import re
from typing import TypeVar

from msgspec.structs import replace

from ..hashing import sha256
from ..store import Note, Record
from ._file_journal import DISTANT, corrupt
from ._files import Folder

_T = TypeVar("_T")

INLINE = 64 * 1024
"""Characters up to which a text stands in the journal."""
BLOBS = "blobs"
_SHA = 64
_REFERENCE = re.compile(rb'"@([0-9a-f]{64})"')


class Blobs:
    """The long texts of one run."""

    def __init__(self, folder: Folder, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id
        self._sound: set[str] = set()

    def record(self, record: Record) -> Record:
        """A record with its long texts set apart."""
        texts = (record.value, record.error, record.saves, record.usage)
        if not any(map(_special, texts)):
            return record
        value, error, saves, usage = map(self.apart, texts)
        return replace(record, value=value, error=error, saves=saves, usage=usage)

    def note(self, note: Note) -> Note:
        """An event with its long text set apart."""
        return replace(note, data=self.apart(note.data)) if _special(note.data) else note

    def whole_record(self, record: Record) -> Record:
        """The record as it was given."""
        for text in (record.value, record.error, record.saves, record.usage):
            if text and text[0] == "@":
                break
        else:
            return record
        value, error, saves, usage = map(self.back, (record.value, record.error, record.saves, record.usage))
        return replace(record, value=value, error=error, saves=saves, usage=usage)

    def whole_note(self, note: Note) -> Note:
        """The event as it was given."""
        return replace(note, data=self.back(note.data)) if _referring(note.data) else note

    def apart(self, text: _T) -> _T:
        """The text itself, or what stands for it."""
        if not isinstance(text, str) or not _special(text):
            return text
        if len(text) <= INLINE:
            return "@" + text  # type: ignore[return-value]
        data = text.encode("utf-8", "surrogatepass")
        sha = sha256(data)
        self._keep(sha, data)
        return f"@{sha}"  # type: ignore[return-value]

    def back(self, text: _T) -> _T:
        """The text behind what `apart` gave; it must be there, and have the hash it goes by."""
        if not isinstance(text, str) or text[:1] != "@":
            return text
        if text[:2] == "@@":
            return text[1:]  # type: ignore[return-value]
        data = self._fetch(text[1:])
        if data is None:
            raise corrupt(self._run_id, "a large value of it is missing or damaged")
        return data.decode("utf-8", "surrogatepass")  # type: ignore[return-value]

    def forget(self) -> None:
        """Believe no text to be there any more: what no entry refers to, because its writing failed, may be pruned."""
        self._sound.clear()

    def prune(self, journal: bytes) -> int:
        """Remove what these lines do not refer to; the bytes that frees.

        Whatever looks like a reference counts as one: to keep too much harms nobody.
        """
        used = {sha.decode() for sha in _REFERENCE.findall(journal)}
        with contextlib.suppress(FileNotFoundError), self._folder.child(BLOBS) as blobs:
            unused = [name for name in blobs.names() if name not in used]
            self._sound.difference_update(unused)
            return sum(map(blobs.remove, unused))
        return 0

    def _keep(self, sha: str, data: bytes) -> None:
        """Durable when it returns; one that was damaged is made anew, for what is written now must be readable."""
        if sha in self._sound:
            return
        try:
            blobs = self._folder.child(BLOBS)
        except FileNotFoundError:
            blobs = self._folder.make(BLOBS)
        with blobs:
            if not self._sound:
                self._folder.flush()
            if self._read(blobs, sha) is None:
                blobs.replace(sha, data)
            else:
                blobs.flush()  # its maker may have been killed before that
        self._sound.add(sha)

    def _fetch(self, sha: str) -> bytes | None:
        if len(sha) != _SHA:
            return None
        with contextlib.suppress(FileNotFoundError), self._folder.child(BLOBS) as blobs:
            return self._read(blobs, sha)
        return None

    @staticmethod
    def _read(blobs: Folder, sha: str) -> bytes | None:
        try:
            data = blobs.read(sha)
        except FileNotFoundError:
            return None
        return data if sha256(data) == sha else None


def is_distant(text: object) -> bool:
    """Whether a text of a header stands in an entry of the journal."""
    return isinstance(text, str) and text[:1] == "@" and text[:2] != "@@" and len(text) != _SHA + 1


def refers(run: object) -> bool:
    """Whether a header has texts that stand elsewhere."""
    return any(_referring(getattr(run, name)) for name in DISTANT)


def _special(text: object) -> bool:
    return isinstance(text, str) and (len(text) > INLINE or text[:1] == "@")


def _referring(text: object) -> bool:
    return isinstance(text, str) and text[:1] == "@"
