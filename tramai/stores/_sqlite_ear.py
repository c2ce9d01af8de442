"""Hears that a SQLite file was written to: a look at its size and time, which costs next to nothing."""

from __future__ import annotations

import os


class Ear:
    """Is asked now and then; see `pool.Ear`."""

    every: float | None = 0.025

    def __init__(self, path: str) -> None:
        self._files = path, f"{path}-wal"
        self._seen = self._look()

    def fileno(self) -> int:
        """There is nothing to wait for."""
        return -1

    def heard(self) -> bool:
        """Whether anybody has written since the last look."""
        before, self._seen = self._seen, self._look()
        return before != self._seen

    def close(self) -> None:
        """Nothing is open."""

    def _look(self) -> tuple[tuple[int, int], ...]:
        found = []
        for file in self._files:
            try:
                stat = os.stat(file)
                found.append((stat.st_mtime_ns, stat.st_size))
            except OSError:
                found.append((0, 0))
        return tuple(found)
