"""How long the lease of a run of the `file:` store lasts: two places in a file beside the journal, written in turn.

The journal says who has the lease. A renewal only moves its end, so it is no line of the journal, which would grow by
it for as long as a run lasts. Of a renewal whose writing was broken off the one before it still stands.
"""

from __future__ import annotations

import contextlib
import os

import msgspec
from msgspec.structs import replace

from ..store import Lease
from ._files import Folder, flush, read, write
from ._sealed import noun_of, seal, text_of, unseal

LEASE = "lease"
_PLACE = 512
"""Bytes from one place to the other: a disk writes so many at once, or none of them."""


class Term(msgspec.Struct, frozen=True):
    """When the lease of a token ends, as its nth renewal has it."""

    token: str
    n: int
    expires: float


class Terms:
    """The file of a run's folder. Who writes holds the lock of the run; who only reads says so."""

    def __init__(self, folder: Folder, access: int = os.O_RDWR) -> None:
        self._folder = folder
        self._access = access
        self._handle = -1

    @staticmethod
    def prepare(folder: Folder) -> None:
        """Make the file of a new run, empty, so that its name is durable as soon as the run is."""
        os.close(folder.open(LEASE, os.O_WRONLY | os.O_CREAT | os.O_EXCL))

    def of(self, lease: Lease | None) -> Lease | None:
        """A lease that the journal has, with its end as last renewed."""
        last = None if lease is None else self._last(lease.token)
        return lease if lease is None or last is None else replace(lease, expires=last.expires)

    def renew(self, lease: Lease) -> None:
        """Make the end of a lease durable."""
        last = self._last(lease.token)
        if self._handle < 0:
            self._open(os.O_CREAT)
            self._folder.flush()
        n = 1 if last is None else last.n + 1
        line, _ = seal(text_of(Term(lease.token, n, lease.expires)))
        place = n % 2 * _PLACE
        try:
            write(self._handle, line.ljust(_PLACE, b"\0"), place)
            flush(self._handle, data_only=True)
        except BaseException:
            with contextlib.suppress(OSError):
                write(self._handle, bytes(_PLACE), place)
            raise

    def close(self) -> None:
        """Give the handle back."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _last(self, token: str) -> Term | None:
        """The last renewal of a token; None when there was none, or the file does not tell."""
        if self._handle >= 0 and os.fstat(self._handle).st_nlink == 0:
            self.close()
        if self._handle < 0:
            try:
                self._open(0)
            except FileNotFoundError:
                return None
        data = read(self._handle, 0, 2 * _PLACE)
        found = [term for term in (_term(data, 0), _term(data, _PLACE)) if term is not None and term.token == token]
        return max(found, key=lambda term: term.n, default=None)

    def _open(self, flags: int) -> None:
        self._handle = self._folder.open(LEASE, self._access | flags)


def _term(data: bytes, start: int) -> Term | None:
    line = unseal(data, start)
    if line is None:
        return None
    try:
        return noun_of(line.payload, Term)
    except ValueError:
        return None
