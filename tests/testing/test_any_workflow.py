"""Any workflow at all, cut off before and after each of its writes, ends as it does when nothing happens to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.testing.support import made
from tramai.testing import WorkflowTest

POLICIES = ("replayable", "idempotent", "non_replayable")
MOST = 4
"""Writes of one workflow at which it is cut off."""
CONDITIONS = ("true", "false", "state.count == 0", "state.count < 2", "state.log | length < 1")
"""Also such as come to be false, or true, by what the step does that has one."""
FAILURES = ("exit.1", "exit.75", "timeout", "network")


class Writer:
    """Draws a workflow, and a stub for each of its effects."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.count = 0
        self.stubs: dict[str, Any] = {}

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    def block(self, depth: int, most: int = 3) -> list[dict[str, Any]]:
        return [self.step(depth) for _ in range(self.draw(st.integers(1, most)))]

    def step(self, depth: int) -> dict[str, Any]:
        self.count += 1
        step: dict[str, Any] = {"id": f"s{self.count}"}
        kinds = ["effect", "effect", "effect", "local", "delay"]
        if depth > 0 and self.count < 8:
            kinds += ["foreach", "parallel", "branches", "branch", "repeat"]
        kind = self.draw(st.sampled_from(kinds))
        getattr(self, kind)(step, depth)
        if self.draw(st.integers(0, 3)) == 0:
            step["when"] = "${{ " + self.draw(st.sampled_from(CONDITIONS)) + " }}"
        if kind != "delay" and self.draw(st.integers(0, 3)) == 0:
            step["catch"] = [self.clause(depth)]
        if kind in ("effect", "local") and self.draw(st.integers(0, 2)) == 0:
            step["save"] = {self.draw(st.sampled_from(["log", "count"])): 1}
        return step

    def clause(self, depth: int) -> dict[str, Any]:
        clause: dict[str, Any] = {"output": "caught"}
        if self.draw(st.booleans()):
            clause["on"] = [self.draw(st.sampled_from(["exit", "timeout", "network"]))]
        if depth > 0 and self.draw(st.booleans()):
            clause["do"] = self.block(0, 1)
        return clause

    def effect(self, step: dict[str, Any], depth: int) -> None:
        step["shell"] = "x"
        step["replay"] = self.draw(st.sampled_from(POLICIES))
        attempts = self.draw(st.integers(1, 3))
        if attempts > 1:
            step["retry"] = {"max_attempts": attempts, "delay": "10s"}
            rules: list[dict[str, Any]] = [{}, {}, {"on": ["exit"]}, {"when": "${{ error.type != 'exit.1' }}"}]
            step["retry"].update(self.draw(st.sampled_from(rules)))
        ends = [self.draw(st.sampled_from((*FAILURES, None, None, None))) for _ in range(attempts)]
        self.stubs[step["id"]] = [
            {"output": f"{step['id']}.{number}"} if end is None else {"error": {"type": end}}
            for number, end in enumerate(ends)
        ]

    def local(self, step: dict[str, Any], depth: int) -> None:
        values: list[Any] = [step["id"], {"z": 1, "a": 2}, "${{ state.log | length }}", "${{ state }}"]
        step["local"] = {"value": self.draw(st.sampled_from(values))}

    def delay(self, step: dict[str, Any], depth: int) -> None:
        step["delay"] = self.draw(st.sampled_from(["1s", "1h"]))

    def foreach(self, step: dict[str, Any], depth: int) -> None:
        do = self.block(depth - 1, 2)
        on_error = self.draw(st.sampled_from(["fail", "collect"]))
        items = self.draw(st.sampled_from([[1, 2], "${{ state.log }}", "${{ [state.count, 7] }}"]))
        step["foreach"] = {"items": items, "do": do, "on_error": on_error}

    def parallel(self, step: dict[str, Any], depth: int) -> None:
        do = self.block(depth - 1, 2)
        on_error = self.draw(st.sampled_from(["fail", "collect"]))
        step["parallel"] = {"items": ["a", "b"], "key": "${{ item }}", "do": do, "on_error": on_error}

    def branches(self, step: dict[str, Any], depth: int) -> None:
        step["parallel"] = {"branches": {"one": self.block(depth - 1, 2), "two": self.block(depth - 1, 2)}}

    def branch(self, step: dict[str, Any], depth: int) -> None:
        yes = self.draw(st.sampled_from(CONDITIONS))
        then, other = self.block(depth - 1, 2), self.block(depth - 1, 2)
        step["branch"] = {"if": "${{ " + yes + " }}", "then": then, "else": other}

    def repeat(self, step: dict[str, Any], depth: int) -> None:
        turns = self.draw(st.integers(1, 3))
        until = "${{ loop.index >= " + str(self.draw(st.integers(1, 4))) + " }}"
        step["repeat"] = {"max": turns, "until": until, "do": self.block(depth - 1, 2)}
        if self.draw(st.booleans()):
            step["repeat"]["delay"] = "5s"

    def workflow(self) -> Any:
        top: dict[str, Any] = {
            "state": {"log": {"initial": [], "reduce": "append"}, "count": {"initial": 0, "reduce": "sum"}}
        }
        steps = self.block(2, 4)
        if self.draw(st.booleans()):
            top["finally"] = self.block(0, 2)
            for step in top["finally"]:
                if step.get("replay") == "non_replayable":  # the operator's "run it again" is said of the whole run
                    step["replay"] = "idempotent"
        if self.draw(st.integers(0, 3)) == 0:
            top["catch"] = [{"do": self.block(0, 1), "output": {"caught": True}}]
        top["outputs"] = {step["id"]: "${{ steps." + step["id"] + ".output | default('nothing') }}" for step in steps}
        return made(steps, **top)


def wrong(data: st.DataObject) -> Iterator[str]:
    writer = Writer(data)
    plan = writer.workflow()
    test = WorkflowTest(plan, stubs=writer.stubs)
    clean = test.run()
    assert clean.problem is None
    assert clean.status in ("completed", "failed")
    count = min(clean.writes, MOST)
    writes = data.draw(st.lists(st.integers(1, clean.writes), min_size=count, max_size=count, unique=True))
    for where, _, found in test.crash_everywhere(clean, writes=writes):
        if found:
            yield f"{where} of {clean.writes}: {found}\n{plan.canonical}\n{writer.stubs}"


CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_who_died_in_finally_goes_on_in_it_and_tries_nothing_again() -> None:
    steps = [{"id": "work", "shell": "x", "retry": {"max_attempts": 2}}]
    last = [{"id": "tell", "shell": "x", "replay": "idempotent", "save": {"told": 1}}, {"id": "tidy", "shell": "x"}]
    plan = made(steps, state={"told": {"initial": 0, "reduce": "sum"}}, **{"finally": last})
    failing = [{"error": {"type": "exit.1"}}] * 2
    test = WorkflowTest(plan, stubs={"work": failing, "tell": {"output": 1}, "tidy": {"output": 1}})
    for step in ("tell", "tidy"):
        ran = test.run(crash_after=step)
        assert ran.status == "failed"
        assert [call.step for call in ran.calls] == ["work", "work", "tell", "tidy"]
        assert ran.state == {"told": 1}


@settings(max_examples=15, deadline=None, suppress_health_check=CHECKS, derandomize=True, database=None)
@given(st.data())
def test_any_workflow_survives_every_crash(data: st.DataObject) -> None:
    assert next(wrong(data), None) is None


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=CHECKS, database=None)
@given(st.data())
def test_many_workflows_survive_every_crash(data: st.DataObject) -> None:
    assert next(wrong(data), None) is None


def test_a_crash_gives_no_further_attempts_and_takes_none() -> None:
    step = {"id": "work", "shell": "x", "replay": "idempotent", "retry": {"max_attempts": 2, "delay": "1s"}}
    failing = [{"error": {"type": "exit.1"}}, {"error": {"type": "exit.2"}}]
    test = WorkflowTest(made([step]), stubs={"work": failing})
    clean = test.run()
    for where, ran, found in test.crash_everywhere(clean):
        assert found == [], where
        recorded = {call.attempt for call in ran.calls}
        assert len(recorded) <= 3, f"{where}: two attempts failed, and one was cut off"
        assert ran.error is not None
        assert ran.error["type"] == "exit.2"
