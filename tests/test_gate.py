"""`gate`: the run goes on, or stops with a reason."""

from __future__ import annotations

import pytest

from tramai.step import Replay
from tramai.steps.gate import Gate
from tramai.stores.memory import Memory

from .step_context import made
from .written import Clockwork, again, codes, ends, journal, ran

STEPS = """\
- id: before
  local: x
- id: check
  gate:
    check: ${{ inputs.rate < 1 }}
    reason: the rate is ${{ inputs.rate }}
- id: after
  local: y
"""
TOP = "inputs: {rate: {type: number}}\noutputs: {it: '${{ steps.check.output }}'}"


def test_an_open_gate_says_who_approved_and_when() -> None:
    result = ran(STEPS, TOP, given={"rate": 0.5}, clock=Clockwork(1000.0))
    assert result.outputs == {"it": {"decision": "approved", "by": "policy", "at": 1000, "comment": None, "data": None}}


def test_a_closed_gate_rejects_the_run_with_its_reason() -> None:
    store = Memory()
    result = ran(STEPS, TOP, given={"rate": 2}, store=store)
    assert (result.status, result.exit_status) == ("failed", 10)
    assert result.error is not None
    assert (result.error["type"], result.error["message"]) == ("rejected", "the rate is 2")
    assert ends(store) == {"before": "completed", "check": "failed"}


def test_a_rejection_is_not_retried_but_a_resume_asks_again() -> None:
    store = Memory()
    assert (
        ran(
            STEPS.replace("- id: after", "  retry: {max_attempts: 5, delay: 1s}\n- id: after"),
            TOP,
            given={"rate": 2},
            store=store,
        ).exit_status
        == 10
    )
    assert [record.attempt for record in journal(store) if record.path == "check"] == [1]
    assert again(store).exit_status == 10
    assert [record.attempt for record in journal(store) if record.path == "check"] == [1, 2]


def test_the_short_form_is_the_condition() -> None:
    result = ran("- id: check\n  gate: ${{ false }}")
    assert result.error is not None
    assert result.error["message"] == "the gate is closed"


@pytest.mark.parametrize("condition", ["${{ 1 }}", "${{ 'true' }}", "${{ [] }}", "${{ none }}"])
def test_a_condition_is_true_or_false_and_nothing_else(condition: str) -> None:
    top = "inputs: {x: {optional: true}}"
    found = codes(f"- id: check\n  gate: {condition}", top)
    if found:
        assert found == ["TRM212"]
    else:
        result = ran(f"- id: check\n  gate: {condition}", top)
        assert (result.status, result.exit_status) == ("failed", 1)
        assert result.error is not None
        assert result.error["type"] == "expression"


def test_a_value_that_is_no_boolean_fails_the_step_and_does_not_open_the_gate() -> None:
    result = ran("- id: check\n  gate: ${{ inputs.x }}", "inputs: {x: {}}", given={"x": "true"})
    assert (result.status, result.exit_status) == ("failed", 1)


@pytest.mark.parametrize("text", ["yes", "${{ true }} or so", "a ${{ true }}"])
def test_a_condition_is_one_whole_expression(text: str) -> None:
    assert codes(f"- id: check\n  gate: {text}") == ["TRM207"]


def test_a_gate_may_be_decided_again() -> None:
    assert made(Gate, check="${{ true }}").replay() is Replay.REPLAYABLE
