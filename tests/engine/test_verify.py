"""`verify`: what became of an attempt whose end was not seen is asked of the world, not of an operator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tramai import engine, plan, workflow
from tramai.errors import OutcomeUnknown, StoreUnavailable
from tramai.event import StepFinished
from tramai.interrupt import Interrupt
from tramai.store import Change, Lease, Mark, Status
from tramai.stores.memory import Memory

from . import functions
from .support import RUN, Watch, call, make, name, run


class Dies(Memory):
    """A store that fails its caller once a step of this path has started, so that its end is never recorded."""

    def __init__(self, *paths: str) -> None:
        super().__init__()
        self.paths = set(paths)

    def commit(self, lease: Lease, change: Change) -> int:
        revision = super().commit(lease, change)
        if any(record.mark is Mark.STARTED and record.path in self.paths for record in change.records):
            self.paths.clear()
            raise StoreUnavailable(what="the connection was lost")
        return revision


def unsafe(verify: Any, **more: Any) -> dict[str, Any]:
    """A step that is not safe to repeat."""
    return {"id": "pay", "shell": {"run": "echo paid", "parse": "text"}, "verify": verify, **more}


def crashed(*steps: dict[str, Any], path: str = "pay", **top: Any) -> tuple[Dies, plan.Plan]:
    """A run whose runner died in the middle of `path`."""
    store, made = Dies(path), make(list(steps), **top)
    with pytest.raises(StoreUnavailable):
        run(store, made)
    assert store.get(RUN).lease is None
    return store, made


def marks(store: Memory, path: str = "pay") -> list[tuple[str, int]]:
    return [(record.mark.value, record.attempt) for record in store.journal(RUN) if record.path == path]


def answers(store: Memory) -> list[Any]:
    return [json.loads(note.data or "")["answer"] for note in store.notes(RUN) if note.type == "step.verified"]


OUTPUTS = {"outputs": {"said": "${{ steps.pay.output }}"}}


def test_a_step_that_had_happened_is_not_run_again() -> None:
    store, made = crashed(unsafe("${{ true }}"), **OUTPUTS)
    watch = Watch()
    result = engine.resume(RUN, store=store, plan=made, observers=[watch])
    assert (result.status, result.outputs) == ("completed", {"said": None})
    assert marks(store) == [("started", 1), ("completed", 1)]
    assert answers(store) == ["happened"]
    (ended,) = [event for event in watch.events if isinstance(event, StepFinished)]
    assert (ended.status, ended.attempt, ended.note) == ("succeeded", 1, "verify says that it had happened")


def test_an_answer_may_hold_the_output() -> None:
    verify = {"local": {"value": {"happened": True, "output": "receipt of attempt ${{ attempt.number }}"}}}
    store, made = crashed(unsafe(verify), **OUTPUTS)
    assert engine.resume(RUN, store=store, plan=made).outputs == {"said": "receipt of attempt 1"}
    assert engine.resume(RUN, store=store, plan=made).outputs == {"said": "receipt of attempt 1"}


def test_a_step_that_had_not_happened_gets_a_new_attempt() -> None:
    store, made = crashed(unsafe("${{ false }}"), **OUTPUTS)
    result = engine.resume(RUN, store=store, plan=made)
    assert (result.status, result.outputs) == ("completed", {"said": "paid"})
    assert marks(store) == [("started", 1), ("cancelled", 1), ("started", 2), ("completed", 2)]
    assert answers(store) == ["not_happened"]


def test_an_attempt_that_had_not_happened_uses_up_no_retry() -> None:
    verify = {"local": False}
    failing = {"id": "pay", "shell": "exit 3", "verify": verify, "retry": {"max_attempts": 2, "delay": "1ms"}}
    store, made = crashed(failing)
    assert engine.resume(RUN, store=store, plan=made).status == "failed"
    assert marks(store)[-4:] == [("started", 2), ("failed", 2), ("started", 3), ("failed", 3)]


@pytest.mark.parametrize(
    ("verify", "words"),
    [
        ({"shell": "exit 7", "replay": "replayable"}, "exit status 7"),
        ({"local": "yes"}, "its answer is not true, false, or a map"),
        ({"local": {"value": {"happened": True, "out": 1}}}, "its answer is not true, false, or a map"),
        ({"local": "${{ steps.before.output.nothing }}"}, "nothing"),
        ("${{ steps.before.output.nothing }}", "nothing"),
        ({"shell": "sleep 20", "replay": "replayable", "timeout": "100ms"}, "ran out of time"),
    ],
)
def test_without_an_answer_the_run_stays_blocked(verify: Any, words: str) -> None:
    store, made = crashed({"id": "before", "local": {"value": {"a": 1}}}, unsafe(verify))
    result = engine.resume(RUN, store=store, plan=made)
    assert (result.status, result.exit_status) == ("blocked", 5)
    assert result.error is not None
    assert result.error["type"] == "unknown_outcome"
    assert "the step's end was not seen, and `verify` cannot tell" in result.error["message"]
    assert words in result.error["message"]
    assert marks(store) == [("started", 1), ("unknown", 1)]
    assert answers(store) == ["undecided"]
    assert store.get(RUN).status is Status.BLOCKED


def test_a_blocked_run_is_asked_again_when_it_is_resumed() -> None:
    counter = name()
    verify = {"local": call("fail_until", name=counter, times=2), "output": "${{ result != '' }}"}
    store, made = crashed(unsafe(verify), **OUTPUTS)
    assert engine.resume(RUN, store=store, plan=made).status == "blocked"
    assert engine.resume(RUN, store=store, plan=made).status == "blocked"
    assert engine.resume(RUN, store=store, plan=made).status == "completed"
    assert marks(store) == [("started", 1), ("unknown", 1), ("completed", 1)]
    assert answers(store) == ["undecided", "undecided", "happened"]


def test_an_operator_may_answer_instead() -> None:
    from tramai import recovery
    from tramai.clock import SystemClock

    store, made = crashed(unsafe({"shell": "false", "replay": "replayable"}), **OUTPUTS)
    assert engine.resume(RUN, store=store, plan=made).status == "blocked"
    recovery.resolve(store, store.get(RUN), "pay", as_="completed", output="seen", clock=SystemClock())
    assert engine.resume(RUN, store=store, plan=made).outputs == {"said": "seen"}


def test_a_step_without_verify_still_waits_for_an_operator() -> None:
    fan = {
        "branches": {
            "asked": [{"id": "asked", "shell": "true", "verify": "${{ true }}"}],
            "other": [{"id": "other", "shell": "true"}],
        }
    }
    made = make([{"id": "both", "parallel": fan}])

    class Both(Memory):
        """Loses its caller once both have started."""

        started = 0

        def commit(self, lease: Lease, change: Change) -> int:
            revision = super().commit(lease, change)
            self.started += sum(record.mark is Mark.STARTED for record in change.records)
            if self.started == 2:
                self.started = 3
                raise StoreUnavailable(what="the connection was lost")
            return revision

    store = Both()
    with pytest.raises(StoreUnavailable):
        run(store, made)
    assert engine.resume(RUN, store=store, plan=made).status == "blocked"
    assert marks(store, "both[asked].asked") == [("started", 1)]
    assert marks(store, "both[other].other") == [("started", 1), ("unknown", 1)]
    with pytest.raises(OutcomeUnknown):
        engine.resume(RUN, store=store, plan=made)


def test_an_item_is_asked_with_its_own_names() -> None:
    answer = {"happened": "${{ item == 'b' }}", "output": "${{ item }} ${{ loop.index }}"}
    loop = {"items": ["a", "b"], "do": [unsafe({"local": {"value": answer}})]}
    each = {"id": "each", "foreach": loop}
    store, made = crashed(each, path="each[1].pay", outputs={"o": "${{ steps.each.output }}"})
    assert engine.resume(RUN, store=store, plan=made).outputs == {"o": [{"pay": "paid"}, {"pay": "b 2"}]}


def test_one_branch_in_doubt_lets_its_sibling_finish_before_the_run_is_blocked() -> None:
    fan = {
        "branches": {
            "asked": [unsafe({"shell": "exit 1", "replay": "replayable"})],
            "other": [{"id": "slow", "shell": "sleep 0.3", "replay": "replayable"}],
        }
    }
    store, made = crashed({"id": "both", "parallel": fan}, path="both[asked].pay")
    assert engine.resume(RUN, store=store, plan=made).status == "blocked"
    assert marks(store, "both[asked].pay") == [("started", 1), ("unknown", 1)]
    assert marks(store, "both[other].slow")[-1][0] == "completed"


def test_an_output_must_meet_the_schema_of_its_step() -> None:
    schema = {"type": "object", "required": ["id"]}
    step = {"id": "pay", "shell": {"run": "echo '{\"id\": 1}'", "parse": "json"}, "schema": schema}
    for output, status in (({"id": 5}, "completed"), ({"no": 5}, "blocked"), (None, "blocked")):
        verify = {"local": {"value": {"happened": True, "output": output}}}
        store, made = crashed({**step, "verify": verify})
        assert engine.resume(RUN, store=store, plan=made).status == status


def test_a_secret_in_an_answer_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "c4n4ry-value")
    verify = {
        "shell": {"run": 'echo "$T"; echo "$T" >&2; exit ${CODE}', "env": {"T": "${{ secrets.t }}", "CODE": "0"}},
        "replay": "replayable",
        "output": {"happened": True, "output": "${{ result.stdout }}"},
    }
    store, made = crashed(unsafe(verify), secrets={"t": {"env": "TOKEN"}}, **OUTPUTS)
    assert engine.resume(RUN, store=store, plan=made).outputs == {"said": "***\n"}
    assert "c4n4ry" not in repr(store.journal(RUN))


def test_an_interrupted_question_is_asked_again() -> None:
    verify = {"shell": "sleep 20; true", "replay": "replayable", "output": True}
    store, made = crashed(unsafe(verify))
    import threading

    interrupt = Interrupt()
    timer = threading.Timer(0.3, lambda: interrupt.set("signal"))
    timer.start()
    options = engine.Options(interrupt=interrupt)
    assert engine.resume(RUN, store=store, plan=made, options=options).status == "interrupted"
    timer.join()
    assert marks(store) == [("started", 1)]
    assert answers(store) == []


def test_a_question_counts_what_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = name()
    verify = {"local": call("count", name=counter), "output": "${{ result == 1 }}"}
    store, made = crashed(unsafe(verify))
    assert engine.resume(RUN, store=store, plan=made).status == "completed"
    assert engine.resume(RUN, store=store, plan=made).status == "completed"
    assert functions.calls[counter] == 1


def test_verify_is_part_of_the_digest_and_survives_the_store(tmp_path: Path) -> None:
    step = unsafe({"http": {"get": "https://x.test"}, "timeout": "5s", "output": "${{ result.status == 200 }}"})
    made, plain = make([step]), make([{key: value for key, value in step.items() if key != "verify"}])
    assert made.digest != plain.digest
    again = plan.restore(made.canonical)
    assert again.canonical == made.canonical
    assert (made.needs_loop, plain.needs_loop) == (True, False)
    changed = make([{**step, "verify": "${{ true }}"}])
    assert changed.digest != made.digest
    assert [difference.what for difference in engine.compare(plain, changed)] == ["verify"]
    assert plan.restore(changed.canonical).canonical == changed.canonical


def test_a_file_with_verify_is_read_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "v.yaml"
    file.write_text(
        "tramai: 1\nname: v\nsteps:\n  - id: push\n    shell: git push\n    verify:\n"
        "      shell: {run: git ls-remote, parse: text}\n      replay: replayable\n"
        "      output: ${{ result.value != '' }}\n"
    )
    found, problems = workflow.check_file(str(file))
    assert problems == ()
    assert found is not None
    asked = found.steps.nodes[0].verify
    assert asked is not None
    assert plan.of(found).data["steps"][0]["verify"]["replay"] == "replayable"  # type: ignore[index,call-overload]
