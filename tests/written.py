"""Workflows written as YAML in tests: checked, run, and what came of them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from tramai import document, engine, inputs, plan, workflow
from tramai.clock import Clock
from tramai.event import Observer
from tramai.plan import Plan
from tramai.store import Record
from tramai.stores.memory import Memory

RUN = f"r{os.getpid()}"
"""The id of every run that is made here; no other process has it, so that nobody ends the children of another."""


class Clockwork:
    """Wall time that goes on when it is told to."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time


def source(steps: str, top: str = "") -> str:
    """A whole file around some steps."""
    return f"tramai: 1\nname: test\n{textwrap.dedent(top)}\nsteps:\n{textwrap.indent(textwrap.dedent(steps), '  ')}"


def problems(steps: str, top: str = "") -> list[tuple[str, str]]:
    """The codes and messages of everything that is wrong with it."""
    _, found = workflow.examine(document.parse(source(steps, top), file="test.yaml"))
    return [(problem.code, problem.message) for problem in found]


def codes(steps: str, top: str = "") -> list[str]:
    """The codes alone."""
    return [code for code, _ in problems(steps, top)]


def planned(steps: str, top: str = "") -> Plan:
    """The plan of a file without problems."""
    made, found = workflow.examine(document.parse(source(steps, top), file="test.yaml"))
    assert found == ()
    assert made is not None
    return plan.of(made)


def ran(
    steps: str,
    top: str = "",
    *,
    given: Mapping[str, Any] | None = None,
    store: Memory | None = None,
    clock: Clock | None = None,
    observers: Sequence[Observer] = (),
    wait: float = 60.0,
) -> engine.Result:
    """Run it once."""
    made = planned(steps, top)
    bound = inputs.bind(made.workflow.inputs, dict(given or {}))
    options = engine.Options(run_id=RUN, wait=wait)
    return engine.run(made, bound, store=store or Memory(), clock=clock, observers=observers, options=options)


def again(store: Memory, *, clock: Clock | None = None, wait: float = 60.0) -> engine.Result:
    """Resume it with its stored definition."""
    return engine.resume(RUN, store=store, clock=clock, options=engine.Options(wait=wait))


def ends(store: Memory) -> dict[str, str]:
    """The last mark of every path."""
    return {record.path: record.mark.value for record in journal(store)}


def journal(store: Memory) -> tuple[Record, ...]:
    """All records."""
    return store.journal(RUN)
