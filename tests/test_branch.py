"""`branch`: one of several blocks, chosen once."""

from __future__ import annotations

from typing import Any

import pytest

from tramai.stores.memory import Memory

from .written import Clockwork, again, codes, ends, problems, ran

STEPS = """\
- id: route
  branch:
    select: ${{ inputs.x }}
    cases:
      a: [{id: in_a, local: from a}]
      "1": [{id: in_one, local: from one}]
      "true": [{id: in_true, local: from true}]
      "null": [{id: in_null, local: from null}]
      nothing: []
    default: [{id: other, local: from default}]
"""
TOP = """\
inputs: {x: {}}
outputs:
  it: ${{ steps.route.output }}
  a: ${{ steps.in_a.output | default("not taken") }}
  status: ${{ steps.in_a.status }}
"""


@pytest.mark.parametrize(
    ("x", "output"),
    [
        ("a", {"in_a": "from a"}),
        (1, {"in_one": "from one"}),
        ("1", {"in_one": "from one"}),
        (True, {"in_true": "from true"}),
        (None, {"in_null": "from null"}),
        ("nothing", {}),
        ("A", {"other": "from default"}),
        ("", {"other": "from default"}),
        (10**30, {"other": "from default"}),
    ],
)
def test_a_value_meets_the_key_with_its_json_text(x: Any, output: dict[str, str]) -> None:
    result = ran(STEPS, TOP, given={"x": x})
    assert result.status == "completed", result.error
    assert result.outputs == {
        "it": output,
        "a": output.get("in_a", "not taken"),
        "status": "succeeded" if "in_a" in output else "skipped",
    }


@pytest.mark.parametrize(("x", "kind"), [([], "a list"), ({}, "a map"), (1.5, "a fraction")])
def test_a_value_that_cannot_be_a_key_fails_the_step(x: Any, kind: str) -> None:
    result = ran(STEPS, TOP, given={"x": x})
    assert result.status == "failed"
    assert result.error is not None
    assert kind in result.error["message"]


def test_no_case_and_no_default_names_the_cases() -> None:
    steps = "- id: r\n  branch: {select: '${{ inputs.x }}', cases: {yes: [], no: []}}"
    result = ran(steps, "inputs: {x: {type: string}}", given={"x": "maybe"})
    assert result.error is not None
    assert result.error["message"] == "no case 'maybe' (cases: yes, no)"


CONDITION = """\
- id: route
  branch:
    if: ${{ inputs.x }}
    then: [{id: yes_, local: 'yes'}]
    else: [{id: no_, local: 'no'}]
"""


@pytest.mark.parametrize(("x", "output"), [(True, {"yes_": "yes"}), (False, {"no_": "no"})])
def test_a_condition_takes_then_or_else(x: bool, output: dict[str, str]) -> None:
    top = "inputs: {x: {type: boolean}}\noutputs: {it: '${{ steps.route.output }}'}"
    assert ran(CONDITION, top, given={"x": x}).outputs == {"it": output}


def test_without_else_nothing_is_done() -> None:
    steps = "- id: route\n  branch: {if: '${{ false }}', then: [{id: a, local: x}]}"
    assert ran(steps, "outputs: {it: '${{ steps.route.output }}'}").outputs == {"it": {}}


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{}", "TRM344"),
        ("{select: '${{ 1 }}', cases: {}, if: '${{ true }}', then: []}", "TRM344"),
        ("{select: '${{ 1 }}'}", "TRM105"),
        ("{cases: {a: []}}", "TRM105"),
        ("{if: '${{ true }}'}", "TRM105"),
        ("{then: []}", "TRM105"),
        ("{select: 'text', cases: {a: []}}", "TRM207"),
    ],
)
def test_one_whole_form_is_needed(settings: str, code: str) -> None:
    assert codes(f"- id: r\n  branch: {settings}") == [code]


def test_a_step_inside_may_only_be_read_where_it_may_be_missing() -> None:
    found = problems(STEPS + "- id: after\n  local: ${{ steps.in_a.output }}", "inputs: {x: {}}")
    assert [code for code, _ in found] == ["TRM205"]


def test_a_missing_case_of_a_known_enum_is_found_before_the_run() -> None:
    steps = "- id: r\n  branch: {select: '${{ inputs.x }}', cases: {low: []}}"
    top = "inputs: {x: {type: string, enum: [low, high]}}"
    found = problems(steps, top)
    assert len(found) == 1
    assert "high" in found[0][1]
    assert problems(steps.replace("cases: {low: []}", "cases: {low: []}, default: []"), top) == []


def test_the_choice_is_kept_although_what_it_was_made_of_has_changed() -> None:
    steps = """\
    - id: route
      branch:
        if: ${{ state.n == 0 }}
        then:
          - {id: one, local: "${{ 1 }}", save: {n: "${{ result }}"}}
          - {id: rest, delay: 2h}
          - {id: two, local: "${{ 2 }}"}
        else:
          - {id: never, local: x}
    """
    store, clock = Memory(), Clockwork()
    top = "state: {n: {initial: 0}}"
    assert ran(steps, top, store=store, clock=clock).status == "sleeping"
    clock.time += 7200
    assert again(store, clock=clock).status == "completed"
    assert ends(store) == {
        "route": "completed",
        "route[then].one": "completed",
        "route[then].rest": "completed",
        "route[then].two": "completed",
    }
