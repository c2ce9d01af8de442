"""`mcp` against servers of others. They are looked for beside Python and on PATH, and said loudly to be missing."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai.step import StepError
from tramai.steps.mcp import Mcp

from .step_context import StepContext, made, run

pytestmark = pytest.mark.real
pytest.importorskip("httpx2", reason="NOT TESTED, mcp: pip install 'tramai[mcp]'")

HOSTILE = "${{ inputs.x }} {{ 7 * 7 }} $(touch pwned) `id`\n::error::no\x1b[31m [red]r[/red] <b>b</b> \u00e9"
"""What any of our own layers might take for something else than text."""


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"NOT TESTED, {name}: it is not installed")
    return found


def recorded(
    folder: Path, server: list[str] | dict[str, object], tool: str | None, **arguments: object
) -> dict[str, Any]:
    """The full record of one call; `server` is a command, or settings."""
    ctx = StepContext({"inputs": {"given": arguments}})
    ctx.cwd = str(folder)
    what = {"list": True} if tool is None else {"tool": tool, "arguments": "${{ inputs.given }}"}
    settings = {"command": server} if isinstance(server, list) else server
    found: dict[str, Any] = run(made(Mcp, server=settings, **what), ctx)
    return found


def asked(folder: Path, server: list[str] | dict[str, object], tool: str | None, **arguments: object) -> Any:
    """The output of one call."""
    found = recorded(folder, server, tool, **arguments)
    return found["value"] if "value" in found else found["text"]


def test_the_time_server_tells_the_time_and_knows_no_made_up_zone(tmp_path: Path) -> None:
    command = [program("mcp-server-time"), "--local-timezone", "UTC"]
    tools = asked(tmp_path, command, None)
    assert isinstance(tools, list)
    assert {tool["name"] for tool in tools} >= {"get_current_time", "convert_time"}
    found = asked(tmp_path, command, "get_current_time", timezone="Asia/Tokyo")
    assert isinstance(found, dict)
    assert found["datetime"].endswith("+09:00")
    with pytest.raises(StepError) as error:
        asked(tmp_path, command, "get_current_time", timezone="Nope/X")
    assert error.value.type == "exit"
    assert "Nope/X" in error.value.message


def test_the_git_server_reads_a_repository(tmp_path: Path) -> None:
    server = program("mcp-server-git")
    repo = tmp_path / "repo"
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false", "-C", str(repo)]
    subprocess.run(["git", "init", "-q", str(repo)], check=True, timeout=60)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "the first one"], check=True, timeout=60)
    log = asked(tmp_path, [server, "--repository", str(repo)], "git_log", repo_path=str(repo))
    assert "the first one" in str(log)
    with pytest.raises(StepError, match=r"nowhere|git_log"):
        asked(tmp_path, [server, "--repository", str(repo)], "git_log", repo_path=str(tmp_path / "nowhere"))


@pytest.fixture(scope="module")
def everything() -> Iterator[dict[str, object]]:
    """The server with one tool of every kind, over HTTP."""
    command = program("mcp-server-everything")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [command, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(200):
            with socket.socket() as ready:
                if ready.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield {"url": f"http://127.0.0.1:{port}/mcp", "allow_private": True}
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> list[str] | dict[str, object]:
    """The same server both ways."""
    if request.param == "stdio":
        return [program("mcp-server-everything"), "stdio"]
    found: dict[str, object] = request.getfixturevalue("everything")
    return found


Server = list[str] | dict[str, object]


def test_every_kind_of_answer_arrives(tmp_path: Path, server: Server) -> None:
    names = {tool["name"] for tool in asked(tmp_path, server, None)}
    assert {"echo", "get-sum", "get-structured-content", "get-tiny-image"} <= names
    assert asked(tmp_path, server, "echo", message=HOSTILE) == f"Echo: {HOSTILE}"
    assert "5" in asked(tmp_path, server, "get-sum", a=2, b=3)
    weather = asked(tmp_path, server, "get-structured-content", location="New York")
    assert set(weather) == {"temperature", "conditions", "humidity"}
    image = recorded(tmp_path, server, "get-tiny-image")["content"]
    assert [part["type"] for part in image] == ["text", "image", "text"]
    assert image[1]["mimeType"] == "image/png"


def test_arguments_that_do_not_fit_fail_the_step_with_the_words_of_the_server(tmp_path: Path, server: Server) -> None:
    with pytest.raises(StepError, match=r"(?i)invalid") as error:
        asked(tmp_path, server, "get-sum", a="two")
    assert error.value.type == "exit"
    with pytest.raises(StepError, match="nothing-of-the-kind"):
        asked(tmp_path, server, "nothing-of-the-kind")


def test_a_long_answer_with_progress_between_is_waited_for(tmp_path: Path, server: Server) -> None:
    answer = asked(tmp_path, server, "trigger-long-running-operation", duration=1, steps=4)
    assert "4" in answer


def test_the_server_for_files_stays_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "allowed"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    command = [program("mcp-server-filesystem"), str(folder)]
    asked(tmp_path, command, "write_file", path=str(folder / "a.txt"), content=HOSTILE)
    assert (folder / "a.txt").read_text() == HOSTILE
    text = recorded(tmp_path, command, "read_text_file", path=str(folder / "a.txt"))["text"]
    assert text == HOSTILE
    with pytest.raises(StepError, match=r"(?i)denied"):
        asked(tmp_path, command, "read_text_file", path=str(tmp_path / "outside.txt"))
