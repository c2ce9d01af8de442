"""The memory store as workers see it: in order, under the one lock."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from .. import rules
from ..errors import NotFound
from ..store import RunExists, Status

if TYPE_CHECKING:
    from ..pool import Taken, Wanted, Worker
    from ..store import Definition, Holder, NewRun, Run


class Pool:
    """What `Memory` has of `tramai.pool.Pool`."""

    if TYPE_CHECKING:
        _lock: threading.Lock
        _runs: dict[str, Any]
        _start_keys: dict[str, str]
        _definitions: dict[str, Definition]
        _workers: dict[str, tuple[Worker, float]]

        def _check_takes(self) -> None: ...
        def _keep(self, run: Run) -> None: ...

    def enqueue(self, new: NewRun, *, now: float) -> Run:
        """Make a run for workers; see `Pool.enqueue`."""
        rules.check_run(new)
        with self._lock:
            self._check_takes()
            if new.start_key is not None and new.start_key in self._start_keys:
                run: Run = self._runs[self._start_keys[new.start_key]].run
                return run
            if new.run_id in self._runs:
                raise RunExists(run_id=new.run_id)
            run = rules.enqueued(new, now=now)
            self._definitions.setdefault(new.definition.digest, new.definition)
            self._keep(run)
            if new.start_key is not None:
                self._start_keys[new.start_key] = new.run_id
            return run

    def take(
        self, wanted: Wanted, *, limit: int, owner: str, holder: Holder, ttl: float, now: float, most_claims: int
    ) -> tuple[Taken, ...]:
        """Claim what comes up; see `Pool.take`."""
        from .. import pool

        pool.check(wanted, limit=limit, owner=owner, ttl=ttl, most_claims=most_claims)
        given: list[Taken] = []
        with self._lock:
            self._check_takes()
            found = [kept for kept in self._runs.values() if wanted.has(kept.run) and pool.comes_up(kept.run, now)]
            found.sort(key=lambda kept: (-kept.run.priority, kept.run.created, kept.run.run_id))
            for kept in found:
                before = kept.run
                kept.run, lease, notes = pool.taken(
                    before, owner=owner, holder=holder, ttl=ttl, now=now, most_claims=most_claims
                )
                kept.notes += [replace(note, seq=len(kept.notes) + 1) for note in notes]
                shown = kept.run if lease is None else replace(kept.run, status=before.status)
                given.append(pool.Taken(run_id=before.run_id, run=shown, lease=lease))
                limit -= lease is not None
                if not limit:
                    break
        return tuple(given)

    def next_wake(self, wanted: Wanted, *, now: float) -> float | None:
        """Seconds until something comes up; see `Pool.next_wake`."""
        from ..pool import comes_up_at

        with self._lock:
            times = [comes_up_at(kept.run) for kept in self._runs.values() if wanted.has(kept.run)]
        return min((at - now for at in times if at is not None), default=None)

    def backlog(self, queues: Sequence[str], *, most: int) -> dict[str, int]:
        """How many are ready; see `Backlog.backlog`."""
        with self._lock:
            runs = [kept.run for kept in self._runs.values() if kept.run.status is Status.READY]
        return {queue: min(sum(run.queue == queue for run in runs), most) for queue in queues}

    def beat(self, worker: Worker, *, now: float) -> bool:
        """Say that a worker is there; see `Pool.beat`."""
        from ..pool import FORGOTTEN

        with self._lock:
            self._check_takes()
            known = self._workers.get(worker.id)
            asked = known is not None and known[0].started == worker.started and known[0].draining
            self._workers[worker.id] = (replace(worker, draining=asked, age=0.0), now)
            for id in [id for id, (_, seen) in self._workers.items() if now - seen > FORGOTTEN]:
                del self._workers[id]
            return asked

    def workers(self, *, now: float) -> tuple[Worker, ...]:
        """The registry; see `Pool.workers`."""
        with self._lock:
            return tuple(replace(one, age=max(now - seen, 0.0)) for _, (one, seen) in sorted(self._workers.items()))

    def drain(self, worker_id: str, *, now: float) -> Worker:
        """Ask a worker to end; see `Pool.drain`."""
        with self._lock:
            if worker_id not in self._workers:
                raise NotFound(kind="worker", name=worker_id)
            one, seen = self._workers[worker_id]
            self._workers[worker_id] = (replace(one, draining=True), seen)
            return replace(one, draining=True, age=max(now - seen, 0.0))

    def leave(self, worker_id: str) -> None:
        """Forget a worker; see `Pool.leave`."""
        with self._lock:
            self._workers.pop(worker_id, None)
