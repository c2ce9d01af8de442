"""Reruns: a new run with the inputs of an earlier one, and with its first results where that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tramai import engine
from tramai.codec import decode
from tramai.errors import (
    DefinitionChanged,
    InvalidInput,
    NotFound,
    NotInThatState,
    SecretMissing,
    UsageError,
)  # fmt: skip
from tramai.standing import ran_before
from tramai.store import Change, Mark, Note, RunExists, Status
from tramai.stores.memory import Memory
from tramai.testing.clock import FakeClock

from . import functions
from .support import RUN, call, make, name, run


@pytest.fixture
def store() -> Memory:
    return Memory()


def again(store: Memory, **more: Any) -> engine.Result:
    options = engine.Options(run_id="again", **more.pop("options", {}))
    return engine.rerun(RUN, store=store, options=options, **more)


def counting(*ids: str, fails: str | None = None, times: int = 1) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Steps that count their calls; one of them fails at first."""
    counters = {id: name() for id in ids}
    steps = [
        {"id": id, "local": call("fail_until", name=counters[id], times=times if id == fails else 0)} for id in ids
    ]
    return steps, counters


def calls(counters: dict[str, str]) -> dict[str, int]:
    return {id: functions.calls[counter] for id, counter in counters.items()}


def test_a_rerun_is_a_new_run_with_the_same_inputs(store: Memory) -> None:
    steps, counters = counting("a", "b")
    made = make(steps, inputs={"n": {"type": "integer"}, "big": {"type": "integer"}}, outputs={"n": "${{ inputs.n }}"})
    first = run(store, made, {"n": 3, "big": 10**30}, options={"labels": ("x", "y")})
    second = again(store, options={"labels": ("y", "z")})
    assert (second.run_id, second.status, second.outputs) == ("again", "completed", first.outputs)
    assert calls(counters) == {"a": 2, "b": 2}
    before, after = store.get(RUN), store.get("again")
    assert (after.inputs, after.cwd, after.file, after.digest) == (
        before.inputs,
        before.cwd,
        before.file,
        before.digest,
    )
    assert (after.rerun_of, after.labels, after.fence, before.rerun_of) == (RUN, ("x", "y", "z"), 1, None)
    assert after.generation != before.generation
    assert [note.type for note in store.notes("again")] == ["run.rerun_of", "run.completed"]
    assert decode(store.notes("again")[0].data or "") == {"run_id": RUN, "from": None, "records": 0}


def test_a_rerun_from_a_step_takes_over_what_stands_before_it(store: Memory) -> None:
    steps, counters = counting("a", "b", "c", "d")
    made = make(steps, outputs={"all": "${{ steps.a.output }}, ${{ steps.b.output }}, ${{ steps.c.output }}"})
    run(store, made)
    result = again(store, start_at="c")
    assert result.outputs == {"all": "succeeded at call 1, succeeded at call 1, succeeded at call 2"}
    assert calls(counters) == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert store.get("again").step_executions == 2
    assert [record.seq for record in store.journal("again")] == list(range(1, len(store.journal("again")) + 1))
    assert decode(store.notes("again")[0].data or "")["records"] == 2


def test_a_failed_run_is_rerun_from_the_step_that_failed(store: Memory) -> None:
    steps, counters = counting("a", "b", fails="b")
    assert run(store, make(steps)).status == "failed"
    assert again(store, start_at="b").status == "completed"
    assert calls(counters) == {"a": 1, "b": 2}
    assert store.get(RUN).status is Status.FAILED


def test_a_step_that_stands_before_must_have_ended(store: Memory) -> None:
    steps, _ = counting("a", "b", "c", fails="b")
    run(store, make(steps))
    with pytest.raises(NotInThatState, match="step 'b' stands before 'c' and has not ended"):
        again(store, start_at="c")
    with pytest.raises(NotFound):
        store.get("again")


def test_state_and_skipped_steps_are_taken_over(store: Memory) -> None:
    made = make(
        [
            {"id": "a", "local": "${{ state.n + 1 }}", "save": {"n": "${{ result }}"}},
            {"id": "b", "when": "${{ state.n > 5 }}", "local": 1},
            {"id": "c", "local": "${{ state.n * 10 }}"},
        ],
        state={"n": {"initial": 1}},
        outputs={"c": "${{ steps.c.output }}", "b": "${{ steps.b.status }}"},
    )
    run(store, made)
    assert again(store, start_at="c").outputs == {"c": 20, "b": "skipped"}
    assert [(record.path, record.mark) for record in store.journal("again")][:2] == [
        ("a", Mark.COMPLETED),
        ("b", Mark.SKIPPED),
    ]


def test_a_container_is_taken_over_whole(store: Memory) -> None:
    counter, last = name(), name()
    made = make(
        [
            {"id": "each", "foreach": {"items": [1, 2], "do": [{"id": "x", "local": call("count", name=counter)}]}},
            {"id": "z", "local": call("count", name=last)},
        ],
        outputs={"each": "${{ steps.each.output }}"},
    )
    first = run(store, made)
    assert again(store, start_at="z").outputs == first.outputs
    assert (functions.calls[counter], functions.calls[last]) == (2, 2)


def branching() -> tuple[Any, dict[str, str]]:
    counters = {id: name() for id in ("before", "one", "two", "after")}

    def step(id: str) -> dict[str, Any]:
        return {"id": id, "local": call("count", name=counters[id])}

    route = {"if": "${{ inputs.go }}", "then": [step("one"), step("two")], "else": [{"id": "other", "local": 1}]}
    steps = [step("before"), {"id": "route", "branch": route}, step("after")]
    return make(steps, inputs={"go": {"type": "boolean"}}), counters


@pytest.mark.parametrize("spelled", ["two", "route[then].two"])
def test_a_rerun_can_begin_inside_a_branch(store: Memory, spelled: str) -> None:
    made, counters = branching()
    run(store, made, {"go": True})
    assert again(store, start_at=spelled).status == "completed"
    assert calls(counters) == {"before": 1, "one": 1, "two": 2, "after": 2}


def test_a_block_that_was_not_taken_is_no_place_to_begin(store: Memory) -> None:
    made, _ = branching()
    run(store, made, {"go": True})
    with pytest.raises(NotInThatState, match=r"never came into the block of step 'route\[else\].other'"):
        again(store, start_at="other")


def test_a_step_inside_a_loop_is_no_place_to_begin_and_the_loop_is_named(store: Memory) -> None:
    inner = {"if": "${{ 1 == 1 }}", "then": [{"id": "deep", "local": 1}]}
    made = make([{"id": "each", "foreach": {"items": [1], "do": [{"id": "b", "branch": inner}]}}])
    run(store, made)
    with pytest.raises(UsageError, match="step 'deep' runs once for each turn of 'each'") as caught:
        again(store, start_at="deep")
    assert caught.value.hint == "--from each runs all of it again"


def test_a_step_that_is_not_there_is_not_found_and_a_near_one_named(store: Memory) -> None:
    steps, _ = counting("build", "deploy")
    run(store, make(steps))
    with pytest.raises(NotFound, match="no such step: biuld") as caught:
        again(store, start_at="biuld")
    assert caught.value.hint == "did you mean build?"


def test_a_changed_file_is_refused_unless_the_changes_are_accepted(store: Memory) -> None:
    steps, _ = counting("a", "b")
    run(store, make(steps))
    changed = make([*steps, {"id": "c", "local": 1}], outputs={"c": "${{ steps.c.output }}"})
    with pytest.raises(DefinitionChanged) as caught:
        again(store, plan=changed)
    assert caught.value.details["verb"] == "rerun"
    assert again(store, plan=changed, accept_changes=True).outputs == {"c": 1}
    assert store.get("again").digest == changed.digest


def test_a_change_of_what_is_taken_over_is_never_accepted(store: Memory) -> None:
    steps, _ = counting("a", "b", "c")
    run(store, make(steps))
    other = [{"id": "a", "local": 7}, *steps[1:]]
    with pytest.raises(DefinitionChanged) as caught:
        again(store, plan=make(other), accept_changes=True, start_at="b")
    assert caught.value.details["blocking"]
    later = [*steps[:2], {"id": "c", "local": 7}]
    assert again(store, plan=make(later), accept_changes=True, start_at="b").status == "completed"


def test_a_changed_file_must_accept_the_inputs(store: Memory) -> None:
    run(store, make([{"id": "a", "local": 1}], inputs={"n": {"type": "integer"}}), {"n": 1})
    with pytest.raises(InvalidInput):
        again(store, plan=make([{"id": "a", "local": 1}], inputs={"m": {}}), accept_changes=True)
    wider = make(
        [{"id": "a", "local": 1}],
        inputs={"n": {"type": "integer"}, "m": {"default": "x"}},
        outputs={"m": "${{ inputs.m }}"},
    )
    assert again(store, plan=wider, accept_changes=True).outputs == {"m": "x"}


def test_secrets_are_fetched_again(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_RERUN", "first-value")
    made = make([{"id": "a", "local": 1}], secrets={"T": {"env": "TOKEN_OF_RERUN"}})
    run(store, made)
    monkeypatch.delenv("TOKEN_OF_RERUN")
    with pytest.raises(SecretMissing):
        again(store)
    with pytest.raises(NotFound):
        store.get("again")
    monkeypatch.setenv("TOKEN_OF_RERUN", "second-value")
    assert again(store).status == "completed"


def test_a_start_key_reruns_once(store: Memory) -> None:
    steps, counters = counting("a")
    run(store, make(steps))
    first = again(store, options={"start_key": "k"})
    second = engine.rerun(RUN, store=store, options=engine.Options(start_key="k"))
    assert (second.run_id, second.resumed, second.outputs) == (first.run_id, False, first.outputs)
    assert calls(counters) == {"a": 2}
    with pytest.raises(RunExists):
        again(store)


def test_a_rerun_that_is_killed_before_it_begins_still_knows_what_it_took_over(store: Memory) -> None:
    steps, counters = counting("a", "b")
    run(store, make(steps))

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> Any:
        raise Killed

    claim, store.claim = store.claim, die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        again(store, start_at="b")
    store.claim = claim  # type: ignore[method-assign]
    assert store.get("again").status is Status.READY
    assert engine.resume("again", store=store).status == "completed"
    assert calls(counters) == {"a": 1, "b": 2}


def test_time_that_an_earlier_run_took_does_not_count(store: Memory) -> None:
    clock = FakeClock()
    made = make([{"id": "a", "local": 1}, {"id": "b", "local": 2}], limits={"timeout": "1h"})
    run(store, made, clock=clock)
    clock.advance(90_000)
    assert again(store, start_at="b", clock=clock).status == "completed"
    header = replace(store.get("again"), created=100.0)
    first, second = store.journal("again")
    assert ran_before(Memory(), header, ()) == 0.0
    store.notes = lambda _: ()  # type: ignore[method-assign]
    assert ran_before(store, header, (replace(first, at=10.0), replace(second, at=150.0))) == 50.0


def test_time_that_passes_between_an_end_and_what_an_operator_notes_does_not_count(store: Memory) -> None:
    clock = FakeClock()
    run(store, make([{"id": "a", "local": 1}, {"id": "nap", "delay": "2h"}]), clock=clock)
    clock.advance(90_000)
    for type in ("run.arriving", "run.arrived", "cancel.requested"):
        revision = store.get(RUN).revision
        note = Note(at=clock.now(), type=type)
        store.amend(RUN, revision=revision, change=Change(now=clock.now(), notes=(note,)))
    assert ran_before(store, store.get(RUN), store.journal(RUN)) == 0.0


def test_a_rerun_of_a_rerun_names_the_one_before_it(store: Memory) -> None:
    run(store, make([{"id": "a", "local": 1}]))
    again(store)
    third = engine.rerun("again", store=store)
    assert store.get(third.run_id).rerun_of == "again"


def test_a_removed_run_cannot_be_rerun_or_resumed_or_started_by_its_key(store: Memory) -> None:
    made = make([{"id": "a", "local": 1}])
    run(store, made, options={"start_key": "k"})
    gone = Note(at=1.0, type="run.removed")
    store.bury(RUN, gone, revision=store.get(RUN).revision, status=Status.REMOVED, now=1.0)
    for ask in (
        lambda: again(store),
        lambda: engine.resume(RUN, store=store),
        lambda: engine.run(made, {}, store=store, options=engine.Options(start_key="k")),
    ):
        with pytest.raises(NotInThatState, match=f"run {RUN} is removed: what it held is gone, its name stays taken"):
            ask()


def test_a_rerun_keeps_the_folder_of_the_earlier_run(store: Memory, tmp_path: Path) -> None:
    made = make([{"id": "a", "shell": {"run": "pwd", "parse": "text"}}], outputs={"a": "${{ steps.a.output }}"})
    run(store, made, options={"cwd": str(tmp_path)})
    assert again(store).outputs == {"a": str(tmp_path)}
