"""Short ways to build and run a workflow in the engine's tests."""

from __future__ import annotations

import os
import uuid
from typing import Any

from tramai import build, engine, plan
from tramai.event import Event
from tramai.store import Store

RUN = f"r{os.getpid()}"
"""The id of every run that is made here; no other process has it, so that nobody ends the children of another."""


def name() -> str:
    """A counter name nobody else uses."""
    return uuid.uuid4().hex


def make(steps: list[dict[str, Any]], **top: Any) -> plan.Plan:
    """The plan of a workflow given as data."""
    return plan.of(build.build({"tramai": 1, "name": "test", "steps": steps, **top}))


def run(store: Store, made: plan.Plan, inputs: dict[str, Any] | None = None, **more: Any) -> engine.Result:
    """Run it with the run id of this process."""
    return run_as(RUN, store, made, inputs, **more)


def run_r(store: Store, made: plan.Plan, inputs: dict[str, Any] | None = None, **more: Any) -> engine.Result:
    """Run it as `r`, where an id that is the same in every process is wanted."""
    return run_as("r", store, made, inputs, **more)


def run_as(
    run_id: str, store: Store, made: plan.Plan, inputs: dict[str, Any] | None = None, **more: Any
) -> engine.Result:
    """Run it with this id."""
    options = engine.Options(run_id=run_id, **more.pop("options", {}))
    return engine.run(made, inputs or {}, store=store, options=options, **more)


class Watch:
    """An observer that keeps what it saw."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event, /) -> None:
        self.events.append(event)

    def statuses(self) -> dict[str, str]:
        """The last status of every path."""
        return {
            event.path: event.status for event in self.events if hasattr(event, "status") and hasattr(event, "path")
        }


def call(function: str, **arguments: Any) -> dict[str, Any]:
    """The settings of a `local` step that calls one of `functions`."""
    return {"call": f"tests.engine.functions:{function}", "with": arguments}
