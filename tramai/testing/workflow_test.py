"""Runs workflow tests from Python: in memory, with stubs, a clock of their own, and crashes where they are wanted."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from .. import inputs
from ..errors import UsageError
from ..plan import Plan, load
from ._carried import Carried, Setting, unlike
from ._fragile import Cut
from ._moment import NOW
from ._paths import Pattern, Steps
from ._script import Answers
from .ran import Ran
from .suite import Answer, Decision


class WorkflowTest:
    """A workflow, and what stands in the place of the world around it.

    `workflow` is a path or a plan. `stubs` maps steps (an id, a path, a path with `*` for keys) to an answer: a mapping
    with `output`, `result` or `error`, or a list of them for successive attempts. Steps that reach outside and have no
    stub end the run, unless `allow` names them or their verb. `secrets` are made-up values; real ones are never read.
    `now` is in epoch seconds. `folder` is where allowed steps work, a new one by default. `resume`: how often
    the run is resumed after a failure. `wake`: whether pauses pass.

    Raises UsageError for a step that is not there, InvalidInput for inputs that a run would refuse.
    """

    def __init__(
        self,
        workflow: str | os.PathLike[str] | Plan,
        *,
        inputs: Mapping[str, Any] | None = None,
        stubs: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        allow: tuple[str, ...] | list[str] = (),
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        now: float = NOW,
        folder: str | os.PathLike[str] | None = None,
        resume: int = 0,
        wake: bool = True,
    ) -> None:
        self.plan = workflow if isinstance(workflow, Plan) else load(os.fspath(workflow))
        self._steps = Steps(self.plan)
        made_up = secrets or {}
        self._setting = Setting(
            plan=self.plan,
            inputs=bound(self.plan, inputs or {}),
            stubs=[(self._pattern(key), answer_of(key, raw)) for key, raw in (stubs or {}).items()],
            answers=[(self._pattern(key), decisions_of(raw)) for key, raw in (answers or {}).items()],
            allow=tuple(allow),
            env=dict(env or {}),
            secrets={name: made_up.get(name, f"fake-{name}") for name in secret_names(self.plan)},
            now=now,
            resume=resume,
            wake=wake,
        )
        self._folder = os.fspath(folder) if folder is not None else None

    def _pattern(self, key: str) -> Pattern:
        found = self._steps.find(key)
        if isinstance(found, str):
            raise UsageError(what=found)
        return found

    def run(self, *, crash_after: str | None = None) -> Ran:
        """Run it to its end. `crash_after`: a step after whose end the run is cut off, and goes on in a fresh claim.

        UsageError when that step never came to its end.
        """
        ran = self.attempt(crash_after)
        if crash_after is not None and not ran.was_cut and ran.problem is None:
            raise UsageError(what=f"the run was not cut off: the end of step '{crash_after}' was never saved")
        return ran

    def attempt(self, crash_after: str | None = None) -> Ran:
        """The same; `was_cut` tells whether the run was cut off."""
        return self._carry(Cut(after_step=self._pattern(crash_after)) if crash_after is not None else None)

    def crash_everywhere(
        self, clean: Ran | None = None, *, writes: Iterable[int] | None = None
    ) -> Iterator[tuple[str, Ran, list[str]]]:
        """Cut the run off before and after each of its writes: where, how it ended, and what was not as it should be.

        `writes`: only at these, counted from 1.

        It must end as the run without a crash does, and no step that is not safe to repeat may have succeeded more
        often. Where the outcome of a step is unknown, the operator says to run it again.
        """
        clean = clean or self._carry(None)
        for number in range(1, clean.writes + 1) if writes is None else writes:
            for before in (True, False):
                cut = Cut(write=number, before=before)
                ran = self._carry(cut)
                yield cut.spelled, ran, unlike(clean, ran, self.plan)

    def _carry(self, cut: Cut | None) -> Ran:
        with self._place() as folder:
            return Carried(self._setting, cut, folder).carry()

    @contextlib.contextmanager
    def _place(self) -> Iterator[str]:
        if self._folder is not None:
            yield self._folder
            return
        with tempfile.TemporaryDirectory(prefix="tramai-test-") as folder:
            yield folder


def secret_names(plan: Plan) -> list[str]:
    """The secrets that a workflow declares, and those of all that it calls: none of them is fetched in a test."""
    return [name for workflow in (plan.workflow, *plan.calls) for name in workflow.secrets]


def bound(plan: Plan, given: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as a run would have them; InvalidInput for what it would refuse."""
    return inputs.bind(plan.workflow.inputs, dict(given))


def answer_of(key: str, raw: Any) -> Answers:
    """A stub from plain data; UsageError for what is none."""
    from .reading import hook

    if isinstance(raw, (Answer, tuple)):
        return raw
    try:
        wanted: Any = tuple[Answer, ...] if isinstance(raw, list) else Answer
        made: Answers = msgspec.convert(raw, wanted, dec_hook=hook)
    except msgspec.ValidationError as error:
        raise UsageError(what=f"the stub of `{key}` is none: {error}") from None
    return made


def decisions_of(raw: Any) -> tuple[Decision, ...]:
    """What is said at a gate, from plain data."""
    many = raw if isinstance(raw, (list, tuple)) else [raw]
    return tuple(one if isinstance(one, Decision) else msgspec.convert(one, Decision) for one in many)
