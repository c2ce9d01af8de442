"""Taking a run: its lease, and what its journal says."""

from __future__ import annotations

import contextlib
import time

import msgspec
from msgspec.structs import replace

from .audience import Audience
from .clock import Clock, Shifted, SystemClock
from .errors import LeaseHeld
from .results import Options
from .store import Holder, Lease, Record, Run, Store


class Claim(msgspec.Struct, frozen=True):
    """A run that is ours to carry: as it stood before, and what its journal says. `sent`: when it was asked for."""

    run: Run
    lease: Lease
    sent: float
    audience: Audience
    records: tuple[Record, ...]


def claim(
    store: Store,
    run_id: str,
    audience: Audience,
    options: Options,
    clock: Clock,
    *,
    known: tuple[Record, ...] | None = None,
) -> Claim:
    """Take the lease of a run and read its journal, unless that is `known`."""
    sent, holder = time.monotonic(), Holder.here()
    try:
        before, lease = store.claim(run_id, owner=owner(holder), holder=holder, ttl=options.lease, now=clock.now())
    except LeaseHeld as held:
        audience.signal("lease.conflict", owner=owner(holder), code=held.code)
        raise
    ours = claimed(Claim(before, lease, sent, audience, known or ()))
    return ours if known is not None else replace(ours, records=_load(store, ours, clock))


def claimed(claim: Claim) -> Claim:
    """Tell the observers that it is ours."""
    lease = claim.lease
    claim.audience.signal("lease.claimed", owner=lease.owner, fence=lease.fence, expires_at=lease.expires)
    return claim


def clock_of(store: Store, claim: Claim, clock: Clock) -> Clock:
    """The clock that the run goes by: the store's where it has one of its own (`own_clock`), else the caller's.

    Who wakes a sleeper is the store, by its own time. A runner whose clock is slow would put the run to sleep again and
    again, until it had been claimed too often; one whose clock is fast would let it sleep for too long.
    """
    if not isinstance(clock, SystemClock) or not getattr(store, "own_clock", False):
        return clock
    asked = clock.now() - (time.monotonic() - claim.sent)
    return Shifted(clock, claim.lease.acquired - asked)  # ahead by no more than the asking took, and never behind


def owner(holder: Holder) -> str:
    """What the lease of this process says of who has it."""
    return f"{holder.host}:{holder.pid}"


def _load(store: Store, claim: Claim, clock: Clock) -> tuple[Record, ...]:
    """The journal of a run that was just claimed; a run whose journal cannot be read is not kept from others."""
    before, lease = claim.run, claim.lease
    try:
        records = store.journal(before.run_id)
    except BaseException:
        with contextlib.suppress(Exception):
            store.release(lease, now=clock.now())
        raise
    claim.audience.signal(
        "checkpoint.loaded",
        revision=before.revision,
        fence=lease.fence,
        records=len(records),
        step_executions=before.step_executions,
        definition_digest=before.digest,
    )
    return records
