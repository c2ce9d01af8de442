"""One run of a store in a folder, as such a store handles it: open for writing, or read once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ..store import Definition, Lease, Note, Record, Run
from ._files import Folder, Lock

if TYPE_CHECKING:
    from typing import Self


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run holds, as one value."""

    run: Run
    records: tuple[Record, ...] = ()
    notes: tuple[Note, ...] = ()
    definitions: tuple[Definition, ...] = ()


class Kept:
    """A run that is open for writing. Whoever uses it holds `mutex` and, but for `close`, the lock of the run."""

    run: Run
    """The header. Long texts may stand elsewhere."""
    last_seq: int
    last_note: int

    def __init__(self, folder: Folder, run_id: str) -> None:
        self.folder = folder
        self.run_id = run_id
        self.mutex = threading.Lock()
        self.lock: Lock | None = folder.lock("lock")

    def gone(self) -> bool:
        """Whether the files held open are no longer those of the run; `git clean` may remove a lock at any time."""
        return self.lock is None or self.lock.removed()

    def refresh(self) -> None:
        """Learn what others have written since; CheckpointCorrupt when that cannot be trusted."""
        raise NotImplementedError

    def completed(self) -> set[str]:
        """The paths that are completed."""
        raise NotImplementedError

    def append(self, after: Run, records: tuple[Record, ...], notes: tuple[Note, ...], new: Definition | None) -> None:
        """Write a new header, records and numbered events as one: durable when it returns, or not there at all."""
        raise NotImplementedError

    def renew(self, lease: Lease) -> None:
        """Move the end of the lease, durably."""
        self.append(replace(self.run, lease=lease), (), (), None)

    def rewrite(self, content: Content) -> None:
        """Let this stand in the place of all that the run held, durably: the old or the new is there after a crash."""
        raise NotImplementedError

    def definitions(self) -> tuple[Definition, ...]:
        """The sources kept with the run itself."""
        return ()

    def tidy(self) -> int:
        """Let go of what the run itself does not refer to any more; the bytes that frees."""
        raise NotImplementedError

    def whole(self) -> Run:
        """The header with its long texts."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the handles back."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None
        self.folder.close()


class Reading:
    """A run as read once, without the lock."""

    def header(self) -> Run:
        """The header; long texts may stand elsewhere."""
        raise NotImplementedError

    def run(self) -> Run:
        """The header, whole."""
        raise NotImplementedError

    def records(self) -> tuple[Record, ...]:
        """The journal, whole."""
        raise NotImplementedError

    def notes(self) -> tuple[Note, ...]:
        """The events, whole."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the handles back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
