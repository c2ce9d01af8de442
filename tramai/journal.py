"""A run's journal in memory: the fold of its records, and the one place from which they are written.

Records reach the store in the order they were made, several to a commit where several are ready. A step waits for
its own commit; the results of pure steps inside a fan-out do not (they can be computed again for nothing), so that
ten thousand of them cost hundreds of flushes and not ten thousand. An effect is never started before everything
that led to it is durable, because its `started` record stands behind them in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from . import reducing
from .audience import Audience
from .codec import decode, sha256
from .errors import LeaseLost
from .store import Change, Lease, Mark, Note, Record, Store

if TYPE_CHECKING:
    import asyncio

BATCH = 64
"""Records that may wait for a commit without anybody waiting for them."""


def log_name(path: str, attempt: int) -> str:
    """The name of an attempt's log file: a digest, since a path may hold anything."""
    return f"{sha256(path)[:16]}.{attempt}.log"


class Past(msgspec.Struct):
    """All that the journal says of one path."""

    attempts: int = 0
    recent: int = 0
    """Attempts since the last operator resume: those that count against `retry`."""
    last: Record | None = None
    end: Record | None = None
    """The `completed` or `skipped` record."""
    decided: Record | None = None
    failed: int = 0
    """The place of the last `failed` record, 0 when there is none."""
    counted: tuple[int, int, float] = (0, 0, 0.0)
    """Executions, tokens and dollars of the run that a `call` has called, as far as this run counts them."""
    first: float | None = None
    """When the first of the recent attempts began."""


_FINALLY = "@finally["


class Journal:
    """The records of one run, under one lease."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        records: Sequence[Record],
        *,
        retry_base: int,
        now: Callable[[], float],
        audience: Audience,
        kinds: Mapping[str, str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """`state` is what the run began with, `kinds` how its keys are reduced."""
        self._store = store
        self._now = now
        self._audience = audience
        self._pending: list[Record] = []
        self._notes: list[Note] = []
        self._writer: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._full = False
        self.lease = lease
        self.retry_base = retry_base
        self.pasts: dict[str, Past] = {}
        self.seq = 0
        self.state: dict[str, Any] = dict(state or {})
        self._kinds = kinds or {}
        self._round = -1
        self._since_round = False
        self.executions = 0
        self.tokens = 0
        self.cost = 0.0
        self.step: str | None = None
        self.fenced = False
        """Set when the lease is lost: nothing is written any more."""
        for record in records:
            self._fold(record)

    def past(self, path: str) -> Past | None:
        """What is known of a path; None when it has never been touched."""
        return self.pasts.get(path)

    def note(self, type: str, **fields: Any) -> None:
        """Add a line to the event list, written with the next commit."""
        self._notes.append(Note(at=self._now(), type=type, **fields))

    def records(self) -> tuple[Record, ...]:
        """The records as they are in the store."""
        return self._store.journal(self.lease.run_id)

    def notes(self) -> tuple[Note, ...]:
        """The event list as it is in the store: others write to it too."""
        return self._store.notes(self.lease.run_id)

    def post(self, note: Note, *, after: int) -> None:
        """Add a line at once, after exactly what was read; CheckpointConflict when somebody was faster."""
        self._store.post(self.lease.run_id, note, after=after, now=self._now())

    def add(self, record: Record) -> None:
        """Take a record in; it reaches the store with the next commit."""
        self._fold(record)
        self._pending.append(record)

    def write(self, change: Change | None = None) -> None:
        """Commit all that is pending, with `change` on top, in this thread. LeaseLost when the lease is gone."""
        records, self._pending = self._pending, []
        notes, self._notes = self._notes, []
        if change is None:
            if not records and not notes:
                return
            change = self._change(records, notes)
        else:
            change = msgspec.structs.replace(
                change,
                records=(*records, *change.records),
                notes=(*notes, *change.notes),
                step=self.step,
                step_executions=self.executions,
                tokens=self.tokens,
                cost_usd=self.cost,
            )
        if self.fenced:
            raise LeaseLost
        try:
            revision = self._store.commit(self.lease, change)
        except LeaseLost:
            self.fenced = True
            raise
        if self._audience.signals is not None:
            self._tell(change, revision)

    def _tell(self, change: Change, revision: int) -> None:
        texts = [text for record in change.records for text in (record.value, record.saves, record.error)]
        self._audience.signal(
            "checkpoint.saved",
            revision=revision,
            fence=self.lease.fence,
            records=len(change.records),
            notes=len(change.notes),
            bytes=sum(len(text) for text in texts if text is not None),
            step_executions=self.executions,
        )
        if change.release:
            self._audience.signal("lease.released", owner=self.lease.owner, fence=self.lease.fence)

    def _change(self, records: list[Record], notes: list[Note]) -> Change:
        return Change(
            now=self._now(),
            records=tuple(records),
            notes=tuple(notes),
            step=self.step,
            step_executions=self.executions,
            tokens=self.tokens,
            cost_usd=self.cost,
        )

    def write_soon(self, *, looped: bool) -> None:
        """Commit once a batch is full; over an event loop without waiting for it."""
        if len(self._pending) < BATCH:
            return
        if looped:
            self._full = True
            self._start()
        else:
            self.write()

    async def write_shared(self) -> None:
        """Loop driver: return when everything added so far is durable; what is ready goes out in one commit."""
        import asyncio

        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._start()
        await asyncio.shield(waiter)

    def _start(self) -> None:
        import asyncio

        if self._writer is None or self._writer.done():
            self._writer = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        """Write batches on a thread until nobody waits."""
        import asyncio

        await asyncio.sleep(0)  # let all that is ready in this turn of the loop join the first batch
        while self._waiters or self._full:
            waiters, self._waiters, self._full = self._waiters, [], False
            try:
                await asyncio.to_thread(self.write)
            except Exception as error:  # noqa: BLE001 - handed to everybody who waits for this commit
                for waiter in (*waiters, *self._waiters):
                    if not waiter.done():
                        waiter.set_exception(error)
                self._waiters = []
                return
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def settle(self) -> None:
        """Loop driver: wait for the commit under way, so that the last one can be made in this thread."""
        import asyncio

        if self._writer is not None and not self._writer.done():
            await asyncio.wait((self._writer,))

    def _fold(self, record: Record) -> None:
        if record.seq > self.seq:
            self.seq = record.seq
        past = self.pasts.get(record.path)
        if past is None:
            past = self.pasts[record.path] = Past()
        if self._round >= 0 or record.path.startswith(_FINALLY):
            self._count_round(record.path)
        mark = record.mark
        if mark is Mark.DECIDED:
            past.decided = record
            return
        if record.attempt > past.attempts:
            past.attempts = record.attempt
            if record.seq > self.retry_base:
                past.recent += 1
                past.first = past.first or record.started
        past.last = record
        if record.verb == "call" and record.usage is not None:
            past.counted = _more(past.counted, decode(record.usage))
        if mark is Mark.FAILED:
            past.failed = record.seq
        if mark is Mark.COMPLETED or mark is Mark.SKIPPED:
            past.end = record
            if record.saves is not None:
                reducing.fold(self.state, decode(record.saves), self._kinds)

    def next_round(self) -> int:
        """The round of `finally` that is due: the one begun last, unless the run went on after it."""
        return self._round if self._round >= 0 and not self._since_round else self._round + 1

    def _count_round(self, path: str) -> None:
        if path.startswith(_FINALLY):
            self._round = max(self._round, int(path[len(_FINALLY) :].partition("]")[0]))
            self._since_round = False
        else:
            self._since_round = True


def _more(counted: tuple[int, int, float], usage: Mapping[str, Any]) -> tuple[int, int, float]:
    executions, tokens, cost = counted
    return (
        executions + usage.get("executions", 0),
        tokens + usage.get("input_tokens", 0),
        cost + usage.get("cost_usd", 0.0),
    )
