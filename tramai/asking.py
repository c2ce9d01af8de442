"""What a gate asks of people, what they have said, and what follows from that; nothing here touches a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .codec import Json, decode

if TYPE_CHECKING:
    from .store import Note

APPROVED, REJECTED, TIMED_OUT = "approved", "rejected", "timed_out"
ASKED, DECIDED = "gate.asked", "gate.decided"
"""Types of the lines in a run's event list."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate asked, fixed when it asked. `number` tells the askings of one step apart, from 1.

    `form` is the JSON Schema of the data that come with a decision; without `approvers` anybody may decide. `min` of
    them must approve; one rejection decides. `deadline` is an instant, epoch seconds.
    """

    number: int = 1
    ask: str
    show: Json = None
    form: dict[str, Any] | None = None
    approvers: tuple[str, ...] = ()
    min: int = 1
    asked: float
    deadline: float | None = None
    on_timeout: str = "fail"

    @property
    def needs(self) -> tuple[str, ...]:
        """The fields that an approval must bring."""
        return tuple((self.form or {}).get("required", ()))


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """What one person said, or (`timed_out`, by nobody) that nobody said enough in time."""

    decision: str
    by: str | None = None
    at: float
    comment: str | None = None
    data: Json = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """How a question was decided, and by whom: `last` is the vote that decided it."""

    decision: str
    votes: tuple[Vote, ...]

    @property
    def last(self) -> Vote:
        """The vote that decided."""
        return self.votes[-1]


def subject(path: str, number: int) -> dict[str, Json]:
    """What a line of the event list is about: a step, and which of its askings."""
    return {"path": path, "asking": number}


def votes(notes: Iterable[Note], path: str, number: int) -> tuple[Vote, ...]:
    """What was said to one asking, in order."""
    return tuple(all_votes(notes).get((path, number), ()))


def all_votes(notes: Iterable[Note]) -> dict[tuple[Any, Any], list[Vote]]:
    """What was said to every asking, by its path and number, each in order."""
    found: dict[tuple[Any, Any], list[Vote]] = {}
    for note in notes:
        if note.type != DECIDED or note.data is None:
            continue
        data = decode(note.data)
        vote = Vote(decision=data["decision"], by=note.by, at=note.at, comment=note.comment, data=data.get("data"))
        found.setdefault((data.get("path"), data.get("asking")), []).append(vote)
    return found


def outcome(question: Question, said: Sequence[Vote]) -> Decision | None:
    """How a question is decided by what was said to it; None while it is open. What came after that says nothing."""
    approving: set[str | None] = set()
    for place, vote in enumerate(said, 1):
        if vote.decision == APPROVED:
            approving.add(vote.by)
        if vote.decision != APPROVED or len(approving) >= question.min:
            return Decision(decision=vote.decision, votes=tuple(said[:place]))
    return None
