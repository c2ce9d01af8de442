"""Runs of one group: what a run's group is called, and how the run comes to its place there, or does not.

The store decides who has a place; here is what a run does about it that has none: wait in line, ask others to end,
or give up.
"""

from __future__ import annotations

import contextlib
import select
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import msgspec

from .audience import Audience
from .clock import Clock
from .codec import Json, encode
from .driver import Interrupted
from .errors import CheckpointCorrupt, GroupFull, NotFound, NotInThatState, TramaiError, UnfitGroup
from .event import Held, RunQueued
from .expression import ExpressionError, render_text
from .interrupt import Interrupt
from .journal import Journal
from .redact import Redactor
from .results import CALLED, EXIT, Result, user
from .store import Change, Group, Lease, Note, Run, Status, Store

if TYPE_CHECKING:
    from .concurrency import Concurrency
    from .plan import Plan

LONGEST = 200
"""Characters of the name of a group."""
_FIRST, _NEXT, _LAST = 0.05, 1.5, 1.0
"""Seconds until a run in line asks again: at first, by what factor longer each time, and at most."""
_SOON, _LATEST = 1.0, 300.0
"""Seconds after which a run that was given back asks again, for each run in line before it; and at most."""
_NAMED = 20
"""Runs before it that an event names."""
_DEPTH = 16
"""Callers that are looked at: more than can call each other."""


def group_of(plan: Plan, inputs: Mapping[str, Json], redactor: Redactor) -> Group | None:
    """The group of a run with these inputs; UnfitGroup when its name cannot be one."""
    rule = plan.workflow.concurrency
    if rule is None:
        return None
    try:
        name = render_text(rule.group, {"inputs": dict(inputs), "run": {"workflow": plan.workflow.name}})
    except ExpressionError as error:
        raise UnfitGroup(what=f"cannot be made: {error}") from error
    if not name.strip():
        raise UnfitGroup(what="is empty")
    if len(name) > LONGEST or not name.isprintable():
        raise UnfitGroup(what=f"must have at most {LONGEST} characters, all of them printable")
    if redactor.text(name) != name:
        raise UnfitGroup(what="holds a secret, and everybody may see it")
    return Group(name, rule.limit)


class Refused(msgspec.Struct, frozen=True):
    """How a new run ends that found no place and does not wait: as cancelled, with this error."""

    error: dict[str, Json]
    exit_status: int


class Line:
    """The way of one claimed run to its place in its group."""

    def __init__(
        self,
        store: Store,
        run: Run,
        journal: Journal,
        rule: Concurrency | None,
        audience: Audience,
        clock: Clock,
        interrupt: Interrupt,
        *,
        begun: bool,
    ) -> None:
        self._store = store
        self._run = run
        self._journal = journal
        self._policy = rule.on_conflict if rule is not None else "queue"
        self._audience = audience
        self._clock = clock
        self._interrupt = interrupt
        self._begun = begun
        self._asked: set[str] = set()
        self._within = _callers(store, run)
        self._before: tuple[str, ...] = ()

    def begin(self) -> None:
        """Ask for the place the first time. GroupFull for a run that had begun, if its kind does not wait."""
        self._before = self._ask()
        if self._before and self._begun and self._policy in ("skip", "fail"):
            self._journal.write(Change(now=self._clock.now(), release=True))
            raise self._full()

    def wait(self) -> Refused | None:
        """Come to the place, however long it takes; why there is none for a run that does not wait."""
        if not self._before:
            return None
        if self._policy in ("skip", "fail"):
            return self._refused()
        told: tuple[str, ...] = ()
        pause = _FIRST
        self._journal.note("run.queued", data=encode({"group": self._group.name, "before": list(self._before)}))
        self._journal.write(Change(now=self._clock.now()))
        while self._before:
            if self._before != told:
                self._audience.tell(self._told())
                told = self._before
            if self._policy == "cancel_running" and not self._begun:
                _make_room(self._store, self._run, self._before, self._asked, self._clock)
            self._pause(pause)
            pause = min(pause * _NEXT, _LAST)
            self._before = self._ask()
        self._journal.note("run.entered")
        return None

    @property
    def _group(self) -> Group:
        assert self._run.group is not None
        return self._run.group

    def _ask(self) -> tuple[str, ...]:
        return self._store.enter(self._journal.lease, within=self._within, now=self._clock.now())

    def _pause(self, seconds: float) -> None:
        poll = select.poll()  # `select` itself takes no descriptor beyond 1023
        poll.register(self._interrupt, select.POLLIN)
        poll.poll(seconds * 1000)
        if self._interrupt.is_set:
            raise Interrupted(self._interrupt.reason or "signal")

    def _held(self) -> list[Run]:
        return _held(self._store, self._before)

    def _told(self) -> RunQueued:
        held = tuple(
            Held(run_id=run.run_id, workflow=run.workflow, owner=run.lease.owner if run.lease is not None else None)
            for run in self._held()
        )
        return RunQueued(run_id=self._run.run_id, group=self._group.name, limit=self._group.limit, before=held)

    def _refused(self) -> Refused:
        full = self._full()
        about: dict[str, Json] = {"group": self._group.name, "held_by": list(self._before)}
        if self._policy == "fail":
            error = {"type": "group_full", "message": full.message, "code": full.code, **about}
            return Refused(error, full.exit_status)
        return Refused({"type": "cancelled", "message": f"skipped: {full.message}", **about}, EXIT["cancelled"])

    def _full(self) -> GroupFull:
        held = "; ".join(f"run {run.run_id} of {run.workflow}" for run in self._held())
        return GroupFull(
            group=self._group.name, limit=self._group.limit, held=held, by=self._before, run_id=self._run.run_id
        )


def stand_back(store: Store, run: Run, lease: Lease, rule: Concurrency | None, clock: Clock) -> Result | None:
    """Take the place of a run that a worker has taken, or give the run back, so that it waits in no slot.

    None: it has its place, or is to be told by its `Line` that there is none. A run that is given back keeps its place
    in line, and comes up again: when somebody calls it up, and after a while by itself, the later the more are before.
    """
    call_up = getattr(store, "call_up", None)
    waits = rule is not None and rule.on_conflict in ("queue", "cancel_running")
    if run.group is None or call_up is None or not waits or run.cancel_requested:
        return None
    before = store.enter(lease, within=_callers(store, run), now=clock.now())
    if not before:
        return None
    if rule is not None and rule.on_conflict == "cancel_running" and not store.journal(run.run_id):
        _make_room(store, run, before, set(), clock)
    now = clock.now()
    wake_at = now + min(_SOON * max(len(before) - run.group.limit + 1, 1), _LATEST)
    said = Note(at=now, type="run.queued", data=encode({"group": run.group.name, "before": [*before[:_NAMED]]}))
    change = Change(
        now=now,
        notes=() if run.queued else (said,),
        status=Status.WAITING if run.status is Status.WAITING else Status.SLEEPING,
        wake_at=wake_at,
        queued=True,
        release=True,
    )
    store.commit(lease, change)
    return Result(run_id=run.run_id, status="queued", exit_status=EXIT["sleeping"], wake_at=wake_at)


def call_up(store: Store, group: Group | None, clock: Clock) -> None:
    """A run of the group has ended or stands still: whoever is next need not wait until it asks again."""
    if group is not None and (found := getattr(store, "call_up", None)) is not None:
        with contextlib.suppress(TramaiError):  # then it asks by itself
            found(group.name, now=clock.now())


def _make_room(store: Store, run: Run, before: Collection[str], asked: set[str], clock: Clock) -> None:
    """Ask the oldest to end: as many as stand in the way of this one, which is newer."""
    assert run.group is not None
    here = run.created, run.run_id
    for other in _held(store, before)[: len(before) - run.group.limit + 1]:
        if other.run_id in asked or (other.created, other.run_id) > here:
            continue
        asked.add(other.run_id)
        comment = f"run {run.run_id} of the same group takes its place"
        note = Note(at=clock.now(), type="cancel.requested", by=user() or None, comment=comment)
        with contextlib.suppress(NotFound, NotInThatState):  # it is over
            store.request_cancel(other.run_id, note, now=clock.now())


def _held(store: Store, before: Collection[str]) -> list[Run]:
    found = []
    for run_id in before:
        with contextlib.suppress(NotFound, CheckpointCorrupt):  # one that cannot be read has its place all the same
            found.append(store.get(run_id))
    return found


def _callers(store: Store, run: Run) -> tuple[str, ...]:
    """The runs that have called this one, one the other, the nearest first."""
    found: list[str] = []
    while run.started_by.startswith(CALLED) and len(found) < _DEPTH:
        found.append(run.started_by.removeprefix(CALLED))
        try:
            run = store.get(found[-1])
        except NotFound:
            break
    return tuple(found)
