"""`claude`: how it is started, what its stream becomes, and success only where it says so in every way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tramai.step import Usage
from tramai.steps.claude import Claude

from .agents import Folder, failure, result, usage
from .reading import HEAD, said
from .step_context import made

INIT = 'say(type="system", subtype="init", session_id="s-1", model="claude-x", tools=["Read"])\n'
TALK = """
def message(id, *content, read=11, wrote=7):
    used = dict(input_tokens=read, cache_creation_input_tokens=2, cache_read_input_tokens=3, output_tokens=wrote)
    say(type="assistant", session_id="s-1", message={"id": id, "content": list(content), "usage": used})
def result(**told):
    used = {"input_tokens": 11, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 7}
    base = dict(type="result", subtype="success", is_error=False, api_error_status=None, result="done",
        stop_reason="end_turn", session_id="s-1", total_cost_usd=0.25, usage=used, modelUsage={}, permission_denials=[])
    say(**{**base, **told})
"""
RISK = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def claude(**settings: Any) -> Claude:
    return made(Claude, **{"prompt": "Look.", **settings})


def saying(folder: Folder, body: str = "result()") -> None:
    folder.program("claude", INIT + TALK + body)


@pytest.mark.parametrize(
    ("sandbox", "flags"),
    [
        ("read-only", ["--tools", "Read,Glob,Grep", "--permission-mode", "dontAsk", "--strict-mcp-config"]),
        ("workspace-write", ["--permission-mode", "acceptEdits"]),
        ("full-access", ["--dangerously-skip-permissions"]),
    ],
)
def test_what_it_may_do_are_the_tools_and_permissions_that_it_gets(
    folder: Folder, sandbox: str, flags: list[str]
) -> None:
    saying(folder)
    ctx = folder.context({"inputs": {"x": "y" * 200_000}})
    result(claude(prompt="- ${{ inputs.x }}", sandbox=sandbox, model="opus"), ctx)
    front = ["-p", "--output-format", "stream-json", "--verbose"]
    assert folder.started["argv"] == [*front, *flags, "--model", "opus"]
    assert folder.started["stdin"] == "- " + "y" * 200_000
    assert folder.started["env"]["DISABLE_AUTOUPDATER"] == "1"


def test_the_result_is_the_answer_with_its_price(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/somewhere")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not for it")
    text = "\x1b[31m::error::x\u202e é"
    body = f"""
message("m1", {{"type": "text", "text": "I look."}})
message("m1", {{"type": "tool_use", "name": "Bash", "input": {{"command": "ls\\n-l"}}}})
say(type="user", message={{"content": [{{"type": "tool_result", "content": "{{}}"}}]}})
say(type="new", message=None); say(type="assistant", message=[])
say(type="assistant", message={{"content": [1, None]}})
raw(b'not JSON\\n')
result(result={text!r}, permission_denials=[{{"tool_name": "Write"}}, None])
"""
    saying(folder, body)
    step = claude()
    assert result(step, folder.context()) == {
        "text": text,
        "usage": {"input_tokens": 16, "output_tokens": 7, "cost_usd": 0.25},
        "model": "claude-x",
        "finish_reason": "end_turn",
        "session_id": "s-1",
        "exit_code": 0,
    }
    assert folder.shown[:4] == ["I look.\n", "Bash: ls -l\n", "not permitted: Write\n", "not permitted: a tool\n"]
    assert usage(step, folder.context()) == Usage(input_tokens=16, output_tokens=7, cost_usd=0.25)
    assert folder.started["env"]["CLAUDE_CONFIG_DIR"] == "/somewhere"
    assert "ANTHROPIC_API_KEY" not in folder.started["env"]


def test_all_models_that_it_used_are_counted(folder: Folder) -> None:
    models = {"a": {"inputTokens": 10, "outputTokens": 1, "cacheReadInputTokens": 5}, "b": {"inputTokens": 2}}
    saying(folder, f"result(modelUsage={models!r}, total_cost_usd=None)")
    assert usage(claude(), folder.context()) == Usage(input_tokens=17, output_tokens=1)


@pytest.mark.parametrize(
    ("told", "type", "message"),
    [
        ("is_error=True, api_error_status=401, result='Failed to authenticate. API Error: 401 x'", "auth", "401 x"),
        ("is_error=True, result='Not logged in · Please run /login'", "auth", "Not logged in"),
        ("is_error=True, api_error_status=429, result='API Error: Request rejected (429) · x'", "rate_limited", "x"),
        ("is_error=True, result='API Error: Request rejected (429) · x'", "rate_limited", "429"),
        ("is_error=True, api_error_status=529, result='API Error: 529 Overloaded'", "http.529", "Overloaded"),
        ("is_error=True, result='API Error: Connection error.'", "network", "Connection error"),
        ("is_error=None, result='odd'", "exit.0", "odd"),
        ("subtype='error_max_turns', result=None", "exit.0", "error_max_turns"),
        ("subtype='error_during_execution', result=None, errors=['it broke']", "exit.0", "it broke"),
        ("stop_reason='max_tokens', result='half'", "truncated", "finish reason: max_tokens"),
        ("stop_reason='refusal', result='no'", "refused", "refused to answer"),
        ("result=''", "invalid_output", "returned nothing"),
        ("result='x' * 2_000_000", "truncated", "longer than max_output"),
        ("result='x' * 9_000_000", "truncated", "longer than max_output"),
        ("type='results'", "truncated", "before it said that it was done"),
    ],
)
def test_success_is_only_what_says_so_in_every_way(folder: Folder, told: str, type: str, message: str) -> None:
    saying(folder, f"message('m', {{'type': 'text', 'text': 'partly'}})\nresult(**dict({told}))")
    error = failure(claude(), folder.context())
    assert error.type == type, error.message
    assert message in error.message
    assert error.details["session_id"] == "s-1"
    assert error.usage is not None
    assert error.usage.input_tokens == 16


def test_what_was_used_until_it_broke_off_is_counted_once_a_message(folder: Folder) -> None:
    saying(folder, "message('a', {}); message('a', {}); message('b', {}, read=20, wrote=1); sys.exit(1)")
    error = failure(claude(), folder.context())
    assert (error.type, error.usage) == ("exit.1", Usage(input_tokens=16 + 25, output_tokens=8))


def test_as_root_it_says_on_stderr_why_it_does_nothing(folder: Folder) -> None:
    folder.program("claude", "sys.stderr.write('cannot be used with root/sudo privileges\\n'); sys.exit(1)")
    error = failure(claude(), folder.context())
    assert error.message == "claude failed: cannot be used with root/sudo privileges"


# Answers with a schema.


def test_structured_output_is_taken_and_judged_here(folder: Folder) -> None:
    saying(folder, "result(structured_output={'risk': 'low'}, stop_reason='tool_use')")
    assert result(claude(schema=RISK), folder.context())["value"] == {"risk": "low"}
    argv = folder.started["argv"]
    assert json.loads(argv[argv.index("--json-schema") + 1]) == RISK
    saying(folder, "result(structured_output={'risk': 'none'})")
    assert "/risk" in failure(claude(schema=RISK), folder.context()).message
    saying(folder, "result(result='I will not call the tool')")
    assert "not JSON" in failure(claude(schema=RISK), folder.context()).message
    saying(folder, """result(result='```json\\n{"risk": "high"}\\n```')""")
    assert result(claude(schema=RISK), folder.context())["value"] == {"risk": "high"}


def test_a_schema_of_no_object_goes_into_the_prompt_and_a_huge_one_is_refused_by_name(folder: Folder) -> None:
    saying(folder, "result(result='[1]')")
    assert result(claude(schema={"type": "array"}), folder.context())["value"] == [1]
    assert "Answer with JSON only" in folder.started["stdin"]
    error = failure(claude(schema={"type": "object", "description": "x" * 140_000}), folder.context())
    assert error.type == "limit"
    assert error.message.startswith("`schema` has 140,")


def test_a_value_never_becomes_one_of_its_commands(folder: Folder) -> None:
    saying(folder)
    error = failure(claude(prompt="${{ inputs.x }}"), folder.context({"inputs": {"x": " /clear"}}))
    assert error.type == "refused"
    assert not (folder.path / "started.json").exists()
    result(claude(prompt="/review ${{ inputs.x }}"), folder.context({"inputs": {"x": "/y"}}))
    assert folder.started["stdin"] == "/review /y"


def test_where_it_is_not_installed_the_error_says_how_to_install_it(folder: Folder) -> None:
    ctx = folder.context()
    ctx.env = {"PATH": str(folder.bin)}
    assert failure(claude(), ctx).hint == "npm install -g @anthropic-ai/claude-code"


def test_two_prompts_are_one_too_many(tmp_path: Path) -> None:
    (line,) = said(f"{HEAD}steps:\n  - {{id: a, claude: {{prompt: x, prompt_file: y.md, model: 'anthropic:opus'}}}}\n")[
        1:2
    ]
    assert "claude" in line
