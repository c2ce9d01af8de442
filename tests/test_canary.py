"""A secret that is told by children, servers, agents, models and exceptions is kept and shown nowhere."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tramai import engine, plan, workflow
from tramai.cli._group import group
from tramai.results import Options
from tramai.stores import open_store

from . import canary
from .canary import VALUE, files, hits
from .cases.conftest import place, serve
from .cases.servers import Server
from .cli.test_live import on_terminal
from .postgres import Database

__all__ = ["place", "serve"]

HAS_MCP = all(importlib.util.find_spec(name) for name in ("mcp", "httpx2"))
LOOKS = (("show", "@last", "--json"), ("store", "copy", "--all", "--to", "file:copied"))
# What is told of a file, or made of what is stored alike everywhere: it is enough to ask over one of the stores.
OF_ONE = (
    *(
        ("show", "@last", "-v"),
        ("logs", "@last"),
        ("status",),
        ("list", "--json"),
        ("diff", "@last"),
        ("store", "check"),
    ),
    *(("validate", "canary.yaml", "--format", form) for form in ("github", "junit", "sarif")),
    *(("plan", "canary.yaml", "--json"), ("graph", "canary.yaml"), ("diff", "@last", "--json"), ("store", "info")),
)


@pytest.fixture
def scene(
    serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """The scenario in the working folder, and a server that tells everything back."""
    server = serve(canary.route)
    monkeypatch.setenv("TRAMAI_CANARY", VALUE)
    monkeypatch.setenv("TRAMAI_DIAGNOSTICS", "diagnostics.jsonl")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    canary.write(tmp_path_factory.mktemp("outside"), server.url, tool=HAS_MCP)
    return server


def call(*arguments: str) -> tuple[int, str]:
    """Exit status, and all that a command says."""
    result = CliRunner().invoke(group, list(arguments))
    return result.exit_code, result.output


def clean(told: dict[str, str]) -> None:
    """The value stands in none of these, however it is written; the mask stands in some."""
    assert {name: found for name, text in told.items() if (found := hits(text))} == {}
    assert any("***" in text for text in told.values())


def received(server: Server, shown: str) -> None:
    """The steps themselves had the real value."""
    asked = {path.split("?")[0].split("/")[1]: (headers, body) for _, path, headers, body in server.asked}
    headers, body = asked["asked"]
    assert headers["x-key"] == VALUE
    assert msgspec.json.decode(body) == {"key": VALUE}
    assert {"moved", "refused"} <= set(asked)
    assert canary.DIGEST in shown, "a function had it"


@pytest.fixture(params=["sqlite", "file", "markdown", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A store of each kind that lasts."""
    if request.param == "postgres":
        database: Database = request.getfixturevalue("database")
        return database.url()
    return f"{request.param}:kept/store" + (".db" if request.param == "sqlite" else "")


def test_a_secret_that_everybody_tells_is_at_rest_and_on_screens_nowhere(
    scene: Server, url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    Path("kept").mkdir(mode=0o700)
    store = ("--store", url)
    told: dict[str, str] = {}
    status, told["first run"] = call("run", "canary.yaml", "--json", *store)
    assert status == 1, told["first run"]
    status, told["second run"] = call("run", "canary.yaml", "--debug", "-v", *store)
    assert status == 1
    assert "exit status 3" in told["second run"]
    watching = _hold_the_log(url)
    told |= files(tmp_path)
    Path("ready").touch()
    status, told["resume"] = call("resume", "@last", "--json", *store)
    assert status == 0, told["resume"]
    told |= {name + " later": text for name, text in files(tmp_path).items()}
    if watching is not None:
        assert any(name.endswith("-wal later") for name in told)
        watching.close()
    for look in (*LOOKS, *(OF_ONE if watching is not None else ())):
        told[" ".join(look)] = call(*look, *store)[1]
    told |= {name + " last": text for name, text in files(tmp_path).items()}
    if url.startswith("postgres"):
        told |= rows(request.getfixturevalue("database"), url.rpartition("=")[2])
    clean(told)
    received(scene, told["show @last --json"])


def _hold_the_log(url: str) -> sqlite3.Connection | None:
    """A reader of a SQLite store that keeps the log of its writes from being folded in and removed."""
    if not url.startswith("sqlite:"):
        return None
    connection = sqlite3.connect(url.removeprefix("sqlite:"), isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return connection


def rows(database: Database, schema: str) -> dict[str, str]:
    """All that a schema of the server holds, table by table."""
    names = database.admin.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
    ).fetchall()
    assert len(names) > 3
    return {
        name: repr(database.admin.execute(f'SELECT t::text FROM "{schema}"."{name}" t').fetchall()) for (name,) in names
    }


def test_a_terminal_shows_nothing_of_it(scene: Server, tmp_path: Path) -> None:
    told: dict[str, str] = {}
    status, out, err = on_terminal("run", "canary.yaml", "-v", "--progress", "live", columns=150)
    assert status == 1
    told |= {"out": out, "err": err, "as one line": err.replace("\r\n", "")}
    status, out, err = on_terminal("run", "canary.yaml", "--progress", "plain", GITHUB_ACTIONS="true", CI="true")
    told |= {"plain out": out, "plain err": err, **files(tmp_path)}
    clean(told)
    received(scene, call("show", "@last", "--json")[1])


def test_those_who_watch_are_told_nothing_of_it(scene: Server, tmp_path: Path) -> None:
    events: list[Any] = []

    class Ear:
        def signal(self, signal: Any) -> None:
            events.append(signal)

    store = open_store("memory:")
    made = plan.of(workflow.load("canary.yaml"))
    diagnosed: list[Any] = []
    options = Options(logs=str(tmp_path / "logs"), diagnostics=diagnosed.append)
    ended = engine.run(made, {}, store=store, observers=[events.append, Ear()], options=options)
    assert ended.status == "failed"
    shown = "".join(getattr(event, "text", "") for event in events)
    told = {f"{number}": repr(event) for number, event in enumerate(events)}
    journal = msgspec.json.encode(store.journal(ended.run_id)).decode()
    clean({**told, "shown": shown, "result": repr(ended), "journal": journal, "run": repr(store.get(ended.run_id))})
    clean(files(tmp_path))
    received(scene, journal)
    assert "C4nary+V4***" in shown, "text that looks like the mask is text"
