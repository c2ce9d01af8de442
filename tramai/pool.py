"""What a store offers to workers: runs that wait to be carried out, given out one to each, and who carries them.

Optional, as `portable` is: a store that lacks it still runs workflows, and `pooled` says what it cannot do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec
from msgspec.structs import replace

from . import rules
from .codec import encode
from .portable import Unsupported
from .store import CALLED, Change, Holder, Lease, NewRun, Note, Run, Status, Store

QUEUE = "default"
"""The queue of runs that name none, and of workers that name none."""
MOST_CLAIMS = 5
"""Claims in a row after which a run that came no step further is given out no more."""
FORGOTTEN = 86400.0
"""Seconds of silence after which a worker that never said goodbye is forgotten."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs a worker takes: those of these queues, with one of these labels where there are any."""

    queues: tuple[str, ...] = (QUEUE,)
    labels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Ids of runs that it leaves alone for now."""

    def has(self, run: Run) -> bool:
        """Whether it is one of them."""
        if run.queue not in self.queues or run.run_id in self.without or run.started_by.startswith(CALLED):
            return False
        return not self.labels or not set(self.labels).isdisjoint(run.labels)


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One run that came up: with a lease it is ours, as it stood before the claim.

    Without one it is `dead` since this moment; and without even a `run` it could not be read: `fault` says why.
    `memo` is the store's own: see `Recalling`.
    """

    run_id: str
    run: Run | None = None
    lease: Lease | None = None
    fault: str | None = None
    memo: str | None = None


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the registry knows it. `every` is the time between two beats; times are epoch seconds.

    `age` (seconds since its last beat, by the store's clock) and `draining` (somebody asked it to end) are the
    store's to say.
    """

    id: str
    host: str
    pid: int
    started: float
    queues: tuple[str, ...] = (QUEUE,)
    labels: tuple[str, ...] = ()
    concurrency: int = 1
    running: int = 0
    every: float = 10.0
    pool: str = ""
    """A name for several workers that are drained together; it says nothing of what they take."""
    age: float = 0.0
    draining: bool = False

    @property
    def state(self) -> str:
        """`online`; `draining`; `stale` after three beats without a word, `lost` after ten."""
        if self.age >= 10 * self.every:
            return "lost"
        if self.age >= 3 * self.every:
            return "stale"
        return "draining" if self.draining else "online"


class Pool(Store, Protocol):
    """A store that workers can take runs from. `now` is the caller's clock, as in `Store`."""

    def enqueue(self, new: NewRun, *, now: float) -> Run:
        """Make the run: ready, claimed by nobody (revision 1, fence 0). With a `start_key` that exists: that run.

        RunExists when the id is taken.
        """
        ...

    def take(
        self, wanted: Wanted, *, limit: int, owner: str, holder: Holder, ttl: float, now: float, most_claims: int
    ) -> tuple[Taken, ...]:
        """Claim up to `limit` runs for the owner, by priority, then age; each as `Store.claim` does.

        There come up: runs that are ready, sleeping or waiting ones whose `wake_at` has come, running ones without an
        active lease, its holder known dead. Of several who take at once none gets what another got. A run with
        `most_claims` claims without progress is `dead` after this, in one write with an error and a note, and takes
        nobody's place. One that cannot be read takes none either: it is named with its fault, until it is `without`.
        """
        ...

    def next_wake(self, wanted: Wanted, *, now: float) -> float | None:
        """Seconds until the first of them comes up, at most 0 when one has; None while there is none to wait for."""
        ...

    def beat(self, worker: Worker, *, now: float) -> bool:
        """Say that a worker is there, and how it is; whether somebody has asked it to end.

        Those not heard of for a day are forgotten.
        """
        ...

    def workers(self, *, now: float) -> tuple[Worker, ...]:
        """Everybody in the registry, by id."""
        ...

    def drain(self, worker_id: str, *, now: float) -> Worker:
        """Ask a worker to take no more runs and to end; it hears of it with its next beat. NotFound."""
        ...

    def leave(self, worker_id: str) -> None:
        """Take a worker out of the registry; nothing happens when it is not there."""
        ...


def given_back(run: Run, now: float) -> Change:
    """What lets others have a run that was taken (as it stood before) and not begun: as it was, the claim uncounted."""
    status = Status.READY if run.status is Status.RUNNING else run.status
    return Change(now=now, status=status, unclaimed=run.group is None, release=True)


class Backlog(Protocol):
    """What a pool may offer besides: a count for those who watch, which no worker needs."""

    def backlog(self, queues: Sequence[str], *, most: int) -> Mapping[str, int]:
        """How many runs of each queue are ready, counted up to `most`: by index, so that it costs no more than that."""
        ...


class Lines(Protocol):
    """What a pool may offer besides: runs stand in line for a place in their group while nobody has them."""

    def call_up(self, group: str, *, now: float) -> None:
        """Let those come up at once (`wake_at`) who are next in line and would have a place now."""
        ...


class Ear(Protocol):
    """Hears that something may have come up: a hint and no more. Who hears nothing looks at every poll."""

    every: float | None
    """Seconds between two questions; None for one that is readable when there is something to hear."""

    def fileno(self) -> int:
        """What is readable then."""
        ...

    def heard(self) -> bool:
        """Whether there was anything since the last question. It raises when it hears no more."""
        ...

    def close(self) -> None:
        """Listen no more."""
        ...


class Hinting(Protocol):
    """What a pool may offer besides: whoever waits for runs hears of them sooner than at its next poll."""

    def ear(self) -> Ear | None:
        """A new ear; None where there can be none."""
        ...


class Recalling(Protocol):
    """What a pool may offer besides, to those who carry in another process what a worker has taken."""

    def recall(self, taken: Taken) -> None:
        """Know of a run what `take` knew: it saves a reading. The next commit finds out what has changed since."""
        ...


class Together(Protocol):
    """What a pool may offer besides, to those who carry many runs by turns in one thread: their commits in one."""

    def gather(self, park: Callable[[Any], bool]) -> Callable[[Sequence[Any]], None]:
        """From now on `park` is called, in the middle of a commit, with what is to be sent; it returns when that was
        done, or False when nobody will: then the commit sends it. What is returned sends all that it is called with,
        and raises nothing: each commit finds out what became of its own."""
        ...


def pooled(store: Store) -> Pool:
    """The store as one that workers can take runs from; Unsupported when they cannot."""
    for name in ("enqueue", "take", "next_wake", "beat", "workers", "drain", "leave"):
        if not callable(getattr(store, name, None)):
            raise Unsupported(
                url=store.url,
                what="give runs to workers",
                hint="sqlite:PATH can for the workers of one host, postgresql://HOST/DB for those of many",
            )
    return cast(Pool, store)


def check(wanted: Wanted, *, limit: int, owner: str, ttl: float, most_claims: int) -> None:
    """Refuse a caller's mistake before anything is taken."""
    rules.named("owner", owner)
    rules.check_ttl(ttl)
    if limit < 1 or most_claims < 1 or not wanted.queues:
        raise ValueError("whoever takes runs wants at least one, of some queue, and lets it be claimed once")


def comes_up(run: Run, now: float) -> bool:
    """Whether nobody has the run and it can go on."""
    if rules.active(run.lease, now):
        return False
    if run.status in (Status.SLEEPING, Status.WAITING):
        return run.wake_at is not None and run.wake_at <= now
    return run.status in (Status.READY, Status.RUNNING)


def comes_up_at(run: Run) -> float | None:
    """When a run comes up, if nobody does anything: at once (0.0), at its time, or when its lease ends."""
    if run.lease is not None and run.status in (Status.READY, Status.RUNNING):
        return 0.0 if run.lease.holder.known_dead() else run.lease.expires
    if run.status in (Status.SLEEPING, Status.WAITING):
        return run.wake_at
    return 0.0 if run.status in (Status.READY, Status.RUNNING) else None


def taken(
    run: Run, *, owner: str, holder: Holder, ttl: float, now: float, most_claims: int
) -> tuple[Run, Lease | None, tuple[Note, ...]]:
    """The header after a claim, its lease and what is noted; no lease for a run that was claimed too often."""
    if run.claims_without_progress < most_claims:
        after, lease = rules.claimed(run, owner=owner, holder=holder, ttl=ttl, now=now)
        return after, lease, ()
    count = run.claims_without_progress
    message = f"{count} claims in a row ended without any progress: what it does seems to end whoever carries it out"
    error = {"type": "dead", "message": message, "claims": count, **({"path": run.step} if run.step else {})}
    after = replace(
        run,
        status=Status.DEAD,
        fence=run.fence + 1,
        revision=run.revision + 1,
        updated=now,
        finished=now,
        wake_at=None,
        lease=None,
        error=encode(error),
    )
    return after, None, (Note(at=now, type="run.dead", by=owner, data=encode({"claims": count})),)
