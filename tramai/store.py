"""What a store is: the run record, the journal, the lease, and one protocol over them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from .errors import TramaiError
from .holder import Holder as Holder

CALLED = "run "
"""What `started_by` begins with in a run that another run has called; the caller's id follows."""
CALLED_QUEUE = "@called"
"""The queue of such runs: whoever carries the caller carries them, and no worker by itself."""


class Status(StrEnum):
    """Where a run stands."""

    READY = "ready"
    RUNNING = "running"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"
    ARRIVING = "arriving"
    """Put here by a move whose source has not closed it: it cannot go on from here yet."""
    MOVED = "moved"
    """A tombstone: the run goes on in another store."""
    REMOVED = "removed"
    """A tombstone: what the run held is gone, its id and start key stay taken."""

    @property
    def terminal(self) -> bool:
        """Nothing will ever change it; `failed` is not: an operator may resume it."""
        return self in (Status.COMPLETED, Status.CANCELLED, Status.DEAD) or self.tombstone

    @property
    def tombstone(self) -> bool:
        """Only the name of a run is left, and pages do not show it unless they are asked to."""
        return self in (Status.MOVED, Status.REMOVED)


class Mark(StrEnum):
    """What a journal record says of a path."""

    DECIDED = "decided"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


ENDS = {
    Mark.COMPLETED: "succeeded", Mark.FAILED: "failed", Mark.CANCELLED: "cancelled", Mark.UNKNOWN: "unknown",
    Mark.SKIPPED: "skipped",
}  # fmt: skip
"""The status of a step, or of an attempt, whose last record has this mark; the other marks end nothing."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a run's journal. Append-only; `seq` orders a run's records and starts at 1.

    `value`, `error`, `saves`, `usage` are canonical JSON texts. For `completed`, `value` is the step's output;
    for `decided`, what was decided (a branch's case, a fan-out's items, a delay's wake instant).
    At most one `completed` exists per path. Times are epoch seconds.
    """

    seq: int
    path: str
    mark: Mark
    attempt: int
    verb: str
    at: float
    fence: int
    started: float | None = None
    worker: str | None = None
    policy: str | None = None
    key: str | None = None
    input_sha: str | None = None
    value: str | None = None
    error: str | None = None
    saves: str | None = None
    usage: str | None = None
    log: str | None = None


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a run's event list: lifecycle, signals, cancels, resolves. `data` is canonical JSON text.

    `seq` is given by the store when it is written (0 before).
    """

    seq: int = 0
    at: float
    type: str
    by: str | None = None
    comment: str | None = None
    data: str | None = None


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to write to one run until `expires` (epoch seconds, the store's clock); active iff expires > now."""

    run_id: str
    owner: str
    token: str
    fence: int
    acquired: float
    expires: float
    holder: Holder


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """The resolved source of a workflow, kept with its runs. `canonical` alone rebuilds the plan."""

    digest: str
    name: str
    version: str
    canonical: str
    """Canonical JSON of the resolved definition: what the digest is taken of."""
    text: str
    """The file as read."""
    format: str
    """`yaml` or `toml`."""
    file: str | None = None


class Group(msgspec.Struct, frozen=True):
    """Runs of which at most `limit` are carried out at the same time, whatever their workflows: those of one name."""

    name: str
    limit: int = 1


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run starts from. JSON fields are canonical JSON texts."""

    run_id: str
    definition: Definition
    inputs: str
    cwd: str
    created: float
    started_by: str = ""
    start_key: str | None = None
    labels: tuple[str, ...] = ()
    queue: str = "default"
    priority: int = 0
    group: Group | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a run. JSON fields (`inputs outputs error`) are canonical JSON texts."""

    run_id: str
    generation: str
    workflow: str
    version: str
    digest: str
    status: Status
    inputs: str
    cwd: str
    file: str | None
    fence: int
    revision: int
    created: float
    updated: float
    finished: float | None = None
    wake_at: float | None = None
    lease: Lease | None = None
    outputs: str | None = None
    error: str | None = None
    step: str | None = None
    """Path of the step last worked on."""
    started_by: str = ""
    start_key: str | None = None
    labels: tuple[str, ...] = ()
    queue: str = "default"
    priority: int = 0
    cancel_requested: bool = False
    claims_without_progress: int = 0
    step_executions: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    retry_base: int = 0
    """Journal seq at the last operator resume: attempts before it do not count against `retry`."""
    rerun_of: str | None = None
    """The run whose inputs, and perhaps first results, this one was started with."""
    group: Group | None = None
    """It is carried out only with a place in this group: see `Store.enter`. `queued`: in line, though nobody has it."""
    queued: bool = False
    format: int = 1

    def stale(self, now: float) -> bool:
        """Whether it counts as running and nobody runs it: no lease, an expired one, or a holder known dead."""
        lease = self.lease
        return self.status is Status.RUNNING and (lease is None or lease.expires <= now or lease.holder.known_dead())


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One atomic write: records and notes to append, header fields to set (None or UNSET: leave)."""

    now: float
    records: tuple[Record, ...] = ()
    notes: tuple[Note, ...] = ()
    status: Status | None = None
    step: str | None = None
    outputs: str | None = None
    error: str | None | msgspec.UnsetType = msgspec.UNSET
    wake_at: float | None | msgspec.UnsetType = msgspec.UNSET
    finished: float | None = None
    step_executions: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    retry_base: int | None = None
    queued: bool | None = None
    definition: Definition | None = None
    """Set by `resume --accept-changes`: the digest the run goes on with."""
    release: bool = False
    """Give the lease back in the same write."""
    unclaimed: bool = False
    """Nothing was begun under this claim: it does not count."""


class RunExists(TramaiError):
    """run {run_id} already exists"""

    code, exit_status = "TRM508", 5


class Store(Protocol):
    """A place for runs. Plain synchronous code, safe to call from several threads.

    Every method that takes `now` is given the caller's clock; a store that has a better one (a database) ignores it.
    """

    url: str
    """The URL as people may see it: no password."""

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it in one write (status running, revision 1, fence 1, generation random).

        A run of a group is ready instead: it has its lease, and no place yet (see `enter`). With a `start_key` that
        exists: the existing run and None. RunExists when the id is taken.
        """
        ...

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease: fence+1, revision+1, `claims_without_progress`+1, status running.

        A run of a group keeps its status (ready in the place of running) and its count until it has its place: see
        `enter`. The Run returned shows the status *before* the claim. NotFound; LeaseHeld while another lease is active
        and its holder not known dead, the same owner included; NotInThatState for a terminal run, or an arriving one.
        """
        ...

    def enter(self, lease: Lease, *, within: Collection[str] = (), now: float) -> tuple[str, ...]:
        """Take a place in the group of the run, or stand in line for one; the ids of the runs that come before it.

        Nobody (an empty answer): the run has its place and is running: revision+1, `claims_without_progress`+1. It
        keeps it as long as it is running under an active lease, so that a dead holder's place is free at once.
        Otherwise nothing changes: it stands in line as long as its lease is active. Those with a place come first, then
        the older ones in line, `queued` ones too; at the limit there is no place. It is one step, whoever else asks.

        `within` are the runs that have called this one: it needs no place where one of them has it. A run without a
        group, or that is running already, has nobody before it and nothing changes. LeaseLost as for `commit`.
        """
        ...

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend from now (not from the old expiry); LeaseLost if it is not the current one or has expired."""
        ...

    def release(self, lease: Lease, *, now: float) -> None:
        """Give it back. Missing or expired: nothing happens. Another's token: CheckpointConflict."""
        ...

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change if the lease is current and unexpired, atomically with that check; the new revision.

        LeaseLost otherwise, and nothing is written. A second `completed` for a path: CheckpointConflict.
        Resets `claims_without_progress` when records are appended that say more than that an attempt has started.
        """
        ...

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """An operator's write without a lease: refused (LeaseHeld) while one is active, CheckpointConflict unless the
        revision is exactly this; bumps the fence, so that no earlier owner can write again."""
        ...

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel. Without an active lease a run that is not finished is cancelled at once
        (fence+1); with one its owner will do it. The run after the write; NotInThatState when terminal."""
        ...

    def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Run:
        """Add a line to the event list beside whoever holds the run: lease, fence and status stay as they are.

        CheckpointConflict unless exactly `after` lines stand there, so that of several who read the same list only one
        is heard. `due`: a run that waits can go on now (`wake_at`); one that runs, as soon as it comes to wait. The
        run after the write; NotInThatState when it is terminal, or arriving.
        """
        ...

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled: cheap, polled by the owner."""
        ...

    def get(self, run_id: str) -> Run:
        """The header; NotFound, or CheckpointCorrupt when it cannot be trusted."""
        ...

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order of seq, values whole; CheckpointCorrupt when a checksum or the order is wrong."""
        ...

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order."""
        ...

    def definition(self, digest: str) -> Definition:
        """The source kept for a digest; NotFound."""
        ...

    def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        status: Status | None = None,
        workflow: str | None = None,
        label: str | None = None,
    ) -> tuple[tuple[Run, ...], str | None]:
        """Newest first, and the cursor of the next page. A bad record is left out and reported by `faults`.

        Without `status`, tombstones (`moved`, `removed`) are left out.
        """
        ...

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Bad records met by the last `page`: run_id and what is wrong."""
        ...

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text."""
        ...

    def close(self) -> None:
        """Give handles back; further calls fail."""
        ...
