"""I. Gates and approvals: decisions too late, decisions that repeat nothing, decisions for one run only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .support import attempts, call, content, eventually, measure, save, shown, text_of

STEPS = """
    - {id: one, shell: "echo one >> ran.txt"}
    - {id: go, gate: {ask: "Go on?", timeout: TIME}}
    - {id: three, shell: "echo three >> ran.txt"}
"""


def asking(time: str = "1h", *, name: str = "case.yaml") -> str:
    """A run that waits at its gate: its id."""
    started = call("run", save(STEPS.replace("TIME", time), name=name), "--wait", "0s")
    assert (started.status, started.last["status"]) == (11, "waiting")
    return str(started.last["run_id"])


def test_an_approval_after_the_time_is_refused_and_every_view_says_the_same() -> None:
    run = asking("1s")
    assert content("ran.txt") == "one\n"
    wake = call("show", run).last["run"]["wake_at"]
    eventually(lambda: time.time() > wake)
    late = call("approve", run)
    assert (late.status, late.error["code"]) == (5, "TRM444")
    ended = call("resume", run)
    assert ended.status != 0
    assert ended.error["step"] == "go"
    status = shown(run)["status"]
    assert status == "failed"
    listed = {one["run_id"]: one["status"] for one in call("list").last["runs"]}
    assert listed[run] == status
    assert f"{status}" in text_of("show", run)
    assert call("approve", run).status == 5
    assert content("ran.txt") == "one\n"


def test_an_approval_repeats_nothing_that_was_done() -> None:
    run = asking()
    assert shown(run)["status"] == "waiting"
    # Each command is a process of its own: whoever approves knows nothing of the one that asked.
    assert measure("approve", run).status == 0
    assert content("ran.txt") == "one\n"
    resumed = measure("resume", run)
    assert resumed.status == 0, resumed.err
    assert content("ran.txt") == "one\nthree\n"
    ended = shown(run)
    assert (ended["run_id"], ended["status"]) == (run, "completed")
    assert attempts(ended)["one"] == ["succeeded"]


def test_an_approval_is_for_one_run_and_not_for_another_of_its_workflow() -> None:
    first, second = asking(), asking()
    assert call("approve", second).status == 0
    assert call("resume", second).status == 0
    assert (shown(first)["status"], shown(second)["status"]) == ("waiting", "completed")
    assert call("approve", second).status == 5
    assert call("resume", first).status == 11


def test_a_cancelled_run_takes_no_approval() -> None:
    run = asking()
    assert call("cancel", run).status == 0
    refused = call("approve", run)
    assert (refused.status, refused.error["code"]) == (5, "TRM507")
    assert "cancelled" in refused.error["message"]
    assert call("resume", run).status != 0
    assert content("ran.txt") == "one\n"


@pytest.mark.parametrize("reason", ["<b>no</b>\n", "  two  blanks ", "näin\tei", "$(touch pwned)"])
def test_a_rejection_has_its_own_exit_status_and_keeps_its_reason_as_it_is(reason: str) -> None:
    run = asking()
    assert call("reject", run, "--comment", reason).status == 0
    ended = call("resume", run)
    assert ended.status == 10
    assert ended.error["type"] == "rejected"
    assert ended.error["comment"] == reason
    decided = [event for event in shown(run)["events"] if event.get("type") == "gate.decided"]
    assert [event["comment"] for event in decided] == [reason]
    assert content("ran.txt") == "one\n"
    assert not Path("pwned").exists()
