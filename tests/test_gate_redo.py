"""`on_reject: {redo, max}`: a rejection sends the walk back to an earlier step, in a round of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tramai import changes, deciding, engine, paths, recovery, rerun
from tramai.event import Event, StepFinished
from tramai.store import Mark
from tramai.stores.memory import Memory

from .written import RUN, Clockwork, again, codes, ends, planned, ran

STEPS = """\
- id: before
  local: ${{ state.tries }}
- id: draft
  local: draft ${{ state.tries + 1 }}, ${{ state.feedback }}
  save: {tries: "${{ state.tries + 1 }}"}
- id: polish
  when: ${{ state.tries != 2 }}
  local: "${{ steps.draft.output }}!"
- id: review
  gate:
    ask: "${{ steps.draft.output }}?"
    on_reject: {redo: draft, max: 2}
  save: {feedback: "${{ result.comment | default('late', true) }}"}
- id: publish
  local: "${{ steps.draft.output }} by ${{ steps.review.output.by }}"
"""
TOP = """\
state: {tries: {initial: 0}, feedback: {initial: new}}
outputs: {it: "${{ steps.publish.output }}", polished: "${{ steps.polish.status }}"}
"""


def vote(store: Memory, decision: str, comment: str | None = None, step: str | None = None) -> None:
    deciding.decide(store, RUN, step, decision=decision, by="ann", comment=comment, clock=Clockwork(1000))


def begun(steps: str = STEPS, top: str = TOP) -> Memory:
    store = Memory()
    assert ran(steps, top, store=store, clock=Clockwork(1000)).status == "waiting"
    return store


def rejected(store: Memory, comment: str) -> engine.Result:
    vote(store, "rejected", comment)
    return again(store, clock=Clockwork(1000))


def test_a_rejection_goes_back_and_the_steps_from_there_are_done_again() -> None:
    store = begun()
    assert rejected(store, "too long").status == "waiting"
    (one,) = deciding.look(store, RUN)
    assert (one.path, one.question.ask, one.votes) == ("review@2", "draft 2, too long?", ())
    vote(store, "approved")
    result = again(store, clock=Clockwork(1000))
    assert result.outputs == {"it": "draft 2, too long by ann", "polished": "skipped"}
    assert ends(store) == {
        "before": "completed", "draft": "completed", "polish": "completed", "review@redo": "decided",
        "review": "completed", "draft@2": "completed", "polish@2": "skipped", "review@2": "completed",
        "publish": "completed",
    }  # fmt: skip


def test_after_as_many_rounds_as_are_allowed_a_rejection_ends_the_run() -> None:
    store = begun()
    assert [rejected(store, f"no {n}").status for n in range(2)] == ["waiting", "waiting"]
    result = rejected(store, "no, and no")
    assert (result.status, result.exit_status) == ("failed", 10)
    assert result.error is not None
    assert (result.error["path"], result.error["message"]) == ("review@3", "ann rejected it: no, and no")
    assert [record.mark for record in store.journal(RUN) if record.path == "review@3"] == [Mark.DECIDED, Mark.FAILED]


def test_after_the_last_rejection_a_resume_asks_in_the_same_round_again() -> None:
    store = begun()
    for n in range(3):
        rejected(store, f"no {n}")
    assert again(store, clock=Clockwork(1000)).status == "waiting"
    (one,) = deciding.look(store, RUN)
    assert (one.path, one.question.number) == ("review@3", 2)
    vote(store, "approved")
    assert again(store, clock=Clockwork(1000)).outputs["it"] == "draft 3, no 1 by ann"


def test_nothing_of_an_earlier_round_runs_again_on_a_resume() -> None:
    store = begun()
    rejected(store, "no")
    seen: list[Event] = []
    engine.resume(RUN, store=store, clock=Clockwork(1000), observers=[seen.append])
    vote(store, "approved")
    engine.resume(RUN, store=store, clock=Clockwork(1000), observers=[seen.append])
    told = {event.path: event.status for event in seen if isinstance(event, StepFinished)}
    assert {path for path, status in told.items() if status != "replayed"} == {"review@2", "publish"}
    completed = [record.path for record in store.journal(RUN) if record.mark is Mark.COMPLETED]
    assert len(completed) == len(set(completed))


OUTER = """\
- id: draft
  local: ${{ state.round + 1 }}
  save: {round: "${{ state.round + 1 }}"}
- id: fan
  parallel:
    branches:
      left: [{id: ask_left, gate: {ask: left?, on_reject: {redo: draft, max: 1}}}]
      right: [{id: ask_right, gate: {ask: right?}}]
      third: [{id: work, local: 1}]
- id: after
  local: ${{ steps.draft.output }}
"""
ROUND = "state: {round: {initial: 0}}\noutputs: {it: '${{ steps.after.output }}'}"


def test_a_gate_inside_other_steps_goes_back_to_a_step_around_them() -> None:
    store = begun(OUTER, ROUND)
    vote(store, "rejected", step="ask_left")
    assert again(store, clock=Clockwork(1000)).status == "waiting"
    open_ = [one.path for one in deciding.look(store, RUN)]
    assert open_ == ["fan@2[left].ask_left", "fan@2[right].ask_right"], "what the first round asked is void"
    assert ends(store)["fan@2[third].work"] == "completed"
    for path in open_:
        vote(store, "approved", step=path)
    assert again(store, clock=Clockwork(1000)).outputs == {"it": 2}


def test_the_count_of_rounds_goes_on_in_the_steps_around() -> None:
    store = begun(OUTER, ROUND)
    vote(store, "rejected", step="ask_left")
    again(store, clock=Clockwork(1000))
    vote(store, "approved", step="fan@2[right].ask_right")
    vote(store, "rejected", step="fan@2[left].ask_left")
    assert again(store, clock=Clockwork(1000)).exit_status == 10


def test_several_gates_may_go_back_over_one_another() -> None:
    steps = """\
- id: a
  local: ${{ state.n + 1 }}
  save: {n: "${{ state.n + 1 }}"}
- id: first
  gate: {ask: "first ${{ steps.a.output }}?", on_reject: {redo: a, max: 5}}
- id: b
  local: ${{ steps.a.output }}
- id: second
  gate: {ask: "second ${{ steps.b.output }}?", on_reject: {redo: first, max: 5}}
"""
    store = begun(steps, "state: {n: {initial: 0}}\noutputs: {it: '${{ steps.b.output }}'}")
    asked = []
    for decision in ("rejected", "approved", "rejected", "rejected", "approved", "approved"):
        (one,) = deciding.look(store, RUN)
        asked.append((one.path, one.question.ask))
        vote(store, decision)
        result = again(store, clock=Clockwork(1000))
    assert asked == [
        ("first", "first 1?"), ("first@2", "first 2?"), ("second", "second 2?"), ("first@3", "first 2?"),
        ("first@4", "first 3?"), ("second@2", "second 3?"),
    ]  # fmt: skip
    assert result.outputs == {"it": 3}


def test_a_loop_goes_back_within_its_item() -> None:
    steps = """\
- id: each
  foreach:
    items: [a, b]
    as: what
    key: ${{ what }}
    do:
      - id: make
        local: ${{ what }}
      - id: ok
        gate: {ask: "${{ what }}?", on_reject: {redo: make, max: 1}}
"""
    store = begun(steps, "")
    for decision, path in (("rejected", "each[a].ok"), ("approved", "each[a].ok@2"), ("approved", "each[b].ok")):
        assert [one.path for one in deciding.look(store, RUN)] == [path]
        vote(store, decision)
        result = again(store, clock=Clockwork(1000))
    assert result.status == "completed"
    assert ends(store)["each[a].make@2"] == "completed"


def test_the_end_of_the_time_may_go_back_too() -> None:
    steps = STEPS.replace("on_reject:", "timeout: 2m\n    on_timeout: reject\n    on_reject:")
    store = begun(steps)
    assert again(store, clock=Clockwork(1120), wait=0).status == "waiting"
    (one,) = deciding.look(store, RUN)
    assert (one.path, one.question.deadline) == ("review@2", 1240)
    record = next(record for record in store.journal(RUN) if record.path == "review" and record.mark is Mark.COMPLETED)
    assert json.loads(record.value or "")["decision"] == "rejected"


def test_a_catch_hears_of_the_last_rejection_only() -> None:
    steps = STEPS.replace("max: 2}\n", "max: 1}\n  catch: [{on: [rejected], output: {by: nobody}}]\n")
    store = begun(steps)
    assert rejected(store, "no").status == "waiting"
    assert rejected(store, "no again").outputs == {"it": "draft 2, no by nobody", "polished": "skipped"}


def test_the_workflows_catch_sees_the_last_round() -> None:
    steps = STEPS.replace("- id: publish\n  local: ", "- id: publish\n  shell: exit 3\n  output: ")
    top = (
        TOP
        + "catch: [{output: {it: '${{ steps.draft.output | default(0) }}', polished: '${{ steps.polish.status }}'}}]\n"
    )
    store = begun(steps, top)
    rejected(store, "no")
    vote(store, "approved")
    assert again(store, clock=Clockwork(1000)).outputs == {"it": "draft 2, no", "polished": "skipped"}


@pytest.mark.parametrize("at", range(1, 8))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_while_going_back_loses_and_doubles_nothing(at: int, after: bool) -> None:
    class Crash(BaseException):
        pass

    class Fragile(Memory):
        left = 0

        def commit(self, lease: Any, change: Any) -> int:
            self.left -= 1
            if self.left == 0 and not after:
                raise Crash
            revision = super().commit(lease, change)
            if self.left == 0:
                raise Crash
            return revision

    store = Fragile()
    ran(STEPS, TOP, store=store, clock=Clockwork(1000))
    vote(store, "rejected", "no")
    store.left = at
    try:
        again(store, clock=Clockwork(1000))
    except Crash:
        lease = store.get(RUN).lease
        if lease is not None:
            store.release(lease, now=1000)
    store.left = 0
    again(store, clock=Clockwork(1000))
    assert [one.path for one in deciding.look(store, RUN)] == ["review@2"]
    vote(store, "approved")
    assert again(store, clock=Clockwork(1000)).outputs["it"] == "draft 2, no by ann"
    completed = [record.path for record in store.journal(RUN) if record.mark is Mark.COMPLETED]
    assert len(completed) == len(set(completed))


# Paths with rounds, for those who take paths apart.


@pytest.mark.parametrize(
    ("path", "id", "times"),
    [
        ("draft", "draft", 0),
        ("draft@2", "draft", 1),
        ("fan@3[left].ok@2", "ok", 3),
        ("each[a@9].ok", "ok", 0),
        ('each["x@7].y@8"].ok@4', "ok", 3),
        ("ok@2@catch[0].tidy", "tidy", 1),
    ],
)
def test_a_round_is_a_part_of_a_path_and_of_no_id(path: str, id: str, times: int) -> None:
    assert (paths.step_id(path), paths.redone(path)) == (id, times)
    assert paths.redone(paths.without_rounds(path)) == 0
    assert (paths.without_rounds(path) == path) is (times == 0)
    assert id in changes.path_ids(path)


def test_what_a_round_has_begun_counts_as_begun() -> None:
    store = begun()
    rejected(store, "no")
    assert changes.begun_ids(store.journal(RUN)) == {"before", "draft", "polish", "review"}
    assert recovery.open_attempts(store.journal(RUN)) == ()


def test_a_rerun_from_behind_the_gate_takes_all_rounds_over() -> None:
    store = begun()
    rejected(store, "no")
    vote(store, "approved")
    again(store, clock=Clockwork(1000))
    options = engine.Options(run_id="again")
    result = engine.rerun(RUN, store=store, start_at="publish", options=options, clock=Clockwork(1000))
    assert result.outputs == {"it": "draft 2, no by ann", "polished": "skipped"}
    started = [record.path for record in store.journal("again") if record.fence]
    assert started == ["publish"]


def test_a_rerun_from_within_the_rounds_begins_with_the_last() -> None:
    store = begun()
    rejected(store, "no")
    vote(store, "approved")
    again(store, clock=Clockwork(1000))
    place = rerun.find(planned(STEPS, TOP), "review")
    kept = rerun.before(store.get(RUN), place, store.journal(RUN))
    assert [(record.path, record.value) for record in kept if record.path == "draft"] == [("draft", '"draft 2, no"')]
    assert {record.path for record in kept} == {"before", "draft", "polish"}
    options = engine.Options(run_id="again")
    assert engine.rerun(RUN, store=store, start_at="review", options=options, clock=Clockwork(1000)).status == "waiting"
    assert [one.path for one in deciding.look(store, "again")] == ["review"]


# What is refused.


def gate(redo: str, where: str = "steps") -> str:
    return f"- id: g\n  gate: {{ask: x, on_reject: {{redo: {redo}, max: 1}}}}"


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ("- {id: a, local: 1}\n" + gate("b"), "TRM375"),
        (gate("a") + "\n- {id: a, local: 1}", "TRM376"),
        (gate("g"), "TRM376"),
        ("- id: f\n  foreach: {items: [1], do: [{id: a, local: 1}]}\n" + gate("a"), "TRM376"),
        ("- id: f\n  foreach: {items: [1], do: [{id: g, gate: {ask: x, on_reject: {redo: f, max: 1}}}]}", "TRM376"),
        ("- {id: a, local: 1}\n- {id: g, gate: {check: '${{ true }}', on_reject: fail}}", "TRM371"),
        ("- {id: a, local: 1}\n- {id: g, gate: {ask: x, on_reject: {redo: a}}}", "TRM105"),
    ],
)
def test_a_way_back_that_leads_nowhere_is_refused(steps: str, code: str) -> None:
    assert codes(steps) == [code]


def test_finally_goes_through_its_steps_once() -> None:
    top = "finally: [{id: a, local: 1}, {id: g, gate: {ask: x, on_reject: {redo: a, max: 1}}}]"
    assert codes("- {id: s, local: 1}", top) == ["TRM376"]


def test_to_fail_may_be_said_out_loud() -> None:
    assert codes("- id: g\n  gate: {ask: x, on_reject: fail}") == []


def test_a_run_begins_again_inside_a_branch_that_was_gone_through_twice() -> None:
    steps = """\
- {id: draft, local: "${{ state.n + 1 }}", save: {n: "${{ result }}"}}
- id: choose
  branch: {if: "${{ true }}", then: [{id: one, local: "${{ state.n }}"}, {id: two, local: "${{ steps.one.output }}"}]}
- {id: ok, gate: {ask: "Good?", on_reject: {redo: draft, max: 2}}}
"""
    store, clock = Memory(), Clockwork()
    top = "state: {n: {initial: 0}}\noutputs: {two: '${{ steps.two.output | default(0) }}'}"
    assert ran(steps, top, store=store, clock=clock).status == "waiting"
    for decision, status in (("rejected", "waiting"), ("approved", "completed")):
        deciding.decide(store, RUN, None, decision=decision, by="ann", clock=clock)
        ended = again(store, clock=clock)
        assert ended.status == status
    assert ended.outputs == {"two": 2}
    options = engine.Options(run_id="again")
    assert engine.rerun(RUN, store=store, start_at="two", clock=clock, options=options).status == "waiting"
    kept = {record.path: record.value for record in store.journal("again") if record.mark is Mark.COMPLETED}
    assert (kept["draft"], kept["choose[then].one"], kept["choose[then].two"]) == ("2", "2", "2")
