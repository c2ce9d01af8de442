"""Every exit status that the help of a command names is forced here, as text and as JSON, and no other is."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, GATE, HELLO, ROOT, SLEEPS, write
from tests.cli.test_exit_codes import blocked_run, claimed, owned_run
from tests.cli.test_store import damage
from tramai.cli._group import SUMMARIES
from tramai.pool import Worker
from tramai.store import Holder
from tramai.stores import open_store

Call = Callable[..., Result]
ASK = """\
tramai: 1
name: ask
steps:
  - id: person
    gate: {ask: Go on?, approvers: [ann], form: {properties: {n: {type: integer}}, required: [n]}}
"""
TIME = "  - {cron: '0 6 * * *', timezone: UTC}\n"
TIMED = f"tramai: 1\nname: NAME\nschedules:\n{TIME}steps:\n  - {{id: a, local: 1}}\n"
FILES = {
    "hello.yaml": HELLO,
    "fails.yaml": FAILS,
    "gate.yaml": GATE,
    "sleeps.yaml": SLEEPS,
    "ask.yaml": ASK,
    "simple.yaml": "tramai: 1\nname: simple\nsteps:\n  - {id: person, gate: {ask: Go on?}}\n",
    "invalid.yaml": "tramai: 1\nname: x\nsteps:\n  - id: a\n    shel: ls\n",
    "unused.yaml": "tramai: 1\nname: x\ninputs: {n: {type: string, default: a}}\nsteps:\n  - {id: a, local: 1}\n",
    "ugly.yaml": "tramai:   1\nname:   x\nsteps:\n    - {id: a,    local: 1}\n",
    "null.yaml": "tramai: 1\nname: x\nsteps:\n  - id: a\n    local: {value: {b: [1, null]}}\n",
    "secret.yaml": FAILS.replace("steps:", "secrets: {T: {env: TOKEN_FOR_TEST}}\nsteps:", 1),
    "slow.yaml": "tramai: 1\nname: slow\nsteps:\n  - {id: a, shell: echo}\n"
    "  - {id: b, shell: 'touch begun; sleep 60'}\n",
    "gone.yaml": FAILS,
    "timed.yaml": TIMED.replace("NAME", "timed"),
    "again.yaml": TIMED.replace("NAME", "timed"),
    "hush.yaml": TIMED.replace("NAME", "hush").replace("steps:", "secrets: {T: {env: TOKEN_FOR_TEST}}\nsteps:"),
    "twice.yaml": TIMED.replace("NAME", "twice").replace("schedules:\n", f"schedules:\n{TIME}"),
    "changes.yaml": FAILS,
    "cancels.yaml": "tramai: 1\nname: cancels\nsteps:\n  - {id: a, shell: echo}\n  - id: b\n    shell:\n"
    '      run: \'"$PY" -m tramai cancel "$TRAMAI_RUN_ID" && sleep 60\'\n      env: {PY: PYTHON, PYTHONPATH: HERE}\n',
    "pass.tramai-test.yaml": "workflow: hello.yaml\ntests:\n  - {name: a, stubs: {greet: {output: A}}}\n",
    "fail.tramai-test.yaml": "workflow: hello.yaml\ntests:\n"
    "  - {name: a, stubs: {greet: {output: A}}, expect: {outputs: {said: B}}}\n",
    "bad.tramai-test.yaml": "workflow: hello.yaml\ntests:\n  - {name: a, stub: {}}\n",
    "broken.db": "this is no database, whatever its name says\n" * 40,
    "taken": "",
}
KEPT_NOT = "run hello.yaml --store file:runs;"
BROKEN = "--store sqlite:broken.db"
CASES: dict[str, dict[int, str]] = {
    "demo": {0: "demo --dir play", 1: "!no-shell; demo --dir play", 3: "demo --dir taken"},
    "init": {0: "init new", 3: "init taken/x"},
    "run": {
        0: "run hello.yaml", 1: "run fails.yaml", 2: "run hello.yaml -i nobody=1", 3: "run invalid.yaml",
        5: "!keyed; run hello.yaml --start-key k", 6: "run secret.yaml", 7: f"run hello.yaml {BROKEN}",
        10: "run gate.yaml", 11: "run sleeps.yaml", 12: "run cancels.yaml --lease 1s",
    },
    "resume": {
        0: "run hello.yaml; resume @last", 1: "run fails.yaml; resume @last", 2: "resume x --as-started --file y",
        3: "run gone.yaml; !gone; resume @last", 4: "resume nope", 5: "!owned; resume owned-run",
        6: "!secret; run secret.yaml; !no-secret; resume @last", 7: f"resume x {BROKEN}",
        10: "run gate.yaml; resume @last", 11: "run sleeps.yaml; resume @last",
        12: "run cancels.yaml --until a; resume @last --lease 1s",
    },
    "rerun": {
        0: "run hello.yaml; rerun @last", 1: "run fails.yaml; rerun @last", 2: "rerun x --as-started --file y",
        3: "run gone.yaml; !gone; rerun @last", 4: "rerun nope", 5: "run changes.yaml; !change; rerun @last",
        6: "!secret; run secret.yaml; !no-secret; rerun @last", 7: f"rerun x {BROKEN}",
        10: "run gate.yaml; rerun @last", 11: "run sleeps.yaml; rerun @last",
        12: "run cancels.yaml --until a; rerun @last --lease 1s",
    },
    "status": {0: "status", 7: f"status {BROKEN}"},
    "validate": {0: "validate hello.yaml", 1: "validate invalid.yaml", 3: "validate missing.yaml"},
    "fmt": {0: "fmt hello.yaml", 1: "fmt --check ugly.yaml", 3: "fmt invalid.yaml"},
    "convert": {
        0: "convert hello.yaml --to toml", 1: "convert null.yaml --to toml", 2: "convert hello.yaml --to yaml",
        3: "convert invalid.yaml --to toml",
    },
    "plan": {0: "plan hello.yaml", 2: "plan hello.yaml -i nobody=1", 3: "plan invalid.yaml"},
    "test": {
        0: "test pass.tramai-test.yaml", 1: "test fail.tramai-test.yaml", 2: "test pass.tramai-test.yaml -k nothing",
        3: "test bad.tramai-test.yaml",
    },
    "graph": {0: "graph hello.yaml", 3: "graph invalid.yaml", 4: "graph nope"},
    "digest": {0: "digest hello.yaml", 3: "digest invalid.yaml"},
    "schema": {0: "schema run", 4: "schema nope"},
    "explain": {0: "explain TRM104", 4: "explain TRM998"},
    "list": {0: "list", 7: f"list {BROKEN}"},
    "show": {0: "run hello.yaml; show @last", 4: "show nope", 7: f"show x {BROKEN}"},
    "watch": {
        0: "run hello.yaml; watch @last", 1: "run fails.yaml; watch @last", 4: "watch nope",
        7: f"watch x {BROKEN}", 10: "run gate.yaml; watch @last",
        11: "run sleeps.yaml; watch @last --timeout 10ms", 12: "run sleeps.yaml; cancel @last; watch @last",
    },
    "logs": {0: "run hello.yaml; logs @last", 4: "logs nope"},
    "export": {
        0: "run hello.yaml; export @last", 3: "run hello.yaml; export @last -o taken/x", 4: "export nope",
        7: f"export x {BROKEN}",
    },
    "diff": {
        0: "run hello.yaml; diff @last", 1: "run changes.yaml; !change; diff @last",
        3: "run hello.yaml; diff @last invalid.yaml", 4: "diff nope",
    },
    "approve": {
        0: "run ask.yaml; approve @last --as ann --data n=1", 2: "run ask.yaml; approve @last --as ann --data n=x",
        4: "approve nope", 5: "run ask.yaml; approve @last --as bob --data n=1",
    },
    "reject": {
        0: "run ask.yaml; reject @last --as ann", 2: "run ask.yaml; reject @last --as ann --data n=x",
        4: "reject nope", 5: "run ask.yaml; reject @last --as bob", 10: "run simple.yaml; reject @last --resume",
    },
    "cancel": {0: "run sleeps.yaml; cancel @last", 4: "cancel nope", 5: "run hello.yaml; cancel @last"},
    "resolve": {
        0: "!blocked; resolve blocked-run send --as retry", 4: "resolve nope x --as retry",
        5: "run hello.yaml; resolve @last greet --as retry",
    },
    "worker": {0: "worker --once", 2: "worker --poll 3", 7: f"worker --once {BROKEN}"},
    "worker list": {0: "worker list", 2: f"{KEPT_NOT} worker list --store file:runs", 7: f"worker list {BROKEN}"},
    "worker drain": {
        0: "!workers; worker drain one-x", 2: "!workers; worker drain x", 4: "worker drain nope",
        7: f"worker drain x {BROKEN}",
    },
    "store": {2: "store"},
    "store info": {0: "store info", 3: "store info --store nope:x", 7: f"store info {BROKEN}"},
    "store check": {0: "store check", 1: "run hello.yaml; !damage; store check", 7: f"store check {BROKEN}"},
    "store migrate": {
        0: "store migrate", 2: "store migrate --print-sql --store memory:", 7: f"store migrate {BROKEN}",
    },
    "store prune": {0: "store prune --older-than 0s", 2: "store prune", 7: f"store prune --older-than 0s {BROKEN}"},
    "store copy": {
        0: "run hello.yaml; store copy @last --to file:other", 2: "store copy --to file:other",
        4: "store copy nope --to file:other", 5: "run sleeps.yaml; store copy @last --to file:other",
        7: f"store copy x --to file:other {BROKEN}",
    },
    "store move": {
        0: "run sleeps.yaml; store move @last --to file:other", 2: "store move --to file:other",
        4: "store move nope --to file:other", 5: "!owned; store move owned-run --to file:other",
        7: f"store move x --to file:other {BROKEN}",
    },
    "schedule": {2: "schedule"},
    "schedule apply": {
        0: "schedule apply timed.yaml", 2: "schedule apply nothing", 3: "schedule apply invalid.yaml",
        5: "schedule apply timed.yaml; schedule apply again.yaml", 7: f"schedule apply timed.yaml {BROKEN}",
    },
    "schedule list": {
        0: "schedule list", 2: f"{KEPT_NOT} schedule list --store file:runs", 7: f"schedule list {BROKEN}",
    },
    **{
        f"schedule {verb}": {
            0: f"schedule apply timed.yaml; schedule {verb} timed",
            2: f"schedule apply twice.yaml; schedule {verb} twice",
            4: f"schedule {verb} nope",
            7: f"schedule {verb} x {BROKEN}",
            **({6: "schedule apply hush.yaml; schedule run hush"} if verb == "run" else {}),
        }
        for verb in ("next", "history", "run", "pause", "resume", "remove")
    },
    "schedule serve": {2: "schedule serve --poll 0s", 7: f"schedule serve {BROKEN}"},
    "schedule preview": {
        0: "schedule preview '0 4 * * *'", 2: "schedule preview '0 4 * *' --tz UTC", 3: "schedule preview invalid.yaml",
    },
    "config": {2: "config"},
    "config show": {0: "config show", 2: "config show --color blue", 3: "!settings; config show"},
    "plugin": {2: "plugin"},
    "plugin list": {0: "plugin list"},
    "doctor": {0: "doctor", 1: f"doctor {BROKEN}", 3: "!settings; doctor"},
    "help": {0: "help replay", 4: "help nope"},
    "completion": {0: "completion bash"},
}  # fmt: skip
"""Per command and exit status the lines that lead to it. What begins with `!` is a thing that happens, see `happen`."""
BY_SIGNAL = {130: signal.SIGINT, 143: signal.SIGTERM}
ELSEWHERE = {"demo": {130, 143}, "schedule serve": {0}}
"""Forced in tests of their own: tests/cli/test_demo.py, tests/test_scheduler_processes.py."""


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in SUMMARIES:
        command = importlib.import_module(f"tramai.cli.{name}").command
        yield name, command
        yield from ((f"{name} {verb}", inner) for verb, inner in getattr(command, "commands", {}).items())


def promised(command: click.Command) -> set[int]:
    """The exit statuses that a help text names."""
    text = (command.help or "").partition("Exit status:")[2]
    return {int(number) for number in re.findall(r"\b\d{1,3}\b", text)}


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_what_the_help_promises_is_what_is_forced(name: str, command: click.Command) -> None:
    wanted = promised(command)
    if "as `tramai run`" in " ".join((command.help or "").split()):
        wanted |= promised(dict(commands())["run"])
    signals = set(BY_SIGNAL) if name in ("run", "resume", "rerun") else ELSEWHERE.get(name, set())
    extra = {2, 3, 7} if name in ("resume", "rerun") else set()
    assert wanted <= set(CASES[name]) | signals
    assert set(CASES[name]) <= wanted | extra


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files of this module."""
    for name, text in FILES.items():
        write(name, text.replace("PY: PYTHON", f"PY: {sys.executable}").replace("HERE", str(ROOT)))
    os.mkdir("nothing")
    monkeypatch.delenv("TOKEN_FOR_TEST", raising=False)


def happen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that no command does."""
    if what == "blocked":
        blocked_run()
    elif what == "owned":
        owned_run()
    elif what == "keyed":
        keyed()
    elif what == "gone":
        os.rename("gone.yaml", "elsewhere.yaml")
    elif what == "change":
        write("changes.yaml", FAILS.replace("exit 3", "exit 4"))
    elif what == "secret":
        monkeypatch.setenv("TOKEN_FOR_TEST", "a-long-value")
    elif what == "no-secret":
        monkeypatch.delenv("TOKEN_FOR_TEST")
    elif what == "settings":
        write("tramai.toml", 'stor = "x"\n')
    elif what == "workers":
        store = open_store("sqlite:.tramai/tramai.db")
        for name in ("one-x", "two-x"):
            store.beat(Worker(id=name, host="h", pid=1, started=1.0), now=time.time())  # type: ignore[attr-defined]
        store.close()
    elif what == "damage":
        damage("DELETE FROM record WHERE path='greet'")
    elif what == "no-shell":
        monkeypatch.setattr("tramai.cli.init.template", lambda name: FAILS)
    else:
        raise AssertionError(what)


def keyed() -> None:
    """A run with a start key that somebody else works on."""
    store = open_store("sqlite:.tramai/tramai.db")
    claimed(store, "keyed", Holder("another-host", "", 1, ""), "k")
    store.close()


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("status", "lines"),
    [
        pytest.param(status, lines, id=f"{name}-{status}")
        for name, cases in CASES.items()
        for status, lines in cases.items()
    ],
)
def test_every_exit_status_is_forced(
    tramai: Call, monkeypatch: pytest.MonkeyPatch, status: int, lines: str, form: str
) -> None:
    *before, last = (line.strip() for line in lines.split(";"))
    for line in before:
        if line.startswith("!"):
            happen(line[1:], monkeypatch)
        else:
            tramai(*shlex.split(line), "--no-input")
    result = tramai(*shlex.split(last), "--no-input", *(["--json"] if form == "json" else []))
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    if form == "json":
        assert result.stdout, "there is a document, however it ends"
        for line in result.stdout.splitlines():
            assert json.loads(line)["schema"].startswith("tramai.")


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("verb", ["run", "resume", "rerun"])
@pytest.mark.parametrize("status", sorted(BY_SIGNAL))
def test_a_signal_is_an_exit_status(
    tramai: Call, start: Callable[..., subprocess.Popen[str]], verb: str, status: int
) -> None:
    if verb != "run":
        assert tramai("run", "slow.yaml", "--until", "a").exit_code == 11
    process = start(verb, "slow.yaml" if verb == "run" else "@last")
    deadline = time.monotonic() + 30
    while not Path("begun").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(BY_SIGNAL[status])
    assert process.wait(timeout=30) == status
