"""Decisions on the questions of gates: stored once and for good, by whatever process, on every store that is shared."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tramai import asking, deciding, engine
from tramai.clock import SystemClock
from tramai.errors import CheckpointConflict, NotFound, NotInThatState, UsageError
from tramai.event import Event, GateAsked
from tramai.store import Note, Store
from tramai.stores import open_store
from tramai.stores.memory import Memory
from tramai.testing._at_once import at_once, in_processes

from .written import Clockwork, planned

KINDS = ("memory", "sqlite", "file", "markdown", "postgres")
STEPS = """\
- id: ok
  gate:
    ask: now?
    MORE
"""
TOP = "outputs: {by: '${{ steps.ok.output.by }}'}"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        store: Store = request.getfixturevalue("database").store()
    else:
        store = open_store("memory:" if request.param == "memory" else f"{request.param}:{tmp_path}/runs")
    yield store
    store.close()


def begin(store: Store, more: str = "", *, clock: Any = None, **options: Any) -> engine.Result:
    """Run it to its gate."""
    made = planned(STEPS.replace("MORE", more), TOP)
    return engine.run(made, {}, store=store, clock=clock, options=engine.Options(run_id="r1", **options))


def approve(store: Store, by: str, *, clock: Any = None, **fields: Any) -> deciding.Decided:
    return deciding.decide(store, "r1", None, decision="approved", by=by, clock=clock or Clockwork(), **fields)


def say(store: Store, by: str) -> str:
    """What another process does."""
    return str(approve(store, by).vote.by)


def kind_of(answer: object) -> str:
    return type(answer).__name__


def test_a_decision_is_kept_with_who_when_comment_and_data(store: Store) -> None:
    begin(store, "form: {properties: {n: {type: integer}}}")
    decided = approve(store, "ann", comment="yes\nindeed", data={"n": "3"}, clock=Clockwork(5.5))
    assert (decided.run.status, decided.run.wake_at) == ("waiting", decided.run.updated)
    (one,) = deciding.look(store, "r1")
    assert one.votes == (deciding.Vote(decision="approved", by="ann", at=5.5, comment="yes\nindeed", data={"n": 3}),)
    assert one.decision is not None
    assert engine.resume("r1", store=store).outputs == {"by": "ann"}


@pytest.mark.parametrize("round_", range(3))
def test_of_many_who_decide_at_once_the_first_decides_and_the_others_are_told(store: Store, round_: int) -> None:
    begin(store)
    answers = at_once([functools.partial(approve, store, f"p{n}") for n in range(8)])
    assert sorted(map(kind_of, answers)) == ["AlreadyDecided"] * 7 + ["Decided"]
    (winner,) = [answer.vote.by for answer in answers if isinstance(answer, deciding.Decided)]
    assert [note.by for note in store.notes("r1") if note.type == "gate.decided"] == [winner]
    assert all(answer.message.endswith(f"approved by {winner}") for answer in answers if not hasattr(answer, "vote"))
    assert engine.resume("r1", store=store).outputs == {"by": winner}


@pytest.mark.parametrize("round_", range(3))
def test_of_many_with_one_name_one_is_counted(store: Store, round_: int) -> None:
    begin(store, "min: 2")
    answers = at_once([functools.partial(approve, store, "ann") for _ in range(6)])
    assert sorted(map(kind_of, answers)) == ["AlreadyVoted"] * 5 + ["Decided"]
    assert engine.resume("r1", store=store).status == "waiting"


def test_of_many_exactly_as_many_are_heard_as_must_approve(store: Store) -> None:
    begin(store, "min: 3")
    answers = at_once([functools.partial(approve, store, f"p{n}") for n in range(7)])
    assert sorted(map(kind_of, answers)) == ["AlreadyDecided"] * 4 + ["Decided"] * 3
    assert engine.resume("r1", store=store).status == "completed"


@pytest.mark.parametrize("kind", ["sqlite", "file", "markdown"])
def test_of_six_processes_that_decide_one_is_first(kind: str, tmp_path: Path) -> None:
    url = f"{kind}:{tmp_path}/runs"
    store = open_store(url)
    begin(store)
    answers = in_processes(functools.partial(open_store, url), say, [(f"p{n}",) for n in range(6)])
    assert sorted(answer for answer, _ in answers) == ["AlreadyDecided"] * 5 + ["won"]
    (winner,) = [by for answer, by in answers if answer == "won"]
    assert engine.resume("r1", store=store).outputs == {"by": winner}
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_another_process_decides_while_a_runner_waits_in_the_foreground(kind: str, tmp_path: Path) -> None:
    url = f"{kind}:{tmp_path}/runs"
    store, asked, results = open_store(url), threading.Event(), []

    def hear(event: Event) -> None:
        if isinstance(event, GateAsked):
            asked.set()

    def carry() -> None:
        made = planned(STEPS.replace("MORE", "timeout: 100s"), TOP)
        options = engine.Options(run_id="r1", wait=200)
        results.append(engine.run(made, {}, store=store, observers=[hear], options=options))

    runner = threading.Thread(target=carry)
    runner.start()
    assert asked.wait(60)
    assert store.get("r1").lease is not None
    (answer,) = in_processes(functools.partial(open_store, url), _say_now, [("ann",)])
    assert answer == ("won", "ann")
    runner.join(60)
    assert [(result.status, result.outputs) for result in results] == [("completed", {"by": "ann"})]
    store.close()


def _say_now(store: Store, by: str) -> str:
    return str(approve(store, by, clock=SystemClock()).vote.by)


def test_a_vote_and_the_end_of_the_time_agree_on_what_was_decided(store: Store) -> None:
    for late in (False, True):
        run_id = f"run{late}"
        made = planned(STEPS.replace("MORE", "timeout: 10s\n    on_timeout: approve"), TOP)
        clock = Clockwork(1000)
        engine.run(made, {}, store=store, clock=clock, options=engine.Options(run_id=run_id, wait=0))
        vote = functools.partial(
            deciding.decide, store, run_id, "ok", decision="approved", by="ann", clock=Clockwork(1009.9)
        )
        clock.time = 1010
        answers = at_once([vote, functools.partial(engine.resume, run_id, store=store, clock=clock)])
        assert isinstance(answers[1], engine.Result)
        by = answers[1].outputs["by"]
        assert by == ("ann" if isinstance(answers[0], deciding.Decided) else "timeout")


def test_a_vote_is_judged_by_what_stands_there_when_it_is_stored() -> None:
    """Between reading and storing somebody else decides."""

    class Slow(Memory):
        raced = False

        def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Any:
            if not self.raced:
                self.raced = True
                approve(self, "first")
            return super().post(run_id, note, after=after, due=due, now=now)

    store = Slow()
    begin(store)
    with pytest.raises(deciding.AlreadyDecided, match="approved by first"):
        approve(store, "second")


def test_a_vote_after_the_runners_last_look_leaves_the_run_due_and_not_waiting_for_ever() -> None:
    class Slow(Memory):
        def commit(self, lease: Any, change: Any) -> None:
            if change.status == "waiting":
                approve(self, "ann")
            super().commit(lease, change)

    store = Slow()
    assert begin(store, "timeout: 24h").status == "waiting"
    run = store.get("r1")
    assert run.wake_at is not None
    assert run.wake_at <= SystemClock().now()
    assert engine.resume("r1", store=store).outputs == {"by": "ann"}


def test_a_store_that_always_changes_is_given_up_on() -> None:
    class Busy(Memory):
        def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Any:
            raise CheckpointConflict

    store = Busy()
    begin(store)
    with pytest.raises(CheckpointConflict):
        approve(store, "ann")


def test_nothing_is_asked_before_the_run_comes_to_its_gate_and_after_it_went_through() -> None:
    store = Memory()
    made = planned("- id: nap\n  delay: 2h\n" + STEPS.replace("    MORE\n", ""), TOP)
    engine.run(made, {}, store=store, clock=Clockwork(1000), options=engine.Options(run_id="r1"))
    with pytest.raises(deciding.NothingAsked, match="no gate of run r1 waits for a decision"):
        approve(store, "ann")


def test_a_run_that_is_over_takes_no_decision() -> None:
    store = Memory()
    begin(store)
    store.request_cancel("r1", Note(at=1.0, type="cancel.requested"), now=1.0)
    with pytest.raises(NotInThatState, match="run r1 is cancelled: nothing in it waits for a decision"):
        approve(store, "ann")


@pytest.mark.parametrize("by", ["", "  ", "a\nb", "x" * 201])
def test_whoever_decides_has_a_name(by: str) -> None:
    store = Memory()
    begin(store)
    with pytest.raises(UsageError, match="a name of 1 to 200 printable characters"):
        approve(store, by)


def test_a_comment_has_an_end() -> None:
    store = Memory()
    begin(store)
    with pytest.raises(UsageError, match="a comment has at most 65536 characters, not 65537"):
        approve(store, "ann", comment="x" * 65537)


def test_a_gate_is_named_by_its_path_or_its_id() -> None:
    store = Memory()
    steps = """\
- id: each
  parallel: {items: [a, b], key: "${{ item }}", do: [{id: ok, gate: {ask: now?}}]}
- id: last
  local: 1
"""
    options = engine.Options(run_id="r1")
    engine.run(planned(steps), {}, store=store, options=options)
    decide = functools.partial(deciding.decide, store, "r1", decision="approved", by="ann", clock=Clockwork())
    with pytest.raises(UsageError, match=r"several gates are called 'ok': each\[a\].ok, each\[b\].ok"):
        decide("ok")
    with pytest.raises(NotFound) as missing:
        decide("each[c].ok")
    assert missing.value.hint is not None
    assert "each[" in missing.value.hint
    assert decide("each[a].ok").open.path == "each[a].ok"
    assert decide(None).open.path == "each[b].ok"  # the only one that is left
    assert engine.resume("r1", store=store).status == "completed"


def test_a_question_in_a_branch_that_was_given_up_is_not_open() -> None:
    store = Memory()
    begin(store)
    (record,) = (record for record in store.journal("r1"))
    inside = replace(record, path="fan[a].ok")
    over = replace(record, seq=2, path="fan", mark=deciding.Mark.COMPLETED, value="1")
    assert deciding.opened([inside], ()) != ()
    assert deciding.opened([inside, over], ()) == ()


def test_a_look_at_many_questions_reads_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    items = '{items: "${{ inputs.items }}", do: [{id: ok, gate: {ask: now?}}]}'
    made = planned(f"- id: all\n  parallel: {items}\n", "inputs: {items: {type: array}}")
    store = Memory()
    engine.run(made, {"items": list(range(60))}, store=store, options=engine.Options(run_id="r1"))
    for number in range(40):
        deciding.decide(store, "r1", f"all[{number}].ok", decision="approved", by="ann", clock=Clockwork())
    read: list[str] = []
    whole = asking.decode
    monkeypatch.setattr(asking, "decode", lambda text: read.append(text) or whole(text))
    assert sum(one.decision is not None for one in deciding.look(store, "r1")) == 40
    assert len(read) == 40
