"""What the slots that tests make up have in common: what they report comes over a pipe."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tramai.worker import Report


class Told:
    """A slot without a process. Whoever is not told otherwise is never asked to stop or to withdraw."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._reports: list[Report] = []

    def say(self, report: Report) -> None:
        """Report."""
        self._reports.append(report)
        os.write(self._writer, b"x")

    def fileno(self) -> int:
        """Readable when there is a report."""
        return self._reader

    def read(self) -> Sequence[Report]:
        """What there is to report."""
        reports, self._reports = self._reports, []
        if reports:
            os.read(self._reader, len(reports))
        return reports

    def flush(self) -> None:
        """It has heard already."""

    def withdraw(self) -> None:
        """Not expected here."""
        raise AssertionError("nothing is ahead")

    def stop(self, reason: str) -> None:
        """Not expected here."""
        raise AssertionError("nothing is to be stopped")

    def close(self) -> None:
        """Give the pipe back."""
        for end in (self._reader, self._writer):
            if end >= 0:
                os.close(end)
        self._reader = self._writer = -1
