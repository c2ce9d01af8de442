"""`parallel`: a block per item or by name, side by side, in the order given."""

from __future__ import annotations

from typing import Any

import pytest

from tramai.stores.memory import Memory

from .written import Clockwork, again, codes, ends, ran

ITEMS = """\
- id: fan
  parallel:
    items: ${{ inputs.xs }}
    as: x
    do:
      - id: one
        local: ${{ [x, loop.index, loop.index0, loop.length] }}
      - id: two
        local: ${{ steps.one.output[0] }}
"""
TOP = "inputs: {xs: {}}\noutputs: {it: '${{ steps.fan.output }}'}"


def outputs(steps: str, xs: Any, top: str = TOP) -> Any:
    result = ran(steps, top, given={"xs": xs})
    assert result.status == "completed", result.error
    return result.outputs["it"]


def test_results_keep_the_order_of_the_items() -> None:
    assert outputs(ITEMS, ["b", "a"]) == [
        {"one": ["b", 1, 0, 2], "two": "b"},
        {"one": ["a", 2, 1, 2], "two": "a"},
    ]
    assert outputs(ITEMS, []) == []


def test_results_keep_their_order_when_later_items_are_faster() -> None:
    steps = """\
    - id: fan
      parallel:
        items: ${{ inputs.xs }}
        do:
          - id: wait
            shell: {run: 'sleep "$N"; echo "$N"', env: {N: "${{ item }}"}, parse: text}
    """
    assert outputs(steps, ["0.2", "0.1", "0"]) == [{"wait": "0.2"}, {"wait": "0.1"}, {"wait": "0"}]


@pytest.mark.parametrize(
    ("xs", "kind"), [("text", "a string"), ({"a": 1}, "an object"), (3, "a number"), (None, "null")]
)
def test_items_must_be_a_list(xs: Any, kind: str) -> None:
    result = ran(ITEMS, TOP, given={"xs": xs})
    assert result.error is not None
    assert result.error["message"] == f"`items` expected a list, got {kind}"


def test_named_branches_give_a_map() -> None:
    steps = """\
    - id: fan
      parallel:
        branches:
          left: [{id: l, local: "${{ 1 }}"}]
          right: [{id: r, local: "${{ 2 }}"}]
    """
    assert ran(steps, "outputs: {it: '${{ steps.fan.output }}'}").outputs == {
        "it": {"left": {"l": 1}, "right": {"r": 2}}
    }


FAILING = """\
- id: fan
  parallel:
    items: [1, 2, 3]
    MORE
    do:
      - id: half
        local: ${{ 6 // (item - 2) }}
"""


def test_the_others_finish_before_the_step_fails() -> None:
    store = Memory()
    result = ran(FAILING.replace("MORE", "max: 3"), store=store)
    assert result.error is not None
    assert result.error["path"] == "fan[1].half"
    assert {path: mark for path, mark in ends(store).items() if path.startswith("fan[")} == {
        "fan[0].half": "completed",
        "fan[1].half": "failed",
        "fan[2].half": "completed",
    }


def test_fail_fast_begins_no_further_item() -> None:
    store = Memory()
    assert ran(FAILING.replace("MORE", "max: 1\n    fail_fast: true"), store=store).status == "failed"
    assert "fan[2].half" not in ends(store)


SLEEPING = """\
- id: fan
  parallel:
    branches:
      sleeps: [{id: nap, delay: 2h}, {id: woken, local: 1}]
      works: [{id: first, shell: {argv: [sleep, "0.1"]}}, {id: last, LAST}]
    MORE
"""


@pytest.mark.parametrize("more", ["max: 2", "fail_fast: true", "max: 1", "on_error: collect"])
def test_a_branch_that_sleeps_stops_no_other(more: str) -> None:
    store, clock = Memory(), Clockwork()
    steps = SLEEPING.replace("LAST", "local: 2").replace("MORE", more)
    assert ran(steps, store=store, clock=clock).status == "sleeping"
    assert ends(store)["fan[works].last"] == "completed"
    clock.time += 7200
    assert again(store, clock=clock).status == "completed"


@pytest.mark.parametrize(("more", "status"), [("fail_fast: true", "failed"), ("max: 2", "sleeping")])
def test_with_fail_fast_a_failure_does_not_wait_for_a_branch_that_sleeps(more: str, status: str) -> None:
    steps = SLEEPING.replace("LAST", "shell: exit 3").replace("MORE", more)
    assert ran(steps).status == status


def test_collect_leaves_an_error_in_the_place_of_a_failed_item() -> None:
    top = "outputs: {it: '${{ steps.fan.output }}', failed: '${{ steps.count.output }}'}"
    steps = FAILING.replace("MORE", "on_error: collect")
    result = ran(
        steps + "- id: count\n  local: ${{ steps.fan.output | selectattr('error', 'defined') | list | length }}", top
    )
    assert result.status == "completed"
    first, second, third = result.outputs["it"]
    assert (first, third) == ({"half": -6}, {"half": 6})
    assert second["error"]["type"] == "expression"
    assert result.outputs["failed"] == 1


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{}", "TRM345"),
        ("{items: [1], do: [{id: a, local: x}], branches: {a: [{id: b, local: x}]}}", "TRM345"),
        ("{branches: {a: [{id: b, local: x}]}, do: [{id: a, local: x}]}", "TRM345"),
        ("{branches: {a: [{id: b, local: x}]}, key: '${{ 1 }}'}", "TRM345"),
        ("{branches: {}}", "TRM346"),
        ("{branches: {a: []}}", "TRM346"),
        ("{items: [1], do: []}", "TRM346"),
        ("{items: [1]}", "TRM105"),
        ("{items: [1], do: [{id: a, local: x}], max: 0}", "TRM107"),
        ("{items: [1], do: [{id: a, local: x}], on_error: ignore}", "TRM107"),
        ("{items: [1], do: [{id: a, local: x, save: {n: 1}}]}", "TRM303"),
    ],
)
def test_settings_that_make_no_fan_out_are_refused(settings: str, code: str) -> None:
    assert codes(f"- id: fan\n  parallel: {settings}", "state: {n: {initial: 0}}") == [code]


KEYED = """\
- id: fan
  parallel:
    items: ${{ inputs.xs }}
    key: ${{ item.name }}
    do:
      - {id: rest, delay: 2h}
      - {id: name, local: "${{ item.name }}"}
"""


def test_an_item_is_known_by_its_key_in_the_journal() -> None:
    store, clock = Memory(), Clockwork()
    xs = [{"name": "a"}, {"name": "b/c [d]"}, {"name": "ü"}]
    assert ran(KEYED, TOP, given={"xs": xs}, store=store, clock=clock).status == "sleeping"
    clock.time += 7200
    assert again(store, clock=clock).outputs == {
        "it": [{"rest": {"woke_at": clock.time}, "name": x["name"]} for x in xs]
    }
    assert {path for path in ends(store) if path.endswith(".name")} == {
        "fan[a].name",
        'fan["b/c [d]"].name',
        'fan["ü"].name',
    }


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "a"], "two items have the key 'a'"),
        (["1", 1], "two items have the key '1'"),
        ([1.5], "must be text or a whole number"),
        ([True], "must be text or a whole number"),
        ([""], "must be text or a whole number"),
    ],
)
def test_a_key_is_a_text_or_number_of_its_own(names: list[Any], words: str) -> None:
    result = ran(KEYED, TOP, given={"xs": [{"name": name} for name in names]})
    assert result.error is not None
    assert words in result.error["message"]


def test_steps_inside_are_seen_outside_only_through_the_output() -> None:
    assert codes(ITEMS + "- id: after\n  local: ${{ steps.one.output }}", "inputs: {xs: {}}") == ["TRM204"]
