"""What every store decides alike: which calls are refused, who may write, and what a write makes of a header.

Pure functions over the nouns of `tramai.store`, so that each store has only its own keeping to write.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable
from typing import Protocol, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from .duration import LONGEST
from .errors import CheckpointConflict, LeaseHeld, LeaseLost, NotInThatState, UsageError
from .store import Change, Holder, Lease, Mark, NewRun, Record, Run, Status

_SET_IF_GIVEN = (
    *("status", "step", "outputs", "finished", "step_executions", "tokens", "cost_usd", "retry_base", "queued"),
)


class Moving(Protocol):
    """What `progressed` looks at; it may set every field of the same name as one of `Change`."""

    @property
    def revision(self) -> int: ...
    @property
    def claims_without_progress(self) -> int: ...


_Moving = TypeVar("_Moving", bound=Moving)


def check_new(new: NewRun, owner: str, ttl: float) -> None:
    """Refuse a caller's mistake before anything is stored."""
    check_run(new)
    check_claim(new.run_id, owner, ttl)


def check_run(new: NewRun) -> None:
    """Refuse a blank name, and a group without room."""
    named("run id", new.run_id)
    if new.start_key is not None:
        named("start key", new.start_key)
    if new.group is not None:
        named("group", new.group.name)
        if new.group.limit < 1:
            raise ValueError(f"a group has room for at least one run, not for {new.group.limit}")


def check_claim(run_id: str, owner: str, ttl: float) -> None:
    """Refuse a blank name and a lease that would be over at once, or never."""
    named("run id", run_id)
    named("owner", owner)
    check_ttl(ttl)


def check_ttl(ttl: float) -> None:
    """Refuse a lease that would be over at once, or never."""
    if not 0 < ttl <= LONGEST:
        raise ValueError(f"a lease must last longer than no time and at most 100 years, not {ttl} seconds")


def check_limit(limit: int) -> None:
    """Refuse a page of nothing."""
    if limit < 1:
        raise ValueError(f"a page must have room for a run, not {limit}")


def active(lease: Lease | None, now: float) -> bool:
    """Whether a lease keeps others out: not expired (equality is expired), and its holder not certainly gone."""
    return lease is not None and lease.expires > now and not lease.holder.known_dead()


def current(stored: Lease | None, given: Lease, now: float) -> bool:
    """Whether a given lease is the one stored and unexpired: what allows a write."""
    return (
        stored is not None
        and stored.run_id == given.run_id
        and stored.token == given.token
        and stored.owner == given.owner
        and stored.fence == given.fence
        and stored.expires > now
    )


def begun(new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> Run:
    """The header of a run just made and claimed."""
    lease = _lease(new.run_id, owner=owner, holder=holder, ttl=ttl, now=now, fence=1)
    status = Status.RUNNING if new.group is None else Status.READY
    return replace(enqueued(new, now=now), status=status, fence=1, lease=lease)


def enqueued(new: NewRun, *, now: float) -> Run:
    """The header of a run just made that nobody has claimed yet."""
    return Run(
        run_id=new.run_id,
        generation=os.urandom(16).hex(),
        workflow=new.definition.name,
        version=new.definition.version,
        digest=new.definition.digest,
        status=Status.READY,
        inputs=new.inputs,
        cwd=new.cwd,
        file=new.definition.file,
        fence=0,
        revision=1,
        created=new.created,
        updated=now,
        started_by=new.started_by,
        start_key=new.start_key,
        labels=new.labels,
        queue=new.queue,
        priority=new.priority,
        group=new.group,
    )


def claimed(run: Run, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
    """The header after a claim, and the new lease; a run that goes on is no longer finished.

    One of a group goes on when it has its place there: see `places`.
    """
    _still_open(run, "it cannot go on")
    _arrived(run)
    nobody_holds(run, now)
    fence = run.fence + 1
    lease = _lease(run.run_id, owner=owner, holder=holder, ttl=ttl, now=now, fence=fence)
    after = replace(run, fence=fence, revision=run.revision + 1, updated=now, lease=lease)
    if run.group is None:
        return going_on(after), lease
    return replace(after, status=Status.READY if run.status is Status.RUNNING else run.status), lease


def going_on(run: Run) -> Run:
    """The header of a run that somebody who has its lease begins to carry out."""
    count = run.claims_without_progress + 1
    return replace(run, status=Status.RUNNING, claims_without_progress=count, finished=None, queued=False)


def renewed(stored: Lease | None, given: Lease, *, ttl: float, now: float) -> Lease:
    """The stored lease with a new end, counted from now."""
    if stored is None or not current(stored, given, now):
        raise LeaseLost
    return replace(stored, expires=now + ttl)


def gives_back(stored: Lease | None, given: Lease, *, now: float) -> bool:
    """Whether a release removes anything: a missing or expired lease is nothing, another's is a conflict."""
    if stored is None or stored.expires <= now:
        return False
    if not current(stored, given, now):
        raise CheckpointConflict
    return True


def progressed(before: _Moving, change: Change) -> _Moving:
    """What moves while a run goes on, after a change: a whole header, or the half of one that has these fields."""
    news: dict[str, object] = {"revision": before.revision + 1, "updated": change.now}
    for name in _SET_IF_GIVEN:
        value = getattr(change, name)
        if value is not None:
            news[name] = value
    if change.error is not UNSET:
        news["error"] = change.error
    if change.wake_at is not UNSET:
        news["wake_at"] = change.wake_at
    if before.claims_without_progress:
        if any(record.mark is not Mark.STARTED for record in change.records):
            news["claims_without_progress"] = 0
        elif change.unclaimed:
            news["claims_without_progress"] = before.claims_without_progress - 1
    return replace(before, **news)  # type: ignore[type-var]


def changed(run: Run, change: Change) -> Run:
    """The header after a change. A terminal status gives the lease back, for nothing may be written after it.

    A run that was made due while somebody carried it is due when it comes to wait: it may not have been heard of. In
    line for a place it is due already, and comes up when it is called. So is one that somebody wants cancelled.
    """
    after = progressed(run, change)
    if change.status is Status.WAITING and run.wake_at is not None and not change.queued:
        after = replace(after, wake_at=min(run.wake_at, run.wake_at if after.wake_at is None else after.wake_at))
    if run.cancel_requested and change.status in (Status.SLEEPING, Status.WAITING):
        after = replace(after, wake_at=change.now if after.wake_at is None else min(after.wake_at, change.now))
    if change.release or after.status.terminal:
        after = replace(after, lease=None)
    new = change.definition
    if new is None:
        return after
    file = run.file if new.file is None else new.file
    return replace(after, workflow=new.name, version=new.version, digest=new.digest, file=file)


def amended(run: Run, *, revision: int, change: Change) -> Run:
    """The header after an operator's change: only when nobody holds the run and nothing happened since it was read."""
    _still_open(run, "it cannot be changed")
    nobody_holds(run, change.now)
    if run.revision != revision:
        raise CheckpointConflict
    return replace(changed(run, change), fence=run.fence + 1, lease=None)


def cancelled(run: Run, *, now: float) -> Run:
    """The header after a request to cancel: the wish alone while somebody holds the run, else the end of it."""
    _still_open(run, "it cannot be cancelled")
    _arrived(run)
    asked = replace(run, cancel_requested=True, revision=run.revision + 1, updated=now)
    if active(run.lease, now):
        return asked
    return replace(asked, status=Status.CANCELLED, fence=run.fence + 1, finished=now, wake_at=None, lease=None)


def posted(run: Run, *, last: int, after: int, due: bool, now: float) -> Run:
    """The header after a line that somebody without the lease adds to an event list of `last` lines."""
    _still_open(run, "nothing more is noted of it")
    _arrived(run)
    if last != after:
        raise CheckpointConflict
    told = replace(run, revision=run.revision + 1, updated=now)
    return replace(told, wake_at=now) if due and run.status in (Status.WAITING, Status.RUNNING) else told


def shown(run: Run, status: Status | None) -> bool:
    """Whether a page of this status, or of none, shows a run: tombstones only when they are asked for."""
    return not run.status.tombstone if status is None else run.status is status


def follows(last: int, records: Iterable[Record]) -> int:
    """The seq of the last record after these; CheckpointConflict unless they go on from `last` without a gap."""
    for record in records:
        last += 1
        if record.seq != last:
            raise CheckpointConflict
    return last


def cursor_text(created: float, run_id: str) -> str:
    """Where a page ended, as opaque text."""
    import base64

    plain = json.dumps([created, run_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def cursor_place(text: str | None) -> tuple[float, str]:
    """The (created, run_id) that a page goes on below; above everything for None."""
    if text is None:
        return math.inf, ""
    import base64

    try:
        created, run_id = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if not isinstance(run_id, str):
            raise ValueError(run_id)
        return float(created), run_id
    except (ValueError, TypeError):
        raise UsageError(what=f"{text!r} is not a cursor of a page") from None


def _lease(run_id: str, *, owner: str, holder: Holder, ttl: float, now: float, fence: int) -> Lease:
    token = os.urandom(16).hex()
    return Lease(run_id=run_id, owner=owner, token=token, fence=fence, acquired=now, expires=now + ttl, holder=holder)


def _still_open(run: Run, what: str) -> None:
    if run.status.terminal:
        raise NotInThatState(run_id=run.run_id, status=run.status.value, what=what)


def _arrived(run: Run) -> None:
    if run.status is Status.ARRIVING:
        what = "the store it comes from may still go on with it"
        raise NotInThatState(run_id=run.run_id, status=run.status.value, what=what)


def nobody_holds(run: Run, now: float) -> None:
    """Refuse with LeaseHeld while somebody has an active lease."""
    lease = run.lease
    if lease is None or not active(lease, now):
        return
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(lease.expires))
    raise LeaseHeld(run_id=run.run_id, owner=lease.owner, until=until, host=lease.holder.host, expires=lease.expires)


def named(what: str, text: str) -> None:
    """Refuse a blank name."""
    if not text.strip():
        raise ValueError(f"the {what} must not be blank")
