"""`repeat`: a block again and again, until a condition holds."""

from __future__ import annotations

import pytest

from tramai.stores.memory import Memory

from .written import Clockwork, again, codes, ends, journal, problems, ran

STEPS = """\
- id: poll
  repeat:
    max: 4
    until: ${{ steps.look.output >= inputs.enough }}
    do:
      - id: look
        local: ${{ state.seen + loop.index }}
        save: {seen: "${{ result }}"}
"""
TOP = """\
inputs: {enough: {type: integer}}
state: {seen: {initial: 0}}
outputs: {last: "${{ steps.poll.output.look }}", seen: "${{ state.seen }}"}
"""


def test_turns_go_on_until_the_condition_holds_and_the_last_turn_is_the_output() -> None:
    store = Memory()
    assert ran(STEPS, TOP, given={"enough": 3}, store=store).outputs == {"last": 3, "seen": 3}
    assert [path for path in ends(store) if path.endswith(".look")] == ["poll[1].look", "poll[2].look"]


def test_the_last_turn_may_be_the_one_that_succeeds() -> None:
    assert ran(STEPS, TOP, given={"enough": 10}).outputs == {"last": 10, "seen": 10}


def test_reaching_the_most_turns_is_a_failure_that_says_what_did_not_hold() -> None:
    ended = ran(STEPS, TOP, given={"enough": 11})
    assert (ended.status, ended.exit_status) == ("failed", 1)
    assert ended.error is not None
    assert (ended.error["type"], ended.error["step"], ended.error["iterations"]) == ("limit", "poll", 4)
    assert "steps.look.output >= inputs.enough" in ended.error["message"]


def test_without_a_condition_there_are_as_many_turns_as_allowed() -> None:
    steps = STEPS.replace("    until: ${{ steps.look.output >= inputs.enough }}\n", "")
    assert ran(steps, TOP, given={"enough": 0}).outputs == {"last": 10, "seen": 10}


PAUSING = STEPS.replace("max: 4", "max: 4\n    delay: 1h")


def test_a_pause_suspends_the_run_and_a_resume_goes_on_with_the_next_turn() -> None:
    store, clock = Memory(), Clockwork()
    ended = ran(PAUSING, TOP, given={"enough": 6}, store=store, clock=clock)
    assert (ended.status, ended.wake_at) == ("sleeping", clock.time + 3600)
    clock.time += 1800
    assert again(store, clock=clock).status == "sleeping"
    clock.time += 1800
    assert again(store, clock=clock).status == "sleeping"
    clock.time += 4000
    assert again(store, clock=clock).outputs == {"last": 6, "seen": 6}
    completed = [record.path for record in journal(store) if record.mark.value == "completed"]
    assert completed == ["poll[1].look", "poll[2].look", "poll[3].look", "poll"]


def test_a_turn_that_was_not_the_last_is_not_the_last_on_a_resume_either() -> None:
    """The condition reads state, which at the resume is what later turns have made of it."""
    steps = PAUSING.replace("steps.look.output >= inputs.enough", "state.seen >= inputs.enough")
    store, clock = Memory(), Clockwork()
    ran(steps, TOP, given={"enough": 3}, store=store, clock=clock)
    clock.time += 3600
    assert again(store, clock=clock).outputs == {"last": 3, "seen": 3}


def test_loops_stand_inside_loops() -> None:
    steps = """\
    - id: outer
      repeat:
        max: 2
        do:
          - id: inner
            repeat:
              max: 3
              until: ${{ steps.at.output == 2 }}
              do:
                - {id: at, local: "${{ loop.index }}"}
          - {id: after, local: "${{ [loop.index, steps.inner.output.at] }}"}
    """
    assert ran(steps, 'outputs: {o: "${{ steps.outer.output.after }}"}').outputs == {"o": [2, 2]}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("    max: 4\n", "", "TRM105"),
        ("max: 4", "max: 0", "TRM107"),
        ("max: 4", "max: 100001", "TRM107"),
        ("steps.look.output >= inputs.enough", "steps.poll.output.look >= 1", "TRM204"),
        ("until: ${{ steps.look.output >= inputs.enough }}", "until: yes", "TRM207"),
        ("state.seen + loop.index", "state.seen + loop.count", "TRM202"),
    ],
)
def test_mistakes_in_a_loop_are_found_before_the_run(old: str, new: str, code: str) -> None:
    assert codes(STEPS.replace(old, new), TOP) == [code]


def test_the_body_is_seen_after_the_loop_only_through_its_output() -> None:
    top = TOP.replace("steps.poll.output.look", "steps.look.output")
    assert problems(STEPS, top) == [("TRM204", "step `look` is seen only inside `poll`")]
