"""Observers that write down what they see, into files of the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Tally:
    """One line for each event."""

    def __call__(self, event: Any) -> None:
        """Write down its type."""
        with Path("events.txt").open("a") as file:
            print(type(event).__name__, file=file)


class Listener:
    """One line for each signal."""

    def signal(self, signal: Any) -> None:
        """Write down its name."""
        with Path("signals.txt").open("a") as file:
            print(signal.name, file=file)
