"""A call in which nothing had to be done: the run is over, or sleeps, or is another's."""

from __future__ import annotations

from typing import Any

from ..event import Event, RunFinished, RunStarted
from ..results import Result
from ..store import Store
from . import _people


def events(store: Store, result: Result) -> tuple[Event, ...]:
    """The first and last event of a run in which nothing had to be done: it is over, or sleeps, or is another's."""
    found = store.get(result.run_id)
    if result.status == "interrupted":
        _refuse_unfinished(found)
    started = RunStarted(
        run_id=found.run_id,
        workflow=found.workflow,
        version=found.version,
        digest=found.digest,
        resumed=False,
        file=found.file,
    )
    finished = RunFinished(
        run_id=result.run_id,
        status=result.status,
        exit_status=result.exit_status,
        outputs=result.outputs,
        error=result.error,
        wake_at=result.wake_at,
    )
    return started, *(_people.asked(store, found) if result.status == "waiting" else ()), finished


def _refuse_unfinished(found: Any) -> None:
    """A start key whose run is under way, or was left half done: neither a result nor ours to go on with."""
    from ..clock import SystemClock
    from ..errors import LeaseHeld, NotInThatState
    from ._advice import short
    from ._clockface import until

    now = SystemClock().now()
    lease = found.lease
    if lease is not None and lease.expires > now and not lease.holder.known_dead():
        raise LeaseHeld(run_id=found.run_id, owner=lease.owner, until=until(lease.expires, now))
    raise NotInThatState(
        run_id=found.run_id,
        status=found.status.value,
        what="it was started with this key and is not finished",
        hint=f"tramai resume {short(found.run_id)}",
    )
