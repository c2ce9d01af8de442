"""Runs workflows over a store: start, resume and rerun; all enter the one loop of a session."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from . import caps, claiming, secret
from .audience import Audience, Overheard
from .claiming import Claim
from .clock import Clock, SystemClock
from .codec import Json, decode, encode
from .errors import LeaseHeld, NotFound, NotInThatState, RunCancelled, SecretMissing
from .event import Observer
from .faults import safely
from .plan import Plan
from .redact import Redactor
from .results import CALLED, Options, Result, exit_status, user
from .session import Session
from .standing import compare, new_id, nothing_to_do, outcome_unknown, restore, standing, waits_for_somebody
from .store import CALLED_QUEUE, Group, Holder, NewRun, Note, Record, Run, Status, Store

if TYPE_CHECKING:
    from .calling import Order

__all__ = [
    "Options",
    "Result",
    "cancel",
    "compare",
    "exit_status",
    "new_id",
    "rerun",
    "restore",
    "resume",
    "run",
    "standing",
    "waits_for_somebody",
]


@safely
def run(
    plan: Plan,
    inputs: Mapping[str, Json],
    *,
    store: Store,
    observers: Sequence[Observer] = (),
    options: Options | None = None,
    clock: Clock | None = None,
) -> Result:
    """Start a new run and carry it as far as it goes.

    `inputs` are bound already (see `inputs.bind`). With a `start_key` that was used before, the run it started is
    returned and nothing runs. Raises SecretMissing before anything is written.
    """
    options, clock = options or Options(), clock or SystemClock()
    new, secrets = new_for(plan, inputs, store, options, clock)
    sent, holder = time.monotonic(), Holder.here()
    owner = claiming.owner(holder)
    record, lease = store.create(new, owner=owner, holder=holder, ttl=options.lease, now=clock.now())
    if lease is None:
        return _started_before(store, record)
    claim = claiming.claimed(Claim(record, lease, sent, Audience(observers, record.run_id), ()))
    return session_for(plan, claim, store, options, clock, secrets).carry(resumed=False)


@safely
def resume(
    run_id: str,
    *,
    store: Store,
    plan: Plan | None = None,
    accept_changes: bool = False,
    observers: Sequence[Observer] = (),
    options: Options | None = None,
    clock: Clock | None = None,
) -> Result:
    """Go on with a run, from its journal.

    `plan` is the workflow file as it is now: it must say the same as the run's definition (DefinitionChanged), or with
    `accept_changes` differ only in steps that have not begun. None: the stored definition is used.
    A completed run answers with its stored result. Raises NotFound, LeaseHeld, OutcomeUnknown, NotInThatState.
    """
    options, clock = options or Options(), clock or SystemClock()
    found = _here(store, store.get(run_id), clock)
    if found.status is Status.COMPLETED:
        return standing(found, resumed=False)
    if found.status is Status.CANCELLED:
        raise RunCancelled(run_id=run_id)
    if found.status.terminal:
        what = "it is over and cannot be resumed"
        raise NotInThatState(run_id=run_id, status=found.status.value, what=what)
    stored = restore(store, found)
    if plan is None:
        plan = stored
    if waits_for_somebody(store, found, plan):
        raise outcome_unknown(found, store.journal(run_id))
    changed = compare(stored, plan)
    if changed:
        from .changes import judge

        judge(found, stored, plan, changed, store.journal(run_id), accept=accept_changes)
    if nothing_to_do(store, found, options, clock.now() + options.wait):
        return standing(found, resumed=False)
    plan.able()
    secrets = secrets_for(plan, options, found.cwd)
    claim = claiming.claim(store, run_id, Audience(observers, run_id), options, clock)
    session = session_for(plan, claim, store, options, clock, secrets)
    if changed:
        session.adopt(changed)
    return session.carry(resumed=True)


@safely
def rerun(
    run_id: str,
    *,
    store: Store,
    plan: Plan | None = None,
    start_at: str | None = None,
    accept_changes: bool = False,
    observers: Sequence[Observer] = (),
    options: Options | None = None,
    clock: Clock | None = None,
) -> Result:
    """Start a new run with the inputs of an earlier one, and carry it as far as it goes.

    `start_at` is the path or id of a step: what stands before it is not run again, its results are taken over. The
    inputs come from the store, secrets are fetched again, the working folder and the labels are those of the earlier
    run. `plan` is the workflow file as it is now; when it says something else, that is DefinitionChanged, unless
    `accept_changes`, and even then if a change touches a result that is taken over. None: the stored definition.
    """
    from .portable import StartKeyTaken, portable
    from .rerun import again

    options, clock = options or Options(), clock or SystemClock()
    found = _here(store, store.get(run_id), clock)
    plan, kept = _taken_over(store, found, plan, start_at, accept=accept_changes)
    plan.able()
    cwd = os.path.abspath(options.cwd or found.cwd)
    secrets = secrets_for(plan, options, cwd)
    redactor = Redactor(secrets.values())
    new = again(
        found,
        plan,
        kept,
        run_id=options.run_id or new_id(clock),
        start_at=start_at,
        start_key=options.start_key,
        labels=options.labels,
        cwd=cwd,
        by=options.started_by or user(),
        now=clock.now(),
    )
    group = group_for(store, plan, decode(new.run.inputs), secrets)
    new = replace(new, run=replace(new.run, inputs=redactor.json(new.run.inputs), group=group))
    caps.check_inputs(plan.workflow.limits, decode(new.run.inputs), new.run.inputs)
    try:
        portable(store, "adopt").adopt(new)
    except StartKeyTaken as taken:
        return _started_before(store, store.get(str(taken.details["run_id"])))
    claim = claiming.claim(store, new.run.run_id, Audience(observers, new.run.run_id), options, clock, known=kept)
    return session_for(plan, claim, store, options, clock, secrets).carry(resumed=False)


@safely
def cancel(
    run_id: str,
    *,
    store: Store,
    by: str = "",
    comment: str | None = None,
    options: Options | None = None,
    clock: Clock | None = None,
) -> Run:
    """Cancel a run for good; how it stands after that.

    Who owns it now stops its steps and runs its `finally`. Where nobody does, and it has begun, its `finally` runs
    here. The runs it has called are cancelled with it. NotFound; NotInThatState for a run that is over.
    """
    options, clock = options or Options(), clock or SystemClock()
    found = store.get(run_id)
    lease = found.lease
    owned = lease is not None and lease.expires > clock.now() and not lease.holder.known_dead()
    if not owned and not found.status.terminal and store.journal(run_id):
        plan = restore(store, found)
        if plan.workflow.finally_ is not None:
            with contextlib.suppress(SecretMissing, LeaseHeld):  # then it is cancelled without
                return _cancelled_here(store, found, plan, by, comment, options, clock)
    note = Note(at=clock.now(), type="cancel.requested", by=by or None, comment=comment)
    after = store.request_cancel(run_id, note, now=clock.now())
    if after.status is Status.CANCELLED:
        from .calling import open_calls

        children = _Children(store, options, clock)
        for child in open_calls(store.journal(run_id)):
            children.cancel(child)
    return after


def _cancelled_here(
    store: Store, found: Run, plan: Plan, by: str, comment: str | None, options: Options, clock: Clock
) -> Run:
    secrets = secrets_for(plan, options, found.cwd)
    claim = claiming.claim(store, found.run_id, Audience((), found.run_id), options, clock)
    session = session_for(plan, claim, store, options, clock, secrets, cancelling=True)
    session.journal.note("cancel.requested", by=by or None, comment=comment)
    session.carry(resumed=True)
    return store.get(found.run_id)


class _Children:
    """Carries out the runs that a run calls: `calling.Children`."""

    def __init__(self, store: Store, options: Options, clock: Clock, audience: Audience | None = None) -> None:
        """`audience`: of the run that calls; it hears what the steps of called runs do."""
        self._store = store
        self._options = options
        self._clock = clock
        self._audience = audience

    def carry(self, order: Order) -> tuple[Result, Run]:
        """Start it, or go on with it."""
        return self._carried(order), self._store.get(order.run_id)

    def _carried(self, order: Order) -> Result:
        options = replace(
            self._options,
            start_key=None,
            labels=(),
            queue=CALLED_QUEUE,
            started_by=f"{CALLED}{order.caller}",
            cwd=order.cwd,
            run_id=order.run_id,
            interrupt=order.interrupt,
            hurry=order.hurry,
            secrets=self._secrets(order),
            order=order,
            again=None,  # its caller is tried again
            answer=None,  # nobody is asked in the middle of a step
        )
        heard = self._heard(order)
        try:
            found = self._store.get(order.run_id)
        except NotFound:
            return run(order.plan, order.inputs, store=self._store, observers=heard, options=options, clock=self._clock)
        if found.status.terminal or (found.status is Status.FAILED and order.first):
            return standing(found, resumed=False)
        plan = order.plan if order.plan.digest == found.digest else None  # else the stored definition counts
        return resume(order.run_id, store=self._store, plan=plan, observers=heard, options=options, clock=self._clock)

    def _heard(self, order: Order) -> tuple[Observer, ...]:
        """Tells the audience of the caller what a called run does."""
        if self._audience is None or not self._audience.observers:
            return ()
        return (Overheard(self._audience, order.path, order.run_id),)

    def _secrets(self, order: Order) -> dict[str, str]:
        """What it is given, and the rest from its own sources (or from whoever brings all secrets)."""
        brought = {**(self._options.secrets or {}), **order.secrets}
        declared = order.plan.workflow.secrets
        rest = {name: source for name, source in declared.items() if name not in brought}
        return {**{name: brought[name] for name in declared if name in brought}, **secret.resolve(rest, base=order.cwd)}

    def cancel(self, run_id: str) -> None:
        """Cancel it, unless it is over or was never made."""
        with contextlib.suppress(NotFound, NotInThatState):
            cancel(run_id, store=self._store, options=self._options, clock=self._clock)


def _here(store: Store, found: Run, clock: Clock) -> Run:
    """The run, if it is here that it can go on; one that was being moved here when somebody died may have to wait."""
    if found.status is not Status.ARRIVING and not found.status.tombstone:
        return found
    from . import moving

    if found.status is Status.ARRIVING:
        from .stores import open_store

        return moving.arrive(
            store, found, open_source=lambda url: open_store(url, create=False), by=user(), clock=clock
        )
    raise moving.gone(store, found)


def _started_before(store: Store, run: Run) -> Result:
    """The answer to a start key that was used before."""
    if run.status.tombstone:
        from .moving import gone

        raise gone(store, run)
    return standing(run, resumed=False)


def _taken_over(
    store: Store, found: Run, plan: Plan | None, start_at: str | None, *, accept: bool
) -> tuple[Plan, tuple[Record, ...]]:
    """The plan of a rerun, and the records it begins with."""
    from .rerun import before, find

    stored = restore(store, found)
    plan = plan or stored
    kept = () if start_at is None else before(found, find(plan, start_at), store.journal(found.run_id))
    changed = compare(stored, plan)
    if changed and not (accept and not kept):
        from .changes import judge

        judge(found, stored, plan, changed, kept, accept=accept, verb="rerun")
    return plan, kept


def new_for(
    plan: Plan, inputs: Mapping[str, Json], store: Store, options: Options, clock: Clock
) -> tuple[NewRun, Mapping[str, str]]:
    """What a run starts from, and the secrets that it is given: none of them stands among its inputs."""
    cwd = os.path.abspath(options.cwd or os.getcwd())
    secrets = secrets_for(plan, options, cwd)
    given = Redactor(secrets.values()).json(encode(dict(inputs)))
    caps.check_inputs(plan.workflow.limits, inputs, given)
    new = NewRun(
        run_id=options.run_id or new_id(clock),
        definition=plan.definition(),
        inputs=given,
        cwd=cwd,
        created=clock.now(),
        started_by=options.started_by or user(),
        start_key=options.start_key,
        labels=options.labels,
        queue=options.queue,
        priority=options.priority,
        group=group_for(store, plan, inputs, secrets),
    )
    return new, secrets


def secrets_for(plan: Plan, options: Options, base: str) -> Mapping[str, str]:
    """The values of the secrets that a run in the folder `base` is given."""
    if options.secrets is not None:
        return options.secrets
    found = secret.resolve(plan.workflow.secrets, base=base, interrupt=options.interrupt)
    if options.warn is not None:
        for name, source in plan.workflow.secrets.items():
            for _, message, hint in secret.advice(name, source, base=base, value=found[name]):
                options.warn(f"{message}; {hint}")
    return found


def group_for(store: Store, plan: Plan, inputs: Mapping[str, Json], secrets: Mapping[str, str]) -> Group | None:
    """The group of a new run. What there is about groups is imported only for those who have one."""
    if plan.workflow.concurrency is None:
        return None
    from .portable import portable
    from .queueing import group_of

    portable(store, "enter")
    return group_of(plan, inputs, Redactor(secrets.values()))


def session_for(
    plan: Plan,
    claim: Claim,
    store: Store,
    options: Options,
    clock: Clock,
    secrets: Mapping[str, str],
    *,
    cancelling: bool = False,
) -> Session:
    """The session of a claim: what carries the run out."""
    session = Session(
        plan,
        claim.run,
        claim.lease,
        claim.records,
        store,
        claim.audience,
        options,
        claiming.clock_of(store, claim, clock),
        secrets,
        claim.sent,
        _Children(store, options, clock, claim.audience),
        cancelling=cancelling,
    )
    claim.audience.parent = options.trace
    if claim.audience.tracers:
        from . import tracing

        tracing.begin(claim, session.journal, store, options.trace)
    return session
