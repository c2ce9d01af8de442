"""`hermes`: how it is started, and that an error that it prints as its answer is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tramai.step import Usage
from tramai.steps.hermes import Hermes

from .agents import Folder, failure, result, usage
from .step_context import made

TALK = """
def told(**told):
    base = dict(failed=False, completed=True, session_id="s-1", model="m", input_tokens=11, output_tokens=7,
        cache_read_tokens=4, cache_write_tokens=0, estimated_cost_usd=0.0, cost_status="unknown")
    with open(after("--usage-file"), "w") as file:
        json.dump({**base, **told}, file)
"""
RISK = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def hermes(**settings: Any) -> Hermes:
    return made(Hermes, **{"prompt": "Look.", **settings})


def saying(folder: Folder, text: str, told: str = "told()", after: str = "") -> None:
    folder.program("hermes", f"{TALK}\nraw({text!r}.encode() + b'\\n')\n{told}\n{after}")


def test_the_prompt_is_one_argument_whatever_it_begins_with(folder: Folder) -> None:
    saying(folder, "done\n")
    result(hermes(prompt="${{ inputs.x }}", model="m/x"), folder.context({"inputs": {"x": "-v 'it' $(id)\nsecond"}}))
    argv = folder.started["argv"]
    assert argv[0] == "--oneshot=-v 'it' $(id)\nsecond"
    assert argv[argv.index("--model") + 1] == "m/x"
    assert folder.started["stdin"] == ""


def test_what_it_prints_is_the_answer_without_its_line_end(folder: Folder) -> None:
    text = "\x1b[2J two\nlines, ::set-output:: é\n"
    saying(folder, text)
    assert result(hermes(), folder.context()) == {
        "text": text,
        "usage": {"input_tokens": 15, "output_tokens": 7, "cost_usd": None},
        "model": "m",
        "finish_reason": "completed",
        "session_id": "s-1",
        "exit_code": 0,
    }
    assert folder.shown == [text + "\n"]
    saying(folder, "x", "told(estimated_cost_usd=0.5, cost_status='estimated')")
    assert usage(hermes(), folder.context()) == Usage(input_tokens=15, output_tokens=7, cost_usd=0.5)


def test_what_it_may_do_are_its_tools_and_where_they_may_write(folder: Folder) -> None:
    saying(folder, "done")
    result(hermes(), folder.context())
    argv, env = folder.started["argv"], folder.started["env"]
    assert argv[argv.index("--toolsets") + 1] == "file,web,vision,todo"
    assert env["HERMES_WRITE_SAFE_ROOT"].endswith("/nothing")
    result(hermes(sandbox="workspace-write", env={"HERMES_WRITE_SAFE_ROOT": "/"}), folder.context())
    assert folder.started["env"]["HERMES_WRITE_SAFE_ROOT"] == str(folder.work)
    result(hermes(sandbox="full-access"), folder.context())
    assert "--toolsets" not in folder.started["argv"]
    assert "HERMES_WRITE_SAFE_ROOT" not in folder.started["env"]


@pytest.mark.parametrize(
    ("text", "told", "type", "message"),
    [
        ("HTTP 401: fake 401", "told(failed=True)", "auth", "HTTP 401: fake 401"),
        ("API call failed after 3 retries: HTTP 429: x", "told(failed=True)", "rate_limited", "HTTP 429: x"),
        ("HTTP 500: x", "told(failed=True)", "http.500", "HTTP 500: x"),
        ("No inference provider configured. Run hermes setup", "told(failed=True)", "auth", "provider"),
        ("odd", "told(failed=None)", "exit.0", "odd"),
        ("", "told(failed=True, failure='it broke')", "exit.0", "it broke"),
        ("half", "told(completed=False)", "truncated", "limit of its own"),
        ("half", "pass", "truncated", "before it said"),
        ("half", "open(after('--usage-file'), 'w').write('{\"failed\": fal')", "truncated", "before it said"),
        ("", "told()", "invalid_output", "returned nothing"),
        ("⚠️ No reply: the model returned empty content", "told()", "invalid_output", "returned nothing"),
        ("x" * 2_000_000, "told()", "truncated", "longer than max_output"),
    ],
)
def test_exit_status_0_is_no_success_by_itself(folder: Folder, text: str, told: str, type: str, message: str) -> None:
    saying(folder, text, told)
    error = failure(hermes(), folder.context())
    assert error.type == type, error.message
    assert message in error.message
    assert error.details["exit_code"] == 0


def test_an_exit_status_counts_too(folder: Folder) -> None:
    saying(folder, "x", "told()", "sys.stderr.write('hermes -z: agent failed: it\\n'); sys.exit(1)")
    error = failure(hermes(), folder.context())
    assert (error.type, error.message) == ("exit.1", "hermes failed: hermes -z: agent failed: it")


def test_a_prompt_that_is_too_long_for_an_argument_starts_nothing(folder: Folder) -> None:
    saying(folder, "done")
    ctx = folder.context({"inputs": {"x": "é" * 100_000, "nul": "a\0b"}})
    error = failure(hermes(prompt="${{ inputs.x }}"), ctx)
    assert (error.type, error.details["size"]) == ("limit", 200_000)
    assert "the prompt has 200,000 bytes" in error.message
    assert failure(hermes(prompt="${{ inputs.nul }}"), ctx).type == "refused"
    assert not (folder.path / "started.json").exists()
    longest = 131_071 - len("--oneshot=")
    result(hermes(prompt="y" * longest), folder.context())
    assert failure(hermes(prompt="y" * (longest + 1)), folder.context()).type == "limit"


def test_data_is_asked_for_in_the_prompt_and_judged_here(folder: Folder) -> None:
    saying(folder, 'Sure.\n```json\n{"risk": "low"}\n```')
    assert result(hermes(schema=RISK), folder.context())["value"] == {"risk": "low"}
    assert "Answer with JSON only" in folder.started["argv"][0]
    saying(folder, '{"risk": "none"}')
    error = failure(hermes(schema=RISK), folder.context())
    assert error.type == "invalid_output"
    assert "/risk" in error.message


def test_its_files_of_ours_are_gone_afterwards(folder: Folder) -> None:
    saying(folder, "done", "told()")
    result(hermes(), folder.context())
    argv = folder.started["argv"]
    assert not Path(argv[argv.index("--usage-file") + 1]).parent.exists()


def test_where_it_is_not_installed_the_error_says_how_to_install_it(folder: Folder) -> None:
    ctx = folder.context()
    ctx.env = {"PATH": str(folder.bin)}
    assert failure(hermes(), ctx).hint == "pip install hermes-agent"
