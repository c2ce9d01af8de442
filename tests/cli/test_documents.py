"""Every command has its JSON document, and every document meets its published schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, ROOT, SLEEPS, document, write
from tests.cli.test_exit_codes import blocked_run
from tramai.cli import _schemas

Call = Callable[..., Result]


def schema(name: str) -> dict[str, Any]:
    with open(ROOT / "schemas" / f"{name}.schema.json", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of a published schema, which `test_every_schema_is_one` looks at."""
    return jsonschema.Draft202012Validator(schema(name))


def meets(found: Any, name: str) -> None:
    """Fail where it is no such document."""
    validator(name).validate(found)


def check(found: dict[str, Any]) -> dict[str, Any]:
    meets(found, found["schema"].removeprefix("tramai.").removesuffix("/1"))
    return found


def test_the_published_schemas_are_fresh() -> None:
    for name, made in _schemas.schemas().items():
        assert schema(name) == made, "python -m tramai.cli._schemas schemas"


@pytest.mark.parametrize("name", sorted(path.name.split(".")[0] for path in (ROOT / "schemas").iterdir()))
def test_every_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("validate", "hello.yaml"), "validation"),
        (("validate", "invalid.yaml"), "validation"),
        (("validate", "missing.yaml"), "validation"),
        (("validate", "invalid.yaml", "--fix"), "validation"),
        (("fmt", "hello.yaml"), "formatting"),
        (("convert", "hello.yaml", "--to", "toml"), "conversion"),
        (("plan", "hello.yaml"), "plan"),
        (("run", "-n", "hello.yaml"), "plan"),
        (("test", "hello.tramai-test.yaml"), "tests"),
        (("test", "gone.tramai-test.yaml"), "tests"),
        (("diff", "@failed"), "diff"),
        (("diff", "@failed", "@last"), "diff"),
        (("graph", "hello.yaml"), "graph"),
        (("graph", "@last"), "graph"),
        (("digest", "hello.yaml"), "digest"),
        (("schema", "run"), "schema"),
        (("init", "new", "--template", "etl"), "made"),
        (("schema", "step"), "reference"),
        (("schema", "step", "shell"), "reference"),
        (("explain", "limits.timeout"), "reference"),
        (("explain",), "codes"),
        (("explain", "TRM701"), "explanation"),
        (("list",), "runs"),
        (("show", "@failed"), "run"),
        (("logs", "@failed"), "logs"),
        (("logs", "@failed", "-f"), "log"),
        (("cancel", "@last:sleeps"), "cancelled"),
        (("resolve", "blocked-run", "send", "--as", "retry"), "resolved"),
        (("plugin", "list"), "plugins"),
        (("doctor",), "doctor"),
        (("schema", "step", "ticket"), "reference"),
        (("store", "info"), "store_info"),
        (("store", "check"), "store_check"),
        (("store", "migrate"), "store_migration"),
        (("store", "migrate", "--print-sql"), "store_sql"),
        (("store", "prune", "--older-than", "0s", "--status", "failed"), "store_pruning"),
        (("store", "copy", "--all", "--to", "sqlite:b.db"), "store_copy"),
        (("store", "move", "--all", "--to", "sqlite:b.db"), "store_move"),
        (("schedule", "preview", "30 2 * * *", "--tz", "Europe/Rome"), "schedule_preview"),
        (("completion", "zsh"), "completion"),
        (("--version",), "version"),
        (("show", "nothing"), "error"),
        (("run", "invalid.yaml"), "error"),
        (("run", "missing.yaml"), "error"),
        (("resume", "nothing"), "error"),
        (("nonsense",), "error"),
    ],
)
def test_json_is_one_document_that_meets_its_schema(
    tramai: Call, once: Callable[[Callable[[], object]], None], arguments: tuple[str, ...], name: str
) -> None:
    def make() -> None:
        write("hello.yaml", HELLO)
        write("hello.tramai-test.yaml", "workflow: hello.yaml\ntests: [{name: one}, {name: two, allow: [shell]}]\n")
        write("invalid.yaml", "tramai: 1\nname: x\nsteps:\n  - {id: a, shel: ls}\n  - {id: a, local: 1}\n")
        write("fails.yaml", FAILS.replace("echo no such file >&2; ", ""))
        write("sleeps.yaml", SLEEPS)
        blocked_run()
        for file in ("sleeps.yaml", "fails.yaml"):
            tramai("run", file, "-q")

    once(make)
    result = tramai("--json", *arguments)
    found = check(document(result))
    assert found["schema"] == f"tramai.{name}/1"
    assert result.stderr == ""
    assert result.stdout.isascii()


@pytest.mark.parametrize("text", [HELLO, FAILS, SLEEPS])
def test_run_and_resume_write_an_event_a_line(tramai: Call, text: str) -> None:
    write("w.yaml", text)
    for arguments in (("run", "w.yaml"), ("resume", "@last"), ("rerun", "@last")):
        result = tramai(*arguments, "--json")
        events = [json.loads(line) for line in result.stdout.splitlines()]
        for event in events:
            meets(event, "events")
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[0]["type"] == "run.started"
        assert events[0]["run_id"]
        assert events[-1]["type"] == "run.finished"
        assert events[-1]["exit_status"] == result.exit_code
        assert result.stderr == ""


def test_an_error_after_the_first_event_is_the_last_line_and_names_the_run(
    tramai: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tramai.errors import StoreUnavailable
    from tramai.stores.sqlite import Sqlite

    def fail(*_: object, **__: object) -> int:
        raise StoreUnavailable(what="the disk is full")

    write("hello.yaml", HELLO)
    monkeypatch.setattr(Sqlite, "commit", fail)
    result = tramai("run", "hello.yaml", "--json")
    assert result.exit_code == 7
    first, *_, last = [json.loads(line) for line in result.stdout.splitlines()]
    assert check(last)["error"]["run_id"] == first["run_id"]


def test_a_run_document_holds_steps_attempts_and_state(tramai: Call) -> None:
    write(
        "state.yaml",
        "tramai: 1\nname: state\nstate: {n: {initial: 1}, m: {initial: 5}}\nsteps:\n"
        "  - {id: a, local: '${{ state.n + 1 }}', save: {n: '${{ result }}'}}\n"
        "  - {id: b, when: '${{ state.n > 5 }}', local: 1}\n"
        "  - id: c\n    shell: echo x; exit 7\n    retry: {max_attempts: 2, delay: 10ms}\n",
    )
    assert tramai("run", "state.yaml", "--label", "x", "--label", "y").exit_code == 1
    run = check(document(tramai("show", "@last", "--json")))["run"]
    assert run["state"] == {"n": 2, "m": 5}
    assert run["labels"] == ["x", "y"]
    a, b, c = run["steps"]
    assert (a["path"], a["id"], a["verb"], a["status"], a["output"]) == ("a", "a", "local", "succeeded", 2)
    assert (b["status"], b["attempts"]) == ("skipped", [])
    assert [(one["attempt"], one["status"], one["exit_status"]) for one in c["attempts"]] == [
        (1, "failed", 7),
        (2, "failed", 7),
    ]
    assert c["attempts"][0]["log"]
    assert Path(c["attempts"][0]["log"]).stat().st_mode & 0o077 == 0
