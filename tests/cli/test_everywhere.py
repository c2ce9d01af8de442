"""What holds for every command: how a run is named, where global flags stand, what a verb shares with its siblings."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, document, write
from tests.cli.test_exit_codes import owned_run
from tramai.cli import _short
from tramai.cli._group import SUMMARIES, GlobalFlag, global_flags
from tramai.cli._start import Request
from tramai.errors import NotFound
from tramai.store import Store

Call = Callable[..., Result]
MORE = {
    "resolve": ("send", "--as", "retry"),
    "store copy": ("--to", "file:other"),
    "store move": ("--to", "file:other"),
}
"""What a command needs besides a run."""
SELECTORS = ("0193a000-0000-7000-8000-00000000abcd", "0000abcd", "@last", "@last:hello", "@failed")


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in SUMMARIES:
        command = importlib.import_module(f"tramai.cli.{name}").command
        yield name, command
        yield from ((f"{name} {verb}", inner) for verb, inner in getattr(command, "commands", {}).items())


def takes_a_run(command: click.Command) -> bool:
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    return any("RUN" in (one.metavar or "").strip("[].").split("|") for one in arguments)


VERBS = sorted(name for name, command in commands() if takes_a_run(command))


# Naming a run.


def test_these_commands_take_a_run() -> None:
    assert {"show", "logs", "watch", "export", "diff", "graph", "resume", "rerun", "cancel", "approve", "reject"} | {
        "resolve", "store copy", "store move"
    } <= set(VERBS)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("selector", SELECTORS)
def test_every_command_that_takes_a_run_finds_it_in_the_one_way(
    tramai: Call, monkeypatch: pytest.MonkeyPatch, verb: str, selector: str
) -> None:
    asked: list[str] = []

    def find(store: Store, wanted: str) -> str:
        asked.append(wanted)
        raise NotFound(kind="run", name=wanted)

    monkeypatch.setattr("tramai.cli._select.find", find)
    result = tramai(*verb.split(), selector, *MORE.get(verb, ()))
    assert result.exit_code == 4, result.output
    assert asked == [selector]


@pytest.mark.parametrize("verb", VERBS)
def test_an_ending_of_several_runs_is_2_and_lists_them(tramai: Call, verb: str) -> None:
    owned_run("a-same"), owned_run("b-same")
    result = tramai(*verb.split(), "same", *MORE.get(verb, ()))
    assert result.exit_code == 2
    for text in ("several runs end in 'same'", "a-same", "b-same", "give more of the id"):
        assert text in result.stderr


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("@last:helo", "did you mean @last:hello?"),
        ("@last:other", "tramai list shows what there is"),
        ("zzzzzzzz", "tramai list shows what there is"),
    ],
)
def test_a_run_that_is_not_there_is_4_with_a_hint(tramai: Call, verb: str, selector: str, hint: str) -> None:
    tramai("run", write("hello.yaml", HELLO))
    result = tramai(*verb.split(), selector, *MORE.get(verb, ()))
    assert result.exit_code == 4
    assert hint in result.stderr
    assert document(tramai(*verb.split(), selector, *MORE.get(verb, ()), "--json"))["error"]["code"] == "TRM704"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("selector", ["@first", "@last:", "@failed:hello"])
def test_a_word_that_names_no_run_is_2(tramai: Call, verb: str, selector: str) -> None:
    result = tramai(*verb.split(), selector, *MORE.get(verb, ()))
    assert result.exit_code == 2
    assert "write @last, @last:WORKFLOW or @failed" in result.stderr


@pytest.mark.parametrize("selector", ["@last", "@last:hello", "@failed", "whole", "ending"])
def test_each_way_leads_to_the_run_that_is_meant(tramai: Call, selector: str) -> None:
    for name, text in (("fails", FAILS), ("hello", HELLO)):
        tramai("run", write(f"{name}.yaml", text))
    hello, fails = (run["run_id"] for run in document(tramai("list", "--json"))["runs"])
    named = {"whole": hello, "ending": hello[-8:]}.get(selector, selector)
    meant = fails if selector == "@failed" else hello
    assert document(tramai("show", named, "--json"))["run"]["run_id"] == meant
    assert document(tramai("logs", named, "--json"))["run_id"] == meant
    assert document(tramai("export", named, "--json"))["run"]["run_id"] == meant


# Global flags.


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_has_every_global_flag(name: str) -> None:
    wanted = {parameter.name for parameter in global_flags()}
    command = dict(commands())[name]
    assert {one.name for one in command.params if isinstance(one, GlobalFlag)} == wanted


@pytest.mark.parametrize("before", [True, False])
def test_a_global_flag_works_on_either_side_of_the_command(tramai: Call, before: bool) -> None:
    write("hello.yaml", HELLO.replace("name: hello", "name: hello\nsecrets: {T: {env: FLAG_FOR_TEST}}"))
    write("vars.env", "FLAG_FOR_TEST=a-long-value\n")
    os.mkdir("below")

    def call(command: str, *flags: str) -> Result:
        words = command.split()
        return tramai(*flags, *words) if before else tramai(*words, *flags)

    assert call("run hello.yaml", "--env-file", "vars.env").exit_code == 0
    os.environ.pop("FLAG_FOR_TEST", None)
    assert document(call("list", "--json"))["runs"] != []
    assert document(call("list", "--json", "--store", "memory:"))["runs"] == []
    assert call("validate hello.yaml", "-C", "below").exit_code == 3
    assert "\x1b[" in call("show @last", "--color", "always").stdout
    assert call("list", "-q").stderr == ""
    assert "outputs" in call("show @last", "-v").stdout
    assert call("status", "--no-input", "-y", "--progress", "plain", "--debug").exit_code == 0


# Verbs that carry a run out.

CANNOT = {
    "resume": {
        "file": "the run has its own", "inputs": "a run has its inputs from its start", "inputs_file": "the same",
        "start_key": "nothing is started", "labels": "they are given at the start",
    },
    "rerun": {"inputs": "they are those of the earlier run", "inputs_file": "the same"},
}  # fmt: skip
"""What `run` can and another verb cannot, with the reason."""


@pytest.mark.parametrize("verb", ["resume", "rerun"])
def test_resume_and_rerun_can_what_run_can(verb: str) -> None:
    found = dict(commands())
    names = {"run": "file", "pairs": "inputs", "reports": "reports"}
    own = {parameter.name for parameter in found["run"].params if not isinstance(parameter, GlobalFlag)}
    own -= {"detach", "queue", "priority", "dry"}  # these carry nothing out
    wanted = {names.get(str(name), str(name)) for name in own} - set(CANNOT[verb])
    there = {names.get(str(one.name), str(one.name)) for one in found[verb].params}
    assert wanted <= there | {"wait", "lease"}
    assert wanted - {"wait", "lease"} <= set(Request.__struct_fields__)


def test_what_is_understood_quickly_knows_only_flags_that_there_are() -> None:
    found = dict(commands())
    for verb in _short.OWN_SWITCHES:
        options = {name for parameter in found[verb].params for name in parameter.opts}
        known = {*_short.OWN_SWITCHES[verb], *_short.OWN_VALUES[verb], *_short.REPEATED[verb], *_short.SWITCHES}
        assert known <= options


@pytest.mark.parametrize("verb", ["run", "resume", "rerun"])
def test_their_events_are_told_alike(tramai: Call, verb: str) -> None:
    write("hello.yaml", HELLO)
    if verb != "run":
        tramai("run", "hello.yaml", "--until", "greet"), tramai("run", "hello.yaml")
    result = tramai(verb, "hello.yaml" if verb == "run" else "@last", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0]["type"], lines[-1]["type"]) == ("run.started", "run.finished")
    assert Path("hello.yaml").exists()
