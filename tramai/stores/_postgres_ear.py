"""Hears of runs that may have come up: a connection of its own that listens. A hint and no more."""

from __future__ import annotations

import contextlib
import hashlib

from ._postgres_connection import connect
from ._postgres_url import Place

HINT = "hint"
"""The part of a write after which a run may come up: those who listen hear of it, when it is committed."""


def channel(place: Place) -> str:
    """The name under which the tables of a place are spoken of."""
    return "tramai_" + hashlib.sha256(f"{place.schema}.{place.prefix}".encode()).hexdigest()[:16]


class Ear:
    """Is readable when somebody said that something may have come up; see `pool.Ear`."""

    every: float | None = None

    def __init__(self, place: Place) -> None:
        self._raw = connect(place, 5.0, plain=True, met=True)
        try:
            self._raw.execute(f'LISTEN "{channel(place)}"')
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """The socket."""
        return self._raw.fileno()

    def heard(self) -> bool:
        """Take in what was said; whether that was anything."""
        link, found = self._raw.pgconn, False
        link.consume_input()
        while link.notifies() is not None:
            found = True
        return found

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(Exception):
            self._raw.close()
