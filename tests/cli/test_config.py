"""`tramai config show`: every setting, where it comes from, and no secret."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import document, write
from tests.cli.test_documents import check
from tramai.cli._settings import KEYS, gather

Call = Callable[..., Result]
VALUES = {
    "store": ("file:one", "file:two", "file:three", "file:four"),
    "wait": ("1s", "2s", "3s", "4s"),
    "lease": ("11s", "12s", "13s", "14s"),
    "progress": ("live", "plain", "none", "auto"),
    "color": ("always", "never", "auto", "always"),
    "retention": ("1d", "2d", "3d", "4d"),
    "env_file": ("one.env", "two.env", "three.env", "four.env"),
}
"""For each setting: what the user's own file says, the project's, the variable, the flag."""
FULL = """\
wait = "5s"
store = "postgresql://me:hunter2@host/db?password=xyzzy1&a=1"

[http]
proxy = "http://proxy:8080"
proxy_auth = ["me", "${{ secrets.PROXY }}"]

[mcp_servers.a]
command = ["x", "--token=abcdef", "http://u:pw0rd@host/"]
env = {T = "${{ secrets.T }}", U = "literal"}

[mcp_servers."b.c"]
url = "https://example.org/mcp"
headers = {Authorization = "Bearer s3cret"}

[providers.mine]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
api_key = {env = "MY_KEY"}
"""


def settings(result: Result) -> dict[str, tuple[object, str, str]]:
    found = check(document(result))
    return {one["key"]: (one["value"], one["source"], one["origin"]) for one in found["settings"]}


def user_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "config" / "tramai").mkdir(parents=True)
    (tmp_path / "config" / "tramai" / "config.toml").write_text(text, encoding="utf-8")


def test_without_anything_the_defaults_are_shown(tramai: Call) -> None:
    found = settings(tramai("config", "show", "--json"))
    assert list(found) == list(KEYS)
    assert {source for _, source, _ in found.values()} == {"default"}
    assert found["store"][0] == "sqlite:.tramai/tramai.db"
    text = tramai("config", "show").stdout
    assert 'wait = "60s"' in text.splitlines()
    assert "# retention is not set" in text.splitlines()
    assert not Path(".tramai").exists()


def test_every_setting_is_among_those_whose_precedence_is_tested() -> None:
    assert set(VALUES) == set(KEYS)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("project", ["tramai.toml", "pyproject.toml"])
def test_flag_beats_variable_beats_project_beats_user_beats_default(
    tmp_path: Path, tramai: Call, monkeypatch: pytest.MonkeyPatch, key: str, project: str
) -> None:
    own, ours, variable, flag = VALUES[key]
    place = str(Path.cwd())

    def said(value: str) -> str:
        return {"store": f"file:{place}/{value[5:]}", "env_file": f"{place}/{value}"}.get(key, value)

    assert settings(tramai("config", "show", "--json"))[key][1] == "default"
    user_file(tmp_path, f'{key} = "{own}"\n')
    assert settings(tramai("config", "show", "--json"))[key][1] == "user"
    write(project, ("[tool.tramai]\n" if project == "pyproject.toml" else "") + f'\n{key} = "{ours}"\n')
    line = 3 if project == "pyproject.toml" else 2
    assert settings(tramai("config", "show", "--json"))[key] == (said(ours), "project", f"{project}:{line}")
    name = f"TRAMAI_{key.upper()}"
    monkeypatch.setenv(name, variable)
    assert settings(tramai("config", "show", "--json"))[key] == (variable, "variable", name)
    found = gather({key: flag})
    assert found.found(key) == (flag, f"--{key.replace('_', '-')}", None)


def test_a_flag_is_named_as_the_origin(tramai: Call) -> None:
    found = settings(tramai("config", "show", "--store", "memory:", "--color", "never", "--json"))
    assert found["store"] == ("memory:", "flag", "--store")
    assert found["color"] == ("never", "flag", "--color")


def test_the_text_is_toml_and_says_each_origin_when_asked(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("tramai.toml", FULL)
    monkeypatch.setenv("TRAMAI_LEASE", "9s")
    result = tramai("config", "show", "--origin")
    read = tomllib.loads(result.stdout)
    assert (read["wait"], read["lease"]) == ("5s", "9s")
    assert read["mcp_servers"]["b.c"]["url"] == "https://example.org/mcp"
    lines = {line.partition(" ")[0]: line.rpartition("# ")[2] for line in result.stdout.splitlines()}
    assert lines["wait"] == "tramai.toml:1"
    assert lines["lease"] == "TRAMAI_LEASE"
    assert lines["color"] == "default"
    assert lines["http.proxy"] == "tramai.toml:4"
    assert lines["mcp_servers.a"] == "tramai.toml:8"
    assert lines["providers.mine"] == "tramai.toml:16"
    assert "read: " in result.stderr
    assert "# tramai.toml" not in tramai("config", "show").stdout
    assert "# tramai.toml" in tramai("config", "show", "-v").stdout


def test_no_secret_is_shown(tramai: Call) -> None:
    write("tramai.toml", FULL)
    for arguments in ((), ("--origin",), ("--json",), ("-v", "--debug")):
        shown = tramai("config", "show", *arguments).output
        for canary in ("hunter2", "xyzzy1", "abcdef", "pw0rd", "literal", "s3cret"):
            assert canary not in shown
        assert "${{ secrets.T }}" in shown
        assert "MY_KEY" in shown


@pytest.mark.parametrize("project", ["tramai.toml", "pyproject.toml"])
def test_an_unknown_key_is_3_with_its_place_and_a_suggestion(tramai: Call, project: str) -> None:
    write(project, ("[tool.tramai]\n" if project == "pyproject.toml" else "\n") + 'retenton = "3d"\n')
    result = tramai("config", "show")
    assert result.exit_code == 3
    assert f"{project}:2:1" in result.stderr
    assert "did you mean 'retention'?" in result.stderr


def test_a_variable_that_means_nothing_is_2(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAMAI_RETENTION", "3")
    result = tramai("config", "show")
    assert result.exit_code == 2
    assert "TRAMAI_RETENTION" in result.stderr


def test_a_misspelt_variable_is_named(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAMAI_STROE", "memory:")
    monkeypatch.setenv("TRAMAI_DIAGNOSTICS", "faults")
    result = tramai("config", "show")
    assert result.exit_code == 0
    assert result.stderr.strip() == "warning: TRAMAI_STROE is no setting; did you mean TRAMAI_STORE?"
    assert document(tramai("config", "show", "--json"))["notes"] != []


def test_without_a_verb_it_is_2(tramai: Call) -> None:
    assert tramai("config").exit_code == 2
    assert "did you mean 'tramai config show'?" in tramai("config", "shwo").stderr
