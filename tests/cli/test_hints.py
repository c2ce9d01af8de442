"""Commands that are shown do what they say when they are typed as they stand."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, SLEEPS, document, write
from tests.cli.test_exit_codes import blocked_run
from tramai import ticking

Call = Callable[..., Result]
ASKS = "tramai: 1\nname: asks\nsteps: [{id: ok, gate: {ask: Go on?}}]\n"
STORE = ("--store", "sqlite:a place/runs.db")
SHOWN = re.compile(
    r"tramai (?:-|approve|cancel|list|logs|resolve|resume|show|status|store|watch).*?(?=\)|    |$)", re.M
)


def commands(text: str) -> list[list[str]]:
    """The command lines in a text, as a shell reads them."""
    return [shlex.split(line)[1:] for line in SHOWN.findall(text)]


@pytest.mark.parametrize("where", [STORE, ("-C", "a place"), ("-C", "a place", "--store", "sqlite:runs.db")])
def test_a_command_that_is_shown_finds_the_runs_of_the_one_before(tramai: Call, where: tuple[str, ...]) -> None:
    Path("a place").mkdir()
    for name, text in (("fails", FAILS), ("asks", ASKS)):
        write(f"{name}.yaml", text)
        write(f"a place/{name}.yaml", text)
    said = "".join(tramai(*where, "run", f"{name}.yaml", "--progress", "plain").stderr for name in ("fails", "asks"))
    said += tramai("show", "@last:fails", *where).stdout + tramai(*where, "status").stdout
    found = commands(said)
    assert {words[len(where)] for words in found} == {"show", "resume", "approve"}
    for words in found:
        assert tuple(words[: len(where)]) == where
        assert tramai(*words, "--no-input" if words[len(where)] == "resume" else "-q").exit_code != 4, words


def test_documents_and_errors_show_it_too(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml", *STORE)
    (command,) = document(tramai("status", "--json", *STORE))["failed"][0]["commands"]
    assert command.startswith(f"tramai {shlex.join(STORE)} resume ")
    write("fails.yaml", FAILS.replace("exit 3", "exit 4"))
    refused = tramai("resume", "@last", *STORE, "--json")
    (hint,) = [json.loads(line)["error"]["hint"] for line in refused.stdout.splitlines()]
    assert all(line.startswith(f"tramai {shlex.join(STORE)} resume ") for line in hint.splitlines())


def test_a_password_is_not_repeated(tramai: Call) -> None:
    from tramai.cli._again import typed
    from tramai.cli._session import Session

    session = Session([])
    session.flags["store"] = "postgresql://me:s3cret@db/x"
    assert typed(session, "go on: tramai resume x") == "go on: tramai --store postgresql://me@db/x resume x"
    assert typed(session, "tramai explain TRM104, tramai show x --store sqlite:y") == (
        "tramai explain TRM104, tramai show x --store sqlite:y"
    )


def test_the_next_page_is_of_the_same_list(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("sleeps.yaml", SLEEPS)
    for _ in range(3):
        tramai("run", "hello.yaml", "--label", "a b")
        tramai("run", "sleeps.yaml")
    where = ("--workflow", "hello", "--status", "completed", "--label", "a b", "--limit", "2")
    first = tramai("list", *where)
    (words,) = commands(first.stderr)
    second = tramai(*words)
    assert [len(page.stdout.splitlines()) for page in (first, second)] == [2, 1]
    assert "sleeps" not in second.stdout


def test_a_changed_file_in_another_place_is_named_by_the_way_on(tramai: Call) -> None:
    text = "tramai: 1\nname: two\nsteps:\n  - {id: a, delay: 61s}\n  - {id: b, local: 1}\n"
    tramai("run", write("two.yaml", text))
    Path("two.yaml").unlink()
    write("a new place.yaml", text.replace("b, local: 1", "b, local: 2"))
    refused = tramai("resume", "@last", "--file", "a new place.yaml").stderr
    shown = tramai("diff", "@last", "a new place.yaml").stdout
    for said in (shown, refused):
        (words,) = [words for words in commands(said) if "--accept-changes" in words]
        assert words[2:] == ["--file", "a new place.yaml", "--accept-changes"]
    assert tramai(*words).exit_code == 11  # its time has not come yet


def test_rights_to_give_are_given_to_the_file_that_is_meant(tramai: Call) -> None:
    write("my vars", "A=1\n")
    Path("my vars").chmod(0o644)
    write("my tool", "#!/bin/sh\n")
    write("w.yaml", "tramai: 1\nname: w\nsteps: [{id: a, shell: {argv: ['./my tool']}}]\n")
    said = tramai("run", "w.yaml", "--env-file", "my vars", "--store", "sqlite:my runs.db").stderr
    Path("my runs.db").chmod(0o644)
    said += tramai("doctor", "--store", "sqlite:my runs.db").stdout
    found = [shlex.split(line)[-1] for line in re.findall(r"chmod .*", said)]
    assert sorted(map(os.path.basename, found)) == ["my runs.db", "my tool", "my vars"]
    assert all(os.path.exists(file) for file in found)


@pytest.mark.parametrize("field", ["the ticket", "a:b", "it's $HOME", "日本 語"])
def test_a_field_of_any_name_can_be_given_as_it_is_shown(tramai: Call, field: str) -> None:
    form = {"properties": {field: {"type": "string"}}, "required": [field]}
    gate = json.dumps({"ask": "Go on?", "form": form}, ensure_ascii=False)
    write("asks.yaml", f"tramai: 1\nname: asks\nsteps: [{{id: ok, gate: {gate}}}]\n")
    (shown,) = re.findall(r"approve: +(tramai approve .*)", tramai("run", "asks.yaml").stderr)
    words = shlex.split(shown.replace("…", "OPS-7"))
    assert tramai(*words[1:]).exit_code == 0, shown
    (event,) = [
        one for one in document(tramai("show", "@last", "--json"))["run"]["events"] if one["type"] == "gate.decided"
    ]
    assert event["data"]["data"] == {field: "OPS-7"}


def test_what_init_says_to_type_next_can_be_typed(tramai: Call) -> None:
    made = document(tramai("init", "my flows", "--json"))
    for line in made["next"]:
        assert tramai(*shlex.split(line)[1:]).exit_code == 0, line


def test_the_way_to_take_a_run_along_can_be_typed(tramai: Call) -> None:
    tramai("run", write("sleeps.yaml", SLEEPS))
    (words,) = commands(tramai("store", "copy", "@last", "--to", "sqlite:a place.db").stderr)
    assert tramai(*words).exit_code == 0
    assert document(tramai("list", "--status", "moved", "--json"))["runs"]


def test_where_a_run_has_gone_can_be_typed(tramai: Call) -> None:
    tramai("run", write("hello.yaml", HELLO))
    assert tramai("store", "move", "@last", "--to", "sqlite:a place.db").exit_code == 0
    (run,) = document(tramai("list", "--status", "moved", "--json"))["runs"]
    hint = document(tramai("resume", run["run_id"], "--json"))["error"]["hint"]
    assert tramai(*shlex.split(hint)[1:]).exit_code == 0, hint


def test_the_name_of_a_schedule_is_one_word() -> None:
    for name, typed in (("nightly#1", "nightly#1"), ("my flow#2", "'my flow#2'"), ("a;b#1", "'a;b#1'")):
        assert (ticking.as_typed(name), shlex.split(ticking.as_typed(name))) == (typed, [name])


def test_a_path_that_a_shell_would_take_apart_is_quoted(tramai: Call) -> None:
    run_id = blocked_run(path="each[a b].deploy")
    for said in (tramai("show", run_id).stdout, tramai("status").stdout):
        assert f"tramai resolve {run_id} 'each[a b].deploy' --as completed|failed|retry|skipped" in said
