"""The engine over the memory store: how a run goes, fails, sleeps, is stopped and goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tramai import engine, recovery
from tramai.duration import Duration
from tramai.errors import DefinitionChanged, InvalidInput, LeaseHeld, RunCancelled, SecretMissing
from tramai.interrupt import Interrupt
from tramai.retrying import again_after
from tramai.step import Retry, StepError
from tramai.store import Holder, Mark, Note, Status
from tramai.stores.memory import Memory
from tramai.testing._fragile import FOR_EVER, Cut, Fragile
from tramai.testing.clock import FakeClock

from . import functions
from .support import RUN, Watch, call, make, name, run


@pytest.fixture
def store() -> Memory:
    return Memory()


def marks(store: Memory) -> list[tuple[str, str, int]]:
    return [(record.path, record.mark.value, record.attempt) for record in store.journal(RUN)]


# How a run goes.


def test_steps_run_in_order_and_feed_each_other(store: Memory) -> None:
    made = make(
        [
            {"id": "a", "local": "${{ 2 * 21 }}"},
            {
                "id": "b",
                "local": {"value": {"double": "${{ steps.a.output * 2 }}", "text": "is ${{ steps.a.output }}"}},
            },
        ],
        outputs={"b": "${{ steps.b.output }}"},
    )
    result = run(store, made)
    assert (result.status, result.exit_status) == ("completed", 0)
    assert result.outputs == {"b": {"double": 84, "text": "is 42"}}
    stored = store.get(RUN)
    assert stored.status is Status.COMPLETED
    assert stored.lease is None
    assert stored.step_executions == 2


def test_state_is_written_with_the_step_that_saves_it(store: Memory) -> None:
    made = make(
        [
            {"id": "a", "local": "${{ state.n + 1 }}", "save": {"n": "${{ result }}"}},
            {"id": "b", "local": "${{ state.n + 1 }}", "save": {"n": "${{ result }}"}},
        ],
        state={"n": {"initial": 5}},
        outputs={"n": "${{ state.n }}"},
    )
    assert run(store, made).outputs == {"n": 7}


def test_a_fan_out_keeps_the_order_of_its_items_whatever_the_window(store: Memory) -> None:
    for window in (4, 2, 1):
        made = make(
            [
                {
                    "id": "p",
                    "parallel": {
                        "items": [3, 1, 2, 0],
                        "max": window,
                        "do": [{"id": "x", "local": "${{ item * 10 }}"}],
                    },
                }
            ],
            outputs={"x": '${{ steps.p.output | map(attribute="x") | list }}'},
        )
        assert engine.run(made, {}, store=store).outputs == {"x": [30, 10, 20, 0]}


def test_an_empty_list_gives_an_empty_list(store: Memory) -> None:
    made = make(
        [
            {"id": "p", "parallel": {"items": "${{ [] }}", "do": [{"id": "x", "local": "1"}]}},
            {"id": "after", "local": "${{ steps.p.output }}"},
        ],
        outputs={"after": "${{ steps.after.output }}"},
    )
    assert run(store, made).outputs == {"after": []}


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ("abc", "a string"),
        ({"a": 1}, "an object"),
        ("${{ none }}", "null"),
        ("${{ 5 }}", "a number"),
        ("[1,2]", "a string"),
    ],
)
def test_items_that_are_no_list_fail_before_any_item_runs(store: Memory, items: Any, kind: str) -> None:
    made = make([{"id": "p", "parallel": {"items": items, "do": [{"id": "x", "local": "1"}]}}])
    result = run(store, made)
    assert result.status == "failed"
    assert result.error is not None
    assert f"expected a list, got {kind}" in result.error["message"]
    assert marks(store) == []


def test_a_branch_takes_one_block_and_the_others_read_as_skipped(store: Memory) -> None:
    made = make(
        [
            {
                "id": "b",
                "branch": {
                    "select": "${{ 200 }}",
                    "cases": {"200": [{"id": "yes", "local": "ok"}], "true": [{"id": "no", "local": "${{ 1 / 0 }}"}]},
                },
            },
            {"id": "after", "local": '${{ steps.yes.output | default("") }} ${{ steps.no.status }}'},
        ],
        outputs={"after": "${{ steps.after.output }}", "b": "${{ steps.b.output }}"},
    )
    assert run(store, made).outputs == {"after": "ok skipped", "b": {"yes": "ok"}}


@pytest.mark.parametrize(
    ("select", "taken"),
    [("${{ true }}", "true"), ("${{ none }}", "null"), ("${{ ' a ' }}", "else"), ("${{ 'A' }}", "else")],
)
def test_a_branch_compares_with_the_json_text_of_its_keys(store: Memory, select: str, taken: str) -> None:
    cases = {key: [{"id": f"case_{key}", "local": key}] for key in ("true", "null", "a")}
    made = make(
        [{"id": "b", "branch": {"select": select, "cases": cases, "default": [{"id": "other", "local": "else"}]}}]
    )
    run(store, made)
    assert list(store.journal(RUN)[-1].value or "")  # the container's record closes the run
    assert taken in (store.journal(RUN)[-1].value or "")


def test_no_case_and_no_default_fails_and_names_them(store: Memory) -> None:
    made = make([{"id": "b", "branch": {"select": "${{ 'x' }}", "cases": {"yes": [], "no": []}}}])
    result = run(store, made)
    assert result.error is not None
    assert result.error["message"] == "no case 'x' (cases: yes, no)"


def test_a_skipped_step_has_a_status_and_no_output(store: Memory) -> None:
    made = make(
        [
            {"id": "a", "when": "${{ false }}", "local": "1"},
            {"id": "b", "local": '${{ steps.a.output | default("none") }} ${{ steps.a.status }}'},
            {"id": "c", "local": "${{ steps.a.output.x }}"},
        ]
    )
    result = run(store, made)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["step"] == "c"
    assert "step 'a' was skipped" in result.error["message"]


def test_foreach_goes_one_by_one_and_stops_at_the_first_failure(store: Memory) -> None:
    counter = name()
    made = make(
        [
            {
                "id": "f",
                "foreach": {
                    "items": [0, 1, 2],
                    "do": [{"id": "x", "local": call("fail_until", name=counter, times=1)}],
                },
            }
        ]
    )
    assert run(store, made).status == "failed"
    assert functions.calls[counter] == 1


def test_collect_leaves_an_error_in_the_place_of_a_failed_item(store: Memory) -> None:
    counter = name()
    body = [{"id": "x", "local": call("fail_until", name=counter, times=1)}]
    made = make(
        [{"id": "f", "foreach": {"items": [0, 1, 2], "on_error": "collect", "do": body}}],
        outputs={"all": "${{ steps.f.output }}"},
    )
    result = run(store, made)
    assert result.status == "completed"
    first, *rest = result.outputs["all"]  # type: ignore[index,call-overload]
    assert first["error"]["type"] == "plugin.RuntimeError"
    assert rest == [{"x": "succeeded at call 2"}, {"x": "succeeded at call 3"}]


# Failure, retry, limits.


def test_the_running_time_of_a_run_ends_a_function_too(store: Memory) -> None:
    made = make([{"id": "a", "local": call("nap", seconds=5)}], limits={"timeout": "50ms"})
    began = time.monotonic()
    result = run(store, made)
    assert time.monotonic() - began < 4
    assert (result.status, (result.error or {}).get("type")) == ("failed", "limit")


def test_a_retry_counts_all_attempts_and_numbers_them(store: Memory) -> None:
    made = make(
        [
            {
                "id": "a",
                "local": call("fail_until", name=name(), times=2),
                "retry": {"max_attempts": 3, "delay": "0s"},
            }
        ]
    )
    assert run(store, made).status == "completed"
    assert marks(store) == [("a", "failed", 1), ("a", "failed", 2), ("a", "completed", 3)]


def test_a_pause_that_no_number_can_say_is_the_longest_there_is() -> None:
    retry = Retry(max_attempts=1000, delay=Duration(1.0), backoff=100.0, max_delay=Duration(60.0), jitter=0.0)
    pauses = [again_after(retry, used, StepError("timeout", "late")) for used in (1, 2, 154, 155, 156, 999)]
    assert pauses == [1.0, *[60.0] * 5]


def test_a_retry_only_answers_the_errors_it_names(store: Memory) -> None:
    retry = {"max_attempts": 3, "delay": "0s", "on": ["network"]}
    made = make([{"id": "a", "local": call("fail_until", name=name(), times=2), "retry": retry}])
    assert run(store, made).status == "failed"
    assert marks(store) == [("a", "failed", 1)]


def test_a_failed_run_resumes_at_the_failed_step_with_a_new_attempt(store: Memory) -> None:
    done, failing = name(), name()
    made = make(
        [
            {"id": "a", "local": call("count", name=done)},
            {"id": "b", "local": call("fail_until", name=failing, times=1)},
            {"id": "c", "local": "${{ steps.a.output }}"},
        ],
        outputs={"c": "${{ steps.c.output }}"},
    )
    first = run(store, made)
    assert (first.status, first.exit_status) == ("failed", 1)
    watch = Watch()
    second = engine.resume(RUN, store=store, plan=made, observers=[watch])
    assert second.outputs == {"c": 1}
    assert functions.calls[done] == 1
    assert watch.statuses() == {"a": "replayed", "b": "succeeded", "c": "succeeded"}
    assert ("b", "completed", 2) in marks(store)


def test_the_limit_of_executions_counts_retries_and_resumes(store: Memory) -> None:
    retry = {"max_attempts": 2, "delay": "0s"}
    steps = [
        {"id": "a", "local": "1"},
        {"id": "b", "local": call("fail_until", name=name(), times=3), "retry": retry},
        {"id": "c", "local": "3"},
        {"id": "d", "local": "4"},
    ]
    limited = make(steps, limits={"max_step_executions": 5})
    assert run(store, limited).status == "failed"
    second = engine.resume(RUN, store=store)
    assert second.error is not None
    assert second.error["type"] == "limit"
    assert "5 step executions" in second.error["message"]
    assert second.error["step"] == "c"
    assert store.get(RUN).step_executions == 5
    third = engine.resume(RUN, store=store, plan=make(steps, limits={"max_step_executions": 8}), accept_changes=True)
    assert third.status == "completed"
    assert store.get(RUN).step_executions == 7


def test_a_closed_gate_rejects_the_run(store: Memory) -> None:
    made = make(
        [{"id": "g", "gate": {"check": "${{ 1 > 2 }}", "reason": "one is ${{ 'small' }}"}}, {"id": "z", "local": "1"}]
    )
    result = run(store, made)
    assert (result.status, result.exit_status) == ("failed", 10)
    assert result.error is not None
    assert (result.error["type"], result.error["message"]) == ("rejected", "one is small")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("bytes", "bytes"),
        ("set", "set"),
        ("date", "date"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("int_key", "keys must be text"),
        ("tuple", "tuple"),
        ("object", "object"),
        ("nested", "a[0].b"),
    ],
)
def test_a_value_that_json_cannot_say_fails_at_the_step_that_made_it(store: Memory, what: str, words: str) -> None:
    result = run(store, make([{"id": "a", "local": call("give", what=what)}]))
    assert result.error is not None
    assert result.error["type"] == "invalid_output"
    assert words in result.error["message"]


def test_big_integers_survive_exactly(store: Memory) -> None:
    made = make([{"id": "a", "local": call("give", what="big")}], outputs={"a": "${{ steps.a.output }}"})
    assert run(store, made).outputs == {"a": 738529527931269425 * 10**20}


def test_a_function_may_be_async(store: Memory) -> None:
    made = make([{"id": "a", "local": call("later", value="x")}], outputs={"a": "${{ steps.a.output }}"})
    assert run(store, made).outputs == {"a": "x"}


def test_a_function_has_a_time_limit(store: Memory) -> None:
    made = make([{"id": "a", "local": call("nap", seconds=5), "timeout": "50ms"}])
    result = run(store, made)
    assert result.error is not None
    assert result.error["type"] == "timeout"


def test_an_output_that_breaks_its_schema_fails_the_step(store: Memory) -> None:
    made = make([{"id": "a", "local": "text", "schema": {"type": "integer"}}])
    result = run(store, made)
    assert result.error is not None
    assert result.error["type"] == "invalid_output"


# Sleeping.


def test_a_long_delay_suspends_and_wakes_at_the_instant_it_fixed(store: Memory) -> None:
    clock = FakeClock()
    made = make([{"id": "d", "delay": "30d"}, {"id": "z", "local": "${{ steps.d.output.woke_at }}"}])
    start = clock.now()
    first = run(store, made, clock=clock)
    assert (first.status, first.exit_status) == ("sleeping", 11)
    assert first.wake_at == start + 2_592_000
    clock.advance(1000)
    early = engine.resume(RUN, store=store, plan=made, clock=clock)
    assert (early.status, early.resumed) == ("sleeping", False)
    assert store.get(RUN).lease is None
    clock.advance(2_592_000)
    assert engine.resume(RUN, store=store, plan=made, clock=clock).status == "completed"
    assert store.journal(RUN)[-1].value == str(start + 2_592_000)


@pytest.mark.parametrize("settings", ["0s", {"until": "2001-01-01T00:00:00Z"}])
def test_a_delay_that_is_over_is_no_delay(store: Memory, settings: Any) -> None:
    assert run(store, make([{"id": "d", "delay": settings}])).status == "completed"


def test_a_sleeping_branch_lets_its_sibling_finish(store: Memory) -> None:
    clock = FakeClock()
    counter = name()
    branches = {"slow": [{"id": "d", "delay": "1d"}], "quick": [{"id": "q", "local": call("count", name=counter)}]}
    made = make([{"id": "p", "parallel": {"branches": branches}}], outputs={"p": "${{ steps.p.output.quick }}"})
    assert run(store, made, clock=clock).status == "sleeping"
    clock.advance(86_401)
    assert engine.resume(RUN, store=store, plan=made, clock=clock).outputs == {"p": {"q": 1}}
    assert functions.calls[counter] == 1


# Stopping.


def test_an_interrupt_stops_before_the_next_step_and_the_run_goes_on_later(store: Memory) -> None:
    interrupt = Interrupt()

    def stop_after_first(event: Any) -> None:
        if getattr(event, "status", "") == "succeeded":
            interrupt.set("signal")

    made = make([{"id": "a", "local": "1"}, {"id": "b", "local": "2"}], outputs={"b": "${{ steps.b.output }}"})
    first = run(store, made, observers=[stop_after_first], options={"interrupt": interrupt})
    assert first.status == "interrupted"
    assert store.get(RUN).status is Status.READY
    assert store.get(RUN).lease is None
    assert engine.resume(RUN, store=store, plan=made).outputs == {"b": "2"}


def test_a_cancelled_run_stays_cancelled(store: Memory) -> None:
    interrupt = Interrupt()
    made = make([{"id": "a", "local": "1"}, {"id": "b", "local": "2"}])
    first = run(store, made, observers=[lambda event: interrupt.set("cancelled")], options={"interrupt": interrupt})
    assert (first.status, first.exit_status) == ("cancelled", 12)
    with pytest.raises(RunCancelled, match="is cancelled"):
        engine.resume(RUN, store=store, plan=made)


def test_an_observer_that_raises_changes_nothing(store: Memory) -> None:
    def broken(event: Any) -> None:
        raise RuntimeError("observer")

    assert run(store, make([{"id": "a", "local": "1"}]), observers=[broken]).status == "completed"


@pytest.mark.parametrize("event", ["RunStarted", "StepStarted", "StepFinished"])
def test_an_interruption_escapes_an_observer_and_leaves_the_run_resumable(store: Memory, event: str) -> None:
    def interrupt(seen: Any) -> None:
        if type(seen).__name__ == event:
            raise KeyboardInterrupt

    made = make([{"id": "a", "shell": "true"}], outputs={"a": "${{ steps.a.status }}"})
    with pytest.raises(KeyboardInterrupt):
        run(store, made, observers=[interrupt])
    assert store.get(RUN).status is Status.READY
    assert store.get(RUN).lease is None
    assert engine.resume(RUN, store=store, plan=made).outputs == {"a": "succeeded"}


# Identity.


def test_resuming_a_completed_run_gives_its_result_and_runs_nothing(store: Memory) -> None:
    counter = name()
    made = make([{"id": "a", "local": call("count", name=counter)}], outputs={"a": "${{ steps.a.output }}"})
    run(store, made)
    again = engine.resume(RUN, store=store, plan=made)
    assert (again.status, again.resumed, again.outputs) == ("completed", False, {"a": 1})
    assert functions.calls[counter] == 1


def test_the_same_start_key_gives_the_same_run(store: Memory) -> None:
    counter = name()
    made = make([{"id": "a", "local": call("count", name=counter)}])
    options = engine.Options(start_key="k")
    first = engine.run(made, {}, store=store, options=options)
    second = engine.run(made, {}, store=store, options=options)
    assert (first.run_id, second.resumed) == (second.run_id, False)
    assert functions.calls[counter] == 1


def test_a_run_that_somebody_holds_cannot_be_resumed(store: Memory) -> None:
    made = make([{"id": "a", "local": call("fail_until", name=name(), times=1)}])
    run(store, made)
    clock = FakeClock()
    store.claim(RUN, owner="other:1", holder=Holder.here(), ttl=30, now=clock.now())
    with pytest.raises(LeaseHeld, match="owned by other:1"):
        engine.resume(RUN, store=store, plan=made, clock=clock)


def test_a_changed_command_is_refused_and_the_stored_source_still_runs(store: Memory) -> None:
    counter = name()
    steps = [{"id": "a", "local": "1"}, {"id": "b", "local": call("fail_until", name=counter, times=1)}]
    run(store, make(steps))
    changed = make([{"id": "a", "local": "2"}, *steps[1:]])
    with pytest.raises(DefinitionChanged) as caught:
        engine.resume(RUN, store=store, plan=changed, accept_changes=True)
    assert [difference.step for difference in caught.value.details["ran"]] == ["a"]  # type: ignore[attr-defined]
    assert engine.resume(RUN, store=store).status == "completed"


def test_a_step_added_behind_everything_that_ran_may_be_accepted(store: Memory) -> None:
    steps = [{"id": "a", "local": "1"}, {"id": "b", "local": call("fail_until", name=name(), times=1)}]
    run(store, make(steps))
    longer = make([*steps, {"id": "c", "local": "3"}], outputs={"c": "${{ steps.c.output }}"})
    with pytest.raises(DefinitionChanged):
        engine.resume(RUN, store=store, plan=longer)
    assert engine.resume(RUN, store=store, plan=longer, accept_changes=True).outputs == {"c": "3"}
    assert store.get(RUN).digest == longer.digest
    assert "definition.accepted" in [note.type for note in store.notes(RUN)]


@pytest.mark.parametrize("items", [[1, 2], []])
def test_a_step_added_inside_a_container_that_has_ended_cannot_be_accepted(store: Memory, items: list[int]) -> None:
    """Nothing would ever come to it."""

    def steps(*more: dict[str, Any]) -> list[dict[str, Any]]:
        each = {"id": "each", "foreach": {"items": items, "do": [{"id": "one", "local": "1"}, *more]}}
        return [each, {"id": "rest", "delay": "1h"}]

    interrupt = Interrupt()
    observers = [lambda event: interrupt.set("signal") if getattr(event, "status", "") == "succeeded" else None]
    assert run(store, make(steps()), observers=observers, options={"interrupt": interrupt}).status == "interrupted"
    changed = make(steps({"id": "two", "local": "2"}))
    if items:  # it was stopped in the middle: the container goes on
        assert engine.resume(RUN, store=store, options=engine.Options(wait=0.0)).status == "sleeping"
    with pytest.raises(DefinitionChanged) as caught:
        engine.resume(RUN, store=store, plan=changed, accept_changes=True)
    assert [difference.step for difference in caught.value.details["blocking"]] == ["two"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("before", "after", "blocking"),
    [
        ({"initial": 0}, {"initial": 0, "reduce": "sum"}, ["state.n.reduce"]),
        ({"initial": 0, "reduce": "sum"}, {"initial": 0}, ["state.n.reduce"]),
        ({"initial": 0, "reduce": "sum"}, {"initial": 0, "reduce": "last"}, ["state.n.reduce"]),
        ({"initial": 0}, {"initial": 0, "schema": {"type": "integer"}}, None),
    ],
)
def test_what_was_saved_is_not_put_together_in_another_way(
    store: Memory, before: dict[str, Any], after: dict[str, Any], blocking: list[str] | None
) -> None:
    saves = [{"id": f"s{number}", "local": number, "save": {"n": "${{ result }}"}} for number in (5, 6)]
    steps = [*saves, {"id": "flaky", "local": call("fail_until", name=name(), times=1)}]
    assert run(store, make(steps, state={"n": before})).status == "failed"
    changed = make(steps, state={"n": after, "more": {"initial": [], "reduce": "append"}})
    if blocking is None:
        assert engine.resume(RUN, store=store, plan=changed, accept_changes=True).status == "completed"
        return
    with pytest.raises(DefinitionChanged) as caught:
        engine.resume(RUN, store=store, plan=changed, accept_changes=True)
    found = caught.value.details["blocking"]
    assert [difference.what for difference in found] == blocking  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ([1], "does not meet the schema of step 'a': output must be a mapping, not a list"),
        ({"x": "no"}, "does not meet the schema of step 'a': output.x must be an integer"),
        ({"x": float("nan")}, "x is nan, which JSON cannot say"),
    ],
)
def test_an_operator_gives_an_output_that_the_step_could_have_given(output: Any, said: str) -> None:
    shape = {"type": "object", "properties": {"x": {"type": "integer"}}}
    step = {"id": "a", "local": call("count", name=name()), "replay": "non_replayable", "schema": shape}
    store = Fragile(Memory(), Cut(write=2, before=True))
    made = make([{**step, "output": {"x": "${{ result }}"}}], outputs={"x": "${{ steps.a.output.x }}"})
    run(store, made)
    store.revive()
    options = engine.Options(lease=FOR_EVER)
    assert engine.resume(RUN, store=store, options=options).status == "blocked"
    with pytest.raises(InvalidInput) as refused:
        recovery.resolve(store, store.get(RUN), "a", as_="completed", output=output, clock=FakeClock())
    assert said in str(refused.value)
    recovery.resolve(store, store.get(RUN), "a", as_="completed", output={"x": 7}, clock=FakeClock())
    assert engine.resume(RUN, store=store, options=options).outputs == {"x": 7}


def test_a_missing_secret_is_refused_before_anything_is_written(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAMAI_TEST_SECRET", raising=False)
    made = make([{"id": "a", "local": "1"}], secrets={"TOKEN": {"env": "TRAMAI_TEST_SECRET"}})
    with pytest.raises(SecretMissing, match="TOKEN"):
        run(store, made)
    assert store.page(limit=10)[0] == ()


def test_a_secret_never_reaches_the_journal(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    value = 'S3cr3t-Val+/=ue"é'
    monkeypatch.setenv("TRAMAI_TEST_SECRET", value)
    made = make(
        [{"id": "a", "local": {"value": {"seen": "it is ${{ secrets.TOKEN }}!"}}}],
        secrets={"TOKEN": {"env": "TRAMAI_TEST_SECRET"}},
        outputs={"a": "${{ steps.a.output.seen }}", "raw": "${{ secrets.TOKEN }}"},
    )
    result = run(store, made)
    assert result.outputs == {"a": "it is ***!", "raw": "***"}
    kept = "".join(str(record) for record in store.journal(RUN)) + str(store.get(RUN))
    assert "S3cr3t" not in kept


# Commits.


class Counting(Memory):
    """Counts commits."""

    commits = 0

    def commit(self, lease: Any, change: Any) -> int:
        self.commits += 1
        return super().commit(lease, change)


def test_a_pure_fan_out_shares_its_commits() -> None:
    store = Counting()
    made = make(
        [{"id": "p", "parallel": {"items": list(range(1000)), "do": [{"id": "x", "local": "${{ item }}"}]}}],
        limits={"max_step_executions": 2000},
    )
    run(store, made)
    assert store.commits <= 1000 / 16
    assert sum(1 for record in store.journal(RUN) if record.mark is Mark.COMPLETED) == 1001


def test_a_step_costs_one_commit_and_the_end_of_the_run_goes_with_the_last_that_only_computes() -> None:
    store = Counting()
    run(store, make([{"id": f"s{n}", "local": "1"} for n in range(10)]))
    assert store.commits == 10
    store = Counting()
    run(store, make([{"id": f"s{n}", "local": "1"} for n in range(9)], **{"finally": [{"id": "tidy", "local": "1"}]}))
    assert store.commits == 10


class Crash(BaseException):
    """Stands for the death of the process."""


class Dying(Memory):
    """Dies at its nth commit, before or after it is written."""

    at = 0
    after = False
    seen = 0

    def commit(self, lease: Any, change: Any) -> int:
        self.seen += 1
        if self.seen == self.at and not self.after:
            raise Crash
        revision = super().commit(lease, change)
        if self.seen == self.at:
            raise Crash
        return revision


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_commit_changes_neither_outputs_nor_what_was_done(after: bool) -> None:
    steps = [
        {"id": "a", "local": call("count", name="@")},
        {"id": "p", "parallel": {"items": [1, 2, 3], "do": [{"id": "x", "local": "${{ item * 2 }}"}]}},
        {"id": "b", "branch": {"if": "${{ steps.a.output >= 1 }}", "then": [{"id": "t", "local": "yes"}], "else": []}},
        {"id": "f", "foreach": {"items": [1, 2], "do": [{"id": "y", "local": call("count", name="@y")}]}},
        {"id": "d", "delay": "0s"},
        {"id": "s", "when": "${{ false }}", "local": "1"},
        {"id": "z", "local": "${{ state.n + 1 }}", "save": {"n": "${{ result }}"}},
    ]
    outputs = {"p": "${{ steps.p.output }}", "t": '${{ steps.t.output | default("") }}', "n": "${{ state.n }}"}
    deaths = 0
    for at in range(1, 40):
        store, counter, clock = Dying(), name(), FakeClock()
        store.at, store.after = at, after
        text = str(steps).replace("'@", f"'{counter}")
        made = make(eval(text), state={"n": {"initial": 1}}, outputs=outputs)
        try:
            result = run(store, made, clock=clock)
        except Crash:
            deaths += 1
            done = {record.path for record in store.journal(RUN) if record.mark is Mark.COMPLETED}
            calls = dict(functions.calls)
            clock.advance(31)
            result = engine.resume(RUN, store=store, plan=made, clock=clock)
            if "a" in done:
                assert functions.calls[counter] == calls[counter] == 1
        assert result.status == "completed"
        assert result.outputs == {"p": [{"x": 2}, {"x": 4}, {"x": 6}], "t": "yes", "n": 2}
    assert deaths >= 8


def test_a_cancel_request_is_recorded_for_a_run_nobody_holds(store: Memory) -> None:
    clock = FakeClock()
    made = make([{"id": "d", "delay": "1d"}])
    run(store, made, clock=clock)
    store.request_cancel(RUN, Note(at=clock.now(), type="run.cancel", by="me"), now=clock.now())
    assert store.get(RUN).status is Status.CANCELLED


def test_a_wait_that_is_asked_for_and_too_long_fails_at_once_and_says_so(store: Memory) -> None:
    retry = {"max_attempts": 3, "delay": "0s", "max_delay": "10s"}
    made = make([{"id": "a", "local": call("ask_to_wait", seconds=86400), "retry": retry}])
    result = run(store, made)
    assert result.error is not None
    assert "asked to wait 86400s" in result.error["message"]
    assert marks(store) == [("a", "failed", 1)]


def test_what_another_attempt_cannot_mend_is_not_tried_again(store: Memory) -> None:
    made = make([{"id": "a", "local": call("refuse"), "retry": {"max_attempts": 3, "delay": "0s"}}])
    assert run(store, made).status == "failed"
    assert marks(store) == [("a", "failed", 1)]


def test_a_saved_value_must_meet_the_schema_of_its_state(store: Memory) -> None:
    made = make(
        [{"id": "a", "local": "text", "save": {"n": "${{ result }}"}}],
        state={"n": {"initial": 1, "schema": {"type": "integer"}}},
    )
    result = run(store, made)
    assert result.error is not None
    assert result.error["type"] == "invalid_output"
    assert result.error["message"].startswith("state.n does not meet its schema")
