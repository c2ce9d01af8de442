"""Runs that fail are tried again by a worker that was told to: exactly so often, whatever happens between."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support import call, content, save, shown, text_of
from tests.cli.test_worker import LONG, WORKER, Start, enqueued, lines, of, once, status
from tests.processes import eventually

AGAIN = ("--retry-failed", "2", "--retry-delay", "300ms")
FAILS = "- {id: bad, replay: replayable, shell: 'echo x >> tries; [ -e good ]'}\n"


def worked(start: Start, run: str, until: str, *more: str) -> list[dict[str, Any]]:
    """A worker that works until the run stands so; what it told."""
    worker = start(*WORKER, *AGAIN, *more)
    assert eventually(lambda: status(run) == until, within=LONG), shown(run)
    worker.send_signal(signal.SIGTERM)
    return lines(worker)


def retries(run: str) -> list[dict[str, Any]]:
    return [event["data"] for event in shown(run)["events"] if event["type"] == "run.retrying"]


def test_a_run_that_fails_is_tried_so_often_and_has_failed_then(start: Start) -> None:
    save(FAILS)
    run = enqueued()
    began = time.time()
    told = worked(start, run, "failed")
    assert content("tries").split() == ["x"] * 3
    found = retries(run)
    assert [(one["retry"], one["of"], one["error_type"]) for one in found] == [(1, 2, "exit.1"), (2, 2, "exit.1")]
    assert time.time() - began > 0.9, "300 ms, then 600"
    assert [line["status"] for line in of(told, "finished")] == ["failed"] * 3
    assert [line["wake_at"] is not None for line in of(told, "finished")] == [True, True, False]
    assert shown(run)["error"]["type"] == "exit.1"
    once(start, *AGAIN)
    assert content("tries").split() == ["x"] * 3, "a worker never takes one that has failed"


def test_a_run_whose_fault_was_passing_completes_and_repeats_nothing_that_was_done(start: Start) -> None:
    save("- {id: first, shell: 'echo 1 >> ones'}\n" + FAILS)
    run = enqueued()
    once(start, *AGAIN)
    assert status(run) == "sleeping"
    assert shown(run)["error"]["type"] == "exit.1"
    Path("good").touch()
    worked(start, run, "completed")
    assert (content("ones").split(), content("tries").split()) == (["1"], ["x", "x"])
    assert shown(run)["error"] is None


def test_who_resumes_by_hand_goes_on_at_once_and_gives_no_tries_back(start: Start) -> None:
    save(FAILS)
    run = enqueued()
    once(start, "--retry-failed", "2", "--retry-delay", "1h")
    assert (status(run), len(retries(run))) == ("sleeping", 1)
    assert call("resume", run).status == 1
    assert (status(run), content("tries").split()) == ("failed", ["x", "x"])
    assert len(retries(run)) == 1
    once(start, *AGAIN)
    assert status(run) == "failed", "nobody but its operator goes on with it now"


def test_a_retry_that_is_killed_is_not_a_retry_more(start: Start) -> None:
    save(
        "- {id: bad, replay: replayable, shell: 'echo x >> tries; [ $(wc -l < tries) != 2 ] || "
        "{ echo $$ > pid; sleep 60; }; exit 1'}\n"
    )
    run = enqueued()
    worker = start(*WORKER, *AGAIN)
    assert eventually(lambda: content("pid").strip(), within=LONG)
    worker.kill()
    worker.communicate()
    worked(start, run, "failed")
    assert [one["retry"] for one in retries(run)] == [1, 2]
    assert content("tries").split() == ["x"] * 4, "one was cut off, three have failed"


@pytest.mark.parametrize(
    ("steps", "top", "ends"),
    [
        ("- {id: bad, shell: 'echo x >> tries; sleep 5'}\n", "limits: {timeout: 300ms}", "failed"),
        ("- {id: ask, gate: {ask: Go on?}}\n", "", "failed"),
        ("- {id: ok, local: 1}\n", "", "completed"),
    ],
    ids=["limit", "rejected", "completed"],
)
def test_what_another_try_does_not_change_is_not_tried(start: Start, steps: str, top: str, ends: str) -> None:
    save(steps, top=top)
    run = enqueued()
    once(start, *AGAIN)
    if status(run) == "waiting":
        assert call("reject", run).status == 0
        once(start, *AGAIN)
    assert (status(run), retries(run)) == (ends, [])


def test_a_blocked_run_is_not_tried(start: Start) -> None:
    save("- {id: it, replay: non_replayable, shell: 'echo x >> tries; echo $$ > pid; sleep 60'}\n")
    run = enqueued()
    worker = start(*WORKER, *AGAIN)
    assert eventually(lambda: content("pid").strip(), within=LONG)
    worker.kill()
    worker.communicate()
    once(start, *AGAIN)
    once(start, *AGAIN)
    assert (status(run), content("tries").split(), retries(run)) == ("blocked", ["x"], [])


def test_the_called_run_of_a_run_that_is_tried_again_is_tried_with_it(start: Start) -> None:
    save(FAILS, name="inner.yaml")
    save("- {id: inner, call: {workflow: inner.yaml}}\n")
    run = enqueued()
    worked(start, run, "failed")
    assert (content("tries").split(), len(retries(run))) == (["x"] * 3, 2)


def test_without_the_flag_nothing_is_tried_again(start: Start) -> None:
    save(FAILS)
    run = enqueued()
    once(start)
    assert (status(run), content("tries").split()) == ("failed", ["x"])
    assert "--retry-failed" in text_of("worker", "--help")
