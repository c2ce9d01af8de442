"""Runs workflows over a store: start, resume and rerun; all enter the one loop of a session."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from . import caps, recovery, secret
from .audience import Audience
from .clock import Clock, SystemClock
from .codec import Json, decode, encode
from .errors import LeaseHeld, NotInThatState, OutcomeUnknown
from .event import Observer
from .faults import safely
from .plan import Plan
from .redact import Redactor
from .results import Options, Result, exit_status, user
from .session import Session
from .store import Holder, Lease, NewRun, Record, Run, Status, Store

if TYPE_CHECKING:
    from .diff import Difference

__all__ = ["Options", "Result", "compare", "exit_status", "new_id", "rerun", "restore", "resume", "run", "standing"]


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
    cwd = os.path.abspath(options.cwd or os.getcwd())
    secrets = _secrets(plan, options, cwd)
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
    )
    sent = time.monotonic()
    holder = Holder.here()
    record, lease = store.create(new, owner=_owner(holder), holder=holder, ttl=options.lease, now=clock.now())
    if lease is None:
        return _started_before(store, record)
    audience = Audience(observers, record.run_id)
    _claimed(audience, lease)
    session = Session(plan, record, lease, (), store, audience, options, clock, secrets, sent)
    return session.carry(resumed=False)


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
    if _nothing_to_do(store, found, options, clock.now() + options.wait):
        return standing(found, resumed=False)
    secrets = _secrets(plan, options, found.cwd)
    sent = time.monotonic()
    holder = Holder.here()
    audience = Audience(observers, run_id)
    try:
        before, lease = store.claim(run_id, owner=_owner(holder), holder=holder, ttl=options.lease, now=clock.now())
    except LeaseHeld as held:
        audience.signal("lease.conflict", owner=_owner(holder), code=held.code)
        raise
    _claimed(audience, lease)
    records = _load(store, before, lease, audience, clock)
    session = Session(plan, before, lease, records, store, audience, options, clock, secrets, sent)
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
    cwd = os.path.abspath(options.cwd or found.cwd)
    secrets = _secrets(plan, options, cwd)
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
    new = replace(new, run=replace(new.run, inputs=redactor.json(new.run.inputs)))
    caps.check_inputs(plan.workflow.limits, decode(new.run.inputs), new.run.inputs)
    try:
        portable(store, "adopt").adopt(new)
    except StartKeyTaken as taken:
        return _started_before(store, store.get(str(taken.details["run_id"])))
    sent = time.monotonic()
    holder = Holder.here()
    run, lease = store.claim(new.run.run_id, owner=_owner(holder), holder=holder, ttl=options.lease, now=clock.now())
    audience = Audience(observers, run.run_id)
    _claimed(audience, lease)
    session = Session(plan, run, lease, kept, store, audience, options, clock, secrets, sent)
    return session.carry(resumed=False)


def restore(store: Store, run: Run) -> Plan:
    """The plan a run was started with, from the store alone."""
    from .plan import restore as rebuild

    return rebuild(store.definition(run.digest).canonical, run.version)


def compare(stored: Plan, now: Plan) -> tuple[Difference, ...]:
    """What has changed between two plans; nothing when digest and version agree."""
    if stored.digest == now.digest and stored.workflow.version == now.workflow.version:
        return ()
    from .diff import diff

    return diff(stored, now)


def standing(run: Run, *, resumed: bool) -> Result:
    """The result of a run as the store has it."""
    error = decode(run.error) if run.error is not None else None
    status = "interrupted" if run.status in (Status.READY, Status.RUNNING) else run.status.value
    return Result(
        run_id=run.run_id,
        status=status,
        exit_status=exit_status(status, error),
        outputs=decode(run.outputs) if run.outputs is not None else None,
        error=error,
        wake_at=run.wake_at,
        resumed=resumed,
    )


def _nothing_to_do(store: Store, run: Run, options: Options, by: float) -> bool:
    """Whether a run sleeps or waits for longer than this process would."""
    if run.status is Status.SLEEPING:
        return run.wake_at is not None and run.wake_at > by
    if run.status is not Status.WAITING or options.answer is not None:
        return False
    from . import deciding

    return not deciding.due(store, run, by)


def waits_for_somebody(store: Store, run: Run, plan: Plan | None = None) -> bool:
    """Whether a run is blocked and an operator is needed: not all that is unknown can be asked by a `verify`."""
    if run.status is not Status.BLOCKED:
        return False
    plan = plan or restore(store, run)
    waiting = recovery.unknown_attempts(store.journal(run.run_id))
    return not all(recovery.can_be_asked(plan, record) for record in waiting)


def outcome_unknown(run: Run, records: Sequence[Record]) -> OutcomeUnknown:
    """The error that tells an operator what to look at and how to go on."""
    waiting = recovery.unknown_attempts(records)
    return OutcomeUnknown(path=waiting[0].path, run_id=run.run_id, attempts=waiting)


def new_id(clock: Clock) -> str:
    """A UUIDv7 (RFC 9562): ordered by time, its end random, so that people use the last eight characters."""
    millis = int(clock.now() * 1000) & ((1 << 48) - 1)
    noise = int.from_bytes(os.urandom(10), "big")
    value = millis << 80 | 0x7 << 76 | (noise >> 68) << 64 | 0b10 << 62 | noise & ((1 << 62) - 1)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


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


def _secrets(plan: Plan, options: Options, base: str) -> Mapping[str, str]:
    if options.secrets is not None:
        return options.secrets
    return secret.resolve(plan.workflow.secrets, base=base)


def _claimed(audience: Audience, lease: Lease) -> None:
    audience.signal("lease.claimed", owner=lease.owner, fence=lease.fence, expires_at=lease.expires)


def _load(store: Store, before: Run, lease: Lease, audience: Audience, clock: Clock) -> tuple[Record, ...]:
    """The journal of a run that was just claimed; a run whose journal cannot be read is not kept from others."""
    try:
        records = store.journal(before.run_id)
    except BaseException:
        with contextlib.suppress(Exception):
            store.release(lease, now=clock.now())
        raise
    audience.signal(
        "checkpoint.loaded",
        revision=before.revision,
        fence=lease.fence,
        records=len(records),
        step_executions=before.step_executions,
        definition_digest=before.digest,
    )
    return records


def _owner(holder: Holder) -> str:
    return f"{holder.host}:{holder.pid}"
