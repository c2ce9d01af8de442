"""`tramai watch`: follow a run that somebody else carries, until it is over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..event import Event, RunFinished
from ._advice import short
from ._group import verb
from ._session import Session
from ._signals import Signals

if TYPE_CHECKING:
    from ..store import Run
    from ._follow import Follower
    from ._tally import Tally
    from .render import View

GLANCE = 0.5
"""Seconds between looks at the store."""
NOT_OVER = 11


@verb("watch", "tramai watch @last", "tramai watch k3f9q2mz --timeout 1h --json")
@click.argument("run", metavar="RUN")
@click.option("--timeout", metavar="DURATION", help="Stop watching after this long; the run goes on.")
def command(session: Session, run: str, timeout: str | None) -> int:
    """Follow a run from the store until it is over, whoever carries it.

    It shows what `tramai run` shows there, and stays while the run sleeps, waits
    for a decision, or is carried by nobody. With --json, one event a line. Ctrl-C
    stops watching, never the run.

    Exit status: that of the run: 0 completed, 1 failed, 10 a gate rejected, 12
    cancelled. 11 when --timeout came first, 4 no such run, 7 store unusable.
    """
    from . import _ending, _select, render
    from ._follow import Follower
    from ._tally import Tally

    limit = None if timeout is None else _seconds(timeout)
    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    tally, last = Tally(), None
    with Signals("no longer watched; the run goes on") as signals:
        views = render.choose(session, (), lambda event: event)
        signals.announce = next((view.announce for view in views if hasattr(view, "announce")), None)
        try:
            last = _watch(session, Follower(store, run_id), [tally, *views], signals, limit)
        finally:
            for view in views:
                view.close()
        if last is None:
            return signals.exit_status if signals.number is not None else NOT_OVER
    if not session.json:
        _ending.show(session, last, tally, None, store)
    return last.exit_status


def _watch(
    session: Session, follower: Follower, views: list[Tally | View], signals: Signals, limit: float | None
) -> RunFinished | None:
    """Show what happens; the last event, None when the time or the patience is over."""
    ends = None if limit is None else time.monotonic() + limit
    told = ""
    while True:
        for event in follower.news():
            _show(views, event)
            if isinstance(event, RunFinished):
                return event
        said = _standing(follower.run)
        if said != told:
            session.note(said) if said else None
            told = said
        left = GLANCE if ends is None else min(GLANCE, ends - time.monotonic())
        if left <= 0:
            session.note(f"still {follower.run.status.value}; the run goes on without being watched")
            return None
        if _wait(signals, left) or session.out.broken:
            return None


def _show(views: list[Tally | View], event: Event) -> None:
    for view in views:
        view(event)


def _wait(signals: Signals, seconds: float) -> bool:
    """Whether a signal came meanwhile."""
    import select

    ready, _, _ = select.select([signals.interrupt.fileno()], [], [], seconds)
    return bool(ready)


def _standing(run: Run) -> str:
    """What to say of a run that nobody carries now."""
    name = short(run.run_id)
    if run.status.value == "waiting":
        return f"waiting for a decision: tramai status, tramai approve {name}"
    if run.status.value == "sleeping":
        return "sleeping"
    if run.status.value == "blocked":
        return f"blocked: tramai show {name}"
    if run.status.value == "ready" or run.stale(time.time()):
        return f"nobody carries it: tramai resume {name}"
    return ""


def _seconds(text: str) -> float:
    from .. import duration

    try:
        return float(duration.parse(text))
    except ValueError as error:
        raise UsageError(what=f"--timeout: {text} is no duration", hint=str(error)) from None
