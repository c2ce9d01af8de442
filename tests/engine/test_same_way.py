"""A walk that comes by again takes the way that it took: what a resume sees is what was seen before it."""

from __future__ import annotations

import pytest

from tramai import engine
from tramai.interrupt import Interrupt
from tramai.stores.memory import Memory
from tramai.testing._fragile import FOR_EVER, Cut, Fragile

from ..written import Clockwork, again, ends, ran
from . import functions
from .support import RUN, call, make, name, run

DO = "[{id: set, local: 1, save: {n: '${{ result }}'}}, {id: nap, delay: 1h}, {id: last, local: '${{ state.n }}'}]"
BLOCKS = {
    "parallel": "{branches: {x: %s}}",
    "foreach": "{items: [1], do: %s}",
    "repeat": "{max: 1, do: %s}",
    "branch": "{if: '${{ state.n == 0 }}', then: %s}",
}


@pytest.mark.parametrize("verb", BLOCKS)
def test_a_step_that_had_begun_is_gone_on_with_although_its_condition_no_longer_holds(verb: str) -> None:
    steps = f"- id: all\n  when: ${{{{ state.n == 0 }}}}\n  {verb}: {BLOCKS[verb] % DO}\n"
    top = "state: {n: {initial: 0}}\noutputs: {status: '${{ steps.all.status }}'}"
    store, clock = Memory(), Clockwork()
    assert ran(steps, top, store=store, clock=clock).status == "sleeping"
    clock.time += 3600
    ended = again(store, clock=clock)
    assert (ended.status, ended.outputs) == ("completed", {"status": "succeeded"})
    assert [mark for path, mark in ends(store).items() if path.endswith("last")] == ["completed"]


def test_the_clause_that_a_container_has_entered_is_gone_on_with_although_its_condition_no_longer_holds() -> None:
    steps = """\
    - id: all
      when: ${{ state.n == 0 }}
      foreach:
        items: [0]
        do: [{id: fail, local: "${{ 1 / item }}"}]
      catch:
        - do:
            - {id: set, local: 1, save: {n: "${{ result }}"}}
            - {id: nap, delay: 1h}
            - {id: last, local: "${{ error.type }}"}
          output: ${{ steps.last.output }}
    """
    top = "state: {n: {initial: 0}}\noutputs: {said: '${{ steps.all.output | default(none) }}'}"
    store, clock = Memory(), Clockwork()
    assert ran(steps, top, store=store, clock=clock).status == "sleeping"
    clock.time += 3600
    assert again(store, clock=clock).outputs == {"said": "expression"}


def outputs_either_way(steps: str, top: str, *, pause: str = "- {id: pause, delay: 1h}") -> list[object]:
    """The outputs of a run that goes straight on, and of one that is put to sleep and resumed."""
    found: list[object] = [ran(steps.replace("PAUSE", "- {id: pause, delay: 0s}"), top, clock=Clockwork()).outputs]
    store, clock = Memory(), Clockwork()
    assert ran(steps.replace("PAUSE", pause), top, store=store, clock=clock).status == "sleeping"
    clock.time += 3600
    return [*found, again(store, clock=clock).outputs]


def test_the_keys_of_a_map_stand_in_one_order_whether_or_not_the_run_was_resumed() -> None:
    steps = """\
- id: map
  local: {value: {b: 1, a: 2, c: 3}}
PAUSE
- id: seen
  local:
    value:
      keys: ${{ steps.map.output | keys }}
      first: ${{ steps.map.output | first }}
      values: ${{ steps.map.output | values }}
"""
    straight, resumed = outputs_either_way(steps, "outputs: {seen: '${{ steps.seen.output }}'}")
    assert straight == resumed


class Ticking(Clockwork):
    """Wall time that goes on a little whenever it is asked for."""

    def now(self) -> float:
        self.time += 0.25
        return self.time


def test_the_duration_of_a_step_is_one_number_whether_or_not_the_run_was_resumed() -> None:
    steps = """\
- {id: plain, local: 1}
- id: caught
  foreach: {items: [0], do: [{id: fail, local: "${{ 1 / item }}"}]}
  catch: [{output: 0}]
- id: before
  local: {value: ["${{ steps.plain.duration }}", "${{ steps.caught.duration }}"]}
- {id: pause, delay: 1h}
- id: after
  local: {value: ["${{ steps.plain.duration }}", "${{ steps.caught.duration }}"]}
"""
    store, clock = Memory(), Ticking()
    top = "outputs: {before: '${{ steps.before.output }}', after: '${{ steps.after.output }}'}"
    assert ran(steps, top, store=store, clock=clock).status == "sleeping"
    clock.time += 3600
    outputs = again(store, clock=clock).outputs
    assert isinstance(outputs, dict)
    assert outputs["before"] == outputs["after"]


def test_what_a_function_does_to_its_arguments_is_seen_by_no_other_step() -> None:
    steps = """\
- {id: rows, local: "${{ [1, 2] }}"}
- id: grow
  local: {call: "tests.engine.functions:grow", with: {rows: "${{ steps.rows.output }}"}}
- id: each
  foreach:
    items: [1, 2]
    do:
      - id: one
        local: {call: "tests.engine.functions:grow", with: {rows: [5]}}
- id: given
  local: {call: "tests.engine.functions:grow", with: {rows: "${{ inputs.list }}"}}
- id: kept
  local: {call: "tests.engine.functions:grow", with: {rows: "${{ state.list }}"}}
"""
    top = """\
inputs: {list: {type: array, default: [7]}}
state: {list: {initial: [8]}}
outputs:
  rows: ${{ steps.rows.output }}
  each: ${{ steps.each.output | map(attribute="one") | list }}
  list: ${{ inputs.list }}
  state: ${{ state.list }}
"""
    assert ran(steps, top).outputs == {"rows": [1, 2], "each": [2, 2], "list": [7], "state": [8]}


def test_what_a_function_has_returned_is_not_changed_by_its_next_call() -> None:
    steps = """\
- {id: one, local: {call: "tests.engine.functions:remember", with: {item: 1}}}
- {id: two, local: {call: "tests.engine.functions:remember", with: {item: 2}}}
"""
    top = "outputs: {one: '${{ steps.one.output }}', two: '${{ steps.two.output }}'}"
    outputs = ran(steps, top).outputs
    assert isinstance(outputs, dict)
    assert outputs["two"] == [*outputs["one"], 2]


# Limits of the run.


def test_nothing_collects_that_the_run_has_reached_one_of_its_limits() -> None:
    for verb in ("foreach", "parallel"):
        steps = f"- id: all\n  {verb}: {{items: [1, 2, 3, 4], on_error: collect, do: [{{id: one, local: 1}}]}}\n"
        ended = ran(steps, "limits: {max_step_executions: 3}\noutputs: {all: '${{ steps.all.output }}'}")
        assert ended.status == "failed", verb
        assert ended.error is not None
        assert ended.error["type"] == "limit"


def test_a_limit_of_the_run_counts_for_more_than_what_has_failed_beside_it() -> None:
    steps = """\
- id: all
  parallel: {items: [0, 1, 2], do: [{id: one, local: "${{ 1 / item }}"}]}
  catch: [{on: [expression], output: 0}]
"""
    ended = ran(steps, "limits: {max_step_executions: 2}")
    assert (ended.status, (ended.error or {}).get("type")) == ("failed", "limit")


def test_what_fail_fast_has_cut_short_is_collected_as_an_error_too() -> None:
    steps = """\
- id: all
  parallel:
    items: [1, 0, 2]
    on_error: collect
    fail_fast: true
    do: [{id: one, local: "${{ 4 / item }}"}]
  output: {failed: "${{ result.failed }}", items: "${{ result.items }}"}
"""
    ended = ran(steps, "outputs: {all: '${{ steps.all.output }}'}")
    assert isinstance(ended.outputs, dict)
    found = ended.outputs["all"]
    assert found["failed"] == 2
    assert [item.get("error", {}).get("type") for item in found["items"]] == [None, "expression", "cancelled"]
    assert found["items"][2]["error"]["path"] == "all[2]"


# Attempts.


@pytest.mark.parametrize(
    ("retry", "calls"),
    [
        ({"max_attempts": 3, "on": ["timeout"]}, 1),
        ({"max_attempts": 3, "delay": "0s", "when": "${{ error.attempt < 2 }}"}, 2),
        ({"max_attempts": 2, "delay": "0s"}, 2),
    ],
)
@pytest.mark.parametrize("what", ["finally", "catch", "nothing"])
def test_a_failure_that_no_attempt_follows_is_not_tried_again_after_a_crash(
    retry: dict[str, object], calls: int, what: str
) -> None:
    """Whoever died after the failure was recorded had decided so."""
    counter = name()
    step = {"id": "bad", "local": call("fail_until", name=counter, times=9), "retry": retry}
    top = {
        "finally": {"finally": [{"id": "tidy", "local": 1}]},
        "catch": {"catch": [{"do": [{"id": "c", "local": 1}]}]},
    }
    made = make([{**step, "replay": "non_replayable"}], **top.get(what, {}))
    clean = Fragile(Memory())
    run(clean, made)
    writes, functions.calls[counter] = clean.writes, 0
    # The last write is the end of the run; the ones before it, but for the failure's own, come after the failure.
    store = Fragile(Memory(), Cut(write=writes, before=True))
    run(store, made)
    store.revive()
    assert functions.calls[counter] == calls
    ended = engine.resume(RUN, store=store, options=engine.Options(lease=FOR_EVER))
    assert ended.status == ("completed" if what == "catch" else "failed")
    assert functions.calls[counter] == calls


@pytest.mark.parametrize("verb", ["foreach", "parallel"])
def test_what_was_collected_is_not_tried_again_by_whoever_goes_on_after_a_stop(verb: str) -> None:
    """A failure that was collected is dealt with, as one that a `catch` has taken."""
    counter = name()
    do = [{"id": "one", "local": call("fail_until", name=counter, times=1), "replay": "non_replayable"}]
    do.append({"id": "two", "local": "x", "catch": [{"output": 1}]})
    items = {"items": [1, 2, 3], "on_error": "collect", "do": do, **({"max": 1} if verb == "parallel" else {})}
    made = make([{"id": "all", verb: items}], outputs={"all": "${{ steps.all.output }}"})
    functions.calls[counter] = 0
    store, interrupt = Memory(), Interrupt()

    def stop(event: object, /) -> None:
        if getattr(event, "path", "") == "all[1].one" and getattr(event, "status", "") == "succeeded":
            interrupt.set("signal")

    assert run(store, made, observers=[stop], options={"interrupt": interrupt}).status == "interrupted"
    ended = engine.resume(RUN, store=store)
    assert isinstance(ended.outputs, dict)
    assert [item.get("one", "failed") for item in ended.outputs["all"]] == [
        "failed",
        "succeeded at call 2",
        "succeeded at call 3",
    ]
