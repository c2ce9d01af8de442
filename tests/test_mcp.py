"""`mcp` against real servers, over pipes and over HTTP: what goes in and comes out, and every way to fail."""

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai import engine, inputs, plan, workflow
from tramai.driver import Loop
from tramai.interrupt import Interrupt
from tramai.permits import Permits
from tramai.step import Finding, Replay, StepError
from tramai.steps import _mcp_lines, _mcp_link
from tramai.steps.mcp import Mcp
from tramai.stores import open_store

from .extras import loaded, needs
from .step_context import StepContext, made, result_of, run

__all__ = ["loaded"]

EXTRA = needs("mcp", "mcp", "httpx2")

ROOT = Path(__file__).parent.parent
SERVER = str(Path(__file__).parent / "mcp_server.py")


class Context(StepContext):
    """A context with a folder, a log and marks of its own, that keeps what is shown and told."""

    def __init__(self, folder: Path, scope: dict[str, Any] | None = None, seconds: float = 20.0) -> None:
        super().__init__(scope, deadline=time.monotonic() + seconds)
        self.cwd = str(folder)
        self.run_id = f"mcp-{os.urandom(8).hex()}"
        self.log_path = str(folder / "step.log")
        self.shown: list[tuple[str, str]] = []
        self.told: list[tuple[str, dict[str, Any]]] = []

    def output(self, stream: str, text: str) -> None:
        self.shown.append((stream, text))

    def signal(self, name: str, **attributes: Any) -> None:
        self.told.append((name, attributes))


@pytest.fixture
def ctx(tmp_path: Path) -> Iterator[Context]:
    found = Context(tmp_path)
    yield found
    assert alive(found.run_id) == [], "a process is left"


def alive(mark: str) -> list[str]:
    """The command lines of every process that carries a run's mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return found


def mcp(tool: str | None = "echo", how: tuple[str, ...] = (), **settings: Any) -> Mcp:
    """A step on the server that can misbehave."""
    server = {"command": [sys.executable, SERVER, *how], "env": settings.pop("env", {})}
    asked = {} if tool is None else {"tool": tool}
    return made(Mcp, server=server, **asked, **settings)


def fails(ctx: Context, step: Mcp) -> StepError:
    with pytest.raises(StepError) as error:
        run(step, ctx)
    return error.value


# What goes in and what comes out.

NAUGHTY = 'it\'s "x" $(touch pwned) \\ %s\né \x1b[31m {{ x }} ${{ no }} ::error::'


def test_a_text_passes_through_byte_for_byte(tmp_path: Path, ctx: Context) -> None:
    ctx.scope = {"inputs": {"x": NAUGHTY}}
    step = mcp(arguments={"text": "${{ inputs.x }}"})
    result = run(step, ctx)
    assert result == {"text": NAUGHTY, "content": [{"type": "text", "text": NAUGHTY}]}
    assert step.output(result) == NAUGHTY
    assert not (tmp_path / "pwned").exists()


def test_text_that_is_json_and_structured_content_are_the_value(ctx: Context) -> None:
    step = mcp("json")
    result = run(step, ctx)
    assert result["value"] == {"a": [1, 2]}
    assert step.output(result) == {"a": [1, 2]}


def test_arguments_may_be_one_whole_expression(ctx: Context) -> None:
    ctx.scope = {"inputs": {"given": {"text": "hi"}, "bad": [1]}}
    assert run(mcp(arguments="${{ inputs.given }}"), ctx)["text"] == "hi"
    assert fails(ctx, mcp(arguments="${{ inputs.bad }}")).type == "expression"


def test_images_and_resources_are_kept_as_data(ctx: Context) -> None:
    result = run(mcp("picture"), ctx)
    assert result["text"] == "two"
    assert "value" not in result
    assert result["content"][1] == {"type": "image", "data": "AAEC", "mimeType": "image/png"}
    assert result["content"][2]["resource"]["blob"] == "AAE="


def test_list_gives_the_tools(ctx: Context) -> None:
    step = mcp(None, list=True)
    tools = step.output(run(step, ctx))
    assert {"name": "echo", "description": "does echo", "inputSchema": {"type": "object"}} in tools


def test_a_server_sees_little_of_our_environment(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "hunter2")
    ctx.scope = {"secrets": {"T": "s3cret"}}
    seen = run(mcp("env", env={"TOKEN": "${{ secrets.T }}"}), ctx)["value"]
    assert seen["TOKEN"] == "s3cret"
    assert set(seen) - {"LC_CTYPE"} <= {
        *("PATH", "HOME", "LANG", "TZ", "TMPDIR", "TOKEN", "PWD", "OLDPWD", "SHLVL", "_"),
        *("TRAMAI_COOKIE", "TRAMAI_RUN_ID", "TRAMAI_STEP", "TRAMAI_ATTEMPT", "TRAMAI_IDEMPOTENCY_KEY"),
    }


def test_noise_on_both_streams_is_logged_and_harms_nothing(ctx: Context) -> None:
    assert run(mcp(how=("noisy",), arguments={"text": "ok"}), ctx)["text"] == "ok"
    log = Path(ctx.log_path or "").read_text()
    assert "Welcome to the server!" in log
    assert "{not json" in log
    assert log.count("flood") > 300_000
    assert ("stdout", "Welcome to the server!\n") in ctx.shown


def test_hidden_values_do_not_reach_the_log_by_noise(ctx: Context) -> None:
    ctx.hidden = (b"Welcome to the",)
    run(mcp(how=("noisy",), arguments={"text": "ok"}), ctx)
    assert "Welcome" not in Path(ctx.log_path or "").read_text()


# Failures.


def test_a_tool_that_says_it_failed_fails_the_step_with_its_text(ctx: Context) -> None:
    for tool in ("boom", "broken_boom"):  # the second breaks its own schema besides
        error = fails(ctx, mcp(tool))
        assert (error.type, error.message) == ("exit", f"the tool {tool} failed: boom")
        assert error.details["body"] == "boom"


def test_a_json_rpc_error_is_told_apart(ctx: Context) -> None:
    error = fails(ctx, mcp("invalid"))
    assert error.type == "refused"
    assert "code -32602): no such argument" in error.message


def test_data_that_breaks_the_tools_own_schema_is_no_output(ctx: Context) -> None:
    error = fails(ctx, mcp("unfit"))
    assert error.type == "invalid_output"
    assert "'n' is a required property" in error.message


def test_a_tool_that_is_not_there_is_not_called(ctx: Context) -> None:
    error = fails(ctx, mcp("ech"))
    assert (error.type, error.message) == ("refused", "the server has no tool ech")
    assert error.hint == "did you mean echo?"


def test_a_server_that_dies_in_a_call_is_named_with_its_last_words(ctx: Context) -> None:
    error = fails(ctx, mcp("die"))
    assert error.type == "exit.3"
    assert error.message == "the server exited with code 3 during tool die: last words"
    assert error.details == {"exit_code": 3, "output": "one\ntwo\nlast words"}
    assert fails(ctx, mcp("killed")).message == "the server was ended by SIGKILL during tool killed"


def test_a_server_that_does_not_start_says_why(ctx: Context) -> None:
    error = fails(ctx, mcp(how=("exits",)))
    assert error.type == "exit.1"
    assert error.message == ("the server exited with code 1 while it was starting: cannot start: no configuration")
    missing = fails(ctx, made(Mcp, server={"command": ["no-such-program"]}, tool="x"))
    assert missing.type == "refused"
    assert "there is no program no-such-program on PATH" in missing.message


def test_a_server_that_closes_its_output_is_not_waited_for(ctx: Context) -> None:
    error = fails(ctx, mcp("mute"))
    assert (error.type, error.message) == ("network", "the server closed its standard output during tool mute")


@pytest.mark.parametrize(
    ("how", "tool", "stage"), [("silent", "echo", "while it was starting"), ("", "sleep", "during tool sleep")]
)
def test_a_server_that_never_answers_meets_the_timeout(tmp_path: Path, how: str, tool: str, stage: str) -> None:
    ctx = Context(tmp_path, seconds=1.2)
    began = time.monotonic()
    error = fails(ctx, mcp(tool, (how,)))
    assert error.type == "timeout"
    assert stage in error.message
    assert time.monotonic() - began < 5
    assert alive(ctx.run_id) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("strange", "the server answered a request that was never made (id 4711)"),
        ("no_rpc", "the server sent what is no JSON-RPC message"),
        ("old", "Unsupported protocol version from the server: 1999-01-01"),
    ],
)
def test_what_is_no_mcp_is_told_at_once(ctx: Context, how: str, said: str) -> None:
    error = fails(ctx, mcp(how=(how,)))
    assert error.type == "invalid_output"
    assert said in error.message


def test_an_answer_over_the_limit_fails_and_one_within_it_is_whole(ctx: Context) -> None:
    error = fails(ctx, mcp("big", arguments={"size": 5_000_000}))
    assert error.type == "limit"
    assert error.message == "the server's answer is longer than max_response (1MiB)"
    assert run(mcp("big", arguments={"size": 8_000_000}, max_response="10MiB"), ctx)["text"] == "x" * 8_000_000


# The end of a server.


def test_a_server_that_will_not_go_is_killed_with_its_children(ctx: Context) -> None:
    began = time.monotonic()
    assert run(mcp(how=("stubborn", "parent"), arguments={"text": "x"}), ctx)["text"] == "x"
    assert time.monotonic() - began < 7
    assert alive(ctx.run_id) == []


def test_a_server_that_fails_at_its_end_has_given_its_answer(ctx: Context) -> None:
    assert run(mcp(how=("dies_late",), arguments={"text": "x"}), ctx)["text"] == "x"


def test_a_cancelled_step_ends_its_server(ctx: Context) -> None:
    async def cancelled() -> None:
        task = asyncio.ensure_future(result_of(mcp("sleep"), ctx))
        while not [name for name, _ in ctx.told if name == "mcp.started"] or not alive(ctx.run_id):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


def test_a_lost_lease_leaves_a_server_no_time(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Interrupt()
    driver = Loop(stop)
    monkeypatch.setattr(ctx, "blocking", lambda work, grace=60.0: driver.blocking(work, ctx.interrupt, grace))
    times: list[float] = []

    async def lost() -> None:
        task = asyncio.ensure_future(result_of(mcp("sleep", ("stubborn",)), ctx))
        while not alive(ctx.run_id):
            await asyncio.sleep(0.02)
        stop.set("lease_lost")
        times.append(time.monotonic())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        times.append(time.monotonic())

    asyncio.run(lost())
    assert ctx.interrupt.reason == "lease_lost"
    assert times[1] - times[0] < 1.8


FILE = """
tramai: 1
name: ask
secrets: {{T: {{env: MCP_CANARY}}}}
permits: {{mcp: ["{python}"]}}
steps:
  - id: ask
    mcp:
      server: {{command: ["{python}", "{server}"], env: {{TOKEN: "${{{{ secrets.T }}}}"}}}}
      tool: {tool}
      arguments: {{text: hello}}
    {more}
outputs:
  said: ${{{{ steps.ask.output }}}}
"""


def workflow_file(folder: Path, tool: str, more: str = "timeout: 20s") -> Path:
    file = folder / "ask.yaml"
    file.write_text(FILE.format(python=sys.executable, server=SERVER, tool=tool, more=more))
    return file


def carried(folder: Path, tool: str, more: str = "timeout: 20s", **options: Any) -> engine.Result:
    loaded = workflow.load(str(workflow_file(folder, tool, more)))
    made_plan = plan.Plan(loaded)
    given = inputs.bind(loaded.inputs, {})
    chosen = engine.Options(cwd=str(folder), logs=str(folder / "logs"), secrets={"T": "canary-secret-value"}, **options)
    with contextlib.closing(open_store(f"sqlite:{folder / 't.db'}")) as store:
        return engine.run(made_plan, given, store=store, options=chosen)


def test_a_whole_run_gives_the_result_and_keeps_no_secret(tmp_path: Path) -> None:
    assert carried(tmp_path, "echo").outputs == {"said": "hello"}
    result = carried(tmp_path, "env")
    assert result.status == "completed"
    assert "canary-secret-value" not in json.dumps(result.outputs)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert b"canary-secret-value" not in path.read_bytes(), path


def test_a_timeout_of_a_run_leaves_no_process(tmp_path: Path) -> None:
    result = carried(tmp_path, "sleep", "timeout: 1s")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["type"] == "timeout"
    assert alive(result.run_id) == []


def test_an_interrupt_stops_the_server_and_the_run_waits_for_a_word(tmp_path: Path) -> None:
    stop = Interrupt()
    timer = threading.Timer(1.0, lambda: stop.set("signal"))
    timer.start()
    result = carried(tmp_path, "sleep", interrupt=stop)
    timer.join()
    assert result.status in {"interrupted", "blocked"}
    assert alive(result.run_id) == []


def test_the_command_line_knows_the_servers_of_the_project(tmp_path: Path) -> None:
    table = f"""[mcp_servers.ours]
command = ["{sys.executable}", "{SERVER}"]
env = {{TOKEN = "${{{{ secrets.T }}}}"}}
"""
    (tmp_path / "tramai.toml").write_text(table)
    (tmp_path / "x.yaml").write_text(
        "tramai: 1\nname: x\nsecrets: {T: {env: MCP_CANARY}}\npermits: {mcp: [ours]}\n"
        "steps:\n  - {id: a, mcp: {server: ours, tool: env}}\n"
        "outputs: {token: '${{ steps.a.output.TOKEN }}'}\n"
    )
    command = [sys.executable, "-m", "tramai", "run", "x.yaml", "--store", "memory:", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MCP_CANARY": "canary-secret-value", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["outputs"] == {"token": "***"}
    assert "canary-secret-value" not in done.stdout + done.stderr


def test_a_killed_runner_leaves_no_server(tmp_path: Path) -> None:
    file = workflow_file(tmp_path, "sleep", "timeout: 60s")
    command = [sys.executable, "-m", "tramai", "run", str(file), "--store", f"sqlite:{tmp_path / 't.db'}"]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MCP_CANARY": "canary-secret-value",
        "TRAMAI_COOKIE": "outer-" + tmp_path.name,
    }
    runner = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while not servers_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert servers_in(tmp_path)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    until = time.monotonic() + 10
    while servers_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert servers_in(tmp_path) == []


def servers_in(folder: Path) -> list[str]:
    """Servers whose working folder is this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd") == str(folder) and b"mcp_server.py" in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


# Before the run.


def findings(**settings: Any) -> list[Finding]:
    return list(made(Mcp, **settings).check())


@pytest.mark.parametrize(
    ("settings", "code", "at"),
    [
        ({"server": {}, "tool": "t"}, "TRM332", ("server",)),
        ({"server": "npx -y x", "tool": "t"}, "TRM336", ("server",)),
        ({"server": {"command": ["a"], "url": "https://x.dev"}, "tool": "t"}, "TRM332", ("server",)),
        ({"server": {"command": ["a"], "headers": {"A": "b"}}, "tool": "t"}, "TRM332", ("server", "headers")),
        ({"server": {"command": ["a"], "allow_private": True}, "tool": "t"}, "TRM332", ("server", "allow_private")),
        ({"server": {"url": "https://x.dev", "env": {"A": "b"}}, "tool": "t"}, "TRM332", ("server", "env")),
        ({"server": {"command": [" "]}, "tool": "t"}, "TRM332", ("server", "command", 0)),
        ({"server": {"command": ["a"]}}, "TRM333", ()),
        ({"server": {"command": ["a"]}, "tool": "t", "list": True}, "TRM333", ("list",)),
        ({"server": {"command": ["a"]}, "list": True, "arguments": {}}, "TRM333", ("arguments",)),
        ({"server": {"command": ["a"]}, "tool": " "}, "TRM333", ("tool",)),
        ({"server": {"command": ["a"]}, "tool": "t", "arguments": "a=b"}, "TRM337", ("arguments",)),
        ({"server": {"url": "x.dev/mcp"}, "tool": "t"}, "TRM334", ("server", "url")),
        ({"server": {"url": "file:///etc/passwd"}, "tool": "t"}, "TRM334", ("server", "url")),
        ({"server": {"url": "https://u:p@x.dev"}, "tool": "t"}, "TRM334", ("server", "url")),
        ({"server": {"url": "http://169.254.169.254/"}, "tool": "t"}, "TRM334", ("server", "url")),
        ({"server": {"url": "https://x_!.dev/"}, "tool": "t"}, "TRM334", ("server", "url")),
        (
            {"server": {"url": "https://x.dev", "headers": {"A B": "c"}}, "tool": "t"},
            "TRM335",
            ("server", "headers", "A B"),
        ),
        (
            {"server": {"url": "https://x.dev", "headers": {"Accept": "c"}}, "tool": "t"},
            "TRM335",
            ("server", "headers", "Accept"),
        ),
        (
            {"server": {"url": "https://x.dev", "headers": {"A": "c", "a": "d"}}, "tool": "t"},
            "TRM335",
            ("server", "headers", "a"),
        ),
        (
            {"server": {"url": "https://x.dev", "allow_private": "yes"}, "tool": "t"},
            "TRM326",
            ("server", "allow_private"),
        ),
        ({"server": {"command": ["a"], "env": {"1X": "b"}}, "tool": "t"}, "TRM312", ("server", "env", "1X")),
        (
            {"server": {"command": ["a"], "env": {"TRAMAI_COOKIE": "b"}}, "tool": "t"},
            "TRM313",
            ("server", "env", "TRAMAI_COOKIE"),
        ),
        ({"server": {"command": ["npx -y x"]}, "tool": "t"}, "TRM389", ("server", "command", 0)),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], code: str, at: tuple[Any, ...]) -> None:
    assert [(found.code, found.pointer) for found in findings(**settings)] == [(code, at)]


def test_settings_that_can_be_meant_are_taken() -> None:
    for server in (
        {"command": ["a", "${{ inputs.x }}"]},
        {"url": "https://${{ inputs.host }}/mcp"},
        {"url": "${{ inputs.x }}"},
    ):
        assert findings(server=server, tool="t", arguments="${{ inputs.x }}") == []


def problems(text: str, folder: Path) -> list[tuple[str, str]]:
    (folder / "x.yaml").write_text(text)
    return [(found.code, found.path) for found in workflow.check_file(str(folder / "x.yaml"))[1]]


HEAD = "tramai: 1\nname: x\nsecrets: {T: {env: T}}\n"


def test_a_secret_may_stand_in_environment_and_headers_alone(tmp_path: Path) -> None:
    secret = '"${{ secrets.T }}"'
    good = f"""steps:
  - {{id: a, mcp: {{server: {{command: [a], env: {{A: {secret}}}}}, tool: t}}}}
  - {{id: b, mcp: {{server: {{url: "https://x.dev", headers: {{A: {secret}}}}}, tool: t}}}}
"""
    assert problems(HEAD + good, tmp_path) == []
    bad = f"""steps:
  - {{id: a, mcp: {{server: {{command: [a, {secret}]}}, tool: t}}}}
  - {{id: b, mcp: {{server: {{command: [a]}}, tool: t, arguments: {{a: {secret}}}}}}}
  - {{id: c, mcp: {{server: {{url: "https://x.dev/${{{{ secrets.T }}}}"}}, tool: t}}}}
"""
    assert problems(HEAD + bad, tmp_path) == [
        ("TRM302", "/steps/0/mcp/server/command/1"),
        ("TRM302", "/steps/1/mcp/arguments/a"),
        ("TRM302", "/steps/2/mcp/server/url"),
    ]


def test_permits_name_the_program_or_the_host(tmp_path: Path, ctx: Context) -> None:
    text = """tramai: 1
name: x
permits: {mcp: [good, x.dev]}
steps:
  - {id: a, mcp: {server: {command: [good, more]}, tool: t}}
  - {id: b, mcp: {server: {command: [bad]}, tool: t}}
  - {id: c, mcp: {server: {url: "https://x.dev/mcp"}, tool: t}}
  - {id: d, mcp: {server: {url: "https://y.dev/mcp"}, tool: t}}
"""
    assert problems(text, tmp_path) == [
        ("TRM386", "/steps/1/mcp/server/command/0"),
        ("TRM386", "/steps/3/mcp/server/url"),
    ]
    ctx.permits = (Permits(mcp=("other",)),)
    error = fails(ctx, mcp())
    assert error.type == "refused"
    assert "is not permitted" in error.message
    assert ctx.told[0][0] == "security.server_denied"
    error = fails(ctx, made(Mcp, server={"url": "https://x.dev/mcp"}, tool="t"))
    assert error.message == "the MCP server x.dev is not permitted"


def test_a_named_server_is_that_of_the_configuration_and_permitted_by_its_name(ctx: Context, remote: Remote) -> None:
    ctx.scope = {"secrets": {"T": "s3cret"}}
    ctx.permits = (Permits(mcp=("ours", "theirs")),)
    ctx.servers = {
        "ours": {"command": [sys.executable, SERVER], "env": {"TOKEN": "${{ secrets.T }}"}},
        "theirs": {"url": f"http://127.0.0.1:{remote.port}/mcp", "allow_private": True},
        "bare": {"command": [sys.executable, SERVER]},
        "wrong": {"comand": []},
    }
    assert run(made(Mcp, server="ours", tool="env"), ctx)["value"]["TOKEN"] == "s3cret"
    assert run(made(Mcp, server="theirs", tool="add", arguments={"a": 1, "b": 1}), ctx)["value"] == {"sum": 2}
    assert fails(ctx, made(Mcp, server="bare", tool="env")).message == "the MCP server bare is not permitted"
    assert fails(ctx, made(Mcp, server="our", tool="env")).hint == "did you mean ours?"
    assert "is not valid" in fails(ctx, made(Mcp, server="wrong", tool="env")).message
    assert made(Mcp, server="ours", tool="env").reaches() == (("mcp", ("server",), "ours"),)


def test_a_call_is_not_repeated_unless_somebody_says_so() -> None:
    assert mcp().replay() is Replay.NON_REPLAYABLE
    assert mcp().needs_loop()


def test_without_the_extra_nothing_is_started(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    error = fails(ctx, mcp())
    assert (error.type, error.hint) == ("refused", "pip install 'tramai[mcp]'")
    assert ctx.told == []


def test_lines_are_split_wherever_the_pieces_end() -> None:
    message = b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n'
    whole = b"noise\n" + message + b"\xff\xfe\n" + message + b"[1]\n"
    for size in (1, 3, 7, len(whole)):
        lines = _mcp_lines.Lines(1000)
        found = [one for at in range(0, len(whole), size) for one in lines.feed(whole[at : at + size])]
        assert [type(one).__name__ for one in found] == ["bytes", "Message", "bytes", "Message", "bytes"]
        assert not lines.too_long


def test_noise_without_a_line_end_takes_no_memory() -> None:
    lines = _mcp_lines.Lines(1 << 20)
    for _ in range(64):
        list(lines.feed(b"x" * (1 << 16)))
    assert not lines.too_long
    assert len(lines._rest) <= 1 << 17


# Over HTTP.


class Remote:
    """A server of the official library on loopback; `status` is what it answers instead."""

    def __init__(self) -> None:
        import uvicorn
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("remote", log_level="CRITICAL")

        @server.tool()
        def add(a: int, b: int) -> dict[str, int]:
            return {"sum": a + b}

        @server.tool()
        def boom() -> str:
            raise ValueError("kaput")

        @server.tool()
        def big(size: int) -> str:
            return "x" * size

        @server.tool()
        async def slow() -> str:
            await asyncio.sleep(30)
            return "late"

        self._app = server.streamable_http_app()
        self.seen: list[tuple[str, str, bytes | None]] = []
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._server = uvicorn.Server(
            uvicorn.Config(self, host="127.0.0.1", port=0, log_config=None, ws="none", timeout_graceful_shutdown=1)
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.seen.append((scope["method"], scope["path"], dict(scope["headers"]).get(b"authorization")))
            if self.status:
                await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(5)


@pytest.fixture(scope="module")
def server() -> Iterator[Remote]:
    remote = Remote()
    yield remote
    remote.stop()


@pytest.fixture
def remote(server: Remote) -> Remote:
    server.seen.clear()
    server.status, server.headers = 0, []
    return server


def over_http(remote: Remote, tool: str, path: str = "/mcp", **settings: Any) -> Mcp:
    server = {
        "url": f"http://127.0.0.1:{remote.port}{path}",
        "allow_private": True,
        "headers": settings.pop("headers", {}),
    }
    return made(Mcp, server=server, tool=tool, **settings)


def test_a_tool_is_called_over_http_with_its_headers(ctx: Context, remote: Remote) -> None:
    ctx.scope = {"secrets": {"T": "tok"}}
    step = over_http(remote, "add", arguments={"a": 1, "b": 2}, headers={"Authorization": "Bearer ${{ secrets.T }}"})
    assert step.output(run(step, ctx)) == {"sum": 3}
    assert {header for _, _, header in remote.seen} == {b"Bearer tok"}
    assert fails(ctx, over_http(remote, "boom")).type == "exit"


def test_a_redirect_within_the_origin_is_followed_and_no_other(ctx: Context, remote: Remote) -> None:
    assert run(over_http(remote, "add", "/mcp/", arguments={"a": 1, "b": 2}), ctx)["value"] == {"sum": 3}
    remote.status, remote.headers = 307, [(b"location", b"http://example.com/mcp")]
    error = fails(ctx, over_http(remote, "add"))
    assert error.type == "refused"
    assert "answered 307: it points to http://example.com/mcp" in error.message


def test_an_answer_over_http_is_bounded_too(ctx: Context, remote: Remote) -> None:
    assert fails(ctx, over_http(remote, "big", arguments={"size": 3_000_000})).type == "limit"
    assert (
        len(run(over_http(remote, "big", arguments={"size": 3_000_000}, max_response="8MiB"), ctx)["text"]) == 3_000_000
    )


def test_a_timeout_over_http_is_kept(tmp_path: Path, remote: Remote) -> None:
    began = time.monotonic()
    assert fails(Context(tmp_path, seconds=1.0), over_http(remote, "slow")).type == "timeout"
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("status", "type"),
    [
        (401, "auth"),
        (403, "auth"),
        (429, "rate_limited"),
        (500, "network"),
        (503, "network"),
        (404, "http.404"),
        (418, "http.418"),
    ],
)
def test_a_status_has_its_type(ctx: Context, remote: Remote, status: int, type: str) -> None:
    remote.status, remote.headers = status, [(b"retry-after", b"7"), (b"content-length", b"0")]
    error = fails(ctx, over_http(remote, "add"))
    assert error.type == type
    assert error.details["status"] == status
    assert error.retry_after == (7.0 if status == 429 else None)


def test_private_addresses_are_refused_where_the_connection_goes(ctx: Context, remote: Remote) -> None:
    for url in (f"http://127.0.0.1:{remote.port}/mcp", f"http://localhost:{remote.port}/mcp"):
        error = fails(ctx, made(Mcp, server={"url": url}, tool="add"))
        assert error.type == "refused"
        assert "is not a public address (loopback)" in error.message
    assert remote.seen == []


def test_nobody_listening_is_a_matter_of_the_network(ctx: Context) -> None:
    error = fails(ctx, made(Mcp, server={"url": "http://127.0.0.1:9/mcp", "allow_private": True}, tool="add"))
    assert error.type == "network"
    assert "no connection" in error.message


def test_a_header_that_would_end_the_line_is_refused(ctx: Context, remote: Remote) -> None:
    ctx.scope = {"secrets": {"T": "tok\nX-Evil: 1"}}
    assert fails(ctx, over_http(remote, "add", headers={"A": "${{ secrets.T }}"})).type == "expression"
    assert remote.seen == []


def test_the_library_is_looked_for_without_loading_it() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from tramai.steps._mcp_link import need_library as n; n(); print('mcp' in sys.modules)",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "False\n"
    assert callable(_mcp_link.link_to)
