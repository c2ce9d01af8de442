"""What a worker does with one run: put it in a queue, and carry out what was taken from one.

`enqueue` makes a run as `engine.run` does and stops there. `carry` goes on with a run that `Pool.take` gave, with the
definition from the store: no file is needed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from . import claiming, pool
from .audience import Audience
from .claiming import Claim
from .clock import Clock, SystemClock
from .codec import Json, encode
from .engine import new_for, restore, secrets_for, session_for
from .errors import LeaseLost, TramaiError
from .event import Observer
from .faults import public, safely
from .plan import Plan
from .results import Options, Result
from .store import Lease, Note, Run, Status, Store

_PLANS = 64
REFUSED = "worker.refused"
"""The event of a run that a worker could not begin with."""


class NotCarried(TramaiError):
    """run {run_id} cannot be carried out here: {what}"""

    code = "TRM452"
    exit_status = 5


class NoFolder(TramaiError):
    """the folder of run {run_id} is not here: {cwd}"""

    code = "TRM453"
    exit_status = 5


@safely
def enqueue(
    plan: Plan,
    inputs: Mapping[str, Json],
    *,
    store: Store,
    options: Options | None = None,
    clock: Clock | None = None,
) -> Run:
    """Make a run that waits for a worker. With a `start_key` that was used before: the run it started.

    `inputs` are bound already. The secrets are looked at, so that none of them ends up among the inputs; the worker
    fetches them again, for itself. Unsupported when workers cannot take runs from the store.
    """
    options, clock = options or Options(), clock or SystemClock()
    runs = pool.pooled(store)
    new, _ = new_for(plan, inputs, store, options, clock)
    run = runs.enqueue(new, now=clock.now())
    if options.trace is not None and run.run_id == new.run_id:
        from . import tracing

        tracing.leave(runs, run, options.trace, now=clock.now())
    return run


class Plans:
    """The plans of the definitions in a store, the last ones kept: many runs have the same."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Plan] = {}

    def of(self, run: Run) -> Plan:
        """The plan of a run; raises why it cannot be carried out here."""
        key = run.digest, run.version
        with self._lock:
            plan = self._known.pop(key, None)
            if plan is None:
                plan = restore(self._store, run)
                plan.able()
            self._known[key] = plan  # the last one used comes last
            if len(self._known) > _PLANS:
                del self._known[next(iter(self._known))]
            return plan


@safely
def carry(
    run: Run,
    lease: Lease,
    *,
    sent: float,
    store: Store,
    observers: Sequence[Observer] = (),
    options: Options | None = None,
    clock: Clock | None = None,
    plans: Plans | None = None,
) -> Result:
    """Carry a run that was taken (as it stood before) as far as it goes. `sent`: the monotonic time of the asking.

    NotCarried when it cannot be begun here: a secret or a package is missing, its definition cannot be read. The run
    is then given back as it was, the claim does not count, and its event list says why. `plans`: those of earlier runs.
    """
    options, clock = options or Options(), clock or SystemClock()
    if time.monotonic() - sent > options.lease / 2:
        _give_back(store, run, lease, clock, None)
        raise LeaseLost
    try:
        back = _stood_back(store, run, lease, sent, clock) if run.group is not None else None
        if back is not None:
            return back
        records = () if _is_new(run) else store.journal(run.run_id)
        claim = claiming.claimed(Claim(run, lease, sent, Audience(observers, run.run_id), records))
        plan = (plans or Plans(store)).of(run)
        if plan.spawns and not os.path.isdir(run.cwd):
            raise NoFolder(run_id=run.run_id, cwd=run.cwd, hint="the worker needs the same folder at the same place")
        secrets = secrets_for(plan, options, run.cwd)
        session = session_for(plan, claim, store, options, clock, secrets)
    except Exception as error:
        found = public(error)
        _give_back(store, run, lease, clock, found)
        said = NotCarried(run_id=run.run_id, what=found.message, hint=found.hint, because=found.code)
        raise said from error
    resumed = bool(claim.records) or run.fence > 1
    if not resumed or (run.queued and not claim.records):  # it begins now, not when it was put into the queue
        session.journal.note("run.taken", by=lease.owner)
    elif run.queued:
        session.journal.note("run.entered")
    ended = session.carry(resumed=resumed)
    if run.group is not None:
        from .queueing import call_up

        call_up(store, run.group, clock)
    return ended


def _stood_back(store: Store, run: Run, lease: Lease, sent: float, clock: Clock) -> Result | None:
    """How a run of a group stands that was given back because it has no place; None for one that goes on."""
    from .queueing import stand_back

    rule = restore(store, run).workflow.concurrency
    ours = Claim(run, lease, sent, Audience((), run.run_id), ())
    return stand_back(store, run, lease, rule, claiming.clock_of(store, ours, clock))


def _is_new(run: Run) -> bool:
    """Whether nobody had it before: it has no journal to be read."""
    return (run.fence, run.revision, run.rerun_of) == (1, 2, None)


def _give_back(store: Store, run: Run, lease: Lease, clock: Clock, error: TramaiError | None) -> None:
    """Let others have it as it was; its event list says why, once."""
    notes: tuple[Note, ...] = ()
    if error is not None:
        said = Note(
            at=clock.now(), type=REFUSED, by=lease.owner, comment=error.message, data=encode({"code": error.code})
        )
        told = store.notes(run.run_id)[-1:]
        if not any((note.type, note.data, note.comment) == (said.type, said.data, said.comment) for note in told):
            notes = (said,)
    change = replace(pool.given_back(run, clock.now()), notes=notes)
    with contextlib.suppress(TramaiError):  # else the lease ends by itself
        # One of a group is counted when it comes to its place, and not before: then this claim does not count either.
        entered = run.group is not None and store.get(run.run_id).status is Status.RUNNING
        store.commit(lease, replace(change, unclaimed=True) if entered else change)
        if entered:
            from .queueing import call_up

            call_up(store, run.group, clock)
