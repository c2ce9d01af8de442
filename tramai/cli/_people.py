"""Where people come into a run: gates answered beforehand, at the terminal, and those that still wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..event import Event, StepStarted
from ..paths import step_id
from ._session import Session

if TYPE_CHECKING:
    from ..plan import Plan
    from ..store import Run, Store
    from . import render
    from ._answers import Answers
    from ._prompt import Prompt
    from ._signals import Signals


def answers(
    session: Session, given: Sequence[str], plan: Plan | None, store: Store, found: Run | None = None
) -> Answers | None:
    """The gates that are answered beforehand; without a plan, those of the definition of `found`."""
    if not given:
        return None
    from ._answers import Answers

    made = Answers(session, store, given)
    if plan is None and found is not None:
        from .. import engine

        plan = engine.restore(store, found)
    if plan is not None:
        made.check(plan)
    return made


def prompt(
    session: Session, plan: Plan | None, store: Store, signals: Signals, views: Sequence[render.View]
) -> Prompt | None:
    """Somebody at the terminal who can be asked; None when there is nobody, or nothing to ask."""
    if not session.err.tty or (plan is not None and not _asks(plan)):
        return None
    from . import _prompt

    def pause() -> None:
        for view in views:
            view.pause()

    return _prompt.Prompt(session, store, signals.interrupt, pause) if _prompt.possible(session) else None


def asked(store: Store, found: Run) -> Iterator[Event]:
    """The open questions of a run that waits, as its runner told them."""
    from .. import deciding
    from ..answering import told_of

    for one in deciding.look(store, found.run_id):
        if one.decision is None:
            question, id = one.question, step_id(one.path)
            yield StepStarted(path=one.path, id=id, verb="gate", attempt=1, at=question.asked)
            yield told_of(one.path, question)


def _asks(plan: Plan) -> bool:
    """Whether a gate of the workflow asks people."""
    return any(getattr(node.step, "ask", None) is not None for node in plan.nodes.values())
