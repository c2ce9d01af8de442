"""`mcp` against servers of others. They are looked for beside Python and on PATH, and said loudly to be missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tramai.step import StepError
from tramai.steps.mcp import Mcp

from .step_context import StepContext, made, run

pytestmark = pytest.mark.real
pytest.importorskip("httpx2", reason="NOT TESTED, mcp: pip install 'tramai[mcp]'")


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"NOT TESTED, {name}: it is not installed (pip install {name})")
    return found


def asked(folder: Path, command: list[str], tool: str | None, **arguments: object) -> object:
    ctx = StepContext({"inputs": {"given": arguments}})
    ctx.cwd = str(folder)
    what = {"list": True} if tool is None else {"tool": tool, "arguments": "${{ inputs.given }}"}
    step = made(Mcp, server={"command": command}, **what)
    return step.output(run(step, ctx))


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
