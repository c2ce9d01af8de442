"""A run as JSON lines, one event each."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..event import CalledEvent, Event, RunFinished, StepOutput, StepProgress
from ._encode import event_line
from ._terminal import Terminal


class Lines:
    """Writes every event but the children's output, counts of items and what called runs do, numbered from 1."""

    def __init__(self, terminal: Terminal, final: Callable[[RunFinished], RunFinished]) -> None:
        self._terminal = terminal
        self._final = final
        self._seq = 0
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write one line."""
        if isinstance(event, StepOutput | StepProgress | CalledEvent):
            return
        if isinstance(event, RunFinished):
            event = self._final(event)
        with self._lock:
            self._seq += 1
            self._terminal.line(event_line(event, self._seq))

    def pause(self) -> None:
        """Nobody is asked anything in the middle of JSON."""

    def close(self) -> None:
        """Every line is out already."""
