"""Agents of every kind are over when all that they started is gone, however they end; and nothing secret is shown."""

from __future__ import annotations

import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tramai import engine
from tramai.event import StepOutput
from tramai.step import Step, Usage
from tramai.steps.claude import Claude
from tramai.steps.codex import Codex
from tramai.steps.hermes import Hermes
from tramai.stores.memory import Memory

from . import processes
from .agents import Folder, failure, result
from .engine.support import make
from .processes import alive
from .step_context import made

ROOT = Path(__file__).resolve().parent.parent
KINDS: dict[str, type[Step]] = {"claude": Claude, "codex": Codex, "hermes": Hermes}
# As every agent does it: the tool runs in a session of its own, here without a parent and deaf to SIGTERM.
TOOL = """
import signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for number in range(3):
            os.close(number)
        os.execv("/bin/sleep", ["sleep", NAP])
    os._exit(0)
os.wait()
say(type="thread.started", thread_id="t")
say(type="turn.completed", usage={"input_tokens": 3, "output_tokens": 1})
raw(b"\\n" * 10)
open(HERE + "/ready", "w").close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


eventually = functools.partial(processes.eventually, within=10.0)


@pytest.fixture
def nap() -> Iterator[str]:
    """A number of seconds that no other process sleeps for."""
    seconds = f"3{random.randrange(10**9):09d}"
    yield seconds
    for pid in alive(seconds):
        os.kill(pid, signal.SIGKILL)


def working(folder: Folder, verb: str, nap: str, end: str = "time.sleep(600)") -> Step:
    """An agent that runs a tool and then works on, or ends."""
    folder.program(verb, f"NAP = {nap!r}\n{TOOL}\n{end}")
    return made(KINDS[verb], prompt="work")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is deaf to SIGTERM has to be waited for."""
    monkeypatch.setattr("tramai.steps._agent_run.KILL_AFTER", 0.2)


@pytest.mark.parametrize("verb", KINDS)
def test_a_timeout_leaves_no_process_in_whatever_session(folder: Folder, nap: str, verb: str) -> None:
    error = failure(working(folder, verb, nap), folder.context(deadline=time.monotonic() + 0.7))
    assert error.type == "timeout"
    assert (folder.path / "ready").exists()
    assert alive(nap) == []


@pytest.mark.parametrize("reason", ["cancelled", "signal", "lease_lost", "sibling_failed"])
def test_whoever_stops_it_leaves_no_process(folder: Folder, nap: str, reason: str) -> None:
    ctx = folder.context()

    def stop() -> None:
        assert eventually((folder.path / "ready").exists)
        ctx.interrupt.set(reason)

    watcher = threading.Thread(target=stop)
    watcher.start()
    error = failure(working(folder, "codex", nap), ctx)
    watcher.join()
    assert (error.type, error.message) == ("cancelled", f"stopped: {reason}")
    assert error.usage == Usage(input_tokens=3, output_tokens=1)
    assert alive(nap) == []


def test_an_agent_that_ends_by_itself_takes_its_tools_with_it(folder: Folder, nap: str) -> None:
    step = working(folder, "codex", nap, "say(type='item.completed', item={'type': 'agent_message', 'text': 'x'})")
    ctx = folder.context()
    assert result(step, ctx)["text"] == "x"
    assert ctx.signals[-1][1]["survivors"] == 1
    assert alive(nap) == []


FLOW = """\
tramai: 1
name: agents
steps:
  - {id: a, VERB: {prompt: work, env: {PATH: "BIN"}}}
"""


def begun(folder: Folder, verb: str, nap: str) -> subprocess.Popen[bytes]:
    """The command line, in the middle of an agent's work."""
    working(folder, verb, nap)
    flow = folder.work / "flow.yaml"
    flow.write_text(FLOW.replace("VERB", verb).replace("BIN", f"{folder.bin}:{os.environ['PATH']}"), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder.path / "cache")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tramai", "run", str(flow), "--no-input"],
        cwd=folder.work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert eventually((folder.path / "ready").exists)
    assert eventually(lambda: alive(nap))
    return process


@pytest.mark.parametrize("verb", KINDS)
def test_a_killed_tramai_leaves_no_process_of_an_agent(folder: Folder, nap: str, verb: str) -> None:
    process = begun(folder, verb, nap)
    process.kill()
    process.wait(10)
    assert eventually(lambda: not alive(nap))
    assert eventually(lambda: not alive(str(folder.bin / verb)))


def test_a_second_ctrl_c_ends_everything_at_once(folder: Folder, nap: str) -> None:
    process = begun(folder, "claude", nap)
    process.send_signal(signal.SIGINT)
    assert not eventually(lambda: process.poll() is not None, within=0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert eventually(lambda: not alive(nap))


# Nothing secret.


def test_a_secret_that_an_agent_repeats_is_shown_and_kept_nowhere(folder: Folder) -> None:
    canary = 'canary-4711-"quoted"'
    body = """
key = os.environ["KEY"]
say(type="item.started", item={"type": "command_execution", "command": "curl -H " + key})
say(type="item.completed", item={"type": "agent_message", "text": "the key is " + key})
sys.stderr.write(key + "\\n")
say(type="turn.completed", usage={})
"""
    folder.program("codex", body)
    steps = [
        {"id": "a", "codex": {"prompt": "x", "env": {"KEY": "${{ secrets.K }}", "PATH": f"{folder.bin}:/usr/bin:/bin"}}}
    ]
    flow = make(steps, secrets={"K": {"env": "K"}}, outputs={"said": "${{ steps.a.output }}"})
    shown: list[str] = []
    ended = engine.run(
        flow,
        {},
        store=Memory(),
        options=engine.Options(cwd=str(folder.work), secrets={"K": canary}),
        observers=[lambda event: shown.append(event.text) if isinstance(event, StepOutput) else None],
    )
    assert ended.outputs == {"said": "the key is ***"}
    assert "".join(shown) == "$ curl -H ***\nthe key is ***\n"


def test_secrets_stand_nowhere_but_in_the_environment() -> None:
    from .reading import said

    head = "tramai: 1\nname: demo\nsecrets: {K: {env: K}}\nsteps:\n"
    assert said(f'{head}  - {{id: a, hermes: {{prompt: x, env: {{K: "${{{{ secrets.K }}}}"}}}}}}\n') == []
    (told,) = said(f'{head}  - {{id: a, hermes: {{prompt: "${{{{ secrets.K }}}}"}}}}\n')
    assert "a secret cannot stand in" in told


def test_usage_counts_against_the_limits_of_the_run(folder: Folder) -> None:
    folder.program("codex", "say(type='turn.completed', usage={'input_tokens': 90, 'output_tokens': 20})")
    agent = {"prompt": "x", "env": {"PATH": f"{folder.bin}:/usr/bin:/bin"}}
    steps = [
        {"id": "a", "codex": agent, "catch": [{"on": ["invalid_output"], "output": "none"}]},
        {"id": "b", "codex": agent},
    ]
    ended = engine.run(
        make(steps, limits={"max_tokens": 100}), {}, store=Memory(), options=engine.Options(cwd=str(folder.work))
    )
    assert ended.error is not None
    assert "used 110 tokens of 100" in str(ended.error)


def test_a_prompt_may_stand_in_a_file(folder: Folder) -> None:
    from tramai import plan

    prompt = "Look at {% if inputs.x != '' %}${{ inputs.x }}{% endif %}.\n"
    (folder.work / "ask.md").write_text(prompt, encoding="utf-8")
    flow = folder.work / "flow.yaml"
    flow.write_text(
        "tramai: 1\nname: ask\ninputs: {x: {type: string, default: ships}}\nsteps:\n"
        f'  - {{id: a, codex: {{prompt_file: ask.md, env: {{PATH: "{folder.bin}:/usr/bin:/bin"}}}}}}\n',
        encoding="utf-8",
    )
    folder.program(
        "codex",
        "say(type='item.completed', item={'type': 'agent_message', 'text': given})\n"
        "say(type='turn.completed', usage={})",
    )
    ended = engine.run(
        plan.load(str(flow)), {"x": "ships"}, store=Memory(), options=engine.Options(cwd=str(folder.work))
    )
    assert ended.error is None
    assert folder.started["stdin"] == "Look at ships.\n"
