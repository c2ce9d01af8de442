"""`codex`: how it is started, what its events become, and every way in which it can fail."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tramai.permits import Permits
from tramai.step import Replay, Usage
from tramai.steps._agent_lines import Events
from tramai.steps._codex_schema import strict
from tramai.steps.codex import Codex

from .agents import Folder, failure, result, usage
from .reading import HEAD, examine, said
from .step_context import made

ANSWER = """
say(type="thread.started", thread_id="t-1")
say(type="turn.started")
say(type="item.completed", item={"id": "0", "type": "agent_message", "text": TEXT})
say(type="turn.completed", usage={"input_tokens": 11, "cached_input_tokens": 4, "output_tokens": 7})
"""
FAILED = """
say(type="thread.started", thread_id="t-1")
say(type="error", message=WHY)
say(type="turn.failed", error={"message": WHY})
sys.exit(1)
"""
RISK = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def answering(folder: Folder, text: str = "done", before: str = "", after: str = "") -> None:
    folder.program("codex", f"TEXT = {text!r}\n{before}\n{ANSWER}\n{after}")


def codex(**settings: Any) -> Codex:
    return made(Codex, **{"prompt": "Look.", **settings})


# How it is started.


def test_the_prompt_goes_in_by_stdin_and_nothing_is_allowed_but_reading(folder: Folder) -> None:
    answering(folder)
    ctx = folder.context({"inputs": {"what": 'it\'s "$HOME" `id`\n' + "y" * 200_000}})
    result(codex(prompt="Look at ${{ inputs.what }}"), ctx)
    started = folder.started
    assert started["argv"] == [
        *("exec", "--json", "--color", "never", "--skip-git-repo-check", "--sandbox", "read-only", "-")
    ]
    assert started["stdin"] == 'Look at it\'s "$HOME" `id`\n' + "y" * 200_000
    assert os.path.realpath(started["cwd"]) == os.path.realpath(folder.work)


@pytest.mark.parametrize(
    ("sandbox", "flag"),
    [("read-only", "read-only"), ("workspace-write", "workspace-write"), ("full-access", "danger-full-access")],
)
def test_the_sandbox_and_the_model_are_flags(folder: Folder, sandbox: str, flag: str) -> None:
    answering(folder)
    found = result(codex(sandbox=sandbox, model="gpt-5-codex"), folder.context())
    argv = folder.started["argv"]
    assert argv[argv.index("--sandbox") + 1] == flag
    assert argv[argv.index("--model") + 1] == "gpt-5-codex"
    assert found["model"] == "gpt-5-codex"


def test_its_environment_is_little_of_ours_and_what_leads_to_its_login(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", "/somewhere/codex")
    monkeypatch.setenv("OPENAI_API_KEY", "not for it")
    answering(folder)
    result(codex(env={"CODEX_API_KEY": "k"}), folder.context())
    seen = set(folder.started["env"]) - {"LC_CTYPE"}
    assert {"PATH", "CODEX_HOME", "CODEX_API_KEY", "TRAMAI_COOKIE"} <= seen
    assert seen <= {
        *("PATH", "HOME", "LANG", "TZ", "TMPDIR", "CODEX_HOME", "CODEX_API_KEY", "TRAMAI_COOKIE"),
        *("TRAMAI_RUN_ID", "TRAMAI_STEP", "TRAMAI_ATTEMPT", "TRAMAI_IDEMPOTENCY_KEY"),
    }
    result(codex(env={"CODEX_HOME": "/mine"}), folder.context())
    assert folder.started["env"]["CODEX_HOME"] == "/mine"


def test_it_works_in_the_folder_that_it_is_given(folder: Folder) -> None:
    (folder.work / "sub").mkdir()
    answering(folder)
    result(codex(cwd="sub"), folder.context())
    assert folder.started["cwd"].endswith("/work/sub")
    assert "does not exist" in failure(codex(cwd="none"), folder.context()).message


# What its events become.


def test_the_last_message_is_the_answer_and_what_is_not_known_is_left_alone(folder: Folder) -> None:
    before = """
say(type="item.completed", item={"type": "agent_message", "text": "first I look"})
say(type="item.started", item={"type": "command_execution", "command": "ls -l\\nsecond"})
say(type="item.completed", item={"type": "error", "message": "a warning only"})
say(type="item.completed", item={"type": "invented", "text": [1, {}]})
say(type="invented.later", item=None); say(type=7); say(item=[]); say(type="item.completed", item="text")
say(type="error", message="Reconnecting... 1/5")
raw(b'"text"\\n[1]\\n')
sys.stderr.write("ERROR not mine\\n")
"""
    answering(folder, "done", before)
    ctx = folder.context()
    assert result(codex(), ctx) == {
        "text": "done",
        "usage": {"input_tokens": 11, "output_tokens": 7, "cost_usd": None},
        "model": None,
        "finish_reason": "completed",
        "session_id": "t-1",
        "exit_code": 0,
    }
    assert folder.shown[:3] == ["first I look\n", "$ ls -l second\n", "a warning only\n"]
    assert ("agent.completed", 2) in [(name, told.get("unread_lines")) for name, told in ctx.signals]
    assert usage(codex(), folder.context()) == Usage(input_tokens=11, output_tokens=7)


HOSTILE = "\x1b[2J\x1b]0;x\x07::set-output name=a::b\n[red]x[/red] <script> ${{ 1 + 1 }} {% raw %} é\u202e $(id) \u0000"


def test_hostile_text_is_data_byte_for_byte(folder: Folder) -> None:
    answering(folder, HOSTILE)
    assert result(codex(), folder.context())["text"] == HOSTILE


def test_bytes_that_are_no_text_and_lines_that_are_cut_do_no_harm(folder: Folder) -> None:
    before = r"""
raw(b'\xff\xfe broken\n{"type":"item.completed","item":{"type":"agent_mess\n')
raw(b'{"type":"item.completed","item":{"type":"agent_message","text":"c\xc3(\xff"}}\r\n\n')
raw(b'{"type":"item.completed","item":' + b'[' * 100000 + b'\n')
"""
    answering(folder, "\ud800 half", before)
    assert result(codex(), folder.context())["text"] == "\ufffd half"
    assert folder.shown[0] == "c\ufffd(\ufffd\n"


def test_what_goes_to_stderr_in_between_never_mixes_in(folder: Folder) -> None:
    before = """
raw(b'{"type":"item.completed",')
sys.stderr.write('Reading additional input from stdin...\\n{"type":"turn.failed"}\\n'); sys.stderr.flush()
raw(b'"item":{"type":"agent_message","text":"in two pieces"}}\\n')
"""
    folder.program("codex", f'{before}\nsay(type="turn.completed", usage={{}})')
    assert result(codex(), folder.context())["text"] == "in two pieces"


def test_it_is_not_kept_waiting_for_input_and_its_events_say_how_it_went(folder: Folder) -> None:
    before = """
sys.stderr.write("Reading additional input from stdin...\\n2026 ERROR codex_core: something\\n")
say(type="item.completed", item={"type": "reasoning", "text": "x" * 160_000})
raw(b"warning: not JSON\\n")
"""
    answering(folder, "done", before)
    assert result(codex(), folder.context())["text"] == "done"
    folder.program("codex", f"WHY = 'it broke'\n{before}\n{FAILED.replace('exit(1)', 'exit(2)')}")
    error = failure(codex(), folder.context())
    assert (error.type, error.message) == ("exit.2", "codex failed: it broke")
    assert "Reading additional input" in error.details["output"]  # type: ignore[operator]


def test_a_line_of_ten_megabytes_is_no_trouble(folder: Folder) -> None:
    long = "say(type='item.completed', item={'type': 'command_execution', 'aggregated_output': 'x' * 10_000_000})"
    answering(folder, "done", long)
    assert result(codex(), folder.context())["text"] == "done"
    folder.program("codex", ANSWER.replace("TEXT", "'x' * 10_000_000"))
    assert len(result(codex(max_output="16MiB"), folder.context())["text"]) == 10_000_000
    error = failure(codex(), folder.context())
    assert (error.type, error.usage) == ("truncated", Usage(input_tokens=11, output_tokens=7))
    assert "longer than max_output (1MiB)" in error.message


def test_of_a_line_that_never_ends_no_more_is_kept_than_an_answer_may_take() -> None:
    seen: list[Any] = []
    events = Events(1000, seen.append, seen.append)
    for _ in range(10_000):
        events.feed(b"x" * 1000)
    assert len(events._line) == 0
    events.feed(b'\n{"a": 1}\n{"b"')
    events.feed(b": 2}")
    events.close()
    assert seen == [b"x" * 2000, {"a": 1}, {"b": 2}]


# Answers with a schema.


def test_data_is_read_from_the_answer_and_judged_here(folder: Folder) -> None:
    answering(folder, json.dumps({"risk": "low"}), "schema = json.load(open(after('--output-schema')))\nraw(b'')")
    step = codex(schema=RISK)
    found = result(step, folder.context())
    assert found["value"] == {"risk": "low"}
    assert step.output(found) == {"risk": "low"}
    assert folder.started["stdin"] == "Look."
    argv = folder.started["argv"]
    assert not os.path.exists(argv[argv.index("--output-schema") + 1])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"risk": "none"}', "/risk"),
        ("It is low.", "the answer is not JSON"),
        ('{"risk": NaN}', "NaN is no JSON"),
        ("```json\n```", "fence in the answer is empty"),
    ],
)
def test_an_answer_that_does_not_fit_fails_and_says_where(folder: Folder, text: str, why: str) -> None:
    answering(folder, text)
    error = failure(codex(schema=RISK), folder.context())
    assert (error.type, why in error.message) == ("invalid_output", True)
    assert error.usage == Usage(input_tokens=11, output_tokens=7)


def test_a_schema_that_its_service_would_refuse_goes_into_the_prompt(folder: Folder) -> None:
    answering(folder, '{"findings": []}')
    step = codex(schema={"type": "object", "required": ["findings"]})
    assert result(step, folder.context())["value"] == {"findings": []}
    assert "--output-schema" not in folder.started["argv"]
    assert folder.started["stdin"].startswith("Look.\n\nAnswer with JSON only")
    assert '"required": ["findings"]' in folder.started["stdin"]


def test_what_the_service_can_be_told_and_what_not() -> None:
    assert strict(RISK) == (
        {**RISK, "properties": {"risk": {"type": "string", "enum": ["low", "high"]}}, "additionalProperties": False},
        True,
    )
    text = {"type": "string", "maxLength": 9}
    long = {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "items": text}}}
    said, whole = strict(long)
    assert said is not None
    assert said["properties"]["a"] == {"type": "array", "items": {"type": "string"}}
    assert not whole
    for other in (
        {"type": "array", "items": text},
        {"type": "object"},
        {"type": "object", "properties": {"a": text}},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        {"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": True},
        {"type": "object", "properties": {"a": text}, "required": ["a"], "allOf": [{}]},
    ):
        assert strict(other) == (None, False), other


# How it fails.


@pytest.mark.parametrize(
    ("why", "type"),
    [
        ("unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1/v1/responses", "auth"),
        ("Missing environment variable: `OPENAI_API_KEY`.", "auth"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
        ("You've hit your usage limit.", "rate_limited"),
        ("unexpected status 500 Internal Server Error: x", "http.500"),
        ("stream disconnected before completion: stream closed before response.completed", "network"),
        ("We’re currently experiencing high demand, which may cause temporary errors.", "network"),
        ("the model is not supported", "exit.1"),
    ],
)
def test_a_turn_that_failed_has_a_type(folder: Folder, why: str, type: str) -> None:
    folder.program("codex", f"WHY = {why!r}\n{FAILED}")
    error = failure(codex(), folder.context())
    assert (error.type, error.message) == (type, f"codex failed: {why}")
    assert error.details["session_id"] == "t-1"
    assert ("codex login" in (error.hint or "")) == (type == "auth")


@pytest.mark.parametrize(
    ("body", "type", "message"),
    [
        (
            "sys.stderr.write('noise\\nNot inside a trusted directory\\n'); sys.exit(1)",
            "exit.1",
            "Not inside a trusted",
        ),
        ("sys.exit(3)", "exit.3", "exit status 3"),
        ("pass", "truncated", "before it said"),
        (ANSWER.replace("turn.completed", "turn.else").replace("TEXT", "'x'"), "truncated", "before it said"),
        (ANSWER.replace("TEXT", "' \\n'"), "invalid_output", "returned nothing"),
        (ANSWER.replace("TEXT", "'x'") + "sys.exit(4)", "exit.4", "exit status 4"),
        ("os.kill(os.getpid(), 9)", "exit.137", "ended by SIGKILL"),
        ("say(type='error', message='HTTP 502: bad gateway')", "http.502", "bad gateway"),
        ("say(type='turn.failed', error={'message': 'it'}); sys.stderr.write('other\\n'); sys.exit(2)", "exit.2", "it"),
    ],
)
def test_an_end_that_is_no_success_is_told_as_it_is(folder: Folder, body: str, type: str, message: str) -> None:
    folder.program("codex", body)
    ctx = folder.context()
    error = failure(codex(), ctx)
    assert error.type == type
    assert message in error.message
    assert ctx.signals[-1] == ("agent.failed", {"agent": "codex", "error_type": type})


def test_a_turn_that_recovers_is_a_success(folder: Folder) -> None:
    answering(folder, "done", "say(type='error', message='stream disconnected'); say(type='turn.failed')")
    assert result(codex(), folder.context())["text"] == "done"


def test_where_it_is_not_installed_the_error_says_how_to_install_it(folder: Folder) -> None:
    ctx = folder.context()
    ctx.env = {"PATH": str(folder.bin)}
    error = failure(codex(), ctx)
    assert (error.type, error.hint) == ("refused", "npm install -g @openai/codex")
    assert "codex is not installed" in error.message


def test_an_empty_prompt_starts_nothing(folder: Folder) -> None:
    answering(folder)
    assert failure(codex(prompt="${{ inputs.x }}"), folder.context({"inputs": {"x": " "}})).type == "expression"
    assert failure(codex(model="${{ inputs.x }}"), folder.context({"inputs": {"x": "demo:echo"}})).type == "refused"
    assert not (folder.path / "started.json").exists()


# What may be done.


def test_what_is_not_permitted_is_not_started(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(folder)
    ctx = folder.context()
    ctx.permits = (Permits(shell=("codex",), write=(".",)),)
    # A permit names what tramai's own PATH has by the name, and no other program of that name.
    assert failure(codex(), ctx).message == f"the program codex in {folder.bin}/codex is not permitted"
    monkeypatch.setenv("PATH", ctx.env["PATH"])
    ctx.permits = (Permits(shell=("git",)),)
    assert failure(codex(), ctx).message == "the program codex is not permitted"
    ctx.permits = (Permits(shell=("codex",)),)
    assert "is not permitted" in failure(codex(sandbox="workspace-write"), ctx).message
    ctx.permits = (Permits(shell=("codex",), write=(".",)),)
    assert "writing in / is not permitted" in failure(codex(sandbox="full-access"), ctx).message
    (folder.path / "other").mkdir()
    (folder.work / "out").symlink_to(folder.path / "other")
    assert "is not permitted" in failure(codex(sandbox="workspace-write", cwd="out"), ctx).message
    assert not (folder.path / "started.json").exists()
    result(codex(sandbox="workspace-write"), ctx)
    ctx.permits = (Permits(shell=("codex",), write=("/",)),)
    result(codex(sandbox="full-access"), ctx)


@pytest.mark.parametrize(
    ("permits", "settings", "what"),
    [
        ("{shell: [git]}", "{prompt: x}", "the program codex is not permitted"),
        ("{shell: [codex]}", "{prompt: x, sandbox: workspace-write}", "the folder . is not permitted"),
        ("{shell: [codex], write: [src]}", "{prompt: x, sandbox: workspace-write, cwd: a}", "the folder a is not"),
        ("{shell: [codex], write: [.]}", "{prompt: x, sandbox: full-access}", "the folder / is not permitted"),
        ("{shell: [codex], write: [.]}", "{prompt: x, sandbox: workspace-write, cwd: src/a}", None),
        ("{shell: [codex], write: [/srv]}", "{prompt: x, sandbox: workspace-write, cwd: src}", None),
        ("{shell: [codex]}", "{prompt: x}", None),
    ],
)
def test_permits_are_looked_at_before_the_run(permits: str, settings: str, what: str | None) -> None:
    told = said(f"{HEAD}permits: {permits}\nsteps:\n  - {{id: a, codex: {settings}}}\n")
    assert [line[: len(what or "") + 7] for line in told] == ([f"TRM386 {what}"] if what else [])


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{model: x}", "TRM105"),
        ("{prompt: ''}", "TRM388"),
        ("{prompt: x, env: {TRAMAI_RUN_ID: y}}", "TRM313"),
        ("{prompt: x, env: {a-b: y}}", "TRM312"),
        ("{prompt: x, max_output: 0B}", "TRM314"),
        ("{prompt: x, model: 'openai:gpt-5'}", "TRM338"),
        ("{prompt: x, model: ''}", "TRM338"),
        ("{prompt: x, sandbox: danger-full-access}", "TRM107"),
    ],
)
def test_settings_that_cannot_work_are_problems(settings: str, code: str) -> None:
    _, problems = examine(f"{HEAD}steps:\n  - {{id: a, codex: {settings}}}\n")
    assert [problem.code for problem in problems] == [code], problems


def test_an_attempt_whose_end_was_not_seen_is_not_made_again() -> None:
    assert codex().replay() is Replay.NON_REPLAYABLE
