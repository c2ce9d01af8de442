"""`call`: another workflow file as one step, with a run of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine import functions
from tests.engine.support import RUN, name
from tramai import carrying, document, engine, inputs, plan, plancache, workflow
from tramai.interrupt import Interrupt
from tramai.plan import Plan
from tramai.pool import Wanted, pooled
from tramai.store import Holder, Mark, Status, Store
from tramai.stores.memory import Memory
from tramai.testing._fragile import FOR_EVER, Cut, Fragile
from tramai.testing.clock import FakeClock

CHILD = """\
tramai: 1
name: child
inputs:
  n: {type: integer}
  mood: {enum: [good, bad], default: good}
steps:
  - id: double
    local: ${{ inputs.n * 2 }}
  - id: check
    gate: {check: "${{ inputs.mood == 'good' }}", reason: a bad mood}
outputs: {twice: "${{ steps.double.output }}"}
"""
PARENT = """\
tramai: 1
name: parent
inputs: {n: {type: integer, default: 4}}
steps:
  - id: ask
    call: {workflow: ./child.yaml, with: {n: "${{ inputs.n }}"}}
outputs: {got: "${{ steps.ask.output.twice }}"}
"""


@pytest.fixture
def store() -> Memory:
    return Memory()


def write(folder: Path, **files: str) -> Path:
    for stem, text in files.items():
        (folder / f"{stem}.yaml").write_text(text, encoding="utf-8")
    return folder / "parent.yaml"


def problems(path: Path) -> list[tuple[str, str, int | None]]:
    found = workflow.check_file(str(path))[1]
    return [(one.code, one.message, one.position.line if one.position else None) for one in found]


def start(path: Path | Plan, store: Store, given: dict[str, Any] | None = None, **more: Any) -> engine.Result:
    made = path if isinstance(path, Plan) else plan.load(str(path))
    options = engine.Options(run_id=RUN, **more.pop("options", {}))
    return engine.run(made, inputs.bind(made.workflow.inputs, given or {}), store=store, options=options, **more)


def called(store: Memory) -> list[str]:
    """Ids of the runs that were called, the newest last."""
    return [run.run_id for run in reversed(store.page(limit=50)[0]) if run.started_by.startswith("run ")]


def test_the_outputs_of_the_other_file_are_the_output_and_it_has_a_run_of_its_own(
    tmp_path: Path, store: Memory
) -> None:
    result = start(write(tmp_path, child=CHILD, parent=PARENT), store)
    assert (result.status, result.outputs) == ("completed", {"got": 8})
    (child,) = called(store)
    run = store.get(child)
    assert (run.workflow, run.status, run.started_by) == ("child", Status.COMPLETED, f"run {RUN}")
    assert run.outputs == '{"twice":8}'
    assert [record.path for record in store.journal(RUN) if record.mark is Mark.COMPLETED] == ["ask"]


def test_the_scalar_form_is_the_path_alone(tmp_path: Path, store: Memory) -> None:
    child = CHILD.replace("n: {type: integer}", "n: {type: integer, default: 1}")
    parent = PARENT.replace('{workflow: ./child.yaml, with: {n: "${{ inputs.n }}"}}', "child.yaml")
    assert start(write(tmp_path, child=child, parent=parent), store).outputs == {"got": 2}


def test_a_file_is_found_from_the_file_that_calls_it(tmp_path: Path, store: Memory) -> None:
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib", child=PARENT.replace("parent", "child").replace("./child", "./grandchild"))
    write(tmp_path / "lib", grandchild=CHILD.replace("name: child", "name: grandchild"))
    middle = (tmp_path / "lib" / "child.yaml").read_text().replace("got", "twice")
    (tmp_path / "lib" / "child.yaml").write_text(middle)
    parent = PARENT.replace("./child.yaml", "lib/child.yaml")
    assert start(write(tmp_path, parent=parent), store).outputs == {"got": 8}
    assert len(called(store)) == 2


def test_a_failure_inside_is_the_failure_of_the_step_with_its_type(tmp_path: Path, store: Memory) -> None:
    parent = PARENT.replace("with: {n:", "with: {mood: bad, n:")
    result = start(write(tmp_path, child=CHILD, parent=parent), store)
    assert (result.status, result.exit_status) == ("failed", 10)
    assert result.error is not None
    assert (result.error["step"], result.error["type"]) == ("ask", "rejected")
    assert "step 'check': a bad mood" in result.error["message"]
    assert result.error["run_id"] == called(store)[0]


def test_a_failure_inside_can_be_caught(tmp_path: Path, store: Memory) -> None:
    parent = PARENT.replace("with: {n:", "with: {mood: bad, n:").replace(
        "outputs:", "    catch: [{on: [rejected], output: {twice: 0}}]\noutputs:"
    )
    assert start(write(tmp_path, child=CHILD, parent=parent), store).outputs == {"got": 0}


def test_another_attempt_goes_on_with_the_run_that_failed(tmp_path: Path, store: Memory) -> None:
    done, flaky = name(), name()
    child = f"""\
tramai: 1
name: child
steps:
  - id: first
    local: {{call: "tests.engine.functions:count", with: {{name: {done}}}}}
  - id: second
    local: {{call: "tests.engine.functions:fail_until", with: {{name: {flaky}, times: 2}}}}
outputs: {{first: "${{{{ steps.first.output }}}}"}}
"""
    parent = """\
tramai: 1
name: parent
steps:
  - id: ask
    call: child.yaml
    retry: {max_attempts: 2, delay: 0s}
outputs: {got: "${{ steps.ask.output.first }}"}
"""
    assert start(write(tmp_path, child=child, parent=parent), store).status == "failed"
    assert engine.resume(RUN, store=store).outputs == {"got": 1}
    assert (functions.calls[done], functions.calls[flaky]) == (1, 3)
    assert len(called(store)) == 1


def test_a_called_run_that_sleeps_suspends_its_caller_and_goes_on_with_it(tmp_path: Path, store: Memory) -> None:
    clock = FakeClock()
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    delay: 2h\n  - id: check\n")
    path = write(tmp_path, child=child, parent=PARENT)
    result = start(path, store, clock=clock)
    assert (result.status, result.wake_at) == ("sleeping", clock.now() + 7200)
    path.unlink()
    (tmp_path / "child.yaml").unlink()  # all that a resume needs is in the store
    clock.advance(7200)
    assert engine.resume(RUN, store=store, clock=clock).outputs == {"got": 8}
    assert len(called(store)) == 1


CAUGHT = """\
tramai: 1
name: parent
steps:
  - id: ask
    call: {workflow: ./child.yaml, with: {n: 1, mood: bad}}
    catch: [{on: [rejected], output: {twice: 0}}]
  - id: wait
    gate: {ask: Go on?}
"""


def test_a_run_that_waits_after_a_call_whose_failure_was_caught_is_told_so(tmp_path: Path, store: Memory) -> None:
    """The clause that was entered stands in the journal as what the call has decided, and is no called run."""
    assert start(write(tmp_path, child=CHILD, parent=CAUGHT), store).status == "waiting"
    assert engine.resume(RUN, store=store).status == "waiting"


def test_a_run_that_waits_is_told_so_although_a_called_run_was_never_made(tmp_path: Path, store: Memory) -> None:
    child = CHILD.replace("inputs:\n", "secrets: {TOKEN: {env: TRAMAI_TEST_NO_SUCH_SECRET}}\ninputs:\n")
    each = "foreach: {items: [1], on_error: collect, do: [{id: one, call: {workflow: ./child.yaml, with: {n: 1}}}]}"
    parent = f"tramai: 1\nname: parent\nsteps:\n  - id: ask\n    {each}\n  - {{id: wait, gate: {{ask: Go on?}}}}\n"
    assert start(write(tmp_path, child=child, parent=parent), store).status == "waiting"
    assert engine.resume(RUN, store=store).status == "waiting"


def test_a_rerun_leaves_the_runs_alone_that_its_original_has_called(tmp_path: Path, store: Memory) -> None:
    call = "{workflow: ./child.yaml, with: {n: 1, mood: bad}}"
    each = f"foreach: {{items: [1], on_error: collect, do: [{{id: one, call: {call}}}]}}"
    parent = f"tramai: 1\nname: parent\nsteps:\n  - id: ask\n    {each}\n  - {{id: wait, gate: {{ask: Go on?}}}}\n"
    assert start(write(tmp_path, child=CHILD, parent=parent), store).status == "waiting"
    again = engine.rerun(RUN, store=store, start_at="wait", options=engine.Options(run_id="again"))
    assert again.status == "waiting"
    assert engine.cancel("again", store=store).status is Status.CANCELLED
    assert [store.get(run_id).status for run_id in called(store)] == [Status.FAILED]


@pytest.mark.parametrize("replay", ["idempotent", "non_replayable"])
def test_a_call_that_sleeps_is_no_attempt_that_was_cut_off(tmp_path: Path, store: Memory, replay: str) -> None:
    clock, flaky = FakeClock(), name()
    fails = f"local: {{call: 'tests.engine.functions:fail_until', with: {{name: {flaky}, times: 1}}}}"
    waits = f"  - {{id: wait, delay: 2h}}\n  - {{id: more, delay: 2h}}\n  - id: last\n    {fails}\n  - id: check\n"
    child = CHILD.replace("  - id: check\n", waits)
    keys = f"    replay: {replay}\n    retry: {{max_attempts: 2, delay: 0s}}\noutputs:"
    path = write(tmp_path, child=child, parent=PARENT.replace("outputs:", keys))
    assert start(path, store, clock=clock).status == "sleeping"
    for status in ("sleeping", "completed"):
        clock.advance(7200)
        assert engine.resume(RUN, store=store, clock=clock).status == status
    # To sleep is no attempt: both that `retry` gives were there for the failure.
    assert [record.attempt for record in store.journal(RUN) if record.path == "ask" and record.attempt][-1] == 2
    assert store.get(RUN).step_executions == 2 + 6


def test_a_call_that_is_killed_while_it_goes_on_after_its_sleep_is_in_doubt(tmp_path: Path) -> None:
    clock, inner = FakeClock(), Memory()
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    delay: 2h\n  - id: check\n")
    path = write(tmp_path, child=child, parent=PARENT.replace("outputs:", "    replay: non_replayable\noutputs:"))
    assert start(path, inner, clock=clock).status == "sleeping"
    clock.advance(7200)
    store = Fragile(inner, Cut(write=3))
    engine.resume(RUN, store=store, clock=clock, options=engine.Options(lease=FOR_EVER))
    store.revive()
    assert engine.resume(RUN, store=store, clock=clock).status == "blocked"


def test_the_deadline_of_a_call_counts_while_the_called_run_sleeps(tmp_path: Path, store: Memory) -> None:
    clock = FakeClock()
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    delay: 2h\n  - id: check\n")
    path = write(tmp_path, child=child, parent=PARENT.replace("outputs:", "    deadline: 1h\noutputs:"))
    result = start(path, store, clock=clock)
    assert (result.status, result.wake_at) == ("sleeping", clock.now() + 3600)
    clock.advance(7200)
    result = engine.resume(RUN, store=store, clock=clock)
    assert (result.status, (result.error or {}).get("type")) == ("failed", "timeout")
    assert "deadline" in (result.error or {})["message"]
    # Whoever goes on with it gives it as much time again.
    assert engine.resume(RUN, store=store, clock=clock).outputs == {"got": 8}


def test_a_called_run_on_which_a_container_has_given_up_is_cancelled_when_its_caller_is_over(
    tmp_path: Path, store: Memory
) -> None:
    clock = FakeClock()
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    delay: 2h\n  - id: check\n")
    parent = """\
tramai: 1
name: parent
steps:
  - id: box
    deadline: 1h
    foreach:
      items: [good, bad]
      on_error: collect
      do: [{id: ask, call: {workflow: ./child.yaml, with: {n: 1, mood: "${{ item }}"}}}]
    catch: [{on: [timeout], output: late}]
  - {id: wait, delay: 1h}
"""
    result = start(write(tmp_path, child=child, parent=parent), store, clock=clock)
    assert (result.status, result.wake_at) == ("sleeping", clock.now() + 3600)
    clock.advance(3600)
    assert engine.resume(RUN, store=store, clock=clock).status == "sleeping"
    assert [store.get(run_id).status for run_id in called(store)] == [Status.SLEEPING]
    clock.advance(3600)
    assert engine.resume(RUN, store=store, clock=clock).status == "completed"
    assert [store.get(run_id).status for run_id in called(store)] == [Status.CANCELLED]


def test_a_called_run_that_has_failed_stays_so_when_its_caller_is_completed(tmp_path: Path, store: Memory) -> None:
    call = "{workflow: ./child.yaml, with: {n: 1, mood: bad}}"
    each = f"foreach: {{items: [1], on_error: collect, do: [{{id: one, call: {call}}}]}}"
    parent = f"tramai: 1\nname: parent\nsteps:\n  - id: ask\n    {each}\n"
    assert start(write(tmp_path, child=CHILD, parent=parent), store).status == "completed"
    assert [store.get(run_id).status for run_id in called(store)] == [Status.FAILED]


def test_a_called_run_in_other_hands_is_waited_for(tmp_path: Path, store: Memory) -> None:
    """A runner that died on another host leaves two leases, and that of the caller may end first."""
    clock = FakeClock()
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    delay: 2h\n  - id: check\n")
    start(write(tmp_path, child=child, parent=PARENT), store, clock=clock)
    clock.advance(7200)
    (inner,) = called(store)
    elsewhere = Holder("another-host", "", 1, "")
    _, lease = store.claim(inner, owner="them", holder=elsewhere, ttl=90.0, now=clock.now())
    result = engine.resume(RUN, store=store, clock=clock, options=engine.Options(wait=0.0))
    assert (result.status, result.wake_at) == ("sleeping", lease.expires)
    clock.advance(90.0)
    assert engine.resume(RUN, store=store, clock=clock).outputs == {"got": 8}


def test_a_caller_may_sleep_as_often_as_what_it_calls(tmp_path: Path) -> None:
    """Claims are counted for those who die in them, and a worker that puts a run to sleep does not."""
    store, clock = pooled(Memory()), FakeClock()
    naps = "".join(f"  - {{id: nap{number}, delay: 2h}}\n" for number in range(8))
    made = plan.load(
        str(write(tmp_path, child=CHILD.replace("  - id: check\n", f"{naps}  - id: check\n"), parent=PARENT))
    )
    run = carrying.enqueue(made, {"n": 4}, store=store, clock=clock)
    for _ in range(9):
        by = {"owner": "w", "holder": Holder.here(), "ttl": 60.0, "now": clock.now(), "most_claims": 2}
        (one,) = store.take(Wanted(), limit=1, **by)  # type: ignore[arg-type]
        assert one.run is not None
        assert one.lease is not None, one.run.error
        carrying.carry(
            one.run, one.lease, sent=time.monotonic(), store=store, options=engine.Options(wait=0.0), clock=clock
        )
        assert store.get(run.run_id).claims_without_progress == 0
        clock.advance(7200)
    assert store.get(run.run_id).status is Status.COMPLETED


def test_a_called_run_is_cancelled_with_its_caller(tmp_path: Path, store: Memory) -> None:
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    delay: 2h\n  - id: check\n")
    start(write(tmp_path, child=child, parent=PARENT), store, clock=FakeClock())
    assert engine.cancel(RUN, store=store, clock=FakeClock()).status is Status.CANCELLED
    assert store.get(called(store)[0]).status is Status.CANCELLED


def test_cancelling_a_caller_that_runs_ends_what_it_has_called(tmp_path: Path, store: Memory) -> None:
    interrupt = Interrupt()
    child = CHILD.replace("  - id: check\n", "  - id: wait\n    shell: sleep 60\n  - id: check\n")

    def cancel(event: Any, /) -> None:
        if getattr(event, "id", "") == "other":
            interrupt.set("cancelled")

    parent = """\
tramai: 1
name: parent
steps:
  - id: fan
    parallel:
      branches:
        calls: [{id: ask, call: {workflow: child.yaml, with: {n: 1}}}]
        beside: [{id: first, shell: sleep 0.3}, {id: other, shell: sleep 60}]
"""
    path = write(tmp_path, child=child, parent=parent)
    result = start(path, store, observers=[cancel], options={"interrupt": interrupt})
    assert result.status == "cancelled"
    assert store.get(called(store)[0]).status is Status.CANCELLED


def test_finally_of_a_run_that_nobody_carries_out_runs_when_it_is_cancelled(tmp_path: Path, store: Memory) -> None:
    text = """\
tramai: 1
name: parent
steps:
  - {id: before, local: 7}
  - {id: wait, delay: 2h}
finally:
  - id: tidy
    local: ${{ [run.status, steps.before.output | default(0)] }}
"""
    start(write(tmp_path, parent=text), store, clock=FakeClock())
    run = engine.cancel(RUN, store=store, by="ann", comment="enough", clock=FakeClock())
    assert run.status is Status.CANCELLED
    assert [record.value for record in store.journal(RUN) if record.path == "@finally[0].tidy"] == ['["cancelled",7]']
    assert ("cancel.requested", "ann", "enough") in [(note.type, note.by, note.comment) for note in store.notes(RUN)]


def test_limits_of_the_caller_hold_for_what_it_calls(tmp_path: Path, store: Memory) -> None:
    child = CHILD.replace("n * 2 }}", "n * 2 }}\n  - {id: a, local: 1}\n  - {id: b, local: 1}")
    parent = PARENT.replace("inputs:", "limits: {max_step_executions: 4}\ninputs:")
    result = start(write(tmp_path, child=child, parent=parent), store)
    assert result.error is not None
    assert result.error["type"] == "limit"
    # The caller's own attempt and three inside; the fourth inside is refused.
    assert store.get(RUN).step_executions == 4
    assert store.get(called(store)[0]).step_executions == 3


@pytest.mark.parametrize(("limit", "ends"), [("2", "failed"), ("5", "completed")])
def test_no_catch_takes_that_the_caller_has_reached_its_limit_in_what_it_calls(
    tmp_path: Path, store: Memory, limit: str, ends: str
) -> None:
    """What the called run may use itself is another matter."""
    child = CHILD.replace("inputs:\n", "limits: {max_step_executions: 1}\ninputs:\n") if ends == "completed" else CHILD
    parent = PARENT.replace("inputs:", f"limits: {{max_step_executions: {limit}}}\ninputs:")
    parent = parent.replace("outputs:", "    catch: [{on: [limit], output: {twice: 0}}]\noutputs:")
    result = start(write(tmp_path, child=child, parent=parent), store)
    assert (result.status, (result.error or {}).get("type")) == (ends, "limit" if ends == "failed" else None)


def test_what_a_called_run_used_counts_once_over_retries_and_resumes(tmp_path: Path, store: Memory) -> None:
    flaky = name()
    child = f"""\
tramai: 1
name: child
steps:
  - id: say
    ai: {{model: "demo:echo", prompt: one two three}}
  - id: fail
    local: {{call: "tests.engine.functions:fail_until", with: {{name: {flaky}, times: 1}}}}
"""
    parent = "tramai: 1\nname: parent\nsteps:\n  - {id: ask, call: child.yaml}\n"
    assert start(write(tmp_path, child=child, parent=parent), store).status == "failed"
    first = store.get(RUN)
    assert engine.resume(RUN, store=store).status == "completed"
    inner, outer = store.get(called(store)[0]), store.get(RUN)
    assert first.tokens == outer.tokens == inner.tokens > 0
    assert (inner.step_executions, outer.step_executions) == (3, 5)


def test_tokens_end_a_run_at_the_next_step(tmp_path: Path, store: Memory) -> None:
    text = """\
tramai: 1
name: parent
limits: {max_tokens: 1}
steps:
  - {id: a, ai: {model: "demo:echo", prompt: one two three}}
  - {id: b, local: 1}
"""
    result = start(write(tmp_path, parent=text), store)
    assert result.error is not None
    assert (result.error["step"], result.error["type"]) == ("b", "limit")
    assert "limits.max_tokens" in result.error["message"]


SECRETIVE = """\
tramai: 1
name: child
secrets: {TOKEN: {env: NOT_SET_ANYWHERE}}
steps:
  - id: say
    shell: {run: 'echo "${#TOKEN}"', env: {TOKEN: "${{ secrets.TOKEN }}"}, parse: json}
outputs: {length: "${{ steps.say.output }}"}
"""


def test_secrets_are_passed_by_name(tmp_path: Path, store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "sesame")
    parent = """\
tramai: 1
name: parent
secrets: {OURS: {env: OURS}}
steps:
  - {id: ask, call: {workflow: child.yaml, secrets: {TOKEN: OURS}}}
outputs: {length: "${{ steps.ask.output.length }}"}
"""
    assert start(write(tmp_path, child=SECRETIVE, parent=parent), store).outputs == {"length": 6}
    assert "sesame" not in repr([store.journal(one) for one in (RUN, *called(store))])


def test_a_secret_that_is_not_passed_and_not_set_fails_the_step(tmp_path: Path, store: Memory) -> None:
    parent = "tramai: 1\nname: parent\nsteps:\n  - {id: ask, call: child.yaml}\n"
    result = start(write(tmp_path, child=SECRETIVE, parent=parent), store)
    assert result.error is not None
    assert result.error["type"] == "refused"
    assert "TOKEN" in result.error["message"]
    assert called(store) == []


def test_the_digest_changes_with_what_the_other_file_does_and_not_with_its_form(tmp_path: Path) -> None:
    path = write(tmp_path, child=CHILD, parent=PARENT)
    before = plan.load(str(path)).digest
    write(tmp_path, child="# a comment\n" + CHILD)
    assert plan.load(str(path)).digest == before
    write(tmp_path, child=CHILD.replace("* 2", "* 3"))
    assert plan.load(str(path)).digest != before


def test_a_cached_plan_is_forgotten_when_the_other_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write(tmp_path, child=CHILD, parent=PARENT)
    made = plan.load(str(path))
    plancache.save(str(path), made)
    kept = plancache.load(str(path))
    assert kept is not None
    assert kept.digest == made.digest
    write(tmp_path, child=CHILD.replace("* 2", "* 3"))
    assert plancache.load(str(path)) is None
    (tmp_path / "child.yaml").unlink()
    assert plancache.load(str(path)) is None


def test_the_children_of_a_called_workflow_are_guarded(tmp_path: Path) -> None:
    path = write(tmp_path, child=SECRETIVE, parent="tramai: 1\nname: p\nsteps:\n  - {id: ask, call: child.yaml}\n")
    assert plan.load(str(path)).spawns


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        ("./child.yaml", "./chld.yaml", "TRM315", "there is no such file"),
        ("./child.yaml", "./parent.yaml", "TRM315", "would call itself: parent.yaml → parent.yaml"),
        ("./child.yaml", '"${{ inputs.n }}.yaml"', "TRM315", "takes no expression"),
        ("with: {n:", "with: {m: 1, n:", "TRM316", "has no input `m`"),
        ('with: {n: "${{ inputs.n }}"}', "with: {mood: good}", "TRM316", "needs the input `n`"),
        ('"${{ inputs.n }}"', "text", "TRM316", "input `n` of ./child.yaml must be an integer"),
        ('"${{ inputs.n }}"', "1, mood: sad", "TRM316", "input `mood`"),
        ("ask.output.twice", "ask.output.thrice", "TRM209", "thrice"),
    ],
)
def test_a_mistake_in_a_call_is_found_before_the_run(tmp_path: Path, old: str, new: str, code: str, text: str) -> None:
    ((found, message, _),) = problems(write(tmp_path, child=CHILD, parent=PARENT.replace(old, new)))
    assert found == code
    assert text in message


def test_an_error_in_the_other_file_is_told_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, child=CHILD.replace("local:", "locl:"), parent=PARENT)
    (found,) = workflow.check_file(str(path))[1]
    assert found.code == "TRM315"
    assert "locl" in found.message
    assert [Path(one.position.file).name for one in found.related] == ["child.yaml"]


def test_files_that_call_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    child = CHILD.replace("steps:", "steps:\n  - {id: back, call: {workflow: parent.yaml}}")
    ((code, message, _),) = problems(write(tmp_path, child=child, parent=PARENT))
    assert code == "TRM315"
    assert "parent.yaml → child.yaml → parent.yaml" in message


def test_calls_may_not_stand_too_deep(tmp_path: Path) -> None:
    for depth in range(12):
        text = f"tramai: 1\nname: f{depth}\nsteps:\n  - {{id: s{depth}, call: f{depth + 1}.yaml}}\n"
        (tmp_path / f"f{depth}.yaml").write_text(text)
    (tmp_path / "f12.yaml").write_text("tramai: 1\nname: last\nsteps: [{id: x, local: 1}]\n")
    assert problems(tmp_path / "f4.yaml") == []
    ((code, message, _),) = problems(tmp_path / "f3.yaml")
    assert code == "TRM315"
    assert "more than 8 deep" in message


@pytest.mark.parametrize(
    ("secrets", "text"),
    [
        ("[NOPE]", "secret `NOPE` is not declared here"),
        ("[OURS]", "has no secret `OURS`"),
        ("{TOKEN: NOPE}", "secret `NOPE` is not declared here"),
    ],
)
def test_secrets_that_do_not_fit_are_refused(tmp_path: Path, secrets: str, text: str) -> None:
    parent = f"""\
tramai: 1
name: parent
secrets: {{OURS: {{env: PATH}}}}
steps:
  - {{id: ask, call: {{workflow: child.yaml, secrets: {secrets}}}}}
"""
    ((code, message, _),) = problems(write(tmp_path, child=SECRETIVE, parent=parent))
    assert code == "TRM317"
    assert text in message


def test_a_plan_from_the_store_has_the_called_workflow_in_it(tmp_path: Path) -> None:
    made = plan.load(str(write(tmp_path, child=CHILD, parent=PARENT)))
    again = plan.restore(made.canonical, made.workflow.version)
    assert again.digest == made.digest
    (inner,) = again.calls
    assert (inner.name, document.parse(CHILD, file="x.yaml").problems) == ("child", ())


def test_who_watches_the_caller_hears_what_called_runs_do(tmp_path: Path, store: Memory) -> None:
    from tramai.event import CalledEvent, Event, StepFinished

    middle = PARENT.replace("parent", "middle").replace("ask", "inner")
    outer = PARENT.replace("./child.yaml", "./middle.yaml").replace(".twice", ".got")
    write(tmp_path, child=CHILD, middle=middle, parent=outer)
    heard: list[Event] = []
    assert start(tmp_path / "parent.yaml", store, {"n": 3}, observers=[heard.append]).status == "completed"
    told = [event for event in heard if isinstance(event, CalledEvent)]
    assert {event.path for event in told} == {"ask"}
    own = [event.event for event in told if isinstance(event.event, StepFinished)]
    assert [(event.path, event.status) for event in own] == [("inner", "succeeded")]
    deep = [event.event.event for event in told if isinstance(event.event, CalledEvent)]
    assert [event.path for event in deep if isinstance(event, StepFinished)] == ["double", "check"]
    assert {event.run_id for event in told} < set(called(store))
    ends = [event.path for event in heard if isinstance(event, StepFinished)]
    assert ends == ["ask"]
