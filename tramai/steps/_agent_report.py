"""What a command-line agent tells while it works: its answer, its session, what it used, and that it failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from ..step import Usage
from ._agent_lines import Events

Say = Callable[[str], None]
_SHOWN = 160
"""Characters of a line about a tool."""
_ESCAPED = 6
"""Bytes that one byte of an answer may take in JSON (`\\u0000`)."""


class Report:
    """Reads what an agent writes to stdout, piece by piece, and knows at any time what it has told."""

    def __init__(self, longest: int, say: Say) -> None:
        self.text = ""
        self.value: Any = None
        """Data that the agent gave as such."""
        self.session_id: str | None = None
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.failure: str | None = None
        """What it says went wrong."""
        self.status: int | None = None
        """The HTTP status behind the failure, where it tells one."""
        self.over = False
        """It has said that its work is done."""
        self.too_long = False
        """Its last answer is longer than it may be."""
        self.unread = 0
        """Lines that could not be understood."""
        self.longest = longest
        self.say = say

    def feed(self, data: bytes) -> None:
        """Take a piece of stdout; it may end anywhere."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing more will come."""

    def answer(self, text: str) -> None:
        """Keep this as the answer, in place of an earlier one."""
        text = sound(text)
        self.too_long = len(text.encode()) > self.longest
        self.text = "" if self.too_long else text


class EventReport(Report):
    """The report of an agent that writes one JSON event a line. Events of an unknown type are left alone."""

    answers: ClassVar[re.Pattern[bytes]]
    """What stands at the beginning of a line that holds an answer."""

    def __init__(self, longest: int, say: Say) -> None:
        super().__init__(longest, say)
        self._events = Events(_ESCAPED * longest + (1 << 20), self._take, self._long)

    def feed(self, data: bytes) -> None:
        """Cut it into events."""
        self._events.feed(data)
        self.unread = self._events.others

    def close(self) -> None:
        """Read the last line."""
        self._events.close()
        self.unread = self._events.others

    def event(self, kind: str, event: dict[str, Any]) -> None:
        """Take one event."""
        raise NotImplementedError

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if isinstance(kind, str):
            self.event(kind, event)

    def _long(self, beginning: bytes) -> None:
        if self.answers.search(beginning):
            self.too_long, self.text = True, ""


def sound(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON can say and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def brief(text: str) -> str:
    """The first line of a text, for those who watch; shortened."""
    line = " ".join(sound(text[: 4 * _SHOWN]).split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def part(value: Any, name: str) -> dict[str, Any]:
    """A mapping inside an event, empty where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def said(value: Any, name: str) -> str | None:
    """A text inside an event, None where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def count(value: Any, *names: str) -> int:
    """The sum of some numbers of an event; what is no count is nothing."""
    found = [value.get(name) for name in names]
    return sum(one for one in found if type(one) is int and one > 0)
