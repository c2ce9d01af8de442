"""`gate: {ask: …}`: a question to people, frozen when it is asked, and what their answer makes of the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tramai import deciding, engine
from tramai.event import Event, GateAsked, GateDecided, StepFinished
from tramai.steps import _gate_check
from tramai.stores.memory import Memory

from .written import RUN, Clockwork, again, codes, ends, planned, problems, ran

ASK = """\
- id: before
  local: ${{ inputs.version }}
- id: release
  gate:
    ask: Release ${{ steps.before.output }}?
    show: {version: "${{ inputs.version }}", risk: low}
    MORE
- id: after
  local: released
"""
TOP = "inputs: {version: {type: string, default: '1.0'}}\noutputs: {it: '${{ steps.release.output }}'}"


def asking(more: str = "") -> str:
    """The steps, with further settings of the gate."""
    return ASK.replace("    MORE\n", "".join(f"    {line}\n" for line in more.splitlines()))


def vote(store: Memory, decision: str = "approved", by: str = "ann", *, at: float, **fields: Any) -> deciding.Decided:
    """Somebody decides."""
    step = fields.pop("step", None)
    return deciding.decide(store, RUN, step, decision=decision, by=by, clock=Clockwork(at), **fields)


def waiting(more: str = "", *, now: float = 1000.0) -> tuple[Memory, Clockwork]:
    """A run that has come to its gate and waits."""
    store, clock = Memory(), Clockwork(now)
    result = ran(asking(more), TOP, store=store, clock=clock)
    assert (result.status, result.exit_status) == ("waiting", 11)
    return store, clock


def test_a_run_waits_at_its_gate_until_somebody_approves() -> None:
    store, clock = waiting()
    assert store.get(RUN).status == "waiting"
    assert store.get(RUN).lease is None
    assert ends(store) == {"before": "completed", "release": "decided"}
    clock.time = 1010
    vote(store, by="ann", comment="looks good", at=1005)
    result = again(store, clock=clock)
    assert result.outputs == {
        "it": {"decision": "approved", "by": "ann", "at": 1005, "comment": "looks good", "data": None}
    }


def test_what_is_asked_and_shown_is_fixed_when_it_is_asked() -> None:
    store, _ = waiting()
    (one,) = deciding.look(store, RUN)
    assert (one.path, one.question.ask, one.question.number) == ("release", "Release 1.0?", 1)
    assert one.question.show == {"version": "1.0", "risk": "low"}
    assert (one.question.asked, one.question.deadline) == (1000, None)
    noted = [(note.type, json.loads(note.data or "null")) for note in store.notes(RUN) if note.type == "gate.asked"]
    assert noted == [("gate.asked", {"path": "release", "asking": 1, "deadline": None})]


def test_a_resume_without_a_decision_changes_nothing_and_costs_nothing() -> None:
    store, clock = waiting()
    before = (store.get(RUN), store.journal(RUN), store.notes(RUN))
    for _ in range(3):
        result = again(store, clock=clock)
        assert (result.status, result.exit_status, result.resumed) == ("waiting", 11, False)
    assert (store.get(RUN), store.journal(RUN), store.notes(RUN)) == before
    assert store.get(RUN).step_executions == 1
    vote(store, at=1000)
    assert again(store, clock=clock).status == "completed"
    assert store.get(RUN).step_executions == 3


def test_a_rejection_ends_the_run_as_rejected() -> None:
    store, clock = waiting()
    vote(store, "rejected", "bob", comment="too risky", at=1001)
    result = again(store, clock=clock)
    assert (result.status, result.exit_status) == ("failed", 10)
    assert result.error is not None
    assert (result.error["type"], result.error["message"]) == ("rejected", "bob rejected it: too risky")
    assert (result.error["decision"], result.error["by"], result.error["at"]) == ("rejected", "bob", 1001)
    assert ends(store) == {"before": "completed", "release": "failed"}


def test_a_resume_after_a_rejection_asks_anew_and_old_votes_do_not_count() -> None:
    store, clock = waiting()
    vote(store, "rejected", "bob", at=1001)
    assert again(store, clock=clock).exit_status == 10
    with pytest.raises(deciding.NotInThatState, match="is failed: nothing in it waits for a decision"):
        vote(store, at=1002)
    clock.time = 2000
    assert again(store, clock=clock).status == "waiting"
    (one,) = deciding.look(store, RUN)
    assert (one.question.number, one.question.asked, one.votes) == (2, 2000, ())
    vote(store, by="bob", at=2001)  # the same person, another asking
    assert again(store, clock=clock).status == "completed"


@pytest.mark.parametrize(
    ("settings", "status", "exit_status", "said"),
    [
        ("timeout: 10m", "failed", 1, ("timeout", "nobody decided in time", "timed_out", None)),
        ("timeout: 10m\non_timeout: fail", "failed", 1, ("timeout", "nobody decided in time", "timed_out", None)),
        (
            "timeout: 10m\non_timeout: reject",
            "failed",
            10,
            ("rejected", "nobody decided in time", "timed_out", "timeout"),
        ),
    ],
)
def test_when_the_time_is_over_the_gate_says_what_follows(
    settings: str, status: str, exit_status: int, said: tuple[str, str, str, str | None]
) -> None:
    store, clock = waiting(settings)
    assert store.get(RUN).wake_at == 1600
    clock.time = 1600
    result = again(store, clock=clock)
    assert (result.status, result.exit_status) == (status, exit_status)
    error = result.error
    assert error is not None
    assert (error["type"], error["message"], error["decision"], error["by"]) == said
    assert [json.loads(note.data or "")["decision"] for note in store.notes(RUN) if note.type == "gate.decided"] == [
        "timed_out"
    ]


def test_a_gate_can_be_approved_by_the_end_of_its_time() -> None:
    store, clock = waiting("timeout: 10m\non_timeout: approve")
    clock.time = 1700
    result = again(store, clock=clock)
    assert result.outputs["it"] == {"decision": "approved", "by": "timeout", "at": 1700, "comment": None, "data": None}


def test_the_deadline_is_an_instant_that_a_restart_does_not_move() -> None:
    store, clock = waiting("timeout: 10m")
    clock.time = 1500
    assert again(store, clock=clock, wait=10).status == "waiting"
    clock.time = 1599
    assert again(store, clock=clock, wait=0).status == "waiting"
    assert store.get(RUN).wake_at == 1600
    with pytest.raises(deciding.TooLate, match=r"ended at 1970-01-01T00:26:40Z$"):
        vote(store, at=1600)
    vote(store, at=1599)
    clock.time = 9999
    assert again(store, clock=clock).status == "completed"


def test_a_gate_whose_time_is_short_is_waited_for_in_the_process() -> None:
    store = Memory()

    class Impatient(Clockwork):
        """Time runs whenever somebody looks."""

        def now(self) -> float:
            self.time += 0.5
            return self.time

    result = ran(asking("timeout: 3s\non_timeout: approve"), TOP, store=store, clock=Impatient(1000), wait=60)
    assert result.status == "completed"


def test_several_must_approve_and_each_counts_once() -> None:
    store, clock = waiting("approvers: [ann, bob, cleo]\nmin: 2")
    first = vote(store, by="ann", comment="one", at=1001)
    assert (first.open.decision, first.open.approvals) == (None, 1)
    assert again(store, clock=clock).status == "waiting"
    with pytest.raises(deciding.AlreadyVoted, match="ann has approved gate 'release' already"):
        vote(store, "rejected", "ann", at=1002)
    vote(store, by="cleo", at=1003)
    result = again(store, clock=clock)
    assert result.outputs["it"]["by"] == "cleo"
    assert [(one["by"], one["comment"]) for one in result.outputs["it"]["votes"]] == [("ann", "one"), ("cleo", None)]


def test_one_rejection_decides_however_many_must_approve() -> None:
    store, clock = waiting("min: 3")
    vote(store, by="ann", at=1001)
    vote(store, "rejected", "bob", at=1002)
    with pytest.raises(deciding.AlreadyDecided, match="gate 'release' is decided already: rejected by bob"):
        vote(store, by="cleo", at=1003)
    result = again(store, clock=clock)
    assert result.exit_status == 10
    assert result.error is not None
    assert [one["decision"] for one in result.error["votes"]] == ["approved", "rejected"]


def test_only_approvers_decide() -> None:
    store, _ = waiting("approvers: ['${{ inputs.version }}-owner', bob]")
    before = store.notes(RUN)
    with pytest.raises(deciding.NotAnApprover) as refused:
        vote(store, by="ann", at=1001)
    assert refused.value.hint == "who may: 1.0-owner, bob"
    assert (refused.value.exit_status, store.notes(RUN)) == (5, before)
    vote(store, by="1.0-owner", at=1001)


def test_approvers_that_turn_out_to_be_too_few_fail_the_step() -> None:
    result = ran(asking("approvers: ['${{ inputs.version }}', '1.0']\nmin: 2"), TOP)
    assert (result.status, result.exit_status) == ("failed", 1)
    assert result.error is not None
    assert result.error["message"] == "2 must approve, and the approvers are: 1.0"


FORM = """\
form:
  properties:
    ticket: {type: string, pattern: "^OPS-[0-9]+$"}
    urgent: {type: boolean, default: false}
    percent: {type: integer, minimum: 1, maximum: 100}
  required: [ticket]
"""


def test_an_approval_brings_what_the_form_asks_for() -> None:
    store, clock = waiting(FORM)
    vote(store, data={"ticket": "OPS-7", "percent": "25"}, at=1001)
    assert again(store, clock=clock).outputs["it"]["data"] == {"ticket": "OPS-7", "percent": 25, "urgent": False}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "it lacks the key 'ticket'"),
        ({"ticket": "7"}, "'ticket' must match ^OPS-[0-9]+$, and '7' does not"),
        ({"ticket": "OPS-1", "percent": "200"}, "'percent' must be at most 100, not 200"),
        ({"ticket": "OPS-1", "percent": "many"}, "'percent' must be an integer, not 'many'"),
        ({"ticket": "OPS-1", "urgent": 1}, "'urgent' must be true or false, not an integer"),
        ({"tickets": "OPS-1"}, "its form has no 'tickets'"),
    ],
)
def test_data_that_do_not_fit_are_refused_before_anything_is_stored(data: dict[str, Any], why: str) -> None:
    store, _ = waiting(FORM)
    before = (store.get(RUN), store.notes(RUN))
    with pytest.raises(deciding.InvalidAnswer) as refused:
        vote(store, data=data, at=1001)
    assert refused.value.message == f"the data for gate 'release' cannot be taken: {why}"
    assert (store.get(RUN), store.notes(RUN)) == before


def test_a_rejection_needs_no_form_but_what_it_brings_must_fit() -> None:
    store, _ = waiting(FORM)
    with pytest.raises(deciding.InvalidAnswer):
        vote(store, "rejected", data={"ticket": "x"}, at=1001)
    assert vote(store, "rejected", at=1001).vote.data is None


def test_a_gate_without_a_form_takes_no_data() -> None:
    store, _ = waiting()
    with pytest.raises(deciding.InvalidAnswer, match="it has no form and takes no data"):
        vote(store, data={"note": "x"}, at=1001)


PARALLEL = """\
- id: fan
  parallel:
    branches:
      left: [{id: ask_left, gate: {ask: left?}}, {id: after_left, local: l}]
      right: [{id: ask_right, gate: {ask: right?, timeout: 1h}}, {id: after_right, local: r}]
      third: [{id: work, shell: "echo done"}, {id: last, local: "${{ steps.work.output.stdout }}"}]
    MORE
"""


@pytest.mark.parametrize("more", ["max: 1", "max: 3", "fail_fast: true"])
def test_several_gates_wait_at_once_and_stop_no_other_branch(more: str) -> None:
    store, clock = Memory(), Clockwork(1000)
    top = "outputs: {it: '${{ steps.fan.output }}'}"
    assert ran(PARALLEL.replace("MORE", more), top, store=store, clock=clock).status == "waiting"
    assert ends(store)["fan[third].last"] == "completed"
    assert [one.path for one in deciding.look(store, RUN)] == ["fan[left].ask_left", "fan[right].ask_right"]
    assert store.get(RUN).wake_at == 4600
    with pytest.raises(deciding.UsageError, match="several gates wait for a decision"):
        vote(store, at=1001)
    vote(store, step="ask_right", at=1001)
    assert again(store, clock=clock).status == "waiting"
    assert ends(store)["fan[right].after_right"] == "completed"
    vote(store, at=1002)
    result = again(store, clock=clock)
    assert result.status == "completed"
    assert result.outputs["it"]["left"]["ask_left"]["at"] == 1002


def test_a_gate_in_a_loop_is_asked_item_by_item() -> None:
    steps = """\
- id: each
  foreach:
    items: [a, b]
    as: what
    key: ${{ what }}
    do: [{id: ok, gate: {ask: "${{ what }}?"}}]
"""
    store, clock = Memory(), Clockwork(1000)
    assert ran(steps, store=store, clock=clock).status == "waiting"
    assert [one.path for one in deciding.look(store, RUN)] == ["each[a].ok"]
    vote(store, at=1001)
    assert again(store, clock=clock).status == "waiting"
    assert [(one.path, one.question.ask) for one in deciding.look(store, RUN)] == [("each[b].ok", "b?")]


def test_a_gate_has_the_common_keys_of_a_step() -> None:
    store, clock = Memory(), Clockwork(1000)
    top = "state: {who: {initial: nobody}}\noutputs: {it: '${{ steps.release.output }}', who: '${{ state.who }}'}"
    steps = """\
- id: skipped
  when: ${{ false }}
  gate: {ask: never?}
- id: release
  gate: {ask: now?}
  output: ${{ result.comment }}
  save: {who: "${{ result.by }}"}
"""
    assert ran(steps, top, store=store, clock=clock).status == "waiting"
    vote(store, comment="yes", at=1001)
    assert again(store, clock=clock).outputs == {"it": "yes", "who": "ann"}


def test_a_decision_that_comes_while_the_run_works_on_is_heard_before_it_suspends() -> None:
    store, clock = Memory(), Clockwork(1000)

    def meanwhile(event: Event) -> None:
        if isinstance(event, StepFinished) and event.id == "last":
            vote(store, step="ask_left", at=1001)
            vote(store, step="ask_right", at=1001)

    result = ran(PARALLEL.replace("MORE", "max: 1"), store=store, clock=clock, observers=[meanwhile])
    assert result.status == "completed"


def test_observers_hear_of_the_question_once_and_of_its_decision() -> None:
    store, clock = Memory(), Clockwork(1000)
    heard: list[Event] = []

    def meanwhile(event: Event) -> None:
        heard.append(event)
        if isinstance(event, GateAsked) and event.id == "ask_left":
            vote(store, step=event.path, at=1001)

    ran(PARALLEL.replace("MORE", "max: 1"), store=store, clock=clock, observers=[meanwhile])
    asked = [event.path for event in heard if isinstance(event, GateAsked)]
    assert asked == ["fan[left].ask_left", "fan[right].ask_right"]
    decided = [(event.path, event.decision, event.by) for event in heard if isinstance(event, GateDecided)]
    assert decided == [("fan[left].ask_left", "approved", "ann")]
    finished = [event.path for event in heard if isinstance(event, StepFinished)]
    assert len(finished) == len(set(finished))


def test_somebody_at_the_terminal_is_asked_when_nothing_else_runs() -> None:
    store, clock = Memory(), Clockwork(1000)
    asked: list[list[str]] = []

    def answer(questions: tuple[deciding.Open, ...]) -> None:
        assert ends(store)["fan[third].last"] == "completed"
        assert store.get(RUN).lease is not None
        asked.append([one.path for one in questions])
        vote(store, step=questions[0].path, at=1001)

    made = planned(PARALLEL.replace("MORE", "max: 3"))
    options = engine.Options(run_id=RUN, answer=answer)
    assert engine.run(made, {}, store=store, clock=clock, options=options).status == "completed"
    assert asked == [["fan[left].ask_left", "fan[right].ask_right"], ["fan[right].ask_right"]]
    types = [note.type for note in store.notes(RUN)]
    assert [kind for kind in types if kind.startswith("run.")] == [
        "run.waiting", "run.resumed", "run.waiting", "run.resumed", "run.completed",
    ]  # fmt: skip


def test_somebody_who_does_not_answer_leaves_the_run_waiting() -> None:
    store, clock = Memory(), Clockwork(1000)
    options = engine.Options(run_id=RUN, answer=lambda questions: None)
    result = engine.run(
        planned(asking("timeout: 5s"), TOP), {"version": "1"}, store=store, clock=clock, options=options
    )
    assert result.status == "waiting"


OF_A_POLICY = "{check: '${{ true }}', MORE}"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{}", "TRM370"),
        ("{check: '${{ true }}', ask: now?}", "TRM370"),
        ("{ask: now?, reason: because}", "TRM371"),
        ("{ask: now?, on_timeout: reject}", "TRM371"),
        *[(OF_A_POLICY.replace("MORE", extra), "TRM371") for extra in (
            "show: x", "form: {properties: {a: {}}}", "approvers: [ann]", "min: 2", "timeout: 1h", "on_timeout: fail",
        )],
        ("{ask: now?, approvers: [ann], min: 2}", "TRM372"),
        ("{ask: now?, approvers: [ann, ann]}", "TRM372"),
        ("{ask: now?, form: {type: string}}", "TRM373"),
        ("{ask: now?, form: {type: object}}", "TRM373"),
        ("{ask: now?, form: {properties: {a: {}}, enum: [1]}}", "TRM373"),
        ("{ask: '  '}", "TRM374"),
        ("{ask: now?, approvers: [' ']}", "TRM374"),
        ("{ask: now?, timeout: 0s}", "TRM350"),
        ("{ask: now?, form: {properties: {a: {type: string, pattern: '['}}}}", "TRM356"),
        ("{ask: now?, form: {properties: {a: {type: integer}}, required: [b]}}", "TRM356"),
        ("{ask: now?, form: {properties: {a: {type: integer, default: x}}}}", "TRM357"),
        ("{ask: now?, form: {propertys: {a: {}}}}", "TRM104"),
        ("{ask: 'is ${{ inputs.nothing }}?'}", "TRM208"),
    ],
)  # fmt: skip
def test_settings_that_ask_nobody_anything_are_refused(settings: str, code: str) -> None:
    assert codes(f"- id: one\n  gate: {settings}") == [code]


@pytest.mark.parametrize(
    "field",
    [
        "ask: 'use ${{ secrets.KEY }}?'",
        "ask: x\n    show: '${{ secrets.KEY }}'",
        "ask: x\n    approvers: ['${{ secrets.KEY }}']",
    ],
)
def test_no_secret_stands_in_what_people_see(field: str) -> None:
    top = "secrets: {KEY: {env: KEY}}"
    assert codes(f"- id: one\n  gate:\n    {field}", top) == ["TRM302"]


def test_a_step_timeout_on_a_gate_is_refused_and_says_where_it_belongs() -> None:
    ((code, _),) = problems("- id: one\n  gate: {ask: now?}\n  timeout: 1h")
    assert code == "TRM360"


def test_the_keys_of_people_are_all_there_are() -> None:
    from tramai.steps.gate import Gate

    assert {*_gate_check.OF_PEOPLE, "check", "reason", "ask"} == set(Gate.__struct_encode_fields__)


def test_a_question_survives_in_the_definition_of_the_run() -> None:
    made = planned(asking(FORM + "approvers: [ann]\ntimeout: 90s\non_timeout: reject"), TOP)
    from tramai.plan import restore

    assert restore(made.canonical).digest == made.digest
