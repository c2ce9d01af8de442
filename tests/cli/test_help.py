"""Help: complete, an example first, and the top one without importing anything."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import click
import pytest
from click.testing import Result

from tramai.cli import _helptext
from tramai.cli._group import SUMMARIES, Command

Call = Callable[..., Result]
COMMANDS = sorted(SUMMARIES)


def command(name: str) -> Command:
    found = importlib.import_module(f"tramai.cli.{name}").command
    assert isinstance(found, Command)
    return found


def test_the_stored_help_is_what_click_would_print() -> None:
    with open(_helptext.PATH, encoding="utf-8") as file:
        assert file.read() == _helptext.text(), "run python -m tramai.cli._helptext"


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_first(tramai: Call, name: str, flag: str) -> None:
    result = tramai(name, flag)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Examples:"
    assert f"tramai {name}" in lines[1] or "tramai" in lines[1]
    assert f"Usage: tramai {name}" in result.stdout
    assert "Exit status:" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    found = command(name)
    assert found.name == name
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_in_eighty_columns(tramai: Call, name: str) -> None:
    text = tramai(name, "--help").stdout
    body = text[text.index("Usage:") :]
    assert max(map(len, body.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_global_flags_stand_before_and_after_the_command(tramai: Call, name: str) -> None:
    assert tramai("--store", "memory:", "-q", name, "--help").exit_code == 0
    names = {option for parameter in command(name).params for option in parameter.opts}
    assert {"-q", "-v", "--debug", "--json", "--color", "--progress", "-C", "--store", "--env-file"} <= names


def test_the_later_place_of_a_global_flag_wins(tramai: Call) -> None:
    result = tramai("--store", "nonsense:", "list", "--store", "memory:")
    assert result.exit_code == 0
    assert tramai("--store", "memory:", "list", "--store", "nonsense:").exit_code == 3


@pytest.mark.parametrize("name", ["run", "resume", "rerun"])
def test_the_verbs_that_run_name_each_other(tramai: Call, name: str) -> None:
    text = tramai(name, "--help").stdout
    assert [other for other in ("run", "resume", "rerun") if f"`tramai {other}" not in text and other != name] == []


@pytest.mark.parametrize(
    ("name", "only_run"),
    [
        ("resume", {"file", "pairs", "inputs_file", "start_key", "labels", "dry", "detach", "queue", "priority"}),
        ("rerun", {"file", "pairs", "inputs_file", "dry", "detach", "queue", "priority"}),
    ],
)
def test_the_verbs_that_go_on_have_every_run_option_that_makes_sense(name: str, only_run: set[str]) -> None:
    names = {parameter.name for parameter in command("run").params}
    assert names - only_run <= {parameter.name for parameter in command(name).params}


def test_a_near_command_is_suggested(tramai: Call) -> None:
    assert "did you mean 'tramai validate'?" in tramai("valdate").stderr


def test_the_version_is_printed(tramai: Call) -> None:
    from tramai import __version__

    assert tramai("--version").stdout == f"tramai {__version__}\n"
    assert f'"version":"{__version__}"' in tramai("--json", "--version").stdout


def test_rare_flags_for_scripts_are_accepted(tramai: Call) -> None:
    assert tramai("--no-input", "-y", "--store", "memory:", "list").exit_code == 0
