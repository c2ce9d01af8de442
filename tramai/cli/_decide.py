"""Approve or reject: what `approve` and `reject` share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ._advice import short
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ..deciding import Decided
    from ..store import Store

GLANCE = 0.2
PATIENCE = 5.0
"""Seconds that a runner is given to take a decision up."""
OPTIONS = (
    click.argument("run", metavar="RUN"),
    click.argument("step", metavar="[STEP]", required=False),
    click.option("--comment", metavar="TEXT", help="Why; kept with the decision, and the run can read it."),
    click.option(
        "--data",
        "pairs",
        metavar="KEY=VALUE",
        multiple=True,
        help="A field of the gate's form: KEY=VALUE as the declared type, KEY:=JSON, or KEY=@FILE for a file's text.",
    ),
    click.option("--as", "by", metavar="NAME", help="Who decides; default: the login name."),
    click.option("--resume", "go_on", is_flag=True, help="Go on with the run here, once the decision is stored."),
    click.option(
        "--report",
        "reports",
        metavar="KIND=FILE",
        multiple=True,
        help="With --resume: when the run stops, write a report of it: junit=FILE, json=FILE or md=FILE.",
    ),
)


def options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the arguments and options that both have."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def decide(
    session: Session,
    decision: str,
    *,
    run: str,
    step: str | None,
    comment: str | None,
    pairs: tuple[str, ...],
    by: str | None,
    go_on: bool,
    reports: tuple[str, ...],
) -> int:
    """Store the decision, say what follows from it, and go on with the run if that is asked for."""
    from .. import deciding, rules
    from ..clock import SystemClock
    from . import _given, _select
    from ._who import me

    name = by if by is not None else me()
    if not name:
        raise UsageError(what="nobody knows who decides: this login has no name", hint="say it with --as NAME")
    _check_reports(reports, go_on)
    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    data = _given.gather(pairs, None, flag="--data")
    decided = deciding.decide(
        store, run_id, step, decision=decision, by=name, comment=comment, data=data, clock=SystemClock()
    )
    carried = rules.active(decided.run.lease, time.time())
    if session.json:
        session.emit(_document(decided))
    else:
        _tell(session, decided, carried=carried, go_on=go_on)
    if not go_on:
        return 0
    if carried and _is_taken_up(store, decided):
        if reports:
            session.note("no report is written here: the runner that has the run goes on with it")
        return 0
    from ._start import Request, resume

    return resume(session, Request(run=run_id, reports=reports))


def _check_reports(reports: tuple[str, ...], go_on: bool) -> None:
    """Refuse a report that cannot be written, before the decision is stored for ever."""
    if not reports:
        return
    if not go_on:
        hint = "tramai export RUN writes one down at any time"
        raise UsageError(what="--report goes with --resume: it tells how the run went on", hint=hint)
    from ._run_reports import Reports

    Reports(reports)


def _is_taken_up(store: Store, decided: Decided) -> bool:
    """Whether the runner that holds the run goes on with the decision, or is at work on something else.

    False when it has let go of the run meanwhile: it may have looked for decisions just before this one came.
    """
    from .. import deciding, rules

    one, ends = decided.open, time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        run = store.get(decided.run.run_id)
        if not rules.active(run.lease, time.time()):
            return run.status.terminal
        open_ = {(other.path, other.question.number) for other in deciding.look(store, run.run_id)}
        if (one.path, one.question.number) not in open_:
            return True
        time.sleep(GLANCE)
    return True


def _tell(session: Session, decided: Decided, *, carried: bool, go_on: bool) -> None:
    run = short(decided.run.run_id)
    one, vote = decided.open, decided.vote
    session.out.line(f"gate {safe(one.path)} of run {run}: {vote.decision} by {safe(vote.by or '')}")
    if one.decision is None:
        session.note(f"  {one.approvals} of {one.question.min} approvals; it still waits")
    elif carried:
        session.note("  its runner goes on")
    elif not go_on:
        session.note(f"  resume:   tramai resume {run}")


def _document(decided: Decided) -> object:
    from ._gate_documents import Decision

    one, vote = decided.open, decided.vote
    return Decision(
        run_id=decided.run.run_id,
        path=one.path,
        asking=one.question.number,
        decision=vote.decision,
        by=vote.by or "",
        at=vote.at,
        comment=vote.comment,
        data=vote.data,
        outcome=one.decision.decision if one.decision is not None else None,
        approvals=one.approvals,
        min=one.question.min,
        status=decided.run.status.value,
    )
