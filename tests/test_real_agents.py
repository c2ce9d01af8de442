"""The real agents, against a model service on loopback: `pytest -m real`. What is not installed is skipped by name.

npm install -g @openai/codex @anthropic-ai/claude-code     # or: pip install openai-codex-cli-bin
pip install hermes-agent
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai.step import Step
from tramai.steps.claude import Claude
from tramai.steps.codex import Codex
from tramai.steps.hermes import Hermes

from .agents import Context, Folder, failure, result
from .model_server import model_server
from .step_context import made
from .test_agents import alive, eventually

pytestmark = pytest.mark.real
RISK = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}
KINDS: dict[str, type[Step]] = {"claude": Claude, "codex": Codex, "hermes": Hermes}
TOOLS = {"claude": "Bash", "codex": "exec_command", "hermes": "terminal"}
CODEX = """\
model_provider = "fake"
model = "fake-model"
[model_providers.fake]
name = "fake"
base_url = "URL/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
HERMES = "model: {default: fake-model, provider: custom, base_url: URL/v1, api_key: k, context_length: 200000}\n"


def program(name: str) -> str:
    """Where an agent is; the test is skipped where it is not."""
    found = shutil.which(name)
    if found is None and name == "codex":
        try:
            import codex_cli_bin

            found = str(codex_cli_bin.bundled_codex_path())
        except ImportError:
            pass
    if found is None:
        pytest.skip(f"NOT TESTED, {name}: it is not installed")
    return found


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on the disk: the sandbox of an agent may have a /dev of its own, and with it a /dev/shm."""
    with tempfile.TemporaryDirectory(prefix="tramai-real-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with model_server() as found:
        yield found


class Agents:
    """Every agent, set up in a folder to ask the service on loopback."""

    def __init__(self, folder: Folder, url: str) -> None:
        self.folder = folder
        self._url = url

    def context(self, name: str, **given: Any) -> Context:
        ctx = self.folder.context(**given)
        home = self.folder.path / "home"
        (home / ".codex").mkdir(parents=True, exist_ok=True)
        (home / ".hermes").mkdir(exist_ok=True)
        (home / ".codex" / "config.toml").write_text(CODEX.replace("URL", self._url))
        (home / ".hermes" / "config.yaml").write_text(HERMES.replace("URL", self._url))
        path = f"{os.path.dirname(program(name))}:{os.environ['PATH']}"
        ctx.env = {"PATH": path, "HOME": str(home), "FAKE_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        ctx.env |= {"ANTHROPIC_BASE_URL": self._url, "CLAUDE_CODE_MAX_RETRIES": "0"}
        ctx.env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        return ctx


@pytest.fixture
def agents(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Agents:
    for name in ("CODEX_HOME", "HERMES_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return Agents(Folder(tmp_path), url)


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_comes_back_with_its_session_and_tokens(agents: Agents, name: str) -> None:
    found = result(made(KINDS[name], prompt='- [[say it\'s  é\n"two"]]'), agents.context(name))
    assert found["text"] == 'it\'s  é\n"two"'
    assert found["session_id"]
    assert (found["usage"]["input_tokens"], found["usage"]["output_tokens"]) == (11, 7)
    assert found["exit_code"] == 0


@pytest.mark.parametrize("name", KINDS)
def test_data_comes_back_as_data(agents: Agents, name: str) -> None:
    prompt = {"claude": '[[tool StructuredOutput {"risk": "low"}]]'}.get(name, '[[say {"risk": "low"}]]')
    assert result(made(KINDS[name], prompt=prompt, schema=RISK), agents.context(name))["value"] == {"risk": "low"}
    wrong = prompt.replace("low", "none")
    assert failure(made(KINDS[name], prompt=wrong, schema=RISK), agents.context(name)).type == "invalid_output"


@pytest.mark.parametrize(
    ("name", "prompt", "types"),
    [
        *((name, "[[status 401]]", {"auth"}) for name in KINDS),
        *((name, "[[status 429]]", {"rate_limited"}) for name in KINDS),
        *((name, "[[empty]]", {"invalid_output"}) for name in KINDS),
        ("codex", "[[cut]]", {"network"}),
        ("codex", "[[status 500]]", {"network", "http.500"}),
        ("claude", "[[status 500]]", {"http.500"}),
    ],
)
def test_a_failure_is_none_in_disguise(agents: Agents, name: str, prompt: str, types: set[str]) -> None:
    error = failure(made(KINDS[name], prompt=prompt), agents.context(name))
    assert error.type in types, error.message


@pytest.mark.parametrize("name", ["claude", "codex", "hermes"])
def test_who_is_not_logged_in_is_told_so(agents: Agents, name: str) -> None:
    ctx = agents.context(name)
    ctx.env = {key: value for key, value in ctx.env.items() if key not in ("FAKE_KEY", "ANTHROPIC_API_KEY")}
    (agents.folder.path / "home" / ".hermes" / "config.yaml").unlink()
    error = failure(made(KINDS[name], prompt="hello"), ctx)
    assert error.type == "auth", error.message
    assert error.hint == KINDS[name].sign_in  # type: ignore[attr-defined]


WRITES = {
    "claude": '[[tool Write {"file_path": "FILE", "content": "x"}]]',
    "codex": '[[tool exec_command {"cmd": "echo x > FILE"}]]',
    "hermes": '[[tool write_file {"path": "FILE", "content": "x"}]]',
}


def without_bwrap(folder: Path) -> str:
    """A PATH without bubblewrap: Codex prefers the system's to its own, and cannot use that of Debian 12."""
    folder.mkdir(exist_ok=True)
    for place in os.environ["PATH"].split(":"):
        for program in os.scandir(place) if os.path.isdir(place) else ():
            if program.name != "bwrap" and not os.path.lexists(folder / program.name):
                os.symlink(program.path, folder / program.name)
    return str(folder)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_written_unless_that_is_allowed_and_then_only_there(agents: Agents, name: str) -> None:
    work, home = agents.folder.work, agents.folder.path / "home"

    def write(file: Path, sandbox: str) -> bool:
        ctx = agents.context(name)
        # Codex lets an agent write in the folder for temporary files, in which this test works.
        ctx.env = {**ctx.env, "TMPDIR": str(home), "PATH": without_bwrap(home / "bin")}
        result(made(KINDS[name], prompt=WRITES[name].replace("FILE", str(file)), sandbox=sandbox), ctx)
        return file.exists()

    assert not write(work / "a.txt", "read-only")
    assert write(work / "b.txt", "workspace-write")
    if name != "codex":  # it counts all of /tmp as free to write
        assert not write(agents.folder.path / "c.txt", "workspace-write")


@pytest.mark.parametrize("name", KINDS)
def test_after_a_timeout_no_tool_is_left(agents: Agents, name: str) -> None:
    nap = f"3{random.randrange(10**9):09d}"
    key = "cmd" if name == "codex" else "command"
    prompt = f'[[tool {TOOLS[name]} {{"{key}": "timeout {nap} tail -f /dev/null"}}]]'
    seconds = 12.0 if name == "hermes" else 6.0
    ctx = agents.context(name, deadline=time.monotonic() + seconds)
    ctx.env = {**ctx.env, "IS_SANDBOX": "1"}  # claude refuses full access to root elsewhere
    seen: list[int] = []
    watcher = threading.Thread(target=lambda: eventually(lambda: seen.extend(alive(nap)) or seen, within=seconds))
    watcher.start()
    error = failure(made(KINDS[name], prompt=prompt, sandbox="full-access"), ctx)
    watcher.join()
    assert error.type == "timeout"
    assert seen, "the tool had started"
    assert alive(nap) == []
