"""Where settings come from, and what a wrong one says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import write
from tramai.cli import _envfile
from tramai.cli._settings import gather
from tramai.errors import ConfigurationError, TramaiError, UsageError


def test_defaults_hold_when_nothing_is_set() -> None:
    found = gather({}, {})
    assert found.store == "sqlite:.tramai/tramai.db"
    assert found.seconds("wait") == 60.0
    assert found.seconds("lease") == 30.0
    assert found.origin("wait") == "default"


def test_flag_beats_variable_beats_project_beats_user(tmp_path: Path) -> None:
    user = tmp_path / "config" / "tramai"
    user.mkdir(parents=True)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    (user / "config.toml").write_text('wait = "1s"\n')
    assert gather({}, env).seconds("wait") == 1.0
    write("tramai.toml", 'wait = "2s"\n')
    assert gather({}, env).seconds("wait") == 2.0
    assert gather({}, {**env, "TRAMAI_WAIT": "3s"}).seconds("wait") == 3.0
    assert gather({"wait": "4s"}, {**env, "TRAMAI_WAIT": "3s"}).seconds("wait") == 4.0


def test_the_project_file_is_found_above_and_holds_the_default_store(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("tramai.toml", 'wait = "2s"\n')
    (place / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(place / "deep" / "er")
    found = gather({}, {})
    assert found.seconds("wait") == 2.0
    assert found.store == f"sqlite:{place}/.tramai/tramai.db"


def test_a_table_in_pyproject_is_the_project_file_too() -> None:
    write("pyproject.toml", '[project]\nname = "x"\n\n[tool.tramai]\nlease = "10s"\n')
    assert gather({}, {}).seconds("lease") == 10.0


def test_a_pyproject_of_somebody_else_is_not() -> None:
    write("pyproject.toml", "this is [not toml\n")
    assert gather({}, {}).root == os.getcwd()


def test_a_relative_store_in_a_file_starts_at_that_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("tramai.toml", 'store = "sqlite:runs.db"\n')
    (place / "sub").mkdir()
    monkeypatch.chdir(place / "sub")
    assert gather({}, {}).store == f"sqlite:{place}/runs.db"


def failure(text: str, file: str = "tramai.toml") -> TramaiError:
    write(file, text)
    with pytest.raises(TramaiError) as caught:
        gather({}, {})
    return caught.value


def test_an_unknown_key_says_where_and_what_was_meant() -> None:
    error = failure('wait = "2s"\nstor = "memory:"\n')
    assert isinstance(error, ConfigurationError)
    assert error.code == "TRM703"
    assert error.message == "unknown key 'stor' in tramai.toml"
    assert error.hint == "did you mean 'store'?"
    assert error.position is not None
    assert (error.position.file, error.position.line, error.position.column) == ("tramai.toml", 2, 1)


def test_an_unknown_key_in_pyproject_says_where() -> None:
    error = failure('[tool.other]\nstor = 1\n[tool.tramai]\nstor = "memory:"\n', "pyproject.toml")
    assert error.position is not None
    assert error.position.line == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("wait = 60\n", "'wait' in tramai.toml must be text"),
        ('wait = "60"\n', "60 what? write 60s or 60m"),
        ('color = "blue"\n', "must be one of auto, always, never"),
        ("[store]\nurl = 1\n", "'store' in tramai.toml must be text"),
    ],
)
def test_a_wrong_value_says_where(text: str, says: str) -> None:
    error = failure(text)
    assert says in error.message
    assert error.position is not None
    assert error.position.line == 1


def test_servers_have_names_and_the_project_wins(tmp_path: Path) -> None:
    user = tmp_path / "config" / "tramai"
    user.mkdir(parents=True)
    (user / "config.toml").write_text('[mcp_servers.a]\ncommand = ["mine"]\n[mcp_servers.b]\ncommand = ["b"]\n')
    write("tramai.toml", '[mcp_servers.a]\ncommand = ["ours"]\nenv = {T = "${{ secrets.T }}"}\n')
    found = gather({}, {"XDG_CONFIG_HOME": str(tmp_path / "config")}).servers
    assert found == {"a": {"command": ["ours"], "env": {"T": "${{ secrets.T }}"}}, "b": {"command": ["b"]}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('mcp_servers = "x"\n', "'mcp_servers' in tramai.toml must be a table"),
        ('[mcp_servers.a]\ncomand = ["x"]\n', "MCP server 'a' in tramai.toml: Object contains unknown field `comand`"),
        ("[mcp_servers.a]\nenv = {A = 'b'}\n", "has either `command` or `url`; this one has neither"),
        ('[mcp_servers.a]\ncommand = ["x", "${{ secrets.T }}"]\n', "an expression stands in `env` and `headers` only"),
        ('[mcp_servers."a b"]\ncommand = ["x"]\n', "a server's name is letters, digits"),
    ],
)
def test_a_wrong_server_says_what_and_where(text: str, says: str) -> None:
    error = failure(text)
    assert isinstance(error, ConfigurationError)
    assert says in error.message


def test_a_file_that_is_no_toml_says_where() -> None:
    error = failure('wait = "2s"\nwait = = 3\n')
    assert error.exit_status == 3
    assert error.position is not None
    assert error.position.line == 2


def test_a_wrong_flag_or_variable_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="TRAMAI_PROGRESS: 'fancy' is not one of"):
        gather({}, {"TRAMAI_PROGRESS": "fancy"})
    with pytest.raises(UsageError, match="--wait: 60 what"):
        gather({"wait": "60"}, {}).seconds("wait")


def test_an_env_file_gives_variables() -> None:
    text = "# comment\n\nA=1\nexport B='two # three'\nC=\"x\\ny\"\nD=four # note\nE=\n"
    assert _envfile.read(write(".env", text)) == {"A": "1", "B": "two # three", "C": "x\ny", "D": "four", "E": ""}


def test_a_value_in_quotes_may_have_several_lines() -> None:
    text = 'KEY="-----BEGIN-----\nab\\"c\n-----END-----" # note\nB=\'x\ny\'\nC="z" # note\n'
    assert _envfile.read(write(".env", text)) == {"KEY": '-----BEGIN-----\nab"c\n-----END-----', "B": "x\ny", "C": "z"}
    with pytest.raises(ConfigurationError, match=r"\.env:2 begins a value in quotes that has no end"):
        _envfile.read(write(".env", 'A=1\nB="canary\nmore\n'))


def test_only_an_end_of_a_line_ends_a_value() -> None:
    odd = "a\x0bb\x0cc\x1cd\x85e\u2028f"
    assert _envfile.read(write(".env", f"A={odd}\r\nB='{odd}'\n")) == {"A": odd, "B": odd}


def test_what_no_variable_can_hold_is_told_with_its_line() -> None:
    with pytest.raises(ConfigurationError, match=r"\.env:2 holds a NUL character") as caught:
        _envfile.read(write(".env", "A=1\nB=can\0ary\n"))
    assert "ary" not in caught.value.message


def test_an_env_file_stands_beside_the_configuration_and_a_flag_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    write("tramai.toml", 'env_file = ".env"\n')
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert gather({}, {}).env_file == str(Path("..", ".env").resolve())
    assert gather({"env_file": "other"}, {}).env_file is None, "it has been read when the flag was"


def test_a_bad_line_of_an_env_file_is_named_but_never_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        _envfile.read(write(".env", "A=1\nsecret-canary\n"))
    assert ".env:2 is not NAME=value" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.position is None
