"""`doctor` and `plugin list`: what they look at, what they never do, and how they end."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import HELLO, ROOT, document, write
from tests.plugin_install import installed
from tramai import kinds, provider
from tramai.cli import _doctor_models
from tramai.stores import peek

Call = Callable[..., Result]
CANARY = "sk-canary-5d1f"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """No key, no agent, and no other program than those that a test makes."""
    for names in provider.KEYS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    (place.parent / "bin").mkdir()
    for name in ("bash", "git"):
        program(place, name, "exit 0")
    monkeypatch.setenv("PATH", str(place.parent / "bin"))


@pytest.fixture
def hello() -> str:
    """A workflow file."""
    return write("hello.yaml", HELLO)


@pytest.fixture
def broken(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of which nothing works."""
    monkeypatch.syspath_prepend(str(installed("broken", tmp_path_factory)))


def program(place: Path, name: str, script: str) -> None:
    path = place.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def findings(result: Result, section: str) -> dict[str, tuple[str, str]]:
    """State and text by name."""
    return {
        one["name"]: (one["state"], one["text"]) for one in document(result)["findings"] if one["section"] == section
    }


def steady(text: str) -> str:
    """Without what differs from machine to machine."""
    text = re.sub(r"(tramai|python|platform|sqlite) {2,}.*", r"\1 <version>", text)
    text = re.sub(r"(tramai\[\w+\]) {2,}.*", r"\1 <extra>", text)
    text = re.sub(r". (absent |ok     )  (tramai\[)", r"? <state>  \2", text)
    text = re.sub(r"^.*absent +[\w-]+ .* is not set\n", "", text, flags=re.M)  # services come and go
    return re.sub(r"\S*/(work|bin)\b", r"<\1>", text)


def test_it_tells_how_a_machine_is(tramai: Call, snapshot: SnapshotAssertion) -> None:
    write("tramai.toml", 'wait = "2s"\n')
    result = tramai("doctor")
    assert result.exit_code == 0, result.output
    assert steady(result.stdout) == snapshot
    assert result.stderr == "usable: 0 errors, 0 warnings\n"


def test_nothing_is_made_nothing_is_asked_and_nothing_is_started(
    tramai: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("not without --check")

    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    program(place, "codex", "exit 0")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    before = sorted(place.rglob("*"))
    result = tramai("doctor", "--json")
    assert result.exit_code == 0, result.output
    assert sorted(place.rglob("*")) == before
    assert findings(result, "agents")["codex"] == ("ok", f"{place.parent}/bin/codex")


def test_keys_are_named_and_their_values_are_not(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    result = tramai("doctor", "--json")
    assert findings(result, "models")["openai"] == ("ok", "OPENAI_API_KEY is set")
    assert findings(result, "models")["google"] == ("ok", "GEMINI_API_KEY is set")
    assert findings(result, "models")["groq"][0] == "absent"
    assert CANARY not in result.output + tramai("doctor", "-v").output


def test_a_password_in_the_url_of_the_store_is_not_shown(tramai: Call) -> None:
    result = tramai("doctor", "--store", f"postgresql://me:{CANARY}@localhost:1/none")
    assert result.exit_code == 1
    assert CANARY not in result.output
    assert "not usable: 1 error" in result.stderr


def test_settings_are_told_with_their_origin(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("tramai.toml", 'wait = "2s"\nretention = "30d"\nobservers = ["tally"]\n')
    monkeypatch.setenv("TRAMAI_LEASE", "9s")
    found = findings(tramai("doctor", "--json", "--color", "never"), "settings")
    assert found["file"] == ("ok", "tramai.toml")
    assert found["wait"] == ("ok", "2s (tramai.toml: wait)")
    assert found["lease"] == ("ok", "9s (TRAMAI_LEASE)")
    assert found["color"] == ("ok", "never (--color)")
    assert found["progress"] == ("ok", "auto (default)")
    assert found["retention"] == ("ok", "30d (tramai.toml: retention)")
    assert found["observers"] == ("ok", "tally")


def test_settings_that_are_not_valid_are_3(tramai: Call) -> None:
    write("tramai.toml", "wait = 2\n")
    assert tramai("doctor").exit_code == 3


# The store.


def test_a_store_with_runs_is_described(tramai: Call, hello: str) -> None:
    assert tramai("run", hello).exit_code == 0
    result = tramai("doctor", "--json")
    found = findings(result, "store")
    assert re.fullmatch(r"sqlite:.tramai/tramai.db, format \d+, 1 run", found["store"][1])
    assert found["place"][0] == "ok"
    assert result.exit_code == 0


def test_others_who_may_read_the_store_are_a_warning(tramai: Call, hello: str) -> None:
    assert tramai("run", hello).exit_code == 0
    os.chmod(".tramai/tramai.db", 0o644)
    result = tramai("doctor")
    assert result.exit_code == 0
    assert "have rights to" in result.stdout
    assert f"help: chmod 600 {os.getcwd()}/.tramai/tramai.db" in result.stdout
    assert "usable: 0 errors, 1 warning\n" in result.stderr


def test_a_store_of_a_newer_format_is_an_error(tramai: Call, hello: str) -> None:
    assert tramai("run", hello).exit_code == 0
    with sqlite3.connect(".tramai/tramai.db") as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    result = tramai("doctor", "--json")
    assert result.exit_code == 1
    assert document(result)["usable"] is False
    assert "999" in findings(result, "store")["store"][1]


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_a_store_of_an_older_format_is_told_and_left_as_it_is(
    tramai: Call, hello: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{kind}:there"
    assert tramai("run", hello, "--store", url).exit_code == 0
    if kind == "sqlite":
        from tramai.stores import _sqlite_schema as schema

        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, lambda db: None))
    else:
        from msgspec.structs import replace

        from tramai.stores.file import File

        kinds = (*File.KIND.migrations, lambda folder: None)
        monkeypatch.setattr(File, "KIND", replace(File.KIND, migrations=kinds))
    before = peek(url)
    assert before is not None
    result = tramai("doctor", "--store", url, "--json")
    assert result.exit_code == 0
    state, text = findings(result, "store")["store"]
    assert (state, f"format {before}; " in text, f"to format {before + 1}" in text) == ("warning", True, True)
    assert peek(url) == before
    assert f"is now format {before + 1}" in tramai("store", "migrate", "--store", url).stdout
    assert findings(tramai("doctor", "--store", url, "--json"), "store")["store"][0] == "ok"


def test_a_store_that_cannot_be_is_an_error(tramai: Call, place: Path) -> None:
    (place / "folder").mkdir()
    assert tramai("doctor", "--store", "sqlite:folder").exit_code == 1
    assert tramai("doctor", "--store", "nobody:x").exit_code == 1


# Agents and models.


def test_agents_tell_their_version_when_they_are_asked(
    tramai: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_doctor_models, "_SECONDS", 0.5)
    program(place, "codex", "echo codex-cli 1.2.3; echo more")
    program(place, "claude", "exec /bin/sleep 60")
    program(place, "hermes", "exit 3")
    found = findings(tramai("doctor", "--check", "--json"), "agents")
    assert found["codex"] == ("ok", f"{place.parent}/bin/codex, codex-cli 1.2.3")
    assert found["claude"] == ("warning", f"{place.parent}/bin/claude does not tell its version")
    assert found["hermes"][0] == "warning"


def test_an_agent_that_is_no_program_is_a_warning(tramai: Call, place: Path) -> None:
    program(place, "claude", "")
    (place.parent / "bin" / "claude").write_text("not a program\n")
    found = findings(tramai("doctor", "--check", "--json"), "agents")
    assert found["claude"] == ("warning", f"{place.parent}/bin/claude does not tell its version")


def test_whether_a_sandbox_can_be_made_is_tried_when_it_is_asked(tramai: Call, place: Path) -> None:
    program(place, "bwrap", "echo 'bwrap: no namespaces' >&2; exit 1")
    path = f"{place.parent}/bin/bwrap"
    assert findings(tramai("doctor", "--json"), "programs")["bwrap"] == ("ok", path)
    found = findings(tramai("doctor", "--check", "--json"), "programs")["bwrap"]
    assert found == ("warning", f"{path} cannot make a sandbox here: bwrap: no namespaces")


@pytest.fixture
def service() -> Iterator[str]:
    """A model service on loopback: it knows one key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            good = CANARY in self.headers.get("Authorization", "") + self.headers.get("x-api-key", "")
            body = b'{"data": [{"id": "a"}, {"id": "b"}]}' if good else b"{}"
            if self.path.startswith("/endless"):
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):
                    while True:
                        self.wfile.write(b" " * 65536)
                return
            self.send_response(200 if good else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_service_says_whether_the_key_is_good(tramai: Call, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", service)
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", service.removesuffix("/v1"))
    monkeypatch.setenv("GROQ_API_KEY", "another-5d1f")
    monkeypatch.setitem(_doctor_models.LISTS, "groq", f"{service}/models")
    monkeypatch.setenv("MISTRAL_API_KEY", "another-5d1f")
    monkeypatch.setitem(_doctor_models.LISTS, "mistral", "http://127.0.0.1:1")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "another-5d1f")
    monkeypatch.setitem(_doctor_models.LISTS, "deepseek", f"{service.removesuffix('/v1')}/endless")
    result = tramai("doctor", "--check", "--json")
    found = findings(result, "models")
    assert found["openai"] == ("ok", "OPENAI_API_KEY is set, and the service answers with 2 models")
    assert found["anthropic"][0] == "ok"
    assert found["groq"] == ("warning", "GROQ_API_KEY is set, and the service refuses the key")
    assert found["mistral"] == ("warning", "MISTRAL_API_KEY is set, and the service does not answer: ConnectError")
    assert found["deepseek"] == ("warning", "DEEPSEEK_API_KEY is set, and the service does not answer: TimeoutError")
    assert document(result)["checked"] is True
    assert result.exit_code == 0
    assert "5d1f" not in result.output


def test_a_service_of_the_settings_is_looked_at_too(
    tramai: Call, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        "tramai.toml",
        f'[providers.lab]\nkind = "openai"\nbase_url = "{service}"\napi_key = {{env = "LAB_KEY"}}\n'
        '[providers.poor]\nkind = "openai"\napi_key = {env = "NO_SUCH_KEY"}\n',
    )
    monkeypatch.setenv("LAB_KEY", CANARY)
    found = findings(tramai("doctor", "--json"), "models")
    assert found["lab"] == ("ok", "openai at 127.0.0.1")
    assert found["poor"][0] == "warning"
    assert "NO_SUCH_KEY" in found["poor"][1]
    result = tramai("doctor", "--check", "--json")
    assert findings(result, "models")["lab"] == ("ok", "openai at 127.0.0.1, and the service answers with 2 models")
    assert CANARY not in result.output


# MCP servers and plugins.


def test_a_named_server_without_its_program_is_a_warning(tramai: Call, place: Path) -> None:
    program(place, "there", "exit 0")
    write(
        "tramai.toml",
        '[mcp_servers.a]\ncommand = ["there"]\n[mcp_servers.b]\ncommand = ["gone"]\n'
        f'[mcp_servers.c]\nurl = "https://example.com/mcp?key={CANARY}"\n',
    )
    result = tramai("doctor", "--json")
    found = findings(result, "servers")
    assert found["a"] == ("ok", f"{place.parent}/bin/there")
    assert found["b"] == ("warning", "its program gone is not on PATH")
    assert found["c"] == ("ok", "https://example.com")
    assert CANARY not in result.output


def test_a_named_server_is_started_and_lists_its_tools(tramai: Call) -> None:
    pytest.importorskip("httpx2", reason="the extra is not installed: pip install 'tramai[mcp]'")
    write(
        "tramai.toml",
        f'[mcp_servers.good]\ncommand = ["{sys.executable}", "{ROOT}/tests/mcp_server.py"]\n'
        '[mcp_servers.bad]\ncommand = ["git"]\n'
        '[mcp_servers.secret]\ncommand = ["git"]\nenv = {A = "${{ secrets.KEY }}"}\n',
    )
    found = findings(tramai("doctor", "--check", "--json"), "servers")
    assert re.fullmatch(r".*, with \d+ tools", found["good"][1])
    assert found["bad"][0] == "warning"
    assert found["secret"][1].endswith("not asked, as it takes a secret of a workflow")


@pytest.mark.usefixtures("broken")
def test_a_broken_plugin_is_a_warning(tramai: Call) -> None:
    result = tramai("doctor", "--json")
    found = findings(result, "plugins")
    assert found["step ticket"] == ("ok", "tramai-example 1.0")
    assert found["step no_module"][0] == "warning"
    assert "cannot be loaded: ModuleNotFoundError" in found["step no_module"][1]
    assert found["model provider mute"][0] == "warning"
    assert found["store nostore"][0] == "warning"
    assert result.exit_code == 0


@pytest.mark.usefixtures("broken")
def test_an_observer_that_every_run_asks_for_is_an_error(tramai: Call) -> None:
    write("tramai.toml", 'observers = ["gone"]\n')
    result = tramai("doctor", "--json")
    assert result.exit_code == 1
    assert findings(result, "plugins")["observer gone"][0] == "error"


# What installed packages bring.


def test_plugins_are_listed_without_being_imported(tramai: Call, broken: None) -> None:
    sys.modules.pop("tramai_broken.exits", None)
    result = tramai("plugin", "list")
    assert result.exit_code == 0
    assert re.search(r"^step +ticket +tramai-example 1.0 +tramai_example.ticket:Ticket$", result.stdout, re.M)
    assert re.search(r"^observer +tally ", result.stdout, re.M)
    assert "tramai_broken.exits" not in sys.modules


def test_a_plugin_that_is_never_used_says_why(tramai: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site" / "tramai_other-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tramai-other\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[tramai.stores]\nmemory = other:Memory\n[tramai.steps]\nticket = o:T\n")
    monkeypatch.syspath_prepend(str(info.parent))
    result = tramai("plugin", "list", "--json")
    notes = {(one["package"], one["name"]): one["note"] for one in document(result)["plugins"]}
    assert notes["tramai-other", "memory"] == "never used: the name is built in"
    assert notes["tramai-other", "ticket"] == notes["tramai-example", "ticket"] != None  # noqa: E711


def test_no_plugins_are_said_to_be_none(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_added", lambda family, path: ())
    result = tramai("plugin", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no installed package brings anything\n"


def test_the_reference_of_a_step_type_is_that_of_its_settings(tramai: Call) -> None:
    found = document(tramai("schema", "step", "ticket", "--json"))
    assert [one["key"] for one in found["keys"]][:2] == ["title", "board"]
    assert found["replay"] == "non_replayable"
    result = tramai("schema", "step", "tickett")
    assert result.exit_code == 4
    assert "did you mean ticket?" in result.stderr


@pytest.mark.usefixtures("broken")
def test_the_reference_of_a_broken_one_is_3(tramai: Call) -> None:
    result = tramai("schema", "step", "no_module")
    assert result.exit_code == 3
    assert "cannot be loaded" in result.stderr
