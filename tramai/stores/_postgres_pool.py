"""The PostgreSQL store as workers see it: who comes up is offered to one of all who ask, and then claimed.

One statement finds the runs by index, passes over those that another one is just looking at (`SKIP LOCKED`), and
marks them as offered for a few seconds; a second one claims them all, each as anybody claims it, by a write that finds
the run as it was read. So two who ask never get in each other's way, nobody keeps a lock from one statement to the
next, and what was offered to somebody who died comes up again at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from .. import rules
from ..errors import CheckpointCorrupt, NotFound
from ..store import Change, RunExists, Status
from . import _postgres_many as many
from . import _postgres_rows as columns
from . import _rows as rows
from ._postgres_connection import Db
from ._postgres_ear import Ear
from ._postgres_failures import Duplicate, busy
from ._postgres_groups import Groups
from ._postgres_write import TURNS, Write

if TYPE_CHECKING:
    from ..pool import Taken, Wanted, Worker
    from ..store import Holder, NewRun, Run
    from ._postgres_rows import Header
    from ._postgres_url import Place
    from ._rows import Row

OFFERED = 5.0
"""Seconds for which nobody else is offered a run."""
_LOOK = 32
"""Runs that are looked at beyond those that are wanted: others may be looking at the first ones."""


class _Known(msgspec.Struct, frozen=True):
    """What else is known of a run that was taken, so that its first commit need not read it."""

    key: int
    last_seq: int
    last_note: int
    status: Status


class Pool(Groups):
    """What `Postgres` has of `tramai.pool.Pool`."""

    def enqueue(self, new: NewRun, *, now: float) -> Run:
        """Make a run for workers; see `Pool.enqueue`."""
        rules.check_run(new)
        tried: set[str] = set()

        def attempt(db: Db, doubt: bool) -> Run:
            for _ in range(TURNS):
                server_now, key, there = self._before(db, new.run_id, new.start_key)
                for found in there:
                    run = self._whole(db, found.run)
                    ours = new.start_key is not None and run.start_key == new.start_key
                    if ours or run.generation in tried:
                        return run
                    raise RunExists(run_id=new.run_id)
                run = rules.enqueued(new, now=server_now)
                tried.add(run.generation)
                write = Write.of_life(key, run, Change(now=server_now, definition=new.definition))
                try:
                    db.rows(self._sql.write(*write.parts), write.values)
                except Duplicate:
                    continue
                return run
            raise busy()

        return self._pool.call(attempt)

    def take(
        self, wanted: Wanted, *, limit: int, owner: str, holder: Holder, ttl: float, now: float, most_claims: int
    ) -> tuple[Taken, ...]:
        """Claim what comes up; see `Pool.take`."""
        from .. import pool

        pool.check(wanted, limit=limit, owner=owner, ttl=ttl, most_claims=most_claims)
        taking = _Taking(wanted, limit, {"owner": owner, "holder": holder, "ttl": ttl, "most_claims": most_claims})

        def attempt(db: Db, doubt: bool) -> tuple[Taken, ...]:
            if doubt:
                self._look_again(db, taking)
            more = True
            while more and (wanted := taking.left):
                found = db.rows(self._sql.offer, taking.values)
                self._try(db, sorted(found, key=_rank), taking)
                more = len(found) >= wanted
            for row in db.rows(self._sql.held, taking.values | {"host": _host(holder)}) if taking.left else ():
                if taking.left:
                    self._try(db, [row], taking)
            return tuple(taking.given.values())

        return self._pool.call(attempt)

    def ear(self) -> Ear | None:
        """A connection that listens, unless a pooler is in between; see `Hinting.ear`."""
        return None if self._place.pooled else Ear(self._place)

    def recall(self, taken: Taken) -> None:
        """Know again what `take` knew; see `Recalling.recall`."""
        if taken.run is None or not taken.memo:
            return
        known = msgspec.json.decode(taken.memo, type=_Known)
        run = rows.lean_whole(replace(taken.run, status=known.status), lambda sha, data: None)
        head = columns.head(known.key, run, known.last_seq, known.last_note)
        self._remember(columns.Header(run, head, run.updated))

    def next_wake(self, wanted: Wanted, *, now: float) -> float | None:
        """Seconds until something comes up, whatever its labels; see `Pool.next_wake`."""
        values = _Taking(wanted, 1, {}).values
        ((seconds,),) = self._pool.call(lambda db, _: db.rows(self._sql.wake, values))
        return None if seconds is None else float(seconds)

    def backlog(self, queues: Sequence[str], *, most: int) -> dict[str, int]:
        """How many are ready; see `Backlog.backlog`."""
        values = {"queues": [columns.name(queue) for queue in queues], "most": most}
        found = self._pool.call(lambda db, _: db.rows(self._sql.backlog, values))
        return {queue: count for queue, (_, count) in zip(queues, found, strict=True)}

    def beat(self, worker: Worker, *, now: float) -> bool:
        """Say that a worker is there; see `Pool.beat`."""
        body = msgspec.json.encode(replace(worker, draining=False, age=0.0)).decode()
        values = {"id": columns.name(worker.id), "started": float(worker.started), "body": body}
        ((asked,),) = self._beats.call(lambda db, _: db.rows(self._sql.beat, values))
        return bool(asked)

    def workers(self, *, now: float) -> tuple[Worker, ...]:
        """The registry; see `Pool.workers`."""
        found = self._pool.call(lambda db, _: db.rows(self._sql.workers))
        return tuple(worker for row in found if (worker := _worker_of(row)) is not None)

    def drain(self, worker_id: str, *, now: float) -> Worker:
        """Ask a worker to end; see `Pool.drain`."""
        found = self._pool.call(lambda db, _: db.rows(self._sql.drain, (columns.name(worker_id),)))
        if not found:
            raise NotFound(kind="worker", name=worker_id)
        worker = _worker_of(found[0])
        if worker is None:
            raise CheckpointCorrupt(
                what=f"the entry of the worker {worker_id} is damaged; its next beat writes it anew"
            )
        return worker

    def leave(self, worker_id: str) -> None:
        """Forget a worker; see `Pool.leave`."""
        self._pool.call(lambda db, _: db.rows(self._sql.leave, (columns.name(worker_id),)))

    # What follows is done over one connection, in the middle of a call.

    def _worker_faults(self, db: Db) -> list[str]:
        """What is wrong with the registry."""
        found = db.rows(self._sql.workers)
        return [f"the worker {columns.name_of(row[0])} cannot be read" for row in found if _worker_of(row) is None]

    def _try(self, db: Db, found: list[Row], taking: _Taking) -> None:
        """Claim runs that were offered, in one statement, each if it still is as it was read."""
        writes = [write for row in found if (write := self._claim_of(db, row, taking)) is not None]
        if len(writes) == 1:
            taken = db.rows(self._sql.write(*writes[0].parts), writes[0].values)
        else:
            taken = db.rows(self._sql.claim_many, many.claims(writes)) if writes else []
        done = {row[0] for row in taken}
        for write in writes:
            if write.head.key in done:
                taking.got(write.run.run_id)
            else:
                del taking.sent[write.run.run_id]

    def _claim_of(self, db: Db, row: Row, taking: _Taking) -> Write | None:
        """The write that claims a run as it was read; None for one that does not come up, or is settled here."""
        from .. import pool

        run_id = columns.name_of(row[2])
        taking.passed.add(run_id)
        try:
            header = columns.header_of(row)
            whole = self._whole(db, header.run)
        except CheckpointCorrupt as error:
            taking.given[run_id] = pool.Taken(run_id=run_id, fault=error.message)
            return None
        if not (taking.wanted.has(whole) and pool.comes_up(whole, header.now)):
            return None
        after, lease, notes = pool.taken(header.run, now=header.now, **taking.by)
        shown = replace(after, inputs=whole.inputs)
        if lease is not None:
            shown = replace(shown, status=whole.status, outputs=whole.outputs, error=whole.error)
        known = _Known(header.head.key, header.head.last_seq, header.head.last_note, after.status)
        memo = msgspec.json.encode(known).decode()
        taking.sent[run_id] = pool.Taken(run_id=run_id, run=shown, lease=lease, memo=memo)
        write = Write.of_settlement(header, after, Change(now=header.now, notes=notes), {})
        if lease is not None:
            return write
        if db.rows(self._sql.write(*write.parts), write.values):
            taking.got(run_id)
        else:
            del taking.sent[run_id]
        return None

    def _look_again(self, db: Db, taking: _Taking) -> None:
        """After a connection broke: whether the claim under way was made."""
        for run_id, one in list(taking.sent.items()):
            run = self._header(db, run_id).run
            token = None if one.lease is None else one.lease.token
            known = one.run is not None and (run.generation, run.fence) == (one.run.generation, one.run.fence)
            if known and (None if run.lease is None else run.lease.token) == token:
                taking.got(run_id)
            else:
                del taking.sent[run_id]

    if TYPE_CHECKING:

        def _before(self, db: Db, run_id: str, start_key: str | None) -> tuple[float, int, list[Header]]: ...
        def _header(self, db: Db, run_id: str) -> Header: ...
        def _remember(self, header: Header) -> None: ...

        _place: Place


class _Taking:
    """One call of `take`: what it has so far, over all connections."""

    def __init__(self, wanted: Wanted, limit: int, by: dict[str, Any]) -> None:
        self.wanted = wanted
        self.by = by
        self.passed = set(wanted.without)
        self.given: dict[str, Taken] = {}
        self.sent: dict[str, Taken] = {}
        """Claims that were sent and not yet answered."""
        self._limit = limit

    @property
    def left(self) -> int:
        """How many runs are still wanted."""
        return self._limit - sum(one.lease is not None for one in self.given.values())

    def got(self, run_id: str) -> None:
        """A claim was made."""
        self.given[run_id] = self.sent.pop(run_id)

    @property
    def values(self) -> dict[str, Any]:
        """What the look for runs is given."""
        return {
            "queues": [columns.name(queue) for queue in self.wanted.queues],
            "labels": [columns.name(label) for label in self.wanted.labels],
            "without": [columns.name(run_id) for run_id in sorted(self.passed)],
            "limit": max(self.left, 1),
            "look": max(self.left, 1) + _LOOK,
            "offered": OFFERED,
        }


def _rank(row: Row) -> tuple[int, float, str]:
    """The place of a header in the order of those that come up."""
    return -row[columns.PRIORITY], row[columns.CREATED], row[2]


def _host(holder: Holder) -> str:
    """What the owner of every lease of this host begins with."""
    return columns.name(f"{holder.host}:")


def _worker_of(row: Row) -> Worker | None:
    """The worker in a row; None when it is not as it was written."""
    from ..pool import Worker

    name, body, age, draining = row
    try:
        worker = msgspec.json.decode(body, type=Worker)
    except msgspec.DecodeError:
        return None
    return replace(worker, age=max(float(age), 0.0), draining=draining) if columns.name(worker.id) == name else None
