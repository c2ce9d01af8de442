"""`foreach`: a block per item, one after another."""

from __future__ import annotations

import pytest

from tramai.stores.memory import Memory

from .written import Clockwork, again, codes, ends, journal, ran

STEPS = """\
- id: loop_over
  foreach:
    items: ${{ inputs.xs }}
    as: x
    key: ${{ x }}
    do:
      - id: add
        local: ${{ state.sum + x }}
        save: {sum: "${{ result }}"}
      - id: rest
        when: ${{ x == 2 }}
        delay: 2h
"""
TOP = """\
inputs: {xs: {type: array, items: {type: integer}}}
state: {sum: {initial: 0}}
outputs: {sum: "${{ state.sum }}", sums: "${{ steps.loop_over.output | map(attribute='add') | list }}"}
"""


def test_an_item_sees_the_state_that_the_one_before_has_saved() -> None:
    assert ran(STEPS, TOP, given={"xs": [1, 3, 5]}).outputs == {"sum": 9, "sums": [1, 4, 9]}
    assert ran(STEPS, TOP, given={"xs": []}).outputs == {"sum": 0, "sums": []}


def test_the_loop_goes_on_with_the_item_it_had_come_to() -> None:
    store, clock = Memory(), Clockwork()
    assert ran(STEPS, TOP, given={"xs": [1, 2, 3]}, store=store, clock=clock).status == "sleeping"
    assert "loop_over[3].add" not in ends(store)
    clock.time += 7200
    assert again(store, clock=clock).outputs == {"sum": 6, "sums": [1, 3, 6]}
    completed = [record.path for record in journal(store) if record.mark.value == "completed"]
    assert len(completed) == len(set(completed))


def test_no_item_begins_while_the_one_before_it_sleeps() -> None:
    steps = STEPS.replace("key: ${{ x }}", "key: ${{ x }}\n    on_error: collect")
    store, clock = Memory(), Clockwork()
    assert ran(steps, TOP, given={"xs": [1, 2, 3]}, store=store, clock=clock).status == "sleeping"
    assert "loop_over[3].add" not in ends(store)
    clock.time += 7200
    assert again(store, clock=clock).outputs == {"sum": 6, "sums": [1, 3, 6]}


FAILING = """\
- id: loop_over
  foreach:
    items: [1, 2, 3]
    MORE
    do: [{id: half, local: "${{ 6 // (item - 2) }}"}]
"""


def test_the_first_failure_ends_the_loop() -> None:
    store = Memory()
    result = ran(FAILING.replace("MORE", "on_error: fail"), store=store)
    assert result.error is not None
    assert result.error["path"] == "loop_over[1].half"
    assert "loop_over[2].half" not in ends(store)


def test_collect_goes_on_after_a_failure() -> None:
    result = ran(FAILING.replace("MORE", "on_error: collect"), "outputs: {it: '${{ steps.loop_over.output }}'}")
    first, second, third = result.outputs["it"]
    assert (first, third) == ({"half": -6}, {"half": 6})
    assert second["error"]["path"] == "loop_over[1].half"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{items: [1], do: []}", "TRM346"),
        ("{items: [1]}", "TRM105"),
        ("{do: [{id: a, local: x}]}", "TRM105"),
        ("{items: [1], do: [{id: a, local: x}], max: 2}", "TRM104"),
    ],
)
def test_settings_that_make_no_loop_are_refused(settings: str, code: str) -> None:
    assert codes(f"- id: each\n  foreach: {settings}") == [code]


def test_steps_inside_are_seen_outside_only_through_the_output() -> None:
    steps = FAILING.replace("    MORE\n", "")
    assert codes(steps + "- id: after\n  local: ${{ steps.half.output }}") == ["TRM204"]


@pytest.mark.parametrize("text", ['"\\ud83d"', '"\\u0000"', '"\\ud83d]\\""'])
def test_a_key_may_hold_what_no_encoding_can_say(text: str) -> None:
    steps = """\
- id: each
  foreach:
    items: ${{ [inputs.json] }}
    key: ${{ item | fromjson }}
    do: [{id: one, local: "${{ item }}"}, {id: pause, delay: 1h}]
"""
    top = "inputs: {json: {type: string}}\noutputs: {said: '${{ steps.each.output[0].one }}'}"
    store, clock = Memory(), Clockwork()
    assert ran(steps, top, given={"json": text}, store=store, clock=clock).status == "sleeping"
    clock.time += 3600
    assert again(store, clock=clock).outputs == {"said": text}


def test_a_key_is_a_name_and_no_document() -> None:
    steps = """\
- id: each
  foreach: {items: ["${{ inputs.long }}"], key: "${{ item }}", do: [{id: one, local: 1}]}
"""
    top = "inputs: {long: {type: string}}"
    assert ran(steps, top, given={"long": "x" * 500}).status == "completed"
    failed = ran(steps, top, given={"long": "x" * 501})
    assert failed.error is not None
    assert "the key of item 0 has more than 500 characters" in failed.error["message"]


def test_a_key_that_is_made_of_the_state_stays_what_it_was() -> None:
    steps = """\
- id: each
  foreach:
    items: [a, b]
    key: ${{ item ~ state.n }}
    do:
      - {id: count, local: "${{ state.n + 1 }}", save: {n: "${{ result }}"}}
      - {id: pause, delay: 1h}
"""
    top = "state: {n: {initial: 0}}\noutputs: {n: '${{ state.n }}', each: '${{ steps.each.output | length }}'}"
    store, clock = Memory(), Clockwork()
    ended = ran(steps, top, store=store, clock=clock)
    while ended.status == "sleeping":
        clock.time += 3600
        ended = again(store, clock=clock)
    assert ended.outputs == {"n": 2, "each": 2}
    assert [path for path in ends(store) if path.endswith("count")] == ["each[a0].count", "each[b0].count"]
