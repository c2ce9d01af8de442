"""`--until STEP`: the run is stopped, saved, when a step of the workflow itself is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import NotFound, UsageError
from ..event import Event, StepFinished
from ..paths import without_rounds
from ..store import Mark

if TYPE_CHECKING:
    from ..interrupt import Interrupt
    from ..plan import Plan
    from ..store import Run, Store

REASON = "until"
"""Why the run was interrupted, for whoever asks its interrupt."""
_DONE = ("succeeded", "recovered", "skipped")


class Until:
    """An observer that asks the run to stop once the step is done in it. What is only replayed does not count."""

    def __init__(self, step: str, interrupt: Interrupt) -> None:
        self._step = step
        self._interrupt = interrupt

    def __call__(self, event: Event) -> None:
        """See one event; the end of a step is told when it is recorded."""
        if isinstance(event, StepFinished) and event.status in _DONE and without_rounds(event.path) == self._step:
            self._interrupt.set(REASON)


def check(step: str, plan: Plan, *, start_at: str | None = None) -> None:
    """Refuse a step at which no run can stop: there is none, it stands inside another, or it is not run again."""
    top = [node.id for node in plan.workflow.steps.nodes]
    if step in plan.nodes and step not in top:
        what = f"--until {step}: this step stands inside another one, where others may run beside it"
        raise UsageError(what=what, hint=f"--until {_around(step, plan)} stops when all of it is done")
    if step not in top:
        raise NotFound(kind="step at which the run could stop", name=step, hint=_near(step, top))
    begin = without_rounds(start_at or "").partition(".")[0].partition("[")[0]
    if begin in top and top.index(step) < top.index(begin):
        raise UsageError(what=f"--until {step}: it stands before {begin}, and is not run again")


def check_open(step: str, store: Store, run: Run) -> None:
    """UsageError when the run has done the step already."""
    records = store.journal(run.run_id)
    if any(record.path == step and record.mark in (Mark.COMPLETED, Mark.SKIPPED) for record in records):
        from ._advice import short

        hint = f"tramai resume {short(run.run_id)} goes on to the end"
        raise UsageError(what=f"--until {step}: this run has done it already", hint=hint)


def _near(step: str, top: list[str]) -> str:
    from ..expression import suggest

    near = suggest(step, top)
    return f"did you mean '{near}'?" if near else f"its steps: {', '.join(top)}"


def _around(step: str, plan: Plan) -> str:
    """The step of the workflow itself in which another one stands; the last one for those of `catch` and `finally`."""
    at, nodes = plan.nodes[step].at, plan.workflow.steps.nodes
    return next((node.id for node in nodes if at[: len(node.at)] == node.at), nodes[-1].id)
