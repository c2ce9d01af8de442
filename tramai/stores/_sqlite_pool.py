"""The SQLite store as workers see it. A write transaction has the file for itself, so that nobody takes what another
takes; every look goes down an index."""

# ruff: noqa: S608 (statements are made of constants)

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from .. import rules
from ..errors import CheckpointCorrupt, NotFound
from ..store import Change, Lease, RunExists
from . import _sqlite_rows as columns
from ._sqlite_connection import FAILED, public
from ._sqlite_ear import Ear
from ._sqlite_groups import Groups

if TYPE_CHECKING:
    from ..pool import Taken, Wanted, Worker
    from ..store import Holder, NewRun, Run
    from . import _rows as rows

_OF_RUN = "FROM run LEFT JOIN head ON head.run=run.id"
# Where nearly all runs were asleep when somebody ran ANALYZE, SQLite would think that this index is of no use.
_OF_RUNNING = _OF_RUN.replace("FROM run", "FROM run INDEXED BY run_in_status")
HEADER = ", ".join([f"run.{name}" for name in columns.RUN] + [f"head.{name}" for name in columns.HEAD])
"""The columns of a header."""
GET_BY_KEY = f"SELECT {HEADER} {_OF_RUN} WHERE run.id=?"
"""The header of a run by the key of its rows."""
_KEY = f"SELECT -run.priority, run.created, CAST(run.run_id AS BLOB), run.id {_OF_RUN}"
_NAMED = "(SELECT value FROM json_each(?))"
_ONLY = f"run.run_id NOT IN {_NAMED}"
_LABELLED = f""" AND EXISTS (SELECT 1 FROM label WHERE label.name IN {_NAMED}
    AND label.created=run.created AND label.run_id=run.run_id)"""
_FREE = "(head.lease_expires IS NULL OR head.lease_expires<=?)"
_READY = f"{_KEY} WHERE run.status='ready' AND run.queue=? AND {_FREE} AND {_ONLY}"
_RUNNING = f"""{_KEY.replace(_OF_RUN, _OF_RUNNING)} WHERE run.status='running' AND run.queue=?
    AND ({_FREE[1:-1]} OR run.run_id IN {_NAMED}) AND {_ONLY}"""
_DUE = f"{_KEY} WHERE run.status IN ('sleeping', 'waiting') AND run.queue=? AND run.wake_at<=? AND {_FREE} AND {_ONLY}"
_BY_RANK = " ORDER BY run.priority DESC, run.created, run.run_id LIMIT ?"
_BY_TIME = " ORDER BY run.wake_at LIMIT ?"
# Only those that run have a holder who may have died; there are as many as somebody carries out.
_HELD = f"""SELECT CAST(run.run_id AS BLOB), CAST(run.body AS BLOB) {_OF_RUNNING}
    WHERE run.status='running' AND head.lease_expires>?"""
_WAKES = "SELECT min(wake_at) FROM run WHERE status IN ('sleeping', 'waiting') AND queue=? AND wake_at>?"
_ENDS = (
    f"SELECT min(head.lease_expires) {_OF_RUNNING} WHERE run.status='running' AND run.queue=? AND head.lease_expires>?"
)
_WAITING = "SELECT count(*) FROM (SELECT 1 FROM run WHERE status='ready' AND queue=? LIMIT ?)"
_SET_WORKER = "INSERT OR REPLACE INTO worker (id, seen, draining, body) VALUES (?, ?, ?, ?)"
_GET_WORKER = "SELECT CAST(id AS BLOB), CAST(body AS BLOB), seen, draining FROM worker"
_LOOK = 32
"""Due sleepers that are looked at beyond those that are wanted, so that priority counts among them."""

_Row = tuple[float, float, bytes, int]


class _Held(msgspec.Struct, frozen=True):
    lease: Lease | None = None


class Pool(Groups):
    """What `Sqlite` has of `tramai.pool.Pool`."""

    if TYPE_CHECKING:

        def _whole(self, run: Run) -> Run: ...

        _execute: Callable[..., Any]
        _path: str

    def enqueue(self, new: NewRun, *, now: float) -> Run:
        """Make a run for workers; see `Pool.enqueue`."""
        rules.check_run(new)
        with self._connection as execute:
            if new.start_key is not None:
                found = execute("SELECT id FROM run WHERE start_key=?", (new.start_key,)).fetchone()
                if found is not None:
                    return self._whole(self._by_key(found[0])[0])
            if execute("SELECT 1 FROM run WHERE run_id=?", (new.run_id,)).fetchone() is not None:
                raise RunExists(run_id=new.run_id)
            run = rules.enqueued(new, now=now)
            self._insert(run)
            self._define(new.definition)
        return run

    def take(
        self, wanted: Wanted, *, limit: int, owner: str, holder: Holder, ttl: float, now: float, most_claims: int
    ) -> tuple[Taken, ...]:
        """Claim what comes up; see `Pool.take`."""
        from .. import pool

        pool.check(wanted, limit=limit, owner=owner, ttl=ttl, most_claims=most_claims)
        given: list[Taken] = []
        passed = set(wanted.without)
        by = {"owner": owner, "holder": holder, "ttl": ttl, "now": now, "most_claims": most_claims}
        # Most looks find nothing: they write nothing, and keep nobody from writing.
        if not self._connection.read(lambda: self._come_up(wanted, passed, now, 1)):
            return ()
        with self._connection:
            while limit > 0 and (found := self._come_up(wanted, passed, now, limit)):
                for _, _, name, key in found:
                    run_id = columns.unbound((name,))[0]
                    passed.add(run_id)
                    one = self._taken(run_id, key, wanted, by)
                    if one is not None:
                        given.append(one)
                        limit -= one.lease is not None
        return tuple(given)

    def ear(self) -> Ear:
        """A look at the file now and then; see `Hinting.ear`."""
        return Ear(self._path)

    def next_wake(self, wanted: Wanted, *, now: float) -> float | None:
        """Seconds until something comes up; see `Pool.next_wake`."""

        def work() -> float | None:
            if self._come_up(wanted, wanted.without, now, 1):
                return 0.0
            # The next of the queues, whatever its labels: to look once too often does no harm.
            queries = ((query, queue) for queue in wanted.queues for query in (_WAKES, _ENDS))
            times = [row[0] for query, queue in queries for row in self._execute(query, (queue, now)).fetchall()]
            return min((at - now for at in times if at is not None), default=None)

        return self._connection.read(work)

    def backlog(self, queues: Sequence[str], *, most: int) -> dict[str, int]:
        """How many are ready; see `Backlog.backlog`."""

        def work() -> dict[str, int]:
            return {queue: self._execute(_WAITING, (queue, most)).fetchone()[0] for queue in queues}

        return self._connection.read(work)

    def beat(self, worker: Worker, *, now: float) -> bool:
        """Say that a worker is there; see `Pool.beat`."""
        from ..pool import FORGOTTEN

        with self._connection as execute:
            execute("DELETE FROM worker WHERE seen<?", (now - FORGOTTEN,))
            known = self._workers(now, " WHERE id=?", (worker.id,))
            asked = bool(known) and known[0].started == worker.started and known[0].draining
            body = msgspec.json.encode(replace(worker, draining=asked, age=0.0)).decode()
            execute(_SET_WORKER, (worker.id, now, int(asked), body))
        return asked

    def workers(self, *, now: float) -> tuple[Worker, ...]:
        """The registry; see `Pool.workers`."""
        return self._connection.read(lambda: self._workers(now, " ORDER BY id", ()))

    def drain(self, worker_id: str, *, now: float) -> Worker:
        """Ask a worker to end; see `Pool.drain`."""
        with self._connection as execute:
            if execute("UPDATE worker SET draining=1 WHERE id=?", (worker_id,)).rowcount != 1:
                raise NotFound(kind="worker", name=worker_id)
            for worker in self._workers(now, " WHERE id=?", (worker_id,)):
                return worker
            raise CheckpointCorrupt(
                what=f"the entry of the worker {worker_id} is damaged; its next beat writes it anew"
            )

    def leave(self, worker_id: str) -> None:
        """Forget a worker; see `Pool.leave`."""
        with self._connection as execute:
            execute("DELETE FROM worker WHERE id=?", (worker_id,))

    # What follows runs inside a transaction.

    def _by_key(self, key: int) -> tuple[Run, rows.Head]:
        return columns.header_of(self._execute(GET_BY_KEY, (key,)).fetchone())

    def _come_up(self, wanted: Wanted, passed: Collection[str], now: float, limit: int) -> list[_Row]:
        """Those that nobody has and that can go on, in order."""
        without, gone = json.dumps(list(passed)), json.dumps(self._gone(now))
        labels = (json.dumps(list(wanted.labels)),) if wanted.labels else ()
        only = _LABELLED if wanted.labels else ""
        found: list[_Row] = []
        for queue in wanted.queues:
            looks: tuple[tuple[str, str, tuple[Any, ...], int], ...] = (
                (_READY, _BY_RANK, (queue, now, without), limit),
                (_RUNNING, _BY_RANK, (queue, now, gone, without), limit),
                (_DUE, _BY_TIME, (queue, now, now, without), limit + _LOOK),
            )
            for query, order, values, most in looks:
                found += self._execute(query + only + order, (*values, *labels, most)).fetchall()
        return sorted(found)[:limit]

    def _gone(self, now: float) -> list[str]:
        """Runs under an active lease whose holder is known dead."""
        found = []
        for run_id, body in self._execute(_HELD, (now,)).fetchall():
            try:
                lease = msgspec.json.decode(body, type=_Held).lease
            except msgspec.DecodeError:
                continue  # damaged, or of a text that only json can read: its lease will end
            if lease is not None and lease.holder.known_dead():
                found.append(columns.unbound((run_id,))[0])
        return found

    def _taken(self, run_id: str, key: int, wanted: Wanted, by: dict[str, Any]) -> Taken | None:
        from .. import pool

        try:
            before, head = self._by_key(key)
            whole = self._whole(before)
        except CheckpointCorrupt as error:
            return pool.Taken(run_id=run_id, fault=error.message)
        except FAILED as error:
            said = public(error, run_id)
            if not isinstance(said, CheckpointCorrupt):
                raise
            return pool.Taken(run_id=run_id, fault=said.message)
        if not (wanted.has(before) and pool.comes_up(before, by["now"])):
            return None
        after, lease, notes = pool.taken(before, **by)
        self._rewrite(after, head, Change(now=by["now"], notes=notes))
        shown = replace(after, inputs=whole.inputs)
        if lease is not None:
            shown = replace(shown, status=before.status, outputs=whole.outputs, error=whole.error)
        return pool.Taken(run_id=run_id, run=shown, lease=lease)

    def _workers(self, now: float, which: str, values: tuple[Any, ...]) -> tuple[Worker, ...]:
        """Those that can be read: the next beat of another one writes it anew."""
        found = self._execute(_GET_WORKER + which, values).fetchall()
        return tuple(worker for row in found if (worker := _worker(row, now)) is not None)

    def _worker_faults(self) -> list[str]:
        """What is wrong with the registry."""
        found = self._execute(_GET_WORKER + " ORDER BY id").fetchall()
        return [f"the worker {columns.unbound(row)[0]} cannot be read" for row in found if _worker(row, 0.0) is None]


def _worker(row: Sequence[Any], now: float) -> Worker | None:
    """The worker in a row; None when it is not as it was written."""
    from ..pool import Worker

    name, body, seen, draining = row
    try:
        worker = msgspec.json.decode(body, type=Worker)
        found = replace(worker, age=max(now - seen, 0.0), draining=bool(draining))
    except (msgspec.DecodeError, TypeError):
        return None
    return found if (columns.unbound((name,))[0],) == (worker.id,) else None
