"""Signals to a run: saved and resumable, with the exit status of the signal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SLOW, write

Start = Callable[..., "subprocess.Popen[str]"]
Finished = Callable[..., "subprocess.CompletedProcess[str]"]

STUBBORN = SLOW.replace(
    "echo started > started; sleep 60", 'trap "" INT TERM; echo $$ > started; while true; do sleep 0.1; done'
).replace("shell: 'trap", "timeout: 60s\n    shell: 'trap")


def wait_for(path: str, seconds: float = 20.0) -> str:
    """The content of a file as soon as there is some."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if Path(path).exists() and (text := Path(path).read_text()):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was never written")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_stops_after_saving(start: Start, finished: Finished, number: signal.Signals, status: int) -> None:
    write("slow.yaml", SLOW)
    process = start("run", "slow.yaml", restore_signals=True)
    wait_for("started")
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == status, err
    assert "interrupted" in err
    assert "tramai resume" in err
    assert "Traceback" not in err
    assert not Path("third").exists()
    run = json.loads(finished("show", "@last", "--json").stdout)["run"]
    assert run["status"] == "ready"
    assert run["owner"] is None
    assert [(step["path"], step["status"]) for step in run["steps"]] == [
        ("first", "succeeded"),
        ("second", "cancelled"),
    ]


def test_the_last_event_has_the_exit_status_of_the_process(start: Start) -> None:
    write("slow.yaml", SLOW)
    process = start("run", "slow.yaml", "--json")
    wait_for("started")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["status"], last["exit_status"]) == ("run.finished", "interrupted", 143)


def test_an_interrupted_run_goes_on_at_the_step(start: Start, finished: Finished) -> None:
    write("slow.yaml", SLOW)
    process = start("run", "slow.yaml")
    wait_for("started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    write("slow.yaml", SLOW)
    Path("started").unlink()
    again = start("resume", "@last")
    wait_for("started")
    again.send_signal(signal.SIGINT)
    _, err = again.communicate(timeout=20)
    assert again.returncode == 130
    assert "attempt 2" in err


def test_the_second_signal_kills_at_once(start: Start) -> None:
    write("stubborn.yaml", STUBBORN)
    process = start("run", "stubborn.yaml")
    child = int(wait_for("started"))
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, "the step ignores the signal and has its time to end"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert time.monotonic() - began < 5.0
    assert process.returncode == 130
    assert not alive(child)
    assert not Path("third").exists()


def test_ctrl_c_while_a_delay_is_waited_for_is_130(start: Start, finished: Finished) -> None:
    write(
        "nap.yaml", "tramai: 1\nname: nap\nsteps:\n  - {id: mark, shell: echo x > started}\n  - {id: nap, delay: 30s}\n"
    )
    process = start("run", "nap.yaml")
    wait_for("started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130


def test_a_second_resume_of_a_running_run_is_refused(start: Start, finished: Finished) -> None:
    write("slow.yaml", SLOW)
    start("run", "slow.yaml")
    wait_for("started")
    result = finished("resume", "@last")
    assert result.returncode == 5
    assert "owned by" in result.stderr


def test_a_cancelled_run_is_12(start: Start, finished: Finished) -> None:
    write("slow.yaml", SLOW)
    process = start("run", "slow.yaml", "--json")
    wait_for("started")
    assert "asked to stop" in finished("cancel", "@last").stdout
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 12
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
    assert not Path("third").exists()


def test_a_lease_that_was_lost_is_5(start: Start) -> None:
    import sqlite3

    write("slow.yaml", SLOW)
    process = start("run", "slow.yaml", "--lease", "1s")
    wait_for("started")
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 5, err
    assert "lease" in err
    with contextlib.closing(sqlite3.connect(".tramai/tramai.db")) as database:
        assert database.execute("select 1").fetchone() == (1,)


def test_of_many_resumes_at_once_one_does_the_work(start: Start, finished: Finished) -> None:
    write(
        "once.yaml",
        "tramai: 1\nname: once\nsteps:\n  - {id: a, shell: 'test -e ok; echo x >> effects; sleep 1'}\n",
    )
    finished("run", "once.yaml", "-q")
    Path("ok").touch()
    processes = [start("resume", "@last") for _ in range(6)]
    ends = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert Path("effects").read_text() == "x\n"
    assert sorted({status for _, status in ends}) in ([0, 5], [0])
    for err, status in ends:
        if status == 5:
            assert "owned by" in err
    assert sum("attempt 2" in err for err, _ in ends) == 1


def test_ctrl_c_while_a_secret_is_fetched_is_130_and_begins_nothing(start: Start, finished: Finished) -> None:
    command = '["sh", "-c", "echo x > started; sleep 60"]'
    write(
        "kept.yaml",
        f"tramai: 1\nname: kept\nsecrets: {{KEY: {{command: {command}}}}}\nsteps:\n"
        '  - {id: a, shell: {run: "true", env: {KEY: "${{ secrets.KEY }}"}}}\n',
    )
    process = start("run", "kept.yaml")
    wait_for("started")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "nothing was begun" in err
    assert json.loads(finished("list", "--json").stdout)["runs"] == []


@pytest.mark.parametrize("words", [("run", "slow.yaml", "--detach"), ("schedule", "run", "slow")])
def test_ctrl_c_while_a_secret_is_fetched_makes_no_run(
    start: Start, finished: Finished, words: tuple[str, ...]
) -> None:
    fetch = "secrets: {T: {command: [sh, -c, 'echo x > asked; sleep 60']}}"
    when = "schedules: [{cron: '0 4 * * *', timezone: UTC}]"
    steps = "steps:\n  - {id: a, shell: {run: 'true', env: {T: '${{ secrets.T }}'}}}"
    write("slow.yaml", f"tramai: 1\nname: slow\n{fetch}\n{when}\n{steps}\n")
    assert finished("schedule", "apply", "slow.yaml").returncode == 0
    process = start(*words)
    wait_for("asked")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, ""), err
    assert "interrupted while a secret was fetched; no run was made" in err
    assert json.loads(finished("list", "--json").stdout)["runs"] == []
