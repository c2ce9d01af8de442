"""A run in the log of a CI system: plain lines, those of each step in a part that can be folded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..event import Event, GateAsked, RunFinished, StepFinished, StepStarted
from ._ci import Dialect, title_of
from ._plain import Plain
from ._terminal import Terminal

_TOP = re.compile(r"(@\w+(\[\d+\])?\.)?[^.\[]+")
"""The path of a step that stands in a block of the workflow itself."""


class Grouped(Plain):
    """What a step says is folded; how it ended is not."""

    def __init__(self, terminal: Terminal, names: Sequence[str], dialect: Dialect, *, verbose: bool = False) -> None:
        super().__init__(terminal, names, verbose=verbose)
        self._dialect = dialect
        self._open: str | None = None

    def pause(self) -> None:
        """A question is not folded."""
        with self._lock:
            for line in self._closed():
                self._terminal.line(line)

    def close(self) -> None:
        """End the part that is open, too."""
        super().close()
        self.pause()

    def _lines(self, event: Event) -> list[str]:
        said = super()._lines(event)
        if isinstance(event, StepStarted) and _TOP.fullmatch(event.path):
            if event.path == self._open:
                return said  # another attempt
            # The head of the part says what the first line would.
            head = self._dialect.open(title_of(event.path, event.verb))
            before, self._open = self._closed(), event.path
            return [*before, *head]
        if isinstance(event, StepFinished) and event.path == self._open:
            return [*said[:-1], *self._closed(), *said[-1:]]
        if isinstance(event, GateAsked | RunFinished):
            return [*self._closed(), *said]
        return said

    def _closed(self) -> list[str]:
        if self._open is None:
            return []
        self._open = None
        return self._dialect.close()
