"""A gate's question, as the run that asks it sees it: journaled when it is asked, open until it is decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from . import asking
from .asking import Decision, Question
from .codec import decode, encode
from .errors import CheckpointConflict
from .event import GateAsked, GateDecided
from .paths import step_id
from .step import Node
from .store import Mark, Note

if TYPE_CHECKING:
    from .host import StoreHost


async def answer(
    host: StoreHost, node: Node, path: str, attempt: int, make: Callable[[], Question]
) -> tuple[Question, Decision | None]:
    """The question of a step and how it was decided; None while it is open.

    It is asked the first time, and again after an attempt that failed by it. When its deadline has passed that is its
    decision, unless somebody was faster: the order of the event list settles it.
    """
    question = _asked(host, node, path, make)
    await host.durable(pure=False)
    while True:
        notes = await host.driver.blocking(host.journal.notes, host.interrupt, 10.0)
        decision = asking.outcome(question, asking.votes(notes, path, question.number))
        now = host.clock.now()
        if decision is None and question.deadline is not None and now >= question.deadline:
            try:
                await host.driver.blocking(
                    lambda: host.journal.post(_late(path, question, now), after=len(notes)),  # noqa: B023 (awaited here)
                    host.interrupt,
                    10.0,
                )
            except CheckpointConflict:
                pass
            continue
        if decision is None and host.audience.news("asked", path, question.number):
            _tell_asked(host, node, path, attempt, question)
            continue  # whoever heard it may have decided
        if decision is not None:
            _tell_decided(host, node, path, attempt, decision)
        return question, decision


def _asked(host: StoreHost, node: Node, path: str, make: Callable[[], Question]) -> Question:
    past = host.journal.past(path)
    before = past.decided.value if past is not None and past.decided is not None else None
    question = None if before is None else msgspec.convert(decode(before), Question)
    if question is None or past is None or past.decided is None or past.failed > past.decided.seq:
        number = 1 if question is None else question.number + 1
        fresh = msgspec.structs.replace(make(), number=number)
        kept = {**msgspec.structs.asdict(fresh), "approvers": list(fresh.approvers)}
        text = host.texts.value(kept, "the question of a gate")
        host.journal.add(host.record(node.verb, path, Mark.DECIDED, 0, value=text))
        about = {**asking.subject(path, number), "deadline": fresh.deadline}
        host.journal.note(asking.ASKED, data=encode(about))
        question = msgspec.convert(decode(text), Question)
    return question


def _late(path: str, question: Question, now: float) -> Note:
    data = {**asking.subject(path, question.number), "decision": asking.TIMED_OUT}
    return Note(at=now, type=asking.DECIDED, data=encode(data))


def told_of(path: str, question: Question) -> GateAsked:
    """The event that tells of a question."""
    return GateAsked(
        path=path,
        id=step_id(path),
        asking=question.number,
        ask=question.ask,
        deadline=question.deadline,
        approvers=question.approvers,
        min=question.min,
        needs=question.needs,
    )


def _tell_asked(host: StoreHost, node: Node, path: str, attempt: int, question: Question) -> None:
    told: dict[str, Any] = {"deadline": question.deadline, "approvers": len(question.approvers), "min": question.min}
    host.audience.signal_of(asking.ASKED, node.id, path, attempt, told)
    if host.audience.observers:
        host.audience.tell(told_of(path, question))


def _tell_decided(host: StoreHost, node: Node, path: str, attempt: int, decision: Decision) -> None:
    told: dict[str, Any] = {"decision": decision.decision, "votes": len(decision.votes)}
    host.audience.signal_of(asking.DECIDED, node.id, path, attempt, told)
    if host.audience.observers:
        last = decision.last
        host.audience.tell(GateDecided(path=path, id=node.id, decision=decision.decision, by=last.by, at=last.at))
