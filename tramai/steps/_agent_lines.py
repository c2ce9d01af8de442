"""The lines that an agent CLI writes, as events: lines of any length, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

HEAD = 4 << 10
"""Bytes of a line that is too long to be kept, which tell what it was."""


class Events:
    """Cuts a stream into lines and gives each that is a JSON object to `on_event`.

    A line over `longest` bytes is not kept: `on_long` gets its beginning. `others` counts the lines that are no events.
    """

    def __init__(
        self, longest: int, on_event: Callable[[dict[str, Any]], None], on_long: Callable[[bytes], None]
    ) -> None:
        self.others = 0
        self._longest = longest
        self._on_event = on_event
        self._on_long = on_long
        self._line = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> None:
        """Take what came; pieces may end anywhere."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            self._end()
            start = end + 1
        self._add(data[start:])

    def close(self) -> None:
        """The stream is over; its last line may have no end."""
        self._end()

    def _add(self, part: bytes) -> None:
        if self._skipping:
            return
        self._line += part
        if len(self._line) > self._longest:
            self._on_long(bytes(self._line[:HEAD]))
            self._line.clear()
            self._skipping = True

    def _end(self) -> None:
        line, self._line = self._line, bytearray()
        if self._skipping:
            self._skipping = False
            return
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict):
            self._on_event(event)
        else:
            self.others += 1
