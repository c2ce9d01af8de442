"""What `tramai worker` and its verbs do."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ._session import Session
from ._terminal import safe
from ._worker_documents import Draining, WorkerLine, Workers, WorkerView

if TYPE_CHECKING:
    from ..event import Attribute, Listener
    from ..pool import Pool, Worker
    from ..worker import Plan, Slot
    from ._slot import Setup
    from ._worker_metrics import Watch

DRAINING = "draining: no more runs are taken, those at work may finish; once more ends their steps at once"
"""What a person is told at the first Ctrl-C."""


def serve(
    session: Session,
    *,
    concurrency: int,
    queues: tuple[str, ...],
    labels: tuple[str, ...],
    pool: str | None,
    drain: str,
    poll: str,
    max_claims: int,
    max_runs: int | None,
    once: bool,
    metrics: str | None,
    retry_failed: int | None,
    retry_delay: str,
    schedules: bool,
) -> int:
    """Be a worker until it is told to end; the exit status."""
    from .. import worker
    from ..errors import UsageError
    from ..pool import QUEUE, Wanted, pooled
    from . import _observers, _scheduling
    from ._detach import named
    from ._signals import Signals
    from ._slots import Process

    session.variables()
    settings = session.settings
    session.must_last()
    lease, pause = float(settings.seconds("lease")), seconds("--poll", poll)
    if lease <= 0 or pause <= 0:
        raise UsageError(what="--lease and --poll must be longer than 0s")
    watching = _observers.made(settings.observers)  # what cannot be made is told before anything is taken
    plan = worker.Plan(
        wanted=Wanted(queues=tuple(dict.fromkeys(map(named, queues))) or (QUEUE,), labels=labels),
        concurrency=concurrency,
        lease=lease,
        drain=seconds("--drain-timeout", drain),
        poll=pause,
        most_claims=max_claims,
        pool=named(pool, "--pool") if pool is not None else "",
        once=once,
        max_runs=max_runs,
    )
    store = pooled(session.store())
    retries, delay = retry_failed or 0, seconds("--retry-delay", retry_delay)
    setup = _setup(session, lease, counts=metrics is not None, retries=retries, retry_delay=delay)
    told = Teller(session, [one for one in watching if hasattr(one, "signal")])
    new_slot: Callable[[], worker.Slot] = lambda: Process(setup)  # noqa: E731
    with Signals(DRAINING) as signals, contextlib.ExitStack() as watched:
        if metrics is not None:
            store, new_slot = _watched(store, plan, new_slot, told, metrics, watched)
        ours = worker.Worker(store, plan, new_slot, told, stop=signals.interrupt, hurry=signals.hurry)
        told.worker = ours.id
        if schedules:
            _scheduling.join(session, told, signals.interrupt, pause, ours.id, once=once, until=watched)
        ours.run()
    return 0


def _setup(session: Session, lease: float, **how: Any) -> Setup:
    """What a slot is told first: the flags that count for it too, and how its runs are carried out."""
    from ._slot import Setup

    flags = {name: value for name, value in session.flags.items() if name not in ("directory", "env_file")}
    return Setup(flags, lease, session.logs(), **how)


def _watched(
    store: Pool, plan: Plan, new_slot: Callable[[], Slot], told: Teller, metrics: str, until: contextlib.ExitStack
) -> tuple[Pool, Callable[[], Slot]]:
    """The store and the slots with ears, and a server for what they hear, until the end."""
    from ._metrics_server import Server
    from ._worker_metrics import Watch

    watch = Watch(store, kind=store.url.partition(":")[0], queues=plan.wanted.queues, slots=plan.concurrency)
    server = Server(metrics, watch.pages)
    server.start()
    until.callback(server.stop)
    told.watch, told.metrics = watch, server.url
    return cast("Pool", watch.store), lambda: watch.slot(new_slot())


def show_all(session: Session) -> int:
    """Print the registry; the exit status."""
    found = _workers(session)
    if session.json:
        session.emit(Workers(workers=[_view(one) for one in found]))
        return 0
    if not found:
        session.note("no worker")
        return 0
    rows = [("WORKER", "STATE", "RUNS", "QUEUES", "LABELS", "POOL", "HEARD OF")]
    for one in found:
        runs = f"{one.running} of {one.concurrency}"
        takes = ",".join(one.queues), ",".join(one.labels)
        rows.append((one.id, one.state, runs, *takes, one.pool, f"{one.age:.0f}s ago"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        session.out.line(safe("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()))
    return 0


def ask_to_drain(session: Session, name: str | None, *, pool: str | None, everybody: bool) -> int:
    """Ask one worker to end, those of a pool, or all; the exit status."""
    from ..errors import NotFound, UsageError
    from ..pool import pooled

    if (name is not None) + (pool is not None) + everybody != 1:
        raise UsageError(what="name a WORKER, or a --pool, or --all", hint="tramai worker list")
    asked: list[Worker] = []
    store = pooled(session.store())
    for one in _fitting(_workers(session), name, pool):
        with contextlib.suppress(NotFound):  # it has ended by itself meanwhile
            asked.append(store.drain(one.id, now=time.time()))
    if not asked and name is None:
        whose = f"the pool {pool}" if pool is not None else "this store"
        raise NotFound(kind="worker", name=f"{whose} has none", hint="tramai worker list")
    if not asked:
        raise NotFound(kind="worker", name=name, hint="tramai worker list")
    if session.json:
        session.emit(Draining(worker=_view(asked[0]), workers=[_view(one) for one in asked]))
    for one in asked:
        session.note(f"{safe(one.id)} was asked to end")
    return 0


def _fitting(workers: Sequence[Worker], name: str | None, pool: str | None) -> list[Worker]:
    """Who is meant; UsageError where a single one is wanted and several fit."""
    from ..errors import UsageError

    if name is None:
        return [one for one in workers if pool is None or one.pool == pool]
    found = [one for one in workers if one.id == name] or [one for one in workers if one.id.endswith(name)]
    if len(found) > 1:
        raise UsageError(what=f"several workers end with {name!r}: " + ", ".join(one.id for one in found))
    return found


def _workers(session: Session) -> tuple[Worker, ...]:
    from ..pool import pooled

    return pooled(session.looking()).workers(now=time.time())


def _view(one: Worker) -> WorkerView:
    return WorkerView(
        id=one.id,
        state=one.state,
        host=one.host,
        pid=one.pid,
        started=one.started,
        age=one.age,
        running=one.running,
        concurrency=one.concurrency,
        queues=list(one.queues),
        labels=list(one.labels),
        pool=one.pool or None,
    )


def seconds(flag: str, text: str) -> float:
    """A duration that was asked for by a flag."""
    from ..duration import parse
    from ..errors import UsageError

    try:
        return float(parse(text))
    except ValueError as error:
        raise UsageError(what=f"{flag}: {error}") from None


class Teller:
    """Says what a worker does: JSON lines on standard output, or lines for people on standard error; and signals.

    From any thread: its scheduler has one of its own.
    """

    def __init__(self, session: Session, listeners: Sequence[Listener]) -> None:
        self._session = session
        self._listeners = listeners
        self._seq = 0
        self._one_at_a_time = threading.Lock()
        self.worker = ""
        self.watch: Watch | None = None
        self.metrics: str | None = None

    def __call__(self, kind: str, about: dict[str, Attribute]) -> None:
        """Tell one thing."""
        with self._one_at_a_time:
            self._tell(kind, about)

    def _tell(self, kind: str, about: dict[str, Attribute]) -> None:
        self._seq += 1
        self._signal(kind, about)
        if self.watch is not None:
            self.watch.told(kind, about)
        if self.metrics is not None and kind == "worker.started":
            about = {**about, "metrics": self.metrics}
        if self._session.json:
            given: dict[str, Any] = {**about}
            line = WorkerLine(seq=self._seq, type=kind, at=time.time(), worker=self.worker, **given)
            self._session.emit(line)
            return
        words = " ".join(f"{name}={value}" for name, value in about.items() if value not in (None, ""))
        stamp = time.strftime("%H:%M:%S")
        self._session.note(safe(f"{stamp} {self.worker} {kind.removeprefix('worker.')} {words}".rstrip()))

    def _signal(self, kind: str, about: dict[str, Attribute]) -> None:
        if self._listeners:
            from .. import signals

            name = kind.removeprefix("worker.")
            if name in signals.WORKER_NAMES:
                signals.send(self._listeners, signals.of_worker(self.worker, name, about))
