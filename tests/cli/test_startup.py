"""What a start imports: time that a user feels."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import HELLO, ROOT, write

CODE = """
import sys
from tramai.cli.entry import answer
status = answer(sys.argv[1:])
print("\\nMODULES", *sorted({*sys.modules, *(name.split(".")[0] for name in sys.modules)}), file=sys.__stderr__)
sys.exit(status)
"""
NEVER = {"httpx", "mcp", "psycopg", "starlette", "pydantic_ai", "openai", "anthropic"}


def imported(*arguments: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stderr.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--version",), ()])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    heavy = NEVER | {
        "jinja2",
        "jsonschema",
        "sqlite_utils",
        "ruamel",
        "click",
        "msgspec",
        "asyncio",
        "rich",
        "typing",
        "re",
    }
    assert not imported(*arguments) & heavy


def test_a_shell_run_imports_no_client_of_anything() -> None:
    assert not imported("run", write("hello.yaml", HELLO)) & NEVER


def test_an_unchanged_file_is_run_without_its_readers() -> None:
    write("hello.yaml", HELLO)
    imported("run", "hello.yaml")
    readers = {"jinja2", "jsonschema", "ruamel", "sqlite_utils", "rich", "asyncio", "click"}
    for_others = ("pool", "timetable", "portable", "worker", "scheduler", "tracing", "calling")
    others = {f"tramai.{name}" for name in for_others}
    assert not imported("run", "hello.yaml") & (NEVER | readers | others)


def test_a_run_of_plain_steps_imports_nothing_for_calls_gates_groups_or_containers() -> None:
    write("hello.yaml", HELLO)
    imported("run", "hello.yaml")
    rare = {"calling", "deciding", "asking", "queueing", "places", "port", "walking", "canonical", "linking"}
    rare |= {"cli._given", "workflow", "document", "check"}
    assert not imported("run", "hello.yaml") & {f"tramai.{name}" for name in rare}


def test_a_list_imports_no_reader_of_workflows() -> None:
    assert not imported("list") & (NEVER | {"jinja2", "jsonschema", "ruamel", "rich", "asyncio"})


def test_a_valid_file_is_checked_without_the_library_that_explains_mistakes() -> None:
    ask = "  - id: ask\n    ai: {model: demo:echo, prompt: hi, schema: {type: object}}\n"
    fetch = "  - id: fetch\n    http: {get: https://example.org, query: {q: [a, b]}}\n"
    file = write("valid.yaml", f"tramai: 1\nname: valid\nsteps:\n{ask}{fetch}")
    assert not imported("validate", file) & (NEVER | {"jsonschema", "sqlite3", "rich", "asyncio"})
