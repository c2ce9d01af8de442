"""`catch`, `finally`, `deadline` and `retry.when`: what happens when something fails, and at the end in any case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tramai import engine, recovery
from tramai.errors import DefinitionChanged, UsageError
from tramai.interrupt import Interrupt
from tramai.portable import Bundle
from tramai.store import Mark, Note, Status
from tramai.stores.memory import Memory
from tramai.testing.clock import FakeClock

from . import functions
from .support import RUN, Watch, call, make, name, run


@pytest.fixture
def store() -> Memory:
    return Memory()


def ended(store: Memory) -> list[str]:
    """The paths that have ended well, in order."""
    return [record.path for record in store.journal(RUN) if record.mark in (Mark.COMPLETED, Mark.SKIPPED)]


def failing(id: str = "bad", **more: Any) -> dict[str, Any]:
    """A step that fails with error type `exit.3`."""
    return {"id": id, "shell": "exit 3", **more}


# Catching.


def test_the_first_clause_that_fits_gives_the_output(store: Memory) -> None:
    clauses = [
        {"on": ["timeout"], "output": "late"},
        {"on": ["exit"], "when": "${{ error.exit_code == 4 }}", "output": "four"},
        {"on": ["exit"], "output": "${{ error.step ~ ' ' ~ error.exit_code }}"},
        {"output": "anything"},
    ]
    watch = Watch()
    made = make(
        [failing(catch=clauses)],
        outputs={"is": "${{ steps.bad.output }}", "was": "${{ [steps.bad.status, steps.bad.error.type] }}"},
    )
    result = run(store, made, observers=[watch])
    assert (result.status, result.exit_status) == ("completed", 0)
    assert result.outputs == {"is": "bad 3", "was": ["recovered", "exit.3"]}
    assert watch.statuses()["bad"] == "recovered"


def test_an_error_that_no_clause_takes_fails_the_run(store: Memory) -> None:
    result = run(store, make([failing(catch=[{"on": ["exit.4", "network"], "output": 1}])]))
    assert (result.status, result.error and result.error["type"]) == ("failed", "exit.3")


def test_a_rejection_is_caught_only_by_its_name(store: Memory) -> None:
    gate = {"id": "g", "gate": {"check": "${{ false }}"}}
    assert run(store, make([{**gate, "catch": [{"output": 1}]}])).exit_status == 10
    made = make([{**gate, "catch": [{"on": ["rejected"], "output": 1}]}], outputs={"g": "${{ steps.g.output }}"})
    assert run(Memory(), made).outputs == {"g": 1}


def test_the_steps_of_a_clause_see_the_error_and_give_the_output(store: Memory) -> None:
    made = make(
        [
            {"id": "before", "local": "${{ 1 }}"},
            failing(
                catch=[
                    {
                        "do": [
                            {"id": "note", "local": "${{ error.message }}"},
                            {"id": "sum", "local": "${{ steps.note.output ~ steps.before.output }}"},
                        ]
                    }
                ]
            ),
        ],
        outputs={"o": "${{ steps.bad.output }}"},
    )
    assert run(store, made).outputs == {"o": {"note": "exit status 3", "sum": "exit status 31"}}
    assert ended(store) == ["before", "bad@catch[0].note", "bad@catch[0].sum", "bad"]


def test_all_attempts_are_made_before_a_clause_is_taken(store: Memory) -> None:
    made = make([failing(retry={"max_attempts": 3, "delay": "0s"}, catch=[{"output": "${{ none }}"}])])
    assert run(store, made).status == "completed"
    assert [record.attempt for record in store.journal(RUN) if record.mark is Mark.FAILED] == [1, 2, 3]


def test_a_container_that_fails_is_caught_as_a_whole(store: Memory) -> None:
    made = make(
        [
            {
                "id": "choice",
                "branch": {"if": "${{ true }}", "then": [{"id": "good", "local": "${{ 1 }}"}, failing()]},
                "catch": [{"on": ["exit"], "output": {"instead": "${{ error.path }}"}}],
            }
        ],
        outputs={
            "o": "${{ steps.choice.output }}",
            # What stood before the failure in a block that failed is not seen, on a resume as in the first run.
            "good": "${{ steps.good.output | default('unseen') }}",
        },
    )
    assert run(store, made).outputs == {"o": {"instead": "choice[then].bad"}, "good": "unseen"}


def test_what_a_clause_gives_meets_the_schema_of_the_step(store: Memory) -> None:
    made = make([failing(schema={"type": "integer"}, catch=[{"output": "text"}])])
    result = run(store, made)
    assert result.error is not None
    assert (result.error["type"], result.error["step"]) == ("invalid_output", "bad")


def test_a_condition_of_a_clause_that_cannot_be_decided_fails_and_names_what_had_failed(store: Memory) -> None:
    result = run(store, make([failing(catch=[{"when": "${{ error.nothing > 1 }}", "output": 1}])]))
    assert result.error is not None
    assert result.error["type"] == "expression"
    assert "catch[0].when" in result.error["message"]
    assert "exit status 3" in result.error["message"]


def test_nothing_catches_a_limit_of_the_run(store: Memory) -> None:
    steps = [
        {"id": "a", "local": "${{ 1 }}"},
        {"id": "b", "local": "${{ 2 }}", "catch": [{"output": 0}]},
    ]
    result = run(store, make(steps, limits={"max_step_executions": 1}, catch=[{"output": {}}]))
    assert (result.status, result.error and result.error["type"]) == ("failed", "limit")


def test_a_clause_that_was_entered_is_gone_on_with_and_the_step_is_not_tried_again(store: Memory) -> None:
    tried, fixed = name(), name()
    made = make(
        [
            {
                "id": "bad",
                "local": call("fail_until", name=tried, times=99),
                "catch": [
                    {
                        "do": [
                            {"id": "first", "local": call("count", name=fixed)},
                            {"id": "second", "local": call("fail_until", name=f"{fixed}2", times=1)},
                        ]
                    }
                ],
            }
        ],
        outputs={"o": "${{ steps.bad.output.first }}"},
    )
    assert run(store, made).status == "failed"
    assert engine.resume(RUN, store=store).outputs == {"o": 1}
    assert functions.calls[tried] == 1
    assert functions.calls[fixed] == 1


# The workflow's own catch.


def test_the_catch_of_the_workflow_completes_the_run_and_keeps_what_was_wrong(store: Memory) -> None:
    made = make(
        [{"id": "ok", "local": "${{ 5 }}"}, failing(), {"id": "never", "local": "${{ 1 }}"}],
        catch=[
            {"on": ["network"], "output": {}},
            {
                "do": [{"id": "told", "local": "${{ error.step ~ (steps.ok.output | default(0)) }}"}],
                "output": {"told": "${{ steps.told.output }}", "never": "${{ steps.never.output | default('no') }}"},
            },
        ],
        outputs={"ok": "${{ steps.ok.output }}"},
    )
    result = run(store, made)
    assert (result.status, result.exit_status) == ("completed", 0)
    assert result.outputs == {"told": "bad5", "never": "no"}
    assert result.error is not None
    assert result.error["type"] == "exit.3"
    assert store.get(RUN).error is not None


def test_without_an_output_of_its_own_the_outputs_of_the_workflow_are_computed(store: Memory) -> None:
    made = make(
        [{"id": "ok", "local": "${{ 5 }}"}, failing()],
        catch=[{"do": [{"id": "told", "local": "${{ 1 }}"}]}],
        outputs={"ok": "${{ steps.ok.output }}"},
    )
    assert run(store, made).outputs == {"ok": 5}


def test_the_catch_of_the_workflow_is_gone_on_with_after_a_stop(store: Memory) -> None:
    clock = FakeClock()
    made = make(
        [{"id": "ok", "local": "${{ 5 }}"}, failing()],
        catch=[
            {
                "do": [{"id": "wait", "delay": "2h"}, {"id": "said", "local": "${{ steps.ok.output | default(0) }}"}],
                "output": {"said": "${{ steps.said.output }}", "bad": "${{ steps.bad.status }}"},
            }
        ],
    )
    assert run(store, made, clock=clock).status == "sleeping"
    clock.advance(7200)
    assert engine.resume(RUN, store=store, clock=clock).outputs == {"said": 5, "bad": "failed"}
    assert [record.attempt for record in store.journal(RUN) if record.mark is Mark.FAILED] == [1]


# Finally.

STATUS = {"id": "tidy", "local": "${{ [run.status, error.type | default('none')] }}"}


def tidied(store: Memory) -> Any:
    return [record.value for record in store.journal(RUN) if record.path.endswith(".tidy")]


def test_finally_runs_after_success_and_after_failure(store: Memory) -> None:
    done = make([{"id": "a", "local": "${{ 1 }}"}], **{"finally": [STATUS]}, outputs={"a": "${{ steps.a.output }}"})
    assert run(store, done).outputs == {"a": 1}
    assert tidied(store) == ['["completed","none"]']
    other = Memory()
    result = run(other, make([failing()], **{"finally": [STATUS]}))
    assert (result.status, result.error and result.error["step"]) == ("failed", "bad")
    assert tidied(other) == ['["failed","exit.3"]']


def test_every_step_of_finally_runs_and_a_failure_there_fails_a_run_that_had_completed(store: Memory) -> None:
    made = make([{"id": "a", "local": "${{ 1 }}"}], **{"finally": [failing("first"), STATUS]})
    result = run(store, made)
    assert (result.status, result.error and result.error["path"]) == ("failed", "@finally[0].first")
    assert tidied(store) == ['["completed","none"]']


def test_a_failure_in_finally_does_not_hide_what_had_failed_before(store: Memory) -> None:
    result = run(store, make([failing()], **{"finally": [failing("first")]}))
    assert result.error is not None
    assert result.error["step"] == "bad"
    assert result.error["finally"]["step"] == "first"


def test_finally_runs_again_when_a_failed_run_was_resumed(store: Memory) -> None:
    flaky = name()
    made = make([{"id": "bad", "local": call("fail_until", name=flaky, times=1)}], **{"finally": [STATUS]})
    assert run(store, made).status == "failed"
    assert engine.resume(RUN, store=store).status == "completed"
    assert tidied(store) == ['["failed","plugin.RuntimeError"]', '["completed","none"]']
    assert [path for path in ended(store) if "tidy" in path] == ["@finally[0].tidy", "@finally[1].tidy"]


def test_what_has_run_of_finally_does_not_run_again_after_a_stop(store: Memory) -> None:
    once, clock = name(), FakeClock()
    steps = [{"id": "first", "local": call("count", name=once)}, {"id": "wait", "delay": "2h"}, STATUS]
    made = make([failing()], **{"finally": steps})
    assert run(store, made, clock=clock).status == "sleeping"
    clock.advance(7200)
    result = engine.resume(RUN, store=store, clock=clock)
    assert (result.status, result.error and result.error["step"]) == ("failed", "bad")
    assert functions.calls[once] == 1
    assert tidied(store) == ['["failed","exit.3"]']


def test_finally_runs_when_the_run_is_cancelled_under_way(store: Memory) -> None:
    interrupt = Interrupt()

    def cancel(event: Any, /) -> None:
        if getattr(event, "path", "") == "long" and not hasattr(event, "status"):
            store.request_cancel(RUN, Note(at=1.0, type="cancel.requested"), now=1.0)
            interrupt.set("cancelled")

    made = make(
        [{"id": "ok", "local": "${{ 7 }}"}, {"id": "long", "shell": "sleep 60"}],
        **{"finally": [STATUS, {"id": "seen", "local": "${{ [steps.ok.output | default(0), steps.long.status] }}"}]},
    )
    result = run(store, made, observers=[cancel], options={"interrupt": interrupt})
    assert (result.status, result.exit_status) == ("cancelled", 12)
    assert tidied(store) == ['["cancelled","cancelled"]']
    assert [record.value for record in store.journal(RUN) if record.path.endswith("seen")] == ['[7,"skipped"]']
    assert store.get(RUN).status is Status.CANCELLED


def test_finally_does_not_run_when_the_run_is_only_interrupted(store: Memory) -> None:
    interrupt = Interrupt()

    def stop(event: Any, /) -> None:
        if getattr(event, "path", "") == "long":
            interrupt.set("signal")

    made = make([{"id": "long", "shell": "sleep 60"}], **{"finally": [STATUS]})
    assert run(store, made, observers=[stop], options={"interrupt": interrupt}).status == "interrupted"
    assert tidied(store) == []


def test_finally_runs_also_when_the_run_may_start_nothing_more(store: Memory) -> None:
    steps = [{"id": "a", "local": "${{ 1 }}"}, {"id": "b", "local": "${{ 1 }}"}]
    assert run(store, make(steps, limits={"max_step_executions": 1}, **{"finally": [STATUS]})).status == "failed"
    assert tidied(store) == ['["failed","limit"]']


# Deadlines and conditions of retries.


def test_a_deadline_leaves_no_attempt_that_could_not_begin_in_time(store: Memory) -> None:
    counted = name()
    made = make(
        [
            {
                "id": "a",
                "local": call("fail_until", name=counted, times=99),
                "retry": {"max_attempts": 9, "delay": "2m", "jitter": 0},
                "deadline": "1m",
            }
        ]
    )
    result = run(store, made)
    assert result.error is not None
    assert "deadline" in result.error["message"]
    assert functions.calls[counted] == 1


def test_a_deadline_ends_an_attempt(store: Memory) -> None:
    result = run(store, make([{"id": "a", "shell": "sleep 60", "deadline": "200ms", "timeout": "1h"}]))
    assert result.error is not None
    assert result.error["type"] == "timeout"


def test_a_deadline_of_a_container_counts_from_its_first_beginning(store: Memory) -> None:
    clock = FakeClock()
    do = [{"id": "wait", "delay": "2h"}, {"id": "nap", "shell": "sleep 60"}]
    made = make([{"id": "all", "foreach": {"items": [1], "do": do}, "deadline": "2h"}])
    assert run(store, made, clock=clock).status == "sleeping"
    clock.advance(7200)
    result = engine.resume(RUN, store=store, clock=clock)
    assert result.error is not None
    assert (result.error["type"], result.error["step"]) == ("timeout", "all")


@pytest.mark.parametrize("inside", [{"gate": {"ask": "Go on?"}}, {"delay": "5h"}])
def test_whoever_sleeps_or_waits_in_a_container_wakes_at_its_deadline(store: Memory, inside: dict[str, Any]) -> None:
    clock = FakeClock()
    made = make([{"id": "all", "foreach": {"items": [1], "do": [{"id": "one", **inside}]}, "deadline": "2h"}])
    result = run(store, made, clock=clock)
    assert (result.status, result.wake_at) == ("waiting" if "gate" in inside else "sleeping", clock.now() + 7200)
    clock.advance(7199)
    assert engine.resume(RUN, store=store, clock=clock).wake_at == clock.now() + 1
    clock.advance(1)
    result = engine.resume(RUN, store=store, clock=clock)
    assert result.error is not None
    assert (result.error["type"], result.error["step"]) == ("timeout", "all")


def test_a_gate_waits_no_longer_than_its_deadline(store: Memory) -> None:
    clock = FakeClock()
    result = run(store, make([{"id": "a", "gate": {"ask": "Go on?"}, "deadline": "2h"}]), clock=clock)
    assert (result.status, result.wake_at) == ("waiting", clock.now() + 7200)
    clock.advance(7200)
    result = engine.resume(RUN, store=store, clock=clock)
    assert (result.status, (result.error or {}).get("type")) == ("failed", "timeout")
    assert "deadline" in (result.error or {})["message"]


def test_a_retry_is_made_only_while_its_condition_holds(store: Memory) -> None:
    def attempts(condition: str) -> int:
        counted = name()
        retry = {"max_attempts": 3, "delay": "0s", "when": condition}
        run(Memory(), make([{"id": "a", "local": call("fail_until", name=counted, times=99), "retry": retry}]))
        return functions.calls[counted]

    assert attempts("${{ error.attempt < 2 }}") == 2
    assert attempts("${{ 'call 1' in error.message or 'call 2' in error.message }}") == 3
    assert attempts("${{ error.type == 'network' }}") == 1


# State that is reduced.


def test_saves_are_reduced_side_by_side_and_after_a_resume(store: Memory) -> None:
    clock = FakeClock()
    made = make(
        [
            {
                "id": "fan",
                "parallel": {
                    "items": [1, 2, 3],
                    "as": "n",
                    "do": [
                        {
                            "id": "add",
                            "shell": {"run": "echo $N", "env": {"N": "${{ n }}"}, "parse": "json"},
                            "save": {
                                "sum": "${{ result.value }}",
                                "list": "${{ result.value }}",
                                "map": {"k${{ n }}": 1},
                            },
                        }
                    ],
                },
            },
            {"id": "wait", "delay": "2h"},
            {"id": "more", "local": "${{ 10 }}", "save": {"sum": "${{ result }}", "list": "${{ result }}"}},
        ],
        state={
            "sum": {"initial": 0, "reduce": "sum"},
            "list": {"initial": [], "reduce": "append"},
            "map": {"initial": {}, "reduce": "merge"},
        },
        outputs={"sum": "${{ state.sum }}", "list": "${{ state.list | sort }}", "map": "${{ state.map }}"},
    )
    assert run(store, made, clock=clock).status == "sleeping"
    clock.advance(7200)
    assert engine.resume(RUN, store=store, clock=clock).outputs == {
        "sum": 16,
        "list": [1, 2, 3, 10],
        "map": {"k${{ n }}": 1},
    }


def test_a_value_that_was_read_does_not_change_when_more_is_appended(store: Memory) -> None:
    made = make(
        [
            {"id": "a", "local": "${{ 1 }}", "save": {"list": "${{ result }}"}},
            {"id": "seen", "local": "${{ state.list }}"},
            {"id": "b", "local": "${{ 2 }}", "save": {"list": "${{ result }}"}},
        ],
        state={"list": {"initial": [], "reduce": "append"}},
        outputs={"seen": "${{ steps.seen.output }}", "list": "${{ state.list }}"},
    )
    assert run(store, made).outputs == {"seen": [1], "list": [1, 2]}


def test_what_cannot_be_added_up_fails_the_step(store: Memory) -> None:
    made = make(
        [{"id": "a", "local": "text", "save": {"sum": "${{ result }}"}}], state={"sum": {"initial": 0, "reduce": "sum"}}
    )
    result = run(store, made)
    assert result.error is not None
    assert result.error["type"] == "invalid_output"
    assert "state.sum" in result.error["message"]
    assert store.get(RUN).status is Status.FAILED


# What changes of the definition, and reruns, make of it.


def test_finally_may_be_changed_after_it_has_run_and_what_was_caught_may_not(store: Memory) -> None:
    def made(tidy: str, note: str) -> Any:
        steps = [
            failing("caught", catch=[{"do": [{"id": "note", "local": note}]}]),
            {"id": "bad", "local": call("fail_until", name=flaky, times=1)},
        ]
        return make(steps, **{"finally": [{"id": "tidy", "local": tidy}]})

    flaky = name()
    assert run(store, made("${{ 1 }}", "${{ 1 }}")).status == "failed"
    with pytest.raises(DefinitionChanged):
        engine.resume(RUN, store=store, plan=made("${{ 1 }}", "${{ 2 }}"), accept_changes=True)
    result = engine.resume(RUN, store=store, plan=made("${{ 2 }}", "${{ 1 }}"), accept_changes=True)
    assert result.status == "completed"
    assert tidied(store) == ["1", "2"]


def test_a_rerun_takes_over_what_was_caught(store: Memory) -> None:
    caught = name()
    steps = [
        {"id": "first", "local": call("fail_until", name=caught, times=9), "catch": [{"output": "instead"}]},
        {"id": "second", "local": "${{ [steps.first.output, steps.first.status] }}"},
    ]
    assert run(store, make(steps, outputs={"o": "${{ steps.second.output }}"})).status == "completed"
    result = engine.rerun(RUN, store=store, start_at="second")
    assert result.outputs == {"o": ["instead", "recovered"]}
    assert functions.calls[caught] == 1


def test_a_rerun_begins_at_no_step_of_finally(store: Memory) -> None:
    run(store, make([{"id": "a", "local": 1}], **{"finally": [STATUS]}))
    with pytest.raises(UsageError, match="at the end"):
        engine.rerun(RUN, store=store, start_at="tidy")


def test_outputs_are_those_before_finally_also_after_a_stop_in_it(store: Memory) -> None:
    clock = FakeClock()
    made = make(
        [{"id": "a", "local": "${{ 1 }}", "save": {"n": "${{ result }}"}}],
        **{"finally": [{"id": "b", "local": "${{ 2 }}", "save": {"n": "${{ result }}"}}, {"id": "c", "delay": "2h"}]},
        state={"n": {"initial": 0}},
        outputs={"n": "${{ state.n }}"},
    )
    assert run(store, made, clock=clock).status == "sleeping"
    clock.advance(7200)
    assert engine.resume(RUN, store=store, clock=clock).outputs == {"n": 1}
    assert store.get(RUN).outputs == '{"n":1}'


def test_a_step_of_finally_that_is_to_run_again_does_not_bring_back_what_had_failed(store: Memory) -> None:
    tried, once = name(), name()
    made = make(
        [{"id": "bad", "local": call("fail_until", name=tried, times=9)}],
        **{"finally": [{"id": "first", "local": call("count", name=once)}, {"id": "tidy", "shell": "echo tidied"}]},
    )
    assert run(store, made).status == "failed"
    other = unseen(store, "@finally[0].tidy")
    recovery.resolve(other, other.get(RUN), "@finally[0].tidy", as_="retry", clock=FakeClock())
    before = functions.calls[tried], functions.calls[once]
    result = engine.resume(RUN, store=other)
    assert (result.status, result.error and result.error["step"]) == ("failed", "bad")
    assert (functions.calls[tried], functions.calls[once]) == before
    assert [record.mark.value for record in other.journal(RUN) if record.path == "@finally[0].tidy"] == [
        "unknown",
        "cancelled",
        "started",
        "completed",
    ]


def unseen(store: Memory, path: str) -> Memory:
    """The same run as it would be if the end of its last step had not been seen."""
    run, records, other = store.get(RUN), store.journal(RUN), Memory()
    assert records[-1].path == path
    kept = tuple(record for record in records if record.path != path)
    last = replace(
        records[-1], seq=len(kept) + 1, mark=Mark.UNKNOWN, policy="non_replayable", value=None, error='{"message":"?"}'
    )
    blocked = replace(run, status=Status.BLOCKED, finished=None)
    other.adopt(
        Bundle(run=blocked, definition=store.definition(run.digest), records=(*kept, last), notes=store.notes(RUN))
    )
    return other


def test_a_container_whose_deadline_is_over_says_so(store: Memory) -> None:
    do = [{"id": "nap", "shell": "sleep 60"}]
    made = make([{"id": "all", "foreach": {"items": [1], "do": do}, "deadline": "300ms", "timeout": "1h"}])
    result = run(store, made)
    assert result.error is not None
    assert "longer than its deadline allows" in result.error["message"]


def test_no_clause_takes_that_the_time_of_the_run_is_over_in_a_pause_of_a_loop(store: Memory) -> None:
    loop = {"do": [{"id": "a", "local": "${{ 1 }}"}], "max": 5, "delay": "30s"}
    made = make([{"id": "all", "repeat": loop, "catch": [{"output": 1}]}], limits={"timeout": "300ms"})
    result = run(store, made)
    assert result.error is not None
    assert (result.error["type"], result.error["step"]) == ("limit", "all")
    assert [record.path for record in store.journal(RUN) if "@catch" in record.path] == []
