"""A body that is saved to a file: written beside its place, and put there only when it is whole."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator

import msgspec

from ._http_files import FileTrouble

MOST = 1 << 30
"""Bytes of a download when the step has no `max_download`."""


class Saved(msgspec.Struct, frozen=True):
    """A file that is there: its path as the step said it, its bytes, and their SHA-256."""

    path: str
    bytes: int
    sha256: str


class Target(msgspec.Struct, frozen=True):
    """Where a body goes. `mark` tells unfinished files of this step from others: an attempt replaces its own."""

    said: str
    path: str
    mark: str
    limit: int

    @property
    def beside(self) -> str:
        """The unfinished file."""
        return os.path.join(os.path.dirname(self.path), f".tramai-{self.mark}.part")


class Download:
    """One body on its way into a file. Whatever ends it early, nothing is left and the old file is as it was."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._digest = hashlib.sha256()
        self._size = 0
        self._file: int | None = None
        self._ending = False
        self._left = False
        self._placing = threading.Lock()

    def __enter__(self) -> Download:
        target = self._target
        with self._told():
            os.makedirs(os.path.dirname(target.path), exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target.beside)  # of an attempt that was killed
            # The user's umask decides who may read it, as with any other program.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(target.beside, flags, 0o666)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and not self._ending:
            os.close(self._file)
        with self._placing, contextlib.suppress(OSError):
            self._left = True
            os.unlink(self._target.beside)

    def write(self, data: bytes) -> bool:
        """Take a piece; False when it is more than there may be."""
        self._size += len(data)
        if self._size > self._target.limit:
            return False
        self._digest.update(data)
        assert self._file is not None  # inside `with`
        rest = memoryview(data)
        with self._told():
            while rest:
                rest = rest[os.write(self._file, rest) :]
        return True

    async def finish(self) -> Saved:
        """Put it in its place: what a run remembers to have saved is on the disk."""
        self._ending = True
        # On a thread: a slow disk holds up nothing else.
        failed = await asyncio.shield(asyncio.to_thread(self._settle))
        if failed is not None:
            raise self._error(failed)
        return Saved(self._target.said, self._size, self._digest.hexdigest())

    def _settle(self) -> OSError | None:
        assert self._file is not None  # inside `with`
        try:
            try:
                os.fsync(self._file)
            finally:
                os.close(self._file)
            with self._placing:
                if self._left:  # the step was stopped meanwhile: what stands there now is of the next attempt
                    return None
                os.replace(self._target.beside, self._target.path)
            folder = os.open(os.path.dirname(self._target.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            return error
        return None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> FileTrouble:
        return FileTrouble(f"save_to: {self._target.said} cannot be written: {error.strerror}")
