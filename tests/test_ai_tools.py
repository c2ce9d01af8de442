"""`ai` with tools of real MCP servers: what the model may use, what it is answered, and what is left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ai_script import Scripted, says, wants
from tramai import engine, inputs, plan, provider, workflow
from tramai.interrupt import Interrupt
from tramai.permits import Permits
from tramai.provider import Answer
from tramai.step import Replay, StepError, Usage
from tramai.steps._ai_calls import LONGEST_ARGUMENTS, LONGEST_RESULT, without_patterns
from tramai.steps.ai import Ai
from tramai.stores import open_store

from .extras import loaded, needs
from .processes import eventually
from .step_context import made, result_of, run
from .test_mcp import ROOT, SERVER, Context, Remote, alive, servers_in

__all__ = ["loaded"]

EXTRA = needs("mcp", "mcp", "httpx2")

Install = Callable[..., Scripted]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(*answers: Answer | StepError) -> Scripted:
        service = Scripted(*answers)
        monkeypatch.setattr(provider, "find", lambda name: service)
        return service

    return install


@pytest.fixture
def ctx(tmp_path: Path) -> Iterator[Context]:
    found = Context(tmp_path)
    yield found
    assert alive(found.run_id) == [], "a process is left"


@pytest.fixture
def remote() -> Iterator[Remote]:
    found = Remote()
    yield found
    found.stop()


def ai(*tools: str, how: tuple[str, ...] = (), env: dict[str, str] | None = None, **settings: Any) -> Ai:
    """A step with some tools of the server that can misbehave."""
    server = {"command": [sys.executable, SERVER, *how], "env": env or {}}
    sets = settings.pop("sets", [{"mcp": server, "tools": list(tools)}])
    return made(Ai, **{"model": "fake:one", "prompt": "Go.", "tools": sets, **settings})


def fails(ctx: Context, step: Ai) -> StepError:
    with pytest.raises(StepError) as caught:
        run(step, ctx)
    return caught.value


def test_a_call_is_carried_out_and_its_answer_goes_back(script: Install, ctx: Context) -> None:
    service = script(wants(("echo", {"text": "hi"}), text="Let me see."), says("It said hi."))
    result = run(ai("echo"), ctx)
    first, second = service.asked
    assert [(tool.name, tool.description) for tool in first.tools] == [("echo", "does echo")]
    assert (first.prompt, second.prompt) == ("Go.", "")
    assert [(turn.role, turn.text, turn.id, turn.failed) for turn in second.history] == [
        ("user", "Go.", "", False),
        ("assistant", "Let me see.", "", False),
        ("tool", "hi", "c0", False),
    ]
    assert second.history[1].calls[0].arguments == {"text": "hi"}
    assert result["text"] == "It said hi."
    assert result["usage"] == {"input_tokens": 20, "output_tokens": 10, "cost_usd": 0.5}
    (call,) = result["calls"]
    assert call == {
        "tool": "echo",
        "mcp": sys.executable,
        "arguments": {"text": "hi"},
        "argument_bytes": 14,
        "answer_bytes": 2,
        "failed": False,
        "seconds": call["seconds"],
    }
    told = [(name, given) for name, given in ctx.told if name == "ai.tool_called"]
    assert [(given["source"], given["failed"], given["answer_bytes"]) for _, given in told] == [("mcp", 0, 2)]
    assert "hi" not in json.dumps(told)


def test_several_calls_of_one_answer_are_carried_out_in_order_by_one_server(script: Install, ctx: Context) -> None:
    service = script(wants(("env", {}), ("echo", {"text": "b"})), wants(("env", {})), says("done"))
    run(ai("env", "echo", env={"A": "1"}), ctx)
    first, second, third = (turn.text for turn in service.turns)
    assert second == "b"
    assert first == third
    assert json.loads(first)["A"] == "1"
    assert "USER" not in json.loads(first)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("env", {}), "there is no tool env"),
        (("ecko", {}), "there is no tool ecko; did you mean echo?"),
        (("echo", [1]), "the arguments must be an object"),
        (("echo", {"text": "x" * LONGEST_ARGUMENTS}), "the arguments are too long"),
        (("echo", {"text": float("nan")}), "the arguments are not JSON"),
        (("boom", {}), "the tool boom failed: boom"),
        (("invalid", {}), "no such argument"),
    ],
)
def test_what_cannot_be_done_is_an_answer_for_the_model(
    script: Install, ctx: Context, call: tuple[str, Any], said: str
) -> None:
    service = script(wants(call), says("I see."))
    result = run(ai("echo", "boom", "invalid"), ctx)
    (turn,) = service.turns
    assert turn.failed
    assert said in turn.text
    assert [entry["failed"] for entry in result["calls"]] == [True]


def test_arguments_that_do_not_fit_never_reach_the_server(script: Install, ctx: Context, tmp_path: Path) -> None:
    server = tmp_path / "strict.py"
    text = Path(SERVER).read_text().replace('"inputSchema": {"type": "object"}', '"inputSchema": schema')
    server.write_text(text.replace('if name == "env":', 'open("touched", "a").write(name)\n    if name == "env":'))
    service = script(wants(("echo", {"n": "one"})), wants(("echo", {"n": 1})), says("done"))
    sets = [{"mcp": {"command": [sys.executable, str(server)]}, "tools": ["echo"]}]
    run(ai(sets=sets), ctx)
    wrong, right = service.turns
    assert wrong.failed
    assert "/n: must be an integer" in wrong.text
    assert not right.failed
    assert (tmp_path / "touched").read_text() == "echo"


def test_the_allow_list_is_all_that_the_model_sees(script: Install, ctx: Context) -> None:
    service = script(says("done"), says("done"))
    run(ai("json", "echo"), ctx)
    assert [tool.name for tool in service.asked[0].tools] == ["json", "echo"]
    service.asked.clear()
    run(ai("*"), ctx)
    assert {"echo", "die", "env"} <= {tool.name for tool in service.asked[0].tools}


def test_a_tool_that_the_server_does_not_have_fails_the_step_before_the_model_is_asked(
    script: Install, ctx: Context
) -> None:
    service = script()
    error = fails(ctx, ai("ecko"))
    assert (error.type, error.hint) == ("refused", "did you mean echo?")
    assert service.asked == []


def test_two_servers_stand_side_by_side_by_their_prefixes(script: Install, ctx: Context) -> None:
    server = {"command": [sys.executable, SERVER]}
    sets = [
        {"mcp": {**server, "env": {"A": "one"}}, "tools": ["env"], "prefix": "a_"},
        {"mcp": {**server, "env": {"A": "two"}}, "tools": ["env"], "prefix": "b_"},
    ]
    service = script(wants(("b_env", {}), ("a_env", {})), says("done"))
    run(ai(sets=sets), ctx)
    assert [json.loads(turn.text)["A"] for turn in service.turns] == ["two", "one"]
    sets[1].pop("prefix")
    sets[0].pop("prefix")
    error = fails(ctx, ai(sets=[sets[0], {**sets[1], "tools": ["*"]}]))
    assert "two tools would be called env" in error.message


def test_a_server_that_dies_fails_the_step_and_says_how(script: Install, ctx: Context) -> None:
    script(wants(("die", {})), says("never"))
    error = fails(ctx, ai("die"))
    assert error.type == "exit.3"
    assert "during tool die: last words" in error.message
    assert error.usage == Usage(input_tokens=10, output_tokens=5, cost_usd=0.25)


@pytest.mark.parametrize("how", ["exits", "old"])
def test_a_server_that_cannot_be_used_fails_the_step_before_the_model_is_asked(
    script: Install, ctx: Context, how: str
) -> None:
    service = script()
    assert fails(ctx, ai("echo", how=(how,))).type in ("exit.1", "invalid_output")
    assert service.asked == []


def test_more_calls_than_allowed_fail_the_step_before_any_of_them(script: Install, ctx: Context) -> None:
    script(wants(("echo", {"text": "1"})), wants(("echo", {}), ("echo", {})), says("never"))
    error = fails(ctx, ai("echo", max_tool_calls=2))
    assert error.type == "limit"
    assert "more than 2 times (max_tool_calls)" in error.message
    assert sum(name == "ai.tool_called" for name, _ in ctx.told) == 1
    assert error.usage is not None
    assert error.usage.input_tokens == 20


def test_a_long_answer_is_cut_with_a_mark(script: Install, ctx: Context) -> None:
    service = script(wants(("big", {"size": LONGEST_RESULT + 100})), says("done"))
    result = run(ai("big"), ctx)
    (turn,) = service.turns
    assert "[… 100 characters left out …]" in turn.text
    assert len(turn.text) < LONGEST_RESULT + 100
    assert result["calls"][0]["answer_bytes"] == LONGEST_RESULT + 100


def test_a_message_beyond_all_bounds_ends_the_session(script: Install, ctx: Context) -> None:
    script(wants(("big", {"size": 5_000_000})), says("never"))
    error = fails(ctx, ai("big"))
    assert (error.type, error.message) == ("limit", "a message of the MCP server is longer than 4MiB")


def test_what_is_no_text_is_named(script: Install, ctx: Context) -> None:
    service = script(wants(("picture", {}), ("json", {})), says("done"))
    run(ai("picture", "json"), ctx)
    picture, data = service.turns
    assert picture.text == "two\n[image: it cannot be shown here]\n[resource: it cannot be shown here]"
    assert data.text == '{"a": [1, 2]}'


def test_a_server_may_be_asked_over_http(script: Install, ctx: Context, remote: Remote) -> None:
    ctx.scope = {"secrets": {"T": "tok"}}
    headers = {"Authorization": "Bearer ${{ secrets.T }}"}
    url = f"http://127.0.0.1:{remote.port}/mcp"
    sets = [{"mcp": {"url": url, "allow_private": True, "headers": headers}, "tools": ["add", "boom"]}]
    service = script(
        wants(("add", {"a": 1, "b": 2}), ("add", {"a": "x"}), ("boom", {})),
        wants(("add", {"a": 2, "b": 2})),
        says("done"),
    )
    result = run(ai(sets=sets), ctx)
    added, misfit, boom, again = service.turns
    assert json.loads(added.text) == {"sum": 3}
    assert (misfit.failed, boom.failed) == (True, True)
    assert "boom" in boom.text
    assert json.loads(again.text) == {"sum": 4}
    assert {header for _, _, header in remote.seen} == {b"Bearer tok"}
    assert [call["mcp"] for call in result["calls"]] == ["127.0.0.1"] * 4
    remote.status = 401
    script()
    assert fails(ctx, ai(sets=sets)).type == "auth"


def test_without_the_extra_nothing_is_started(script: Install, ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    script()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = fails(ctx, ai("echo"))
    assert (error.type, error.hint) == ("refused", "pip install 'tramai[mcp]'")


def test_a_schema_is_met_after_the_tools(script: Install, ctx: Context) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    service = script(wants(("echo", {"text": "7"})), says("seven"), wants(("echo", {})), says('{"n": 7}'))
    result = run(ai("echo", schema=schema), ctx)
    assert result["value"] == {"n": 7}
    assert [turn.role for turn in service.asked[-1].history] == [
        *("user", "assistant", "tool", "assistant", "user", "assistant", "tool")
    ]
    assert all(question.schema == schema for question in service.asked)
    assert len(result["calls"]) == 2


def test_an_answer_that_is_cut_is_no_call(script: Install, ctx: Context) -> None:
    answer = wants(("echo", {"text": "x"}))
    script(Answer(text="", finish_reason="length", calls=answer.calls))
    assert fails(ctx, ai("echo")).type == "truncated"
    assert not [name for name, _ in ctx.told if name == "ai.tool_called"]


# What is left.


def test_a_server_that_will_not_go_is_killed(script: Install, ctx: Context) -> None:
    script(wants(("echo", {"text": "x"})), says("done"))
    assert run(ai("echo", how=("stubborn", "parent")), ctx)["text"] == "done"


def test_a_failure_of_the_model_ends_the_servers(script: Install, ctx: Context) -> None:
    script(wants(("echo", {})), StepError("rate_limited", "slow down"))
    assert fails(ctx, ai("echo", how=("stubborn",))).type == "rate_limited"


def test_a_cancelled_step_ends_its_servers(script: Install, ctx: Context) -> None:
    script(wants(("sleep", {})))

    async def main() -> None:
        task = asyncio.ensure_future(result_of(ai("sleep", how=("stubborn", "parent")), ctx))
        while not alive(ctx.run_id) or not any(text == "tool: sleep\n" for _, text in ctx.shown):
            await asyncio.sleep(0.02)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


FILE = """\
tramai: 1
name: ask
secrets: {{T: {{env: NONE}}}}
steps:
  - id: ask
    ai:
      model: openai:one
      prompt: Go.
      tools:
        - mcp: {{command: ["{python}", "{server}"], env: {{TOKEN: "${{{{ secrets.T }}}}"}}}}
          tools: [echo, env, sleep]
    output: ${{{{ result }}}}
    {more}
outputs: {{said: "${{{{ steps.ask.output }}}}"}}
"""


def carried(folder: Path, more: str = "timeout: 20s", head: str = "", **options: Any) -> engine.Result:
    file = folder / "ask.yaml"
    file.write_text(head + FILE.format(python=sys.executable, server=SERVER, more=more))
    loaded = workflow.load(str(file))
    chosen = engine.Options(cwd=str(folder), logs=str(folder / "logs"), secrets={"T": "canary-secret-value"}, **options)
    given = inputs.bind(loaded.inputs, {})
    with contextlib.closing(open_store(f"sqlite:{folder / 't.db'}")) as store:
        return engine.run(plan.Plan(loaded), given, store=store, options=chosen)


def test_a_secret_that_a_tool_tells_goes_neither_to_the_model_nor_to_disk(script: Install, tmp_path: Path) -> None:
    service = script(wants(("env", {})), says("done"))
    result = carried(tmp_path)
    assert result.status == "completed"
    assert json.loads(service.turns[0].text)["TOKEN"] == "***"
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert b"canary-secret-value" not in path.read_bytes(), path


def test_a_timeout_of_the_step_leaves_no_process(script: Install, tmp_path: Path) -> None:
    script(wants(("sleep", {})))
    result = carried(tmp_path, "timeout: 1s")
    assert result.error is not None
    assert (result.status, result.error["type"]) == ("failed", "timeout")
    assert alive(result.run_id) == []


def test_an_interrupt_leaves_no_process_and_an_open_question(script: Install, tmp_path: Path) -> None:
    script(wants(("sleep", {})))
    stop = Interrupt()
    timer = threading.Timer(1.0, lambda: stop.set("signal"))
    timer.start()
    result = carried(tmp_path, interrupt=stop)
    timer.join()
    assert result.status in {"interrupted", "blocked"}
    assert alive(result.run_id) == []


def test_a_killed_runner_leaves_no_server(tmp_path: Path) -> None:
    file = tmp_path / "ask.yaml"
    tool = f'{{mcp: {{command: ["{sys.executable}", "{SERVER}"]}}, tools: [sleep]}}'
    file.write_text(
        "tramai: 1\nname: a\nsteps:\n  - id: a\n"
        f"    ai: {{model: 'demo:tools', prompt: x, tools: [{tool}]}}\n    timeout: 60s\n"
    )
    command = [sys.executable, "-m", "tramai", "run", str(file), "--store", f"sqlite:{tmp_path / 't.db'}"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRAMAI_COOKIE": "outer-" + tmp_path.name}
    runner = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert eventually(lambda: servers_in(tmp_path), within=20.0)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert eventually(lambda: not servers_in(tmp_path), within=10.0)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("max_tokens: 15", "15 tokens of 15 (limits.max_tokens)"),
        ("max_cost_usd: 0.2", "$0.2500 of $0.2 (limits.max_cost_usd)"),
    ],
)
def test_limits_stop_before_the_next_request(script: Install, tmp_path: Path, limit: str, said: str) -> None:
    service = script(wants(("echo", {})), says("never"))
    result = carried(tmp_path, head=f"limits: {{{limit}}}\n")
    assert result.status == "failed"
    assert result.error is not None
    assert said in result.error["message"]
    assert len(service.asked) == 1
    with contextlib.closing(open_store(f"sqlite:{tmp_path / 't.db'}")) as store:
        stored = store.get(result.run_id)
    assert (stored.tokens, stored.cost_usd) == (15, 0.25)


def test_the_last_answer_counts_though_it_reaches_a_limit(script: Install, tmp_path: Path) -> None:
    script(says("done"))
    assert carried(tmp_path, head="limits: {max_tokens: 15}\n").status == "completed"


def test_servers_are_bound_by_permits(script: Install, ctx: Context) -> None:
    service = script()
    ctx.permits = (Permits(mcp=("other",)),)
    assert fails(ctx, ai("echo")).type == "refused"
    assert service.asked == []
    assert ("security.server_denied", "permits") in [(name, told.get("policy")) for name, told in ctx.told]
    ctx.permits = (Permits(mcp=("ours",)),)
    ctx.servers = {"ours": {"command": [sys.executable, SERVER]}}
    script(says("done"))
    assert run(ai(sets=[{"mcp": "ours", "tools": ["echo"]}]), ctx)["text"] == "done"


def test_what_a_tool_does_is_not_repeated_unless_somebody_says_so() -> None:
    assert ai("echo").replay() is Replay.NON_REPLAYABLE
    assert made(Ai, model="demo:echo", prompt="x").replay() is Replay.REPLAYABLE
    assert ai("echo").spawning()
    assert not made(Ai, model="demo:echo", prompt="x").spawning()


def test_expressions_of_a_server_s_schema_are_not_run() -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": "(a+)+$"}, "o": {"$ref": "#/$defs/o"}},
        "$defs": {"o": {"patternProperties": {"(a+)+$": {}}, "additionalProperties": False, "type": "object"}},
        "enum": [{"pattern": "kept"}],
    }
    assert without_patterns(schema) == {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "o": {"$ref": "#/$defs/o"}},
        "$defs": {"o": {"type": "object"}},
        "enum": [{"pattern": "kept"}],
    }


def test_a_catastrophic_pattern_costs_nothing(script: Install, ctx: Context, tmp_path: Path) -> None:
    server = tmp_path / "slow.py"
    schema = '"inputSchema": {"type": "object", "properties": {"text": {"type": "string", "pattern": "(a+)+$"}}}'
    server.write_text(Path(SERVER).read_text().replace('"inputSchema": {"type": "object"}', schema))
    script(wants(("echo", {"text": "a" * 60 + "!"})), says("done"))
    began = time.monotonic()
    run(ai(sets=[{"mcp": {"command": [sys.executable, str(server)]}, "tools": ["echo"]}]), ctx)
    assert time.monotonic() - began < 15
