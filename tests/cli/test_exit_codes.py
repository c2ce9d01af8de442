"""Every exit status of every command, forced."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, GATE, HELLO, SLEEPS, document, write
from tramai.store import Change, Definition, Holder, Lease, Mark, NewRun, Record, Status
from tramai.stores import open_store

Call = Callable[..., Result]
RUN_COMMANDS = ("show", "logs", "diff", "cancel", "resume", "graph")


@pytest.fixture
def hello() -> str:
    return write("hello.yaml", HELLO)


@pytest.fixture
def invalid() -> str:
    return write("invalid.yaml", "tramai: 1\nname: x\nsteps:\n  - id: a\n    shel: ls\n")


def blocked_run(run_id: str = "blocked-run", path: str = "send") -> str:
    """A run whose runner died in the middle of a step."""
    store = open_store("sqlite:.tramai/tramai.db")
    lease = claimed(store, run_id)
    record = Record(
        seq=1, path=path, mark=Mark.UNKNOWN, attempt=1, verb="shell", at=2.0, fence=1, started=1.0,
        error=json.dumps({"message": "its end was not seen", "path": path, "type": "unknown_outcome"}),
    )  # fmt: skip
    store.commit(lease, Change(now=time.time(), records=(record,), status=Status.BLOCKED, release=True))
    store.close()
    return run_id


def owned_run(run_id: str = "owned-run") -> str:
    """A run that another runner, still alive as far as anybody knows, works on."""
    store = open_store("sqlite:.tramai/tramai.db")
    claimed(store, run_id, Holder("another-host", "", 1, ""))
    store.close()
    return run_id


def claimed(store: object, run_id: str, holder: Holder | None = None, start_key: str | None = None) -> Lease:
    from tramai import plan, workflow
    from tramai.store import Store

    made: Store = store  # type: ignore[assignment]
    definition: Definition = plan.of(workflow.load(write("owned.yaml", HELLO))).definition()
    new = NewRun(
        run_id=run_id, definition=definition, inputs='{"who":"x"}', cwd=os.getcwd(), created=time.time(),
        start_key=start_key,
    )  # fmt: skip
    _, lease = made.create(new, owner="them", holder=holder or Holder.here(), ttl=60.0, now=time.time())
    assert lease is not None
    return lease


# 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "hello.yaml"),
        ("run", "-n", "hello.yaml"),
        ("validate", "hello.yaml"),
        ("fmt", "hello.yaml"),
        ("convert", "hello.yaml", "--to", "toml"),
        ("plan", "hello.yaml"),
        ("graph", "hello.yaml"),
        ("digest", "hello.yaml"),
        ("schema",),
        ("explain",),
        ("list",),
        ("completion", "bash"),
    ],
)
def test_what_works_is_0(tramai: Call, hello: str, arguments: tuple[str, ...]) -> None:
    result = tramai(*arguments)
    assert result.exit_code == 0, result.output
    assert tramai(*arguments, "--json").exit_code == 0


@pytest.mark.parametrize("name", ["show", "logs", "graph", "resume"])
def test_looking_at_a_completed_run_is_0(tramai: Call, hello: str, name: str) -> None:
    tramai("run", hello)
    assert tramai(name, "@last").exit_code == 0


def test_resume_of_a_completed_run_is_0_and_runs_nothing(tramai: Call, hello: str) -> None:
    tramai("run", hello)
    result = tramai("resume", "@last", "--json")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert '"resumed":false' in lines[0]
    assert len(lines) == 2


# 1


def test_a_failed_step_is_1(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    assert tramai("run", "fails.yaml").exit_code == 1
    assert tramai("resume", "@last").exit_code == 1


def test_a_limit_is_1(tramai: Call) -> None:
    write("fails.yaml", FAILS.replace("name: fails", "name: fails\nlimits: {max_step_executions: 1}"))
    result = tramai("run", "fails.yaml")
    assert result.exit_code == 1
    assert "TRM402" in result.stderr


def test_findings_of_validate_are_1(tramai: Call, invalid: str) -> None:
    assert tramai("validate", invalid).exit_code == 1
    write("syntax.yaml", "a: [\n")
    assert tramai("validate", "syntax.yaml").exit_code == 1


# 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "hello.yaml", "-i", "nobody=1"),
        ("run", "hello.yaml", "-i", "who"),
        ("run", "hello.yaml", "-i", "who:={}"),
        ("run", "hello.yaml", "--wait", "60"),
        ("run", "hello.yaml", "--lease", "0s"),
        ("run", "hello.yaml", "--inputs", "missing.json"),
        ("run",),
        ("plan", "hello.yaml", "-i", "nobody=1"),
        ("plan",),
        ("validate",),
        ("validate", "empty"),
        ("validate", "hello.yaml", "--format", "xml"),
        ("validate", "hello.yaml", "--diff"),
        ("validate", "-", "--fix"),
        ("graph", "hello.yaml", "--format", "png"),
        ("init", "--template", "hello"),
        ("digest",),
        ("schema", "a", "b"),
        ("explain", "a", "b"),
        ("list", "--status", "lost"),
        ("list", "--limit", "0"),
        ("show",),
        ("show", "@first"),
        ("logs", "x", "--tail", "-1"),
        ("cancel",),
        ("resolve", "x", "y"),
        ("resolve", "x", "y", "--as", "done"),
        ("resolve", "x", "y", "--as", "retry", "--output", "1"),
        ("resume", "x", "--as-started", "--accept-changes"),
        ("completion", "cmd"),
        ("list", "--color", "blue"),
    ],
)
def test_a_wrong_command_line_is_2(tramai: Call, hello: str, arguments: tuple[str, ...]) -> None:
    Path("empty").mkdir()
    result = tramai(*arguments)
    assert result.exit_code == 2, result.output
    found = tramai(*arguments, "--json")
    assert found.exit_code == 2
    assert document(found)["schema"] == "tramai.error/1"


def test_several_runs_with_one_ending_are_2(tramai: Call) -> None:
    owned_run("a-same"), owned_run("b-same")
    assert tramai("show", "same").exit_code == 2


# 3


@pytest.mark.parametrize("name", ["run", "plan", "digest", "graph"])
def test_a_bad_or_missing_file_is_3(tramai: Call, invalid: str, name: str) -> None:
    Path("folder").mkdir()
    for file in (invalid, "missing.yaml", "folder/"):
        result = tramai(name, file)
        assert result.exit_code == 3, result.output
        found = tramai(name, file, "--json")
        assert found.exit_code == 3
        assert document(found)["schema"] == "tramai.error/1"
    assert not Path(".tramai").exists()


def test_a_path_that_validate_cannot_read_is_3_whatever_else_there_is(tramai: Call, hello: str, invalid: str) -> None:
    assert tramai("validate", hello, "missing.yaml").exit_code == 3
    result = tramai("validate", invalid, "missing.yaml", "--json")
    assert result.exit_code == 3
    found = document(result)
    assert found["schema"] == "tramai.validation/1"
    assert [file["file"] for file in found["files"]] == [invalid, "missing.yaml"]


@pytest.mark.parametrize("name", ["run", "list", "show"])
def test_a_wrong_configuration_is_3(tramai: Call, hello: str, name: str) -> None:
    write("tramai.toml", 'stor = "x"\n')
    result = tramai(name, hello) if name != "list" else tramai(name)
    assert result.exit_code == 3
    assert "tramai.toml:1:1" in result.stderr


def test_an_unknown_store_is_3(tramai: Call) -> None:
    assert tramai("list", "--store", "redis://x").exit_code == 3


def test_a_run_whose_file_is_gone_is_3_and_says_how_to_go_on(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    os.rename("fails.yaml", "moved.yaml")
    result = tramai("resume", "@last")
    assert result.exit_code == 3
    assert "fails.yaml" in result.stderr
    assert "--file FILE" in result.stderr
    assert "--as-started" in result.stderr
    assert tramai("resume", "@last", "--file", "moved.yaml").exit_code == 1
    assert tramai("resume", "@last", "--as-started").exit_code == 1
    assert tramai("show", "@last").exit_code == 0


# 4


@pytest.mark.parametrize("name", RUN_COMMANDS)
def test_no_such_run_is_4_and_creates_nothing(tramai: Call, name: str) -> None:
    result = tramai(name, "k3f9q2mz")
    assert result.exit_code == 4, result.output
    assert document(tramai(name, "k3f9q2mz", "--json"))["error"]["code"] == "TRM704"
    assert not Path(".tramai").exists()


def test_no_such_run_to_resolve_is_4(tramai: Call) -> None:
    assert tramai("resolve", "k3f9q2mz", "x", "--as", "retry").exit_code == 4


def test_no_such_step_is_4(tramai: Call, hello: str) -> None:
    tramai("run", hello)
    result = tramai("logs", "@last", "gret")
    assert result.exit_code == 4
    assert "did you mean greet?" in result.stderr
    assert tramai("resolve", blocked_run(), "sent", "--as", "retry").exit_code == 4


def test_no_such_schema_or_code_is_4(tramai: Call) -> None:
    assert tramai("schema", "worklow").exit_code == 4
    assert tramai("explain", "TRM999").exit_code == 4


# 5


def test_a_run_that_is_owned_is_5_and_names_the_owner(tramai: Call) -> None:
    result = tramai("resume", owned_run())
    assert result.exit_code == 5
    assert "owned by them until" in result.stderr


def test_an_unknown_outcome_is_5_and_says_the_ways_on(tramai: Call) -> None:
    result = tramai("resume", blocked_run())
    assert result.exit_code == 5
    for choice in ("completed", "retry", "failed"):
        assert f"tramai resolve blocked-run send --as {choice}" in result.stderr


def test_a_changed_definition_is_5_and_says_what_changed(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    write("fails.yaml", FAILS.replace("exit 3", "exit 4"))
    result = tramai("resume", "@last")
    assert result.exit_code == 5
    assert "step `build`: `shell.run` changed" in result.stderr
    assert "has begun" in result.stderr
    assert "--as-started" in result.stderr
    assert tramai("resume", "@last", "--accept-changes").exit_code == 5
    assert tramai("resume", "@last", "--as-started").exit_code == 1


def test_what_a_run_is_too_late_for_is_5(tramai: Call, hello: str) -> None:
    tramai("run", hello)
    assert tramai("cancel", "@last").exit_code == 5
    assert tramai("resolve", "@last", "greet", "--as", "retry").exit_code == 5


def test_a_cancelled_run_cannot_be_resumed(tramai: Call) -> None:
    write("sleeps.yaml", SLEEPS)
    tramai("run", "sleeps.yaml")
    assert tramai("cancel", "@last", "--comment", "not needed").exit_code == 0
    result = tramai("resume", "@last")
    assert (result.exit_code, "error[TRM506]" in result.stderr) == (5, True)
    assert "tramai run FILE starts a new one" in result.stderr


def test_a_start_key_of_a_run_that_is_under_way_is_5(tramai: Call, hello: str) -> None:
    store = open_store("sqlite:.tramai/tramai.db")
    from tramai import plan, workflow

    new = NewRun(
        run_id="first", definition=plan.of(workflow.load(hello)).definition(), inputs="{}", cwd=os.getcwd(),
        created=time.time(), start_key="k",
    )  # fmt: skip
    store.create(new, owner="them", holder=Holder("another-host", "", 1, ""), ttl=60.0, now=time.time())
    store.close()
    result = tramai("run", hello, "--start-key", "k")
    assert result.exit_code == 5
    assert "owned by them" in result.stderr


# 6


def test_a_missing_secret_is_6_and_nothing_starts(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN_FOR_TEST", raising=False)
    write("secret.yaml", HELLO.replace("steps:", "secrets: {TOKEN: {env: TOKEN_FOR_TEST}}\nsteps:"))
    result = tramai("run", "secret.yaml")
    assert result.exit_code == 6
    assert "TOKEN_FOR_TEST" in result.stderr
    assert tramai("list", "--json").stdout.count("run_id") == 0
    write(".env", "TOKEN_FOR_TEST=abcdef\n")
    monkeypatch.setenv("TOKEN_FOR_TEST", "")
    os.environ.pop("TOKEN_FOR_TEST")
    assert tramai("run", "secret.yaml", "--env-file", ".env").exit_code == 0
    os.environ.pop("TOKEN_FOR_TEST", None)


def test_credentials_that_a_service_refuses_are_6(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    said = '{"type": "result", "is_error": true, "api_error_status": 401, "result": "API Error: 401"}'
    Path("bin").mkdir()
    write("bin/claude", f"#!/bin/sh\ncat >/dev/null\necho '{said}'\n")
    Path("bin/claude").chmod(0o755)
    monkeypatch.setenv("PATH", os.path.abspath("bin"), prepend=os.pathsep)
    write("asks.yaml", "tramai: 1\nname: asks\nsteps:\n  - {id: ask, claude: {prompt: hello}}\n")
    result = tramai("run", "asks.yaml")
    assert (result.exit_code, "error[TRM602]" in result.stderr) == (6, True), result.stderr


# 7


@pytest.mark.parametrize("name", ["run", "list", "show", "resume", "logs", "cancel"])
def test_a_store_that_is_no_store_is_7(tramai: Call, hello: str, name: str) -> None:
    write("broken.db", "this is no database, whatever its name says\n" * 40)
    arguments = {"run": ("run", hello), "list": ("list",)}.get(name, (name, "x"))
    result = tramai(*arguments, "--store", "sqlite:broken.db")
    assert result.exit_code == 7, result.output
    assert document(tramai(*arguments, "--store", "sqlite:broken.db", "--json"))["exit_status"] == 7


def test_a_folder_for_the_store_that_cannot_be_made_is_7(tramai: Call, hello: str) -> None:
    write(".tramai", "a file where the folder should be")
    assert tramai("run", hello).exit_code == 7


# 10, 11


def test_a_rejected_gate_is_10(tramai: Call) -> None:
    write("gate.yaml", GATE)
    result = tramai("run", "gate.yaml")
    assert result.exit_code == 10
    assert "the score is too low" in result.stderr


def test_a_suspended_run_is_11_and_0_when_that_is_fine(tramai: Call) -> None:
    write("sleeps.yaml", SLEEPS)
    assert tramai("run", "sleeps.yaml").exit_code == 11
    assert tramai("resume", "@last").exit_code == 11
    assert tramai("resume", "@last", "--ok-if-suspended").exit_code == 0
    result = tramai("run", "sleeps.yaml", "--ok-if-suspended", "--json")
    assert result.exit_code == 0
    assert '"exit_status":0' in result.stdout.splitlines()[-1]


# 70


@pytest.mark.parametrize("name", ["list", "run"])
def test_a_bug_of_ours_is_70(
    tramai: Call, hello: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tramai.stores.open_store", fail)
    result = tramai("list") if name == "list" else tramai("run", hello)
    assert result.exit_code == 70
    assert "Traceback" not in result.output
