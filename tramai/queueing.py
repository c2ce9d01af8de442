"""Runs of one group: what a run's group is called, and how the run comes to its place there, or does not.

The store decides who has a place; here is what a run does about it that has none: wait in line, ask others to end,
or give up.
"""

from __future__ import annotations

import contextlib
import select
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from .audience import Audience
from .clock import Clock
from .codec import Json, encode
from .driver import Interrupted
from .errors import GroupFull, NotFound, NotInThatState, UnfitGroup
from .event import Held, RunQueued
from .expression import ExpressionError, render_text
from .interrupt import Interrupt
from .journal import Journal
from .redact import Redactor
from .results import CALLED, EXIT, user
from .store import Change, Group, Note, Run, Store

if TYPE_CHECKING:
    from .concurrency import Concurrency
    from .plan import Plan

LONGEST = 200
"""Characters of the name of a group."""
_FIRST, _NEXT, _LAST = 0.05, 1.5, 1.0
"""Seconds until a run in line asks again: at first, by what factor longer each time, and at most."""
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
                self._make_room()
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

    def _make_room(self) -> None:
        """Ask the oldest to end: as many as stand in the way of this one, which is newer."""
        here = self._run.created, self._run.run_id
        for run in self._held()[: len(self._before) - self._group.limit + 1]:
            if run.run_id in self._asked or (run.created, run.run_id) > here:
                continue
            self._asked.add(run.run_id)
            comment = f"run {self._run.run_id} of the same group takes its place"
            note = Note(at=self._clock.now(), type="cancel.requested", by=user() or None, comment=comment)
            with contextlib.suppress(NotFound, NotInThatState):  # it is over
                self._store.request_cancel(run.run_id, note, now=self._clock.now())

    def _held(self) -> list[Run]:
        found = []
        for run_id in self._before:
            with contextlib.suppress(NotFound):
                found.append(self._store.get(run_id))
        return found

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
