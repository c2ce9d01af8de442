"""`status`, `approve`, `reject` and what `run`, `resume` and `show` say of gates that wait for people."""

from __future__ import annotations

import contextlib
import getpass
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import FAILS, HELLO, SLEEPS, document, write
from tests.cli.test_commands import steady as without_times
from tests.cli.test_documents import check, meets
from tests.cli.test_exit_codes import blocked_run, owned_run
from tramai.store import Change, Holder, Status
from tramai.stores import open_store

Call = Callable[..., Result]
ASKS = """\
tramai: 1
name: asks
steps:
  - id: build
    local: built
  - id: release
    gate:
      ask: "Release it to production?\\nFor ever?"
      show: {risk: low, notes: "[bold]a\\nb\\e[31m ::error::x"}
      form:
        properties:
          ticket: {type: string, pattern: "^OPS-"}
          percent: {type: integer, default: 10, description: How many users}
        required: [ticket]
      approvers: [ann, bob, cleo]
      min: 2
      timeout: 48h
      on_timeout: reject
  - id: after
    local: ${{ steps.release.output.data.percent }}
outputs: {percent: "${{ steps.after.output }}"}
"""
SIMPLE = """\
tramai: 1
name: simple
steps:
  - id: ok
    gate: {ask: Go on?}
outputs: {by: "${{ steps.ok.output.by }}"}
"""
TWO = """\
tramai: 1
name: two
steps:
  - id: fan
    parallel:
      items: [eu, us]
      as: region
      max: 1
      key: ${{ region }}
      do: [{id: ok, gate: {ask: "Release in ${{ region }}?"}}]
"""
LATE = SIMPLE.replace("{ask: Go on?}", "{ask: Go on?, timeout: 50ms}")


def steady(text: str) -> str:
    import re

    text = re.sub(r"\b[0-9a-f]{8}(?=  [⏸✗⚠○▸])", "<id>", without_times(text))
    text = re.sub(r"run\.resumed by \S+", "run.resumed by <login>", text)
    return re.sub(r"(approve|reject|watch|run|resume|show) [0-9a-f]{8}\b", r"\1 <id>", text)


def begun(tramai: Call, text: str = SIMPLE, *more: str) -> None:
    """A run that waits."""
    write("w.yaml", text)
    result = tramai("run", "w.yaml", *more)
    assert result.exit_code == 11, result.output


# What people see.


@pytest.mark.parametrize("name", ["ASKS", "SIMPLE", "TWO"])
def test_what_a_run_that_waits_shows(tramai: Call, snapshot: SnapshotAssertion, name: str) -> None:
    write("w.yaml", {"ASKS": ASKS, "SIMPLE": SIMPLE, "TWO": TWO}[name])
    assert steady(tramai("run", "w.yaml").stderr) == snapshot(name="run")
    assert steady(tramai("resume", "@last").stderr) == snapshot(name="resume")
    assert steady(tramai("show", "@last").stdout) == snapshot(name="show")
    assert steady(tramai("status").stdout) == snapshot(name="status")


def test_what_a_decision_shows(tramai: Call, snapshot: SnapshotAssertion) -> None:
    begun(tramai, ASKS)
    ticket = ("--data", "ticket=OPS-7")
    first = tramai("approve", "@last", "--as", "ann", "--comment", "looks\ngood", *ticket)
    assert (first.exit_code, steady(first.stdout), steady(first.stderr)) == snapshot(name="first")
    second = tramai("approve", "@last", "release", "--as", "bob", *ticket, "--data", "percent:=25")
    assert (second.exit_code, steady(second.stdout), steady(second.stderr)) == snapshot(name="second")
    assert steady(tramai("status").stdout) == snapshot(name="status")
    assert steady(tramai("show", "@last").stdout) == snapshot(name="show before")
    result = tramai("resume", "@last")
    assert (result.exit_code, result.stdout) == (0, "percent: 25\n")
    assert steady(tramai("show", "@last").stdout) == snapshot(name="show after")


def test_what_a_rejection_shows(tramai: Call, snapshot: SnapshotAssertion) -> None:
    begun(tramai)
    result = tramai("reject", "@last", "--as", "bob", "--comment", "not today", "--resume")
    assert result.exit_code == 10
    assert steady(result.stderr) == snapshot


@pytest.mark.parametrize(
    "arguments",
    [
        ("--as", "mallory", "--data", "ticket=OPS-1"),
        ("--as", "ann"),
        ("--as", "ann", "--data", "ticket=7"),
        ("--as", "ann", "--data", "tickets=OPS-7"),
        ("relase", "--as", "ann"),
        ("--as", " "),
        ("--data", "ticket"),
        ("--data", "ticket:=OPS"),
    ],
)
def test_what_a_refusal_shows(tramai: Call, snapshot: SnapshotAssertion, arguments: tuple[str, ...]) -> None:
    begun(tramai, ASKS)
    result = tramai("approve", "@last", *arguments)
    assert (result.exit_code, result.stdout, steady(result.stderr)) == snapshot


def test_status_shows_everything_that_is_not_over(tramai: Call, snapshot: SnapshotAssertion) -> None:
    write("fails.yaml", FAILS)
    write("sleeps.yaml", SLEEPS)
    write("hello.yaml", HELLO)
    tramai("run", "fails.yaml")
    tramai("run", "sleeps.yaml")
    tramai("run", "hello.yaml")
    blocked_run()
    owned_run()
    begun(tramai)
    text = steady(tramai("status").stdout)
    assert text == snapshot
    assert text.count("hello v1") == 2, "one is blocked, one runs, and the completed one is not shown"


def test_nothing_needs_anybody_where_nothing_was_run(tramai: Call) -> None:
    result = tramai("status")
    assert (result.exit_code, result.stdout) == (0, "nothing needs you\n")
    assert document(tramai("status", "--json"))["waiting"] == []


def test_status_is_cut_and_filtered(tramai: Call) -> None:
    for _ in range(3):
        begun(tramai)
    begun(tramai, TWO)
    found = document(tramai("status", "--json", "--limit", "2"))
    assert (len(found["waiting"]), found["more"]) == (2, ["waiting"])
    found = document(tramai("status", "--json", "--workflow", "two"))
    assert [one["workflow"] for one in found["waiting"]] == ["two"]
    assert tramai("status", "--limit", "2").stderr == "more are waiting: see them with --limit\n"


# What scripts rely on.


def test_the_documents_meet_their_schemas(tramai: Call) -> None:
    begun(tramai, ASKS)
    found = check(document(tramai("status", "--json")))
    (one,) = found["waiting"][0]["questions"]
    assert (one["path"], one["approvers"], one["min"], one["votes"]) == ("release", ["ann", "bob", "cleo"], 2, [])
    assert one["form"]["required"] == ["ticket"]
    assert found["waiting"][0]["commands"][0].startswith("tramai approve ")
    said = ("--data", "ticket=OPS-7", "--json")
    first = check(document(tramai("approve", "@last", "--as", "ann", "--comment", "yes", *said)))
    assert (first["decision"], first["by"], first["comment"], first["data"]) == (
        "approved", "ann", "yes", {"ticket": "OPS-7", "percent": 10},
    )  # fmt: skip
    assert (first["outcome"], first["approvals"], first["min"], first["status"]) == (None, 1, 2, "waiting")
    assert check(document(tramai("reject", "@last", "--as", "bob", "--json")))["outcome"] == "rejected"
    shown = check(document(tramai("show", "@last", "--json")))
    assert [vote["decision"] for vote in shown["run"]["questions"][0]["votes"]] == ["approved", "rejected"]
    refused = tramai("approve", "@last", "--as", "cleo", *said)
    assert (refused.exit_code, check(document(refused))["error"]["code"]) == (5, "TRM441")


def test_with_resume_the_decision_comes_first_and_the_events_follow(tramai: Call) -> None:
    begun(tramai)
    result = tramai("approve", "@last", "--as", "ann", "--resume", "--json")
    first, *events = [json.loads(line) for line in result.stdout.splitlines()]
    check(first)
    for event in events:
        meets(event, "events")
    assert [event["type"] for event in events if event["type"].startswith(("gate", "run"))] == [
        "run.started", "gate.decided", "run.finished",
    ]  # fmt: skip
    assert events[-1]["outputs"] == {"by": "ann"}


def test_a_run_tells_of_its_question_in_its_events(tramai: Call) -> None:
    write("w.yaml", ASKS)
    for arguments in (("run", "w.yaml"), ("resume", "@last")):
        events = [json.loads(line) for line in tramai(*arguments, "--json").stdout.splitlines()]
        for event in events:
            meets(event, "events")
        (asked,) = [event for event in events if event["type"] == "gate.asked"]
        assert (asked["path"], asked["approvers"], asked["min"]) == ("release", ["ann", "bob", "cleo"], 2)
        assert asked["needs"] == ["ticket"]
        assert (events[-1]["status"], events[-1]["exit_status"]) == ("waiting", 11)


def test_the_login_decides_unless_a_name_is_given(tramai: Call) -> None:
    begun(tramai)
    found = document(tramai("approve", "@last", "--json"))
    assert (found["by"], found["status"]) == (getpass.getuser(), "waiting")
    assert tramai("resume", "@last").exit_code == 0


def test_a_login_without_a_name_has_to_say_one(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tramai)
    monkeypatch.setattr(getpass, "getuser", lambda: (_ for _ in ()).throw(KeyError()))
    result = tramai("approve", "@last")
    assert result.exit_code == 2
    assert "say it with --as NAME" in result.stderr


@pytest.mark.parametrize("selector", ["@last", "@last:simple", "short", "whole"])
def test_a_run_is_named_as_everywhere(tramai: Call, selector: str) -> None:
    begun(tramai)
    run_id = document(tramai("status", "--json"))["waiting"][0]["run_id"]
    named = {"short": run_id[-8:], "whole": run_id}.get(selector, selector)
    assert tramai("approve", named, "ok").exit_code == 0


def test_data_may_come_from_a_file(tramai: Call) -> None:
    begun(tramai, ASKS)
    write("ticket.txt", "OPS-99")
    found = document(tramai("approve", "@last", "--as", "ann", "--data", "ticket=@ticket.txt", "--json"))
    assert found["data"]["ticket"] == "OPS-99"


# Exit statuses.


def test_a_decision_is_0_and_with_resume_that_of_the_run(tramai: Call) -> None:
    for word, alone, resumed in (("approve", 0, 0), ("reject", 0, 10)):
        begun(tramai)
        assert tramai(word, "@last").exit_code == alone
        begun(tramai)
        assert tramai(word, "@last", "--resume").exit_code == resumed
    begun(tramai, TWO)
    assert tramai("approve", "@last", "fan[eu].ok", "--resume").exit_code == 11


def test_several_gates_must_be_told_apart_2(tramai: Call) -> None:
    begun(tramai, TWO)
    result = tramai("approve", "@last")
    assert result.exit_code == 2
    assert "several gates wait for a decision: fan[eu].ok, fan[us].ok" in result.stderr
    assert tramai("reject", "@last", "ok").exit_code == 2


@pytest.mark.parametrize("word", ["approve", "reject", "watch"])
def test_no_such_run_or_gate_is_4(tramai: Call, word: str) -> None:
    assert tramai(word, "nothing").exit_code == 4
    begun(tramai)
    if word != "watch":
        assert tramai(word, "@last", "other").exit_code == 4


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_what_does_not_count_is_5(tramai: Call, word: str) -> None:
    write("sleeps.yaml", SLEEPS)
    tramai("run", "sleeps.yaml")
    assert (tramai(word, "@last").exit_code, tramai(word, "@last", "--json").exit_code) == (5, 5)
    begun(tramai)
    tramai("approve", "@last", "--as", "ann")
    for by in ("ann", "bob"):
        assert tramai(word, "@last", "--as", by).exit_code == 5
    tramai("resume", "@last")
    assert tramai(word, "@last").exit_code == 5
    begun(tramai, LATE, "--wait", "0s")
    time.sleep(0.06)
    result = tramai(word, "@last")
    assert (result.exit_code, "TRM444" in result.stderr) == (5, True)


@pytest.mark.parametrize("word", ["status", "approve", "reject", "watch"])
def test_a_store_that_cannot_be_used_is_7(tramai: Call, word: str) -> None:
    write("broken.db", "this is no database, and longer than a header of one hundred bytes would be " * 3)
    result = tramai(word, *([] if word == "status" else ["@last"]), "--store", "sqlite:broken.db")
    assert result.exit_code == 7, result.output


def test_a_rejected_and_a_late_gate_end_a_run_as_10_and_1(tramai: Call) -> None:
    begun(tramai, LATE, "--wait", "0s")
    time.sleep(0.06)
    assert tramai("resume", "@last").exit_code == 1
    begun(tramai, LATE.replace("50ms", "50ms, on_timeout: reject"), "--wait", "0s")
    time.sleep(0.06)
    assert tramai("resume", "@last").exit_code == 10


def test_a_run_that_waits_is_11_or_0_if_that_is_all_right(tramai: Call) -> None:
    write("w.yaml", SIMPLE)
    assert tramai("run", "w.yaml", "--ok-if-suspended").exit_code == 0
    assert tramai("resume", "@last").exit_code == 11
    assert tramai("resume", "@last", "--ok-if-suspended").exit_code == 0


# Answers beforehand.


@pytest.mark.parametrize(("word", "status"), [("yes", 0), ("no", 10)])
def test_a_gate_may_be_answered_beforehand(tramai: Call, word: str, status: int) -> None:
    write("w.yaml", SIMPLE)
    result = tramai("run", "w.yaml", "--approve", f"ok={word}")
    assert result.exit_code == status, result.output
    assert word == "no" or result.stdout == f"by: {getpass.getuser()}\n"


def test_an_answer_beforehand_holds_for_what_is_asked_already(tramai: Call) -> None:
    begun(tramai, TWO)
    assert tramai("resume", "@last", "--approve", "fan[eu].ok=yes").exit_code == 11
    assert tramai("resume", "@last", "--as-started", "--approve", "ok=yes").exit_code == 0
    result = tramai("rerun", "@last", "--approve", "ok=yes")
    assert result.exit_code == 0


def test_an_answer_that_is_refused_is_said_and_the_gate_waits(tramai: Call) -> None:
    write("w.yaml", ASKS)
    result = tramai("run", "w.yaml", "--approve", "release=yes")
    assert result.exit_code == 11
    assert f"warning: --approve release: {getpass.getuser()} may not decide on gate 'release'" in result.stderr


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("okay=yes", "did you mean 'ok'?"),
        ("build=yes", "gates that ask: ok"),
        ("ok=maybe", "write STEP=yes or STEP=no"),
        ("ok", "write STEP=yes or STEP=no"),
    ],
)
def test_an_answer_to_nothing_is_2_and_starts_nothing(tramai: Call, answer: str, why: str) -> None:
    write("w.yaml", SIMPLE)
    result = tramai("run", "w.yaml", "--approve", answer)
    assert (result.exit_code, why in result.stderr) == (2, True), result.stderr
    assert tramai("list", "--json").exit_code == 0
    assert json.loads(tramai("list", "--json").stdout)["runs"] == []


# From other processes.


def test_a_decision_is_heard_by_a_runner_that_waits_in_the_foreground(tramai: Call, start: Callable[..., Any]) -> None:
    write("w.yaml", SIMPLE.replace("{ask: Go on?}", "{ask: Go on?, timeout: 100s}"))
    runner = start("run", "w.yaml", "--wait", "200s", "--json")
    for line in runner.stdout:
        if json.loads(line)["type"] == "gate.asked":
            break
    result = tramai("approve", "@last", "--as", "ann", "--resume")
    assert (result.exit_code, "its runner goes on" in result.stderr) == (0, True), result.output
    out, _ = runner.communicate(timeout=60)
    assert (runner.returncode, json.loads(out.splitlines()[-1])["outputs"]) == (0, {"by": "ann"})


def test_a_runner_that_lets_go_without_having_heard_is_replaced(tramai: Call) -> None:
    begun(tramai)
    store = open_store("sqlite:.tramai/tramai.db")
    run_id = store.page(limit=1)[0][0].run_id
    _, lease = store.claim(run_id, owner="them", holder=Holder.here(), ttl=60.0, now=time.time())

    def let_go() -> None:
        """It had looked for decisions just before this one came."""
        while not any(note.type == "gate.decided" for note in store.notes(run_id)):
            time.sleep(0.01)
        store.commit(lease, Change(now=time.time(), status=Status.WAITING, wake_at=None, release=True))

    other = threading.Thread(target=let_go)
    other.start()
    result = tramai("approve", "@last", "--as", "ann", "--resume")
    other.join(60)
    store.close()
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "by: ann"), result.output


def test_a_journal_that_cannot_be_read_hides_no_other_run(tramai: Call) -> None:
    import sqlite3

    begun(tramai)
    begun(tramai, TWO)
    with contextlib.closing(sqlite3.connect(".tramai/tramai.db")) as database, database:
        database.execute("UPDATE record SET body=X'00' WHERE run=(SELECT min(run) FROM record)")
    found = document(tramai("status", "--json"))
    assert [(one["workflow"], len(one["questions"])) for one in found["waiting"]] == [("two", 2), ("simple", 0)]
    assert found["waiting"][1]["error"]["type"] == "unreadable"
    open_store("sqlite:.tramai/tramai.db").close()


REDO = """\
tramai: 1
name: redo
state: {feedback: {initial: none}}
steps:
  - id: draft
    local: a draft, feedback ${{ state.feedback }}
  - id: review
    gate: {ask: "${{ steps.draft.output }}?", on_reject: {redo: draft, max: 1}}
    save: {feedback: "${{ result.comment }}"}
  - id: publish
    local: ${{ steps.draft.output }}
outputs: {it: "${{ steps.publish.output }}"}
"""


def test_what_a_run_that_goes_back_shows(tramai: Call, snapshot: SnapshotAssertion) -> None:
    begun(tramai, REDO)
    assert steady(tramai("reject", "@last", "--as", "ann", "--comment", "shorter", "--resume").stderr) == snapshot(
        name="reject"
    )
    assert steady(tramai("show", "@last").stdout) == snapshot(name="show")
    result = tramai("approve", "@last", "review@2", "--as", "ann", "--resume")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (0, ["it: a draft, feedback shorter"])
    graph = document(tramai("graph", "@last", "--json"))
    assert {node["id"]: node["status"] for node in graph["nodes"]} == {
        "draft": "succeeded", "review": "succeeded", "publish": "succeeded",
    }  # fmt: skip
    assert tramai("rerun", "@last", "--from", "publish").stdout == "it: a draft, feedback shorter\n"


def test_an_interrupted_run_is_found_behind_many_that_are_carried(tramai: Call) -> None:
    from tests.cli.test_exit_codes import claimed

    store = open_store("sqlite:.tramai/tramai.db")
    elsewhere = Holder("another-host", "", 1, "")
    lease = claimed(store, "left", elsewhere)
    store.renew(lease, ttl=0.001, now=time.time())
    for number in range(25):
        claimed(store, f"carried-{number}", elsewhere)
    store.close()
    found = document(tramai("status", "--json"))
    assert [one["run_id"] for one in found["interrupted"]] == ["left"]
    assert (len(found["running"]), found["more"]) == (20, ["running"])
    assert len(document(tramai("status", "--json", "--limit", "30"))["running"]) == 25
