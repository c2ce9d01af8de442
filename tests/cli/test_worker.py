"""Workers: runs that kill them, workers that are killed, and workers that are told to stop. All with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support import alive, call, content, save, shown, text_of
from tests.postgres import Database
from tests.processes import eventually

Start = Callable[..., "subprocess.Popen[str]"]
WORKER = ("worker", "--json", "--poll", "100ms", "--concurrency", "2")
LONG = 30.0


def enqueued(*arguments: str, file: str = "case.yaml") -> str:
    """Make a run for workers; its id."""
    return str(call("run", file, "--detach", *arguments).last["run_id"])


def lines(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What an ended worker has told."""
    out, err = process.communicate(timeout=LONG)
    assert "Traceback" not in err, err
    return [json.loads(line) for line in out.splitlines()]


def once(start: Start, *more: str) -> list[dict[str, Any]]:
    """A worker that ends when nothing is ready; what it told."""
    process = start(*WORKER, "--once", *more)
    told = lines(process)
    assert process.returncode == 0
    return told


def of(told: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in told if line["type"] == f"worker.{kind}"]


def status(run: str) -> str:
    return str(shown(run)["status"])


HANG = "echo x >> tries; if [ ! -e go ]; then echo $$ > pid; while :; do sleep 0.05; done; fi"


def killed_in_mid_step(start: Start, replay: str) -> str:
    """A run whose worker was killed in the middle of its second step."""
    save(f"- {{id: one, shell: 'echo 1 >> ones'}}\n- {{id: two, replay: {replay}, shell: '{HANG}'}}\n")
    run = enqueued()
    worker = start(*WORKER)
    assert eventually(lambda: content("pid").strip(), within=LONG)
    worker.kill()
    worker.communicate()
    assert eventually(lambda: not alive(int(content("pid"))), within=LONG), "the step outlived its worker"
    Path("go").touch()
    return run


def test_a_safe_step_of_a_worker_that_was_killed_is_done_again_by_another(start: Start) -> None:
    run = killed_in_mid_step(start, "replayable")
    told = once(start)
    assert [line["run_id"] for line in of(told, "took")] == [run]
    assert status(run) == "completed"
    assert (content("ones").split(), content("tries").split()) == (["1"], ["x", "x"])


def test_an_unsafe_step_of_a_worker_that_was_killed_is_not_done_again(start: Start) -> None:
    run = killed_in_mid_step(start, "non_replayable")
    told = once(start)
    assert [line["status"] for line in of(told, "finished")] == ["blocked"]
    assert status(run) == "blocked"
    assert content("tries").split() == ["x"]


# M05


def test_a_run_that_kills_its_workers_is_dead_and_ten_behind_it_finish(start: Start) -> None:
    save("- {id: bomb, replay: replayable, shell: 'echo x >> tries; kill -9 $PPID; sleep 5'}\n", name="bomb.yaml")
    save("- {id: fine, shell: 'echo 1'}\n")
    bomb = enqueued(file="bomb.yaml")
    healthy = [enqueued() for _ in range(10)]
    told = once(start, "--max-claims", "4")
    assert {status(run) for run in healthy} == {"completed"}
    assert content("tries").split() == ["x"] * 4
    found = shown(bomb)
    assert (found["status"], found["error"]["type"], found["error"]["claims"]) == ("dead", "dead", 4)
    assert [line["run_id"] for line in of(told, "dead")] == [bomb]
    assert len(of(told, "slot_lost")) == 4
    assert "dead" in text_of("list")


# M07


def test_a_worker_that_is_told_to_stop_finishes_what_it_can_and_gives_back_the_rest(start: Start) -> None:
    save("- {id: short, shell: 'echo $$ > short; sleep 0.7; echo done > finished'}\n", name="short.yaml")
    save("- {id: long, replay: replayable, shell: 'echo $$ > long; [ -e go ] || sleep 60'}\n", name="long.yaml")
    save("- {id: later, shell: 'echo 1'}\n")
    short, long = enqueued(file="short.yaml"), enqueued(file="long.yaml")
    worker = start(*WORKER, "--drain-timeout", "1500ms")
    assert eventually(lambda: content("short").strip() and content("long").strip(), within=LONG)
    queued = [enqueued() for _ in range(5)]
    asked = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    told = lines(worker)
    spent = time.monotonic() - asked
    assert worker.returncode == 0
    assert 1.4 < spent < 15
    assert (status(short), content("finished").strip()) == ("completed", "done")
    assert not alive(int(content("long")))
    assert {status(run) for run in queued} == {"ready"}
    found = shown(long)
    assert (found["status"], found["owner"]) == ("ready", None)
    assert len(of(told, "took")) == 2
    assert call("worker", "list").last["workers"] == []
    Path("go").touch()
    once(start)
    assert {status(run) for run in (long, *queued)} == {"completed"}


def test_a_second_signal_kills_what_they_have_started_at_once(start: Start) -> None:
    save(
        '- {id: deaf, replay: replayable, shell: {kill_after: 60s, run: \'trap "" TERM INT; echo $$ > pid; '
        "while :; do sleep 0.1; done'}}\n"
    )
    run = enqueued()
    worker = start(*WORKER)
    assert eventually(lambda: content("pid").strip(), within=LONG)
    worker.send_signal(signal.SIGTERM)
    assert not eventually(lambda: worker.poll() is not None, within=0.5)
    worker.send_signal(signal.SIGTERM)
    told = lines(worker)
    assert worker.returncode == 0
    assert not alive(int(content("pid")))
    assert status(run) == "ready"
    assert of(told, "stopped")


# What wakes by itself or by a word.


def test_a_sleeper_wakes_on_time_and_holds_no_slot_meanwhile(start: Start) -> None:
    save("- {id: nap, delay: {for: 2s}}\n- {id: after, shell: 'date +%s.%N > woke'}\n", name="nap.yaml")
    save("- {id: fine, shell: 'echo 1'}\n")
    naps, others = [enqueued(file="nap.yaml") for _ in range(3)], [enqueued() for _ in range(2)]
    worker = start("worker", "--poll", "5s", "--concurrency", "1", "--max-runs", "8")
    assert eventually(lambda: all(status(run) == "completed" for run in (*naps, *others)), within=LONG)
    worker.communicate(timeout=LONG)
    assert worker.returncode == 0
    delays = [step for run in naps for step in shown(run)["steps"] if step["id"] == "nap"]
    for delay in delays:
        attempt = delay["attempts"][-1]
        assert attempt["ended"] - (attempt["started"] or attempt["ended"]) < 3.5


def test_a_gate_that_was_decided_goes_on_in_the_worker(start: Start) -> None:
    save("- {id: ask, gate: {ask: Go on?}}\n- {id: after, shell: 'echo 1'}\n")
    run = enqueued()
    worker = start(*WORKER, "--max-runs", "2")
    assert eventually(lambda: status(run) == "waiting", within=LONG)
    assert call("worker", "list").last["workers"][0]["state"] == "online"
    assert call("approve", run).status == 0
    assert eventually(lambda: status(run) == "completed", within=LONG)
    lines(worker)


def test_a_gate_of_a_called_workflow_goes_on_in_the_worker(start: Start) -> None:
    save("- {id: ask, gate: {ask: Go on?}}\n", name="inner.yaml")
    save("- {id: inner, call: {workflow: inner.yaml}}\n- {id: after, shell: 'echo 1'}\n")
    run = enqueued()
    once(start)
    assert status(run) == "waiting"
    (called,) = [one["run_id"] for one in call("list").last["runs"] if one["run_id"] != run]
    assert call("approve", called).status == 0
    told = once(start)
    assert [line["run_id"] for line in of(told, "took")] == [run]
    assert (status(run), status(called)) == ("completed", "completed")


# What cannot be carried out here.


def test_a_run_that_cannot_be_begun_here_is_told_once_and_stops_nobody(start: Start) -> None:
    save("- {id: it, shell: {run: 'echo 1', env: {T: '${{ secrets.T }}'}}}\n", top="secrets: {T: {env: CASE_TOKEN}}")
    save("- {id: fine, shell: 'echo 1'}\n", name="fine.yaml")
    os.environ["CASE_TOKEN"] = "abcdefghijkl"
    try:
        poor = enqueued()
    finally:
        del os.environ["CASE_TOKEN"]
    fine = enqueued(file="fine.yaml")
    worker = start(*WORKER)
    assert eventually(lambda: status(fine) == "completed", within=LONG)
    time.sleep(2.5)  # it is tried again meanwhile, and not told again
    worker.send_signal(signal.SIGTERM)
    told = lines(worker)
    (refused,) = of(told, "refused")
    assert (refused["run_id"], refused["code"]) == (poor, "TRM601")
    assert "CASE_TOKEN" in refused["message"]
    found = shown(poor)
    assert found["status"] == "ready"
    assert [event["type"] for event in found["events"]].count("worker.refused") == 1
    os.environ["CASE_TOKEN"] = "abcdefghijkl"
    try:
        once(start)
    finally:
        del os.environ["CASE_TOKEN"]
    assert status(poor) == "completed"


# The registry.


def test_a_worker_can_be_asked_to_end_from_elsewhere(start: Start) -> None:
    save("- {id: fine, shell: 'echo 1'}\n")
    enqueued()
    worker = start(*WORKER, "--label", "x", "--queue", "a", "--queue", "b")
    assert eventually(lambda: call("worker", "list").last["workers"], within=LONG)
    (one,) = call("worker", "list").last["workers"]
    assert (one["queues"], one["labels"], one["concurrency"]) == (["a", "b"], ["x"], 2)
    assert one["id"] in text_of("worker", "list")
    assert call("worker", "drain", "nobody").status == 4
    asked = call("worker", "drain", one["id"])
    assert asked.last["worker"]["state"] == "draining"
    told = lines(worker)
    assert (worker.returncode, of(told, "draining")[0]["reason"], of(told, "took")) == (0, "asked", [])
    assert text_of("worker", "list").strip() in ("", "no worker")


def test_the_workers_of_a_pool_are_asked_together(start: Start) -> None:
    blue = [start(*WORKER, "--pool", "blue") for _ in range(2)]
    green = start(*WORKER, "--pool", "green")
    assert eventually(lambda: len(call("worker", "list").last["workers"]) == 3, within=LONG)
    assert sorted(one["pool"] for one in call("worker", "list").last["workers"]) == ["blue", "blue", "green"]
    assert "green" in text_of("worker", "list")
    assert call("worker", "drain", "--pool", "red").status == 4
    assert len(call("worker", "drain", "--pool", "blue").last["workers"]) == 2
    for worker in blue:
        assert of(lines(worker), "draining")[0]["reason"] == "asked"
    assert green.poll() is None
    assert call("worker", "drain", "--all").status == 0
    lines(green)
    assert call("worker", "drain", "--all").status == 4


def test_who_drains_says_whom(start: Start) -> None:
    for arguments in ((), ("x", "--all"), ("--pool", "a", "--all")):
        refused = call("worker", "drain", *arguments)
        assert (refused.status, refused.error["code"]) == (2, "TRM701")
    assert call("worker", "--once", "--pool", "no name").status == 2


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_runs_that_only_compute_take_turns_and_the_end_of_each_is_told(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "postgres":
        monkeypatch.setenv("TRAMAI_STORE", database.url())
    save(
        "- {id: one, local: 1}\n- {id: two, when: '${{ inputs.n % 3 == 0 }}', local: '${{ steps.one.output + 1 }}'}\n"
        "- {id: last, local: '${{ 1 / (inputs.n - 7) }}'}\n",
        "inputs: {n: {type: integer}}\noutputs: {n: '${{ inputs.n }}'}\n",
    )
    runs = [enqueued("-i", f"n={number}") for number in range(40)]
    told = once(start, "--concurrency", "1")
    ends = {line["run_id"]: line["status"] for line in of(told, "finished")}
    assert ends == {run: "failed" if number == 7 else "completed" for number, run in enumerate(runs)}
    assert len(of(told, "finished")) == len(of(told, "took")) == 40
    assert [shown(run)["outputs"] for run in runs[8:12]] == [{"n": number} for number in range(8, 12)]
