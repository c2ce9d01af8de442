"""Workflow tests: stubs, time, crashes, expectations."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.testing.support import made, only, outcomes, places, written
from tramai.errors import InvalidInput, UsageError
from tramai.testing import WorkflowTest, running


@contextmanager
def serving(body: str) -> Iterator[str]:
    """A server on loopback that gives one answer to everything; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


HEAD = "workflow: hello.yaml\ntests:\n  - name: one\n"


# From Python.


def test_a_stub_stands_for_a_step_and_tells_what_it_was_given(tmp_path: Path) -> None:
    plan = made(
        [
            {"id": "who", "local": "you"},
            {"id": "say", "shell": {"run": 'echo "$WHO"', "env": {"WHO": "${{ steps.who.output }}"}, "parse": "text"}},
            {"id": "post", "http": {"post": "https://example.com/${{ steps.who.output }}", "json": {"a": [1]}}},
        ],
        outputs={"said": "${{ steps.say.output }}"},
    )
    ran = WorkflowTest(plan, stubs={"say": {"output": "hi"}, "post": {"result": {"status": 201}}}).run()
    assert (ran.status, ran.exit_status, ran.outputs) == ("completed", 0, {"said": "hi"})
    assert [(call.path, call.attempt) for call in ran.calls] == [("say", 1), ("post", 1)]
    assert ran.calls[0].given == {"run": 'echo "$WHO"', "env": {"WHO": "you"}, "parse": "text"}
    assert ran.calls[1].given == {"post": "https://example.com/you", "json": {"a": [1]}}
    assert ran.step("who") is not None
    assert not (tmp_path / "x").exists()


def test_output_is_given_as_it_is_and_result_goes_through_the_step(tmp_path: Path) -> None:
    step = {
        "id": "a",
        "http": "https://example.com/",
        "output": "${{ result.body.n + 1 }}",
        "save": {"seen": "${{ result.status }}"},
    }
    step["http"] = {"get": "https://example.com/"}
    plan = made([step], state={"seen": {"initial": 0}}, outputs={"n": "${{ steps.a.output }}"})
    ran = WorkflowTest(plan, stubs={"a": {"result": {"status": 200, "body": {"n": 1}}}}).run()
    assert (ran.outputs, ran.state) == ({"n": 2}, {"seen": 200})
    ran = WorkflowTest(plan, stubs={"a": {"output": 7, "result": {"status": 204}}}).run()
    assert (ran.outputs, ran.state) == ({"n": 7}, {"seen": 204})
    ran = WorkflowTest(plan, stubs={"a": {"output": 7}}).run()
    assert ran.error is not None
    assert ran.error["type"] == "expression"


def test_a_declared_schema_is_kept_by_stubs_too() -> None:
    plan = made([{"id": "a", "shell": "x", "schema": {"type": "integer"}}])
    ran = WorkflowTest(plan, stubs={"a": {"output": "one"}}).run()
    assert ran.error is not None
    assert ran.error["type"] == "invalid_output"


def test_a_result_that_is_no_record_of_its_verb_is_said_to_be_none() -> None:
    plan = made([{"id": "a", "shell": "x"}])
    ran = WorkflowTest(plan, stubs={"a": {"result": {"out": "x"}}}).run()
    assert ran.error is not None
    assert "no full record of `shell`" in ran.error["message"]


@pytest.mark.parametrize(
    ("error", "details"),
    [
        ({"type": "exit.3"}, {"exit_code": 3}),
        ({"type": "http.404", "body": {"why": "gone"}}, {"status": 404, "body": {"why": "gone"}}),
        ({"type": "exit", "exit_code": 9, "output": "last line"}, {"exit_code": 9, "output": "last line"}),
        ({"type": "timeout", "message": "too slow"}, {"message": "too slow"}),
    ],
)
def test_an_error_carries_what_one_of_its_type_carries(error: dict[str, Any], details: dict[str, Any]) -> None:
    ran = WorkflowTest(made([{"id": "a", "shell": "x"}]), stubs={"a": {"error": error}}).run()
    assert ran.status == "failed"
    assert ran.error is not None
    assert {name: ran.error[name] for name in details} == details


def test_a_list_answers_one_attempt_after_the_other_and_pauses_pass_at_once() -> None:
    plan = made([{"id": "a", "http": {"get": "https://example.com/"}, "retry": {"max_attempts": 3, "delay": "1h"}}])
    stubs = {"a": [{"error": {"type": "network"}}, {"error": {"type": "http.503"}}, {"output": "ok"}]}
    ran = WorkflowTest(plan, stubs=stubs).run()
    assert [call.attempt for call in ran.calls] == [1, 2, 3]
    found = ran.step("a")
    assert found is not None
    assert (found.attempts, found.output) == (3, "ok")


def test_a_list_that_is_used_up_ends_the_run() -> None:
    plan = made([{"id": "a", "shell": "x", "retry": {"max_attempts": 2}}])
    ran = WorkflowTest(plan, stubs={"a": [{"error": {"type": "exit.1"}}]}).run()
    assert ran.status == "stopped"
    assert ran.problem is not None
    assert ran.problem.code == "TRM775"


def loop(**more: Any) -> Any:
    do = [{"id": "get", "shell": {"run": "x", "env": {"N": "${{ n }}"}}}, {"id": "add", "local": "${{ n + 1 }}"}]
    step = {"id": "each", "foreach": {"items": "${{ [1, 2, 3] }}", "as": "n", "key": "${{ n }}", "do": do}}
    return made([step], outputs={"all": "${{ steps.each.output | map(attribute='get') | list }}"}, **more)


def test_steps_inside_loops_are_named_by_id_by_path_and_by_pattern() -> None:
    assert WorkflowTest(loop(), stubs={"get": {"output": "a"}}).run().outputs == {"all": ["a", "a", "a"]}
    stubs = {"each[*].get": {"output": "b"}, "each[2].get": {"output": "c"}, "get": {"output": "a"}}
    assert WorkflowTest(loop(), stubs=stubs).run().outputs == {"all": ["b", "c", "b"]}
    stubs = {"get": {"each": [{"output": 1}, {"output": 2}, {"output": 3}]}}
    assert WorkflowTest(loop(), stubs=stubs).run().outputs == {"all": [1, 2, 3]}


def test_a_turn_without_an_answer_ends_the_run() -> None:
    ran = WorkflowTest(loop(), stubs={"get": {"each": [{"output": 1}]}}).run()
    assert ran.problem is not None
    assert "`each[2].get` is one more" in ran.problem.message


def test_a_stub_for_one_turn_leaves_the_others_without() -> None:
    ran = WorkflowTest(loop(), stubs={"each[1].get": {"output": 1}}).run()
    assert ran.problem is not None
    assert ran.problem.code == "TRM772"
    assert "`each[2].get` would reach outside" in ran.problem.message
    stubs = {"get": {"output": 0}, "each[1].add": {"output": 100}}
    added = WorkflowTest(loop(), stubs=stubs).run().steps
    assert [added[f"each[{n}].add"].output for n in (1, 2, 3)] == [100, 3, 4]


def test_a_stub_stands_for_a_whole_loop() -> None:
    ran = WorkflowTest(loop(), stubs={"each": {"output": [{"get": "x"}]}}).run()
    assert ran.outputs == {"all": ["x"]}
    assert ran.calls[0].given["items"] == [1, 2, 3]


def test_steps_that_only_compute_really_run() -> None:
    plan = made(
        [
            {"id": "a", "local": {"value": [3, 1, 2]}},
            {"id": "ask", "ai": {"model": "demo:echo", "prompt": "hello"}},
            {"id": "wait", "delay": "2d"},
            {"id": "ok", "gate": "${{ steps.a.output | length == 3 }}"},
            {"id": "b", "branch": {"if": "${{ true }}", "then": [{"id": "c", "local": "yes"}], "else": []}},
        ],
        outputs={"b": "${{ steps.c.output | default('no') }}", "woke": "${{ steps.wait.output.woke_at }}"},
    )
    ran = WorkflowTest(plan, now=1000.0).run()
    assert ran.outputs == {"b": "yes", "woke": 1000 + 2 * 86400}
    assert ran.calls == ()


@pytest.mark.parametrize(
    "step",
    [
        {"shell": "touch reached"},
        {"http": {"get": "https://example.com/"}},
        {"ai": {"model": "openai:gpt-5", "prompt": "x"}},
        {"ai": {"model": "${{ inputs.model }}", "prompt": "x"}},
    ],
)
def test_a_step_that_would_reach_outside_ends_the_run_before_it_does_anything(step: dict[str, Any]) -> None:
    plan = made([{"id": "a", **step}], inputs={"model": {"type": "string", "default": "openai:gpt-5"}})
    ran = WorkflowTest(plan).run()
    assert ran.status == "stopped"
    assert ran.problem is not None
    assert ran.problem.code == "TRM772"
    assert ran.calls == ()


def test_what_is_allowed_really_runs_in_a_folder_of_its_own(tmp_path: Path) -> None:
    plan = made([{"id": "a", "shell": {"run": "echo hi > file; pwd", "parse": "text"}}])
    ran = WorkflowTest(plan, allow=["shell"]).run()
    assert ran.status == "completed"
    where = ran.steps["a"].output
    assert isinstance(where, str)
    assert where != os.getcwd()
    assert not Path(where).exists()
    ran = WorkflowTest(plan, allow=["a"], folder=tmp_path).run()
    assert (tmp_path / "file").read_text() == "hi\n"


def test_no_real_secret_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_TOKEN", "real-canary")
    call = {"id": "a", "http": {"get": "https://example.com/", "headers": {"Authorization": "${{ secrets.TOKEN }}"}}}
    plan = made([call], secrets={"TOKEN": {"env": "REAL_TOKEN"}})
    ran = WorkflowTest(plan, stubs={"a": {"output": 1}}).run()
    assert ran.calls[0].given["headers"] == {"Authorization": "fake-TOKEN"}
    ran = WorkflowTest(plan, stubs={"a": {"output": 1}}, secrets={"TOKEN": "mine"}).run()
    assert ran.calls[0].given["headers"] == {"Authorization": "mine"}


def test_no_real_secret_of_a_called_workflow_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_TOKEN", "real-canary")
    show = "{run: 'test \"$T\" = fake-TOKEN', env: {T: '${{ secrets.TOKEN }}'}}"
    (tmp_path / "child.yaml").write_text(
        f"tramai: 1\nname: c\nsecrets: {{TOKEN: {{env: REAL_TOKEN}}}}\nsteps: [{{id: a, shell: {show}}}]\n"
    )
    (tmp_path / "p.yaml").write_text("tramai: 1\nname: p\nsteps: [{id: sub, call: child.yaml}]\n")
    assert WorkflowTest(tmp_path / "p.yaml", allow=["call"]).run().status == "completed"


def test_env_stands_for_the_values_of_the_workflow() -> None:
    plan = made([{"id": "a", "local": "${{ env.WHERE }}"}], env={"WHERE": "${{ inputs.where }}"},
                inputs={"where": {"type": "string", "default": "there"}})  # fmt: skip
    assert WorkflowTest(plan).run().steps["a"].output == "there"
    assert WorkflowTest(plan, env={"WHERE": "${{ here }}"}).run().steps["a"].output == "${{ here }}"


def test_an_attempt_that_takes_longer_than_its_timeout_times_out() -> None:
    plan = made([{"id": "a", "shell": "x", "timeout": "1m"}, {"id": "when", "local": "x"}])
    ran = WorkflowTest(plan, stubs={"a": {"output": 1, "takes": "59s"}}).run()
    assert ran.status == "completed"
    ran = WorkflowTest(plan, stubs={"a": {"output": 1, "takes": "61s"}}).run()
    assert ran.error is not None
    assert ran.error["type"] == "timeout"


def test_the_deadline_of_a_step_ends_its_attempts() -> None:
    step = {"id": "a", "shell": "x", "deadline": "10m", "retry": {"max_attempts": 9, "delay": "1m", "jitter": 0}}
    late = {"error": {"type": "exit.1"}, "takes": "3m"}
    ran = WorkflowTest(made([step]), stubs={"a": [late, late, late]}).run()
    assert ran.error is not None
    assert (ran.error["type"], ran.error["attempt"]) == ("timeout", 3)


def test_what_models_are_said_to_use_counts_against_the_limits() -> None:
    ask = {"ai": {"model": "openai:gpt-5", "prompt": "x"}}
    plan = made([{"id": "a", **ask}, {"id": "b", **ask}], limits={"max_tokens": 100})
    used = {"output": "y", "usage": {"input_tokens": 90, "output_tokens": 20}}
    ran = WorkflowTest(plan, stubs={"a": used}).run()
    assert ran.error is not None
    assert (ran.error["type"], ran.error["step"]) == ("limit", "b")


def test_a_block_that_takes_longer_than_its_timeout_times_out() -> None:
    inner = [{"id": "a", "shell": "x"}, {"id": "b", "shell": "x"}]
    plan = made([{"id": "all", "foreach": {"items": [1, 2], "do": inner}, "timeout": "10m"}])
    stubs = {"a": {"output": 1, "takes": "4m"}, "b": {"output": 1, "takes": "1m"}}
    assert WorkflowTest(plan, stubs=stubs).run().status == "completed"
    ran = WorkflowTest(plan, stubs={**stubs, "b": {"output": 1, "takes": "3m"}}).run()
    assert ran.error is not None
    assert (ran.error["type"], ran.error["path"]) == ("timeout", "all")


def test_a_run_can_be_left_sleeping_and_a_failed_one_resumed() -> None:
    plan = made([{"id": "wait", "delay": "1h"}, {"id": "a", "shell": "x"}])
    ran = WorkflowTest(plan, wake=False).run()
    assert (ran.status, ran.exit_status) == ("sleeping", 11)
    stubs = {"a": [{"error": {"type": "exit.1"}}, {"output": "done"}]}
    assert WorkflowTest(plan, stubs=stubs).run().status == "failed"
    ran = WorkflowTest(plan, stubs=stubs, resume=1).run()
    assert ran.status == "completed"


def test_what_cannot_be_tested_is_refused_with_a_hint() -> None:
    plan = made([{"id": "fetch", "shell": "x"}], inputs={"n": {"type": "integer"}})
    with pytest.raises(InvalidInput):
        WorkflowTest(plan)
    with pytest.raises(UsageError, match="did you mean `fetch`"):
        WorkflowTest(plan, inputs={"n": 1}, stubs={"fetsh": {"output": 1}})
    with pytest.raises(UsageError, match="the stub of `fetch` is none"):
        WorkflowTest(plan, inputs={"n": 1}, stubs={"fetch": {"outptu": 1}})


def test_the_same_run_is_the_same_each_time() -> None:
    plan = made([{"id": "id", "local": "${{ run.id }} ${{ run.started_at }} ${{ run.started_by }}"}])
    first, second = (WorkflowTest(plan).run().steps["id"].output for _ in range(2))
    assert first == second


# Crashes.


def test_a_run_that_is_cut_off_goes_on_and_repeats_nothing() -> None:
    plan = made([{"id": name, "shell": "x"} for name in ("a", "b", "c")])
    stubs = {name: {"output": name} for name in ("a", "b", "c")}
    ran = WorkflowTest(plan, stubs=stubs).run(crash_after="b")
    assert ran.was_cut
    assert ran.status == "completed"
    assert [call.step for call in ran.calls] == ["a", "b", "c"]
    with pytest.raises(UsageError, match="was never saved"):
        WorkflowTest(made([{"id": "a", "local": 1, "when": "${{ false }}"}, {"id": "b", "gate": "${{ false }}"},
                           {"id": "c", "local": 1}])).run(crash_after="c")  # fmt: skip


def test_every_crash_of_a_loop_with_retries_ends_the_same() -> None:
    stubs = {"get": {"each": [{"output": 1}, [{"error": {"type": "exit.1"}}, {"output": 2}], {"output": 3}]}}
    test = WorkflowTest(loop(), stubs=stubs, resume=1)
    clean = test.run()
    assert clean.outputs == {"all": [1, 2, 3]}
    seen = list(test.crash_everywhere(clean))
    assert len(seen) == 2 * clean.writes
    assert [(where, wrong) for where, _, wrong in seen if wrong] == []
    assert all(ran.was_cut for _, ran, _ in seen)


def test_an_attempt_whose_end_was_not_seen_is_run_again_only_at_a_word() -> None:
    plan = made([{"id": "a", "shell": "x"}], outputs={"a": "${{ steps.a.output }}"})
    test = WorkflowTest(plan, stubs={"a": {"output": 1}})
    seen = [ran for _, ran, _ in test.crash_everywhere()]
    assert {"a": 1} in [ran.granted for ran in seen]
    assert {len(ran.calls) for ran in seen if not ran.granted} == {1}
    assert {len(ran.calls) for ran in seen if ran.granted} == {1, 2}  # it had begun; it had been done


def test_a_run_that_ends_otherwise_after_a_crash_is_found_out() -> None:
    plan = made([{"id": "a", "shell": "x", "replay": "idempotent"}], outputs={"attempts": "${{ steps.a.attempts }}"})
    wrong = [wrong for _, _, wrong in WorkflowTest(plan, stubs={"a": {"output": 1}}).crash_everywhere() if wrong]
    assert any('outputs is {"attempts":2}, and {"attempts":1} without the crash' in text for (text,) in wrong)


# Expectations.


def told(folder: Path, rest: str, workflow: str | None = None) -> list[str]:
    test = only(folder, HEAD + rest) if workflow is None else only(folder, HEAD + rest, workflow)
    return [problem.message for problem in test.problems]


STUB = "    stubs: {shout: {output: HELLO}}\n"


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("    expect: {outputs: {greeting: X}}\n", 'outputs.greeting is "HELLO", expected "X"'),
        ("    expect: {outputs: {}}\n", 'outputs has `greeting`, which is not expected: "HELLO"'),
        ("    expect: {outputs_include: {other: 1}}\n", "outputs.other is missing, expected 1"),
        ("    expect: {status: failed}\n", "the run is completed, expected failed"),
        ("    expect: {exit_status: 1}\n", "the exit status is 0, expected 1"),
        ("    expect: {error: {type: exit}}\n", "the run is completed, expected failed"),
        ("    expect: {steps: {shout: {status: skipped}}}\n", "step shout is succeeded, expected skipped"),
        ("    expect: {steps: {shout: {attempts: 2}}}\n", "the number of attempts of step shout is 1, expected 2"),
        (
            "    expect: {steps: {greeting: {output: H}}}\n",
            'the output of step greeting is "Hello, world!", expected "H"',
        ),
        ("    expect: {calls: []}\n", "other calls were made:\n+ shout"),
        ("    expect: {calls: [greeting, shout]}\n", "other calls were made:\n- greeting\n  shout"),
        ("    expect: {calls: {shout: 2}}\n", "the number of calls of shout is 1, expected 2"),
        (
            "    expect: {calls: [{step: shout, given: {env: {TEXT: T}}}]}\n",
            'call 1 of shout: env.TEXT is "Hello, world!", expected "T"',
        ),
        ("    expect: {state: {a: 1}}\n", "state.a is missing, expected 1"),
        (
            "    expect: {that: ['${{ outputs.greeting == inputs.name }}']}\n",
            'it does not hold\noutputs.greeting is "HELLO"\ninputs.name is "world"',
        ),
    ],
)
def test_what_is_not_as_expected_is_told(tmp_path: Path, rest: str, message: str) -> None:
    assert told(tmp_path, STUB + rest)[0] == message


@pytest.mark.parametrize(
    "rest",
    [
        "    expect: {outputs: {greeting: HELLO}, status: completed, exit_status: 0, state: {}}\n",
        "    expect: {outputs_include: {greeting: HELLO}}\n",
        "    expect: {steps: {greeting: {status: succeeded, attempts: 1, output: 'Hello, world!'}}}\n",
        "    expect: {calls: [shout]}\n",
        "    expect: {calls: [{step: shout, attempt: 1, given: {env: {TEXT: 'Hello, world!'}}}]}\n",
        "    expect: {calls: {shout: 1, greeting: 0}}\n",
        "    expect: {that: ['${{ steps.shout.attempts == 1 }}', '${{ calls | length == 1 }}']}\n",
    ],
)
def test_what_is_as_expected_passes(tmp_path: Path, rest: str) -> None:
    assert told(tmp_path, STUB + rest) == []


def test_a_failure_nobody_expected_says_why_and_where(tmp_path: Path) -> None:
    outcome = only(tmp_path, HEAD + "    stubs: {shout: {error: {type: exit.3}}}\n    expect: {outputs: {}}\n")
    assert places(outcome.problems) == [("TRM771", 3, 11)]
    assert outcome.problems[0].message == (
        "the run is failed, expected completed\nstep shout failed: exit.3: the stub says that it fails"
    )


def test_an_expected_error_is_compared_key_by_key(tmp_path: Path) -> None:
    stub = "    stubs: {shout: {error: {type: exit.3, message: no such file}}}\n"
    assert (
        told(tmp_path, stub + "    expect: {error: {type: exit, step: shout, message: such}, exit_status: 1}\n") == []
    )
    assert told(tmp_path, stub + "    expect: {error: {type: timeout, step: greeting, message: other}}\n") == [
        "the run failed with exit.3 (no such file), expected timeout",
        "the step of the error is shout, expected greeting",
        'the message of the error is "no such file", expected "other" in it',
    ]


def test_long_texts_are_compared_line_by_line(tmp_path: Path) -> None:
    (message,) = told(
        tmp_path,
        '    stubs: {shout: {output: "a\\nb\\nc"}}\n    expect: {outputs: {greeting: "a\\nx\\nc"}}\n',
    )
    assert "-x\n+b" in message


def test_a_stub_that_was_not_needed_is_a_failure(tmp_path: Path) -> None:
    rest = "    stubs: {greeting: {error: {type: exit.1}}, shout: {output: 1}}\n    expect: {status: failed}\n"
    outcome = only(tmp_path, HEAD + rest)
    assert places(outcome.problems) == [("TRM774", 4, 48)]


def test_stubs_of_the_file_are_for_all_tests_and_one_must_use_them(tmp_path: Path) -> None:
    text = (
        "workflow: hello.yaml\nstubs: {greeting: {output: G}, shout: {output: S}}\nallow: [http]\n"
        "tests:\n  - {name: one, expect: {outputs: {greeting: S}}}\n"
        "  - {name: two, stubs: {shout: {output: T}}, expect: {outputs: {greeting: T}}}\n"
    )
    assert [outcome.problems for outcome in outcomes(tmp_path, text)] == [(), ()]
    loaded = written(tmp_path, text.replace("{greeting: {output: G}, shout", "{shout"))
    assert running.unused(loaded, [running.run(loaded, 1)])[0].message == "the stub `shout` was never used"


def test_what_no_test_came_to_is_known(tmp_path: Path) -> None:
    loaded = written(tmp_path, HEAD + "    stubs: {greeting: {error: {type: exit.1}}}\n    expect: {status: failed}\n")
    outcome = running.run(loaded, 0)
    assert outcome.passed
    assert running.missed(loaded, [outcome]) == ("shout",)


def test_a_step_that_was_not_reached_can_be_expected(tmp_path: Path) -> None:
    rest = (
        "    stubs: {greeting: {error: {type: exit.1}}}\n"
        "    expect: {status: failed, steps: {shout: {status: not_reached}, greeting: {error: {type: exit}}}}\n"
    )
    assert told(tmp_path, rest) == []
    assert told(tmp_path, rest.replace("not_reached", "succeeded")) == [
        "step shout was not reached, expected succeeded"
    ]


# People.


def gate(**more: Any) -> Any:
    step = {"id": "ask", "gate": {"ask": "Go on?", "timeout": "1d", **more}}
    return made([step, {"id": "after", "local": "done"}], outputs={"by": "${{ steps.ask.output.by }}"})


def test_people_approve_and_reject() -> None:
    ran = WorkflowTest(gate(), answers={"ask": {"decision": "approve", "by": "ann"}}).run()
    assert (ran.status, ran.outputs) == ("completed", {"by": "ann"})
    ran = WorkflowTest(gate(), answers={"ask": {"decision": "reject", "by": "bob", "comment": "no"}}).run()
    assert (ran.status, ran.exit_status) == ("failed", 10)
    assert ran.error is not None
    assert ran.error["type"] == "rejected"


def test_a_gate_that_nobody_answers_is_left_waiting_and_one_answered_by_none_runs_out_of_time() -> None:
    assert WorkflowTest(gate()).run().status == "waiting"
    ran = WorkflowTest(gate(on_timeout="approve"), answers={"ask": {"decision": "none"}}).run()
    assert (ran.status, ran.outputs) == ("completed", {"by": "timeout"})


def test_several_people_decide_and_fill_in_a_form() -> None:
    form = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
    votes = [{"by": "ann", "data": {"n": 1}}, {"by": "bob", "data": {"n": 2}}]
    ran = WorkflowTest(gate(min=2, form=form), answers={"ask": votes}).run()
    assert ran.status == "completed"
    assert [vote["data"] for vote in ran.steps["ask"].output["votes"]] == [{"n": 1}, {"n": 2}]  # type: ignore[index, call-overload]
    ran = WorkflowTest(gate(form=form), answers={"ask": {"data": {"n": "x"}}}).run()
    assert ran.problem is not None
    assert ran.problem.code == "TRM445"
    assert ran.problem.pointer == ("answers", "ask")


def test_a_rejection_that_sends_the_walk_back_has_an_answer_for_each_round() -> None:
    plan = made(
        [
            {"id": "draft", "shell": {"run": "x", "env": {"HEED": "${{ state.said }}"}}},
            {
                "id": "review",
                "gate": {"ask": "Good?", "on_reject": {"redo": "draft", "max": 3}},
                "save": {"said": "${{ result.comment }}"},
            },
        ],
        state={"said": {"initial": "nothing"}},
        outputs={"text": "${{ steps.draft.output }}"},
    )
    answers = {"review": [{"decision": "reject", "comment": "shorter"}, {"decision": "approve"}]}
    test = WorkflowTest(plan, stubs={"draft": {"output": "long"}, "draft@2": {"output": "short"}}, answers=answers)
    ran = test.run()
    assert (ran.status, ran.outputs) == ("completed", {"text": "short"})
    assert [(call.path, call.step, call.given["env"]["HEED"]) for call in ran.calls] == [
        ("draft", "draft", "nothing"),
        ("draft@2", "draft", "shorter"),
    ]
    turns = {"draft": {"each": [{"output": "long"}, {"output": "short"}]}}
    assert WorkflowTest(plan, stubs=turns, answers=answers).run().outputs == {"text": "short"}
    assert [wrong for _, _, wrong in test.crash_everywhere() if wrong] == []


def test_a_decision_survives_every_crash() -> None:
    test = WorkflowTest(gate(), answers={"ask": {"by": "ann"}})
    assert [wrong for _, _, wrong in test.crash_everywhere() if wrong] == []


def test_a_gate_that_nobody_answered_is_named(tmp_path: Path) -> None:
    workflow = "tramai: 1\nname: g\nsteps:\n  - {id: ask, gate: {ask: Go on?}}\n"
    (problem,) = only(tmp_path, HEAD, workflow).problems
    assert problem.message == "the run is waiting, expected completed"
    assert problem.hint == "answer it: answers: {ask: {decision: approve}}"


def test_an_answer_to_a_question_that_was_not_asked_is_a_failure(tmp_path: Path) -> None:
    workflow = "tramai: 1\nname: g\nsteps:\n  - {id: ask, when: '${{ false }}', gate: {ask: Go on?}}\n"
    outcome = only(tmp_path, HEAD + "    answers: {ask: {decision: approve}}\n", workflow)
    assert [(problem.code, problem.message) for problem in outcome.problems] == [
        ("TRM774", "the answer `ask` was never used")
    ]


# What really runs.


def test_a_request_that_is_allowed_is_really_sent_and_survives_a_crash() -> None:
    with serving("hello") as url:
        steps = [
            {"id": "ask", "http": {"get": url, "allow_private": True}, "output": "${{ result.body }}"},
            {"id": "wait", "delay": "1d"},
            {"id": "tell", "shell": "x"},
        ]
        test = WorkflowTest(made(steps), stubs={"tell": {"output": 1}}, allow=["http"])
        ran = test.run()
        assert ran.steps["ask"].output == "hello"
        assert [call.step for call in ran.calls] == ["tell"]
        assert test.run(crash_after="ask").status == "completed"
        assert [wrong for _, _, wrong in test.crash_everywhere(ran) if wrong] == []


def test_steps_side_by_side_really_run_side_by_side_where_one_needs_a_loop() -> None:
    with serving("hello") as url:
        get = {"http": {"get": url, "allow_private": True}, "output": "${{ result.status }}"}
        branches = {"one": [{"id": "one", **get}], "two": [{"id": "two", "shell": "x", "timeout": "1m"}]}
        plan = made([{"id": "both", "parallel": {"branches": branches}, "timeout": "5m"}])
        ran = WorkflowTest(plan, stubs={"two": {"output": 2}}, allow=["one"]).run()
        assert ran.steps["both"].output == {"one": {"one": 200}, "two": {"two": 2}}
