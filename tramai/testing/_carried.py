"""Carries one run of a workflow test through all its claims, crashes included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .. import engine, recovery
from ..codec import decode, encode
from ..driver import Driver
from ..errors import NotFound, Problem
from ..event import CalledEvent, Event
from ..interrupt import Interrupt
from ..plan import Plan
from ..reducing import fold, reducers
from ..step import Replay
from ..store import Mark, Status
from ..stores.memory import Memory
from ._fragile import FOR_EVER, Cut, Fragile
from ._gates import People
from ._instant import Instant, InstantLoop
from ._paths import ASKED, Pattern, Steps
from ._script import Answers, Call, Script, Stop
from ._stubs import Live, stubbed
from .clock import FakeClock
from .ran import Ran, StepRan, steps
from .suite import Decision

RUN_ID = "00000000-0000-7000-8000-000000000001"
"""The id of every run of a test, so that keys made of it are the same each time."""
_MOST_CLAIMS = 10_000
_OF_TIME = frozenset(("attempt", "at", "woke_at"))
_ROUND = re.compile(r"@finally\[\d+\]")


class Setting(Struct, frozen=True, kw_only=True):
    """What a run is given, checked already."""

    plan: Plan
    inputs: dict[str, Any]
    stubs: Sequence[tuple[Pattern, Answers]]
    answers: Sequence[tuple[Pattern, tuple[Decision, ...]]]
    allow: tuple[str, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    now: float
    resume: int
    wake: bool


class Carried:
    """One run of a test, over all its claims."""

    def __init__(self, setting: Setting, cut: Cut | None, folder: str) -> None:
        self.setting = setting
        self.clock = FakeClock(setting.now)
        self.store = Fragile(Memory(), cut)
        self.script = Script(setting.stubs, again=cut is not None)
        self.people = People(setting.answers, self.script)
        self.live = Live(self.script)
        self.plan = stubbed(setting.plan, self.live, allow=setting.allow, env=setting.env)
        self.folder = folder
        self.events: list[Event] = []
        self.left = setting.resume
        self.granted: dict[str, int] = {}

    def carry(self) -> Ran:
        """All of it."""
        problem = None
        result = None
        try:
            result = self._claims()
        except Stop as stop:
            problem = stop.problem
        return self._ran(result, problem)

    def _claims(self) -> engine.Result:
        result = engine.run(self.plan, self.setting.inputs, store=self.store, **self._settings())
        for _ in range(_MOST_CLAIMS):
            if self.script.stopped is not None:
                raise self.script.stopped
            if not self._may_go_on(result):
                return result
            result = engine.resume(RUN_ID, store=self.store, plan=self.plan, **self._settings())
        return result

    def _may_go_on(self, result: engine.Result) -> bool:
        """Whether the run has to be resumed, after what was needed for that was done."""
        if self.store.dead:
            self.store.revive()
            for run_id, before in self._runs():
                for record in recovery.open_attempts(self.store.journal(run_id)):
                    self._void(before + record.path)
            found = self.store.get(RUN_ID)
            if found.status in (Status.RUNNING, Status.READY):
                return True
            result = engine.standing(found, resumed=False)
        if result.status in ("sleeping", "waiting"):
            said = [self.people.speak(self.store, run_id, self.clock, before) for run_id, before in self._runs()]
            return any(said) or self._sleep(result.wake_at)
        if result.status == "blocked" and self.store.was_cut:
            self._resolve()
            return True
        if result.status == "failed" and self.left > 0:
            self.left -= 1
            return True
        return False

    def _sleep(self, wake_at: float | None) -> bool:
        if not self.setting.wake or wake_at is None:
            return False
        if any(self.people.waits(self.store, run_id, wake_at, before) for run_id, before in self._runs()):
            return False
        self.clock.advance(max(wake_at - self.clock.now(), 0.0))
        return True

    def _resolve(self) -> None:
        """The operator's word about attempts that a crash has cut off: run them again."""
        for run_id, before in self._runs():
            for record in recovery.unknown_attempts(self.store.journal(run_id)):
                recovery.resolve(
                    self.store,
                    self.store.get(run_id),
                    record.path,
                    as_="retry",
                    comment="cut off by the test",
                    by="tester",
                    clock=self.clock,
                )
                path = before + record.path
                self.granted[path] = self.granted.get(path, 0) + 1

    def _runs(self) -> list[tuple[str, str]]:
        """The runs that there are, the called ones first: id, and what stands before their paths."""
        called = [(run_id, before) for run_id, before in self.live.callers.items() if self._is_there(run_id)]
        return [*reversed(called), (RUN_ID, "")]

    def _is_there(self, run_id: str) -> bool:
        try:
            self.store.get(run_id)
        except NotFound:
            return False
        return True

    def _void(self, path: str) -> None:
        self.script.void[path] = self.script.void.get(path, 0) + 1

    def _settings(self) -> dict[str, Any]:
        options = engine.Options(
            wait=0.0,
            lease=FOR_EVER,
            started_by="tester",
            cwd=self.folder,
            run_id=RUN_ID,
            secrets=self.setting.secrets,
            driver=self._driver,
        )
        return {"observers": [self.events.append], "options": options, "clock": self.clock}

    def _driver(self, plan: Plan, interrupt: Interrupt) -> Driver:
        kind = InstantLoop if plan.needs_loop else Instant
        driver = kind(interrupt, self.clock)
        self.live.driver = driver  # type: ignore[assignment]
        return driver

    def _ran(self, result: engine.Result | None, problem: Problem | None) -> Ran:
        records = self.store.journal(RUN_ID)
        if self.store.was_cut and result is not None:
            result = engine.standing(self.store.get(RUN_ID), resumed=True)
        declared = self.setting.plan.workflow.state
        state = {name: spec.initial for name, spec in declared.items()}
        for record in records:
            if record.mark is Mark.COMPLETED and record.saves is not None:
                fold(state, decode(record.saves), reducers(declared))
        return Ran(
            status=result.status if result is not None else "stopped",
            exit_status=result.exit_status if result is not None else 1,
            outputs=result.outputs if result is not None else None,
            error=result.error if result is not None else None,
            state=state,
            inputs=self.setting.inputs,
            steps=self._steps(),
            calls=tuple(self.script.calls),
            events=tuple(self.events),
            writes=self.store.writes,
            was_cut=self.store.was_cut,
            used=frozenset(self.script.used),
            answered=frozenset(self.people.used),
            granted=self.granted,
            problem=problem,
        )

    def _steps(self) -> dict[str, StepRan]:
        """How each path ended, those in called runs after the others."""
        events: dict[str, list[Event]] = {}
        for event in self.events:
            run_id = RUN_ID
            while isinstance(event, CalledEvent):
                run_id, event = event.run_id, event.event
            events.setdefault(run_id, []).append(event)
        found: dict[str, StepRan] = {}
        for run_id, before in reversed(self._runs()):
            for path, step in steps(self.store.journal(run_id), events.get(run_id, ())).items():
                found[before + path] = replace(step, path=before + path)
        return found


def unlike(clean: Ran, ran: Ran, plan: Plan) -> list[str]:
    """What a crash has changed although it must not. It does cost time and attempts: these may differ."""
    if ran.problem is not None:
        return [ran.problem.message]
    found = []
    for name in ("status", "outputs", "state"):
        now, before = _timeless(getattr(ran, name)), _timeless(getattr(clean, name))
        if now != before:
            found.append(f"{name} is {_short(now)}, and {_short(before)} without the crash")
    kinds = [(one.error or {}).get("type") for one in (ran, clean)]
    if kinds[0] != kinds[1]:
        found.append(f"the run failed with {kinds[0]}, and with {kinds[1]} without the crash")
    return found + list(_repeated(clean.calls, ran, plan))


def _timeless(value: Any) -> Any:
    """The value without instants and numbers of attempts, where the engine has put them into its records."""
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in _OF_TIME}
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    return _ROUND.sub("@finally", value) if isinstance(value, str) and "@finally" in value else value


def _repeated(clean: Sequence[Call], ran: Ran, plan: Plan) -> Iterator[str]:
    """Steps that succeeded once more although nobody said that they may."""
    before, after, known = _successes(clean), _successes(ran.calls), Steps(plan)
    granted = _counted(ran.granted.items())
    for path, count in after.items():
        node = known.at(path)
        if node is None or node.replay is not Replay.NON_REPLAYABLE or path.endswith(ASKED):
            continue
        if count > before.get(path, 0) + granted.get(path, 0):
            yield f"`{path}` was done {count} times, although it is not safe to repeat"


def _successes(calls: Sequence[Call]) -> dict[str, int]:
    return _counted((call.path, 1) for call in calls if call.succeeded)


def _counted(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums by path; `finally` is entered anew after a crash, and is the same `finally`."""
    found: dict[str, int] = {}
    for path, count in pairs:
        name = _ROUND.sub("@finally", path)
        found[name] = found.get(name, 0) + count
    return found


def _short(value: Any) -> str:
    text = encode(value)
    return text if len(text) <= 200 else text[:197] + "…"
