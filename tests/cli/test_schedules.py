"""`tramai schedule`: registering, looking, pausing, and the runs that come of it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from tests.cli.conftest import document, write
from tramai.scheduler import Scheduler
from tramai.stores import open_store
from tramai.timetable import MISSED, Entry, Timetable, Trouble, timetabled

Call = Callable[..., Result]
FLOW = """\
tramai: 1
name: {name}
inputs: {{who: {{type: string}}}}
schedules:
  - {{cron: "{cron}", timezone: Asia/Tokyo, overlap: allow, inputs: {{who: world}}}}
{more}steps:
  - id: greet
    local: ${{{{ inputs.who }}}}
"""
SECOND = '  - {cron: "0 8 * * 1", timezone: UTC, inputs: {who: monday}}\n'


def flow(name: str = "nightly", cron: str = "0 6 * * *", more: str = "") -> str:
    return FLOW.format(name=name, cron=cron, more=more)


def store() -> Timetable:
    return timetabled(open_store("sqlite:.tramai/tramai.db"))


def entries() -> list[Entry]:
    opened = store()
    try:
        return list(opened.roster(now=time.time()).entries)
    finally:
        opened.close()


def age(seconds: float) -> None:
    """Let the schedules have been looked at last so long ago."""
    opened = store()
    for entry in opened.roster(now=time.time()).entries:
        assert opened.enroll(replace(entry, evaluated=time.time() - seconds), after=entry.revision) is not None
    opened.close()


def turn() -> list[tuple[str, dict[str, Any]]]:
    """Have a scheduler look once; what it told."""
    told: list[tuple[str, dict[str, Any]]] = []
    opened = store()
    Scheduler(opened, lambda kind, about: told.append((kind, about)), by="s").turn()
    opened.close()
    return told


def applied(tramai: Call, *arguments: str) -> list[tuple[str, str]]:
    result = tramai("schedule", "apply", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return [(one["change"], one["name"]) for one in document(result)["schedules"]]


def test_registering_says_what_is_new_changed_unchanged_and_gone(tramai: Call) -> None:
    write("nightly.yaml", flow(more=SECOND))
    assert applied(tramai, "nightly.yaml") == [("new", "nightly#1"), ("new", "nightly#2")]
    assert applied(tramai, ".") == [("unchanged", "nightly#1"), ("unchanged", "nightly#2")]
    write("nightly.yaml", flow(cron="0 8 * * *"))
    assert applied(tramai, "nightly.yaml") == [("changed", "nightly#1"), ("gone", "nightly#2")]
    assert [entry.id for entry in entries()] == ["nightly#1", "nightly#2"]
    assert applied(tramai, "nightly.yaml", "--prune") == [("unchanged", "nightly#1"), ("removed", "nightly#2")]
    os.unlink("nightly.yaml")
    assert applied(tramai, ".") == [("gone", "nightly#1")]
    assert applied(tramai, ".", "--prune") == [("removed", "nightly#1")]
    assert entries() == []
    assert tramai("schedule", "apply", ".").exit_code == 2


def test_what_is_printed_says_what_was_changed_and_what_to_do(tramai: Call) -> None:
    write("nightly.yaml", flow(more=SECOND))
    text = tramai("schedule", "apply", "nightly.yaml").stdout
    assert text.startswith("new        nightly#1  0 6 * * *  Asia/Tokyo   next ")
    assert "06:00+09:00" in text
    write("nightly.yaml", flow(cron="0 8 * * *"))
    result = tramai("schedule", "apply", "nightly.yaml")
    assert "changed    nightly#1  0 8 * * *  Asia/Tokyo: cron" in result.stdout
    assert "gone       nightly#2" in result.stdout
    assert "--prune" in result.stderr


def test_a_dry_run_says_the_same_and_makes_nothing_not_even_a_store(tramai: Call) -> None:
    write("nightly.yaml", flow())
    assert applied(tramai, "nightly.yaml", "--dry-run") == [("new", "nightly#1")]
    assert not Path(".tramai/tramai.db").exists()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (flow(cron="61 * * * *"), "TRM380"),
        (flow().replace("Asia/Tokyo", "Asia/Tokio"), "TRM382"),
        (flow().replace("who: world", "whom: world"), "TRM384"),
        (flow().replace("{who: world}", "{}"), "TRM384"),
    ],
)
def test_a_mistake_in_one_file_registers_nothing_of_any(tramai: Call, text: str, code: str) -> None:
    write("a.yaml", flow("first"))
    write("b.yaml", text)
    result = tramai("schedule", "apply", "a.yaml", "b.yaml")
    assert (result.exit_code, code in result.stderr) == (3, True)
    assert not Path(".tramai/tramai.db").exists()


def test_a_name_belongs_to_one_file_until_another_takes_over(tramai: Call) -> None:
    write("a.yaml", flow())
    write("b.yaml", flow(cron="0 7 * * *"))
    result = tramai("schedule", "apply", "a.yaml", "b.yaml")
    assert (result.exit_code, "TRM523" in result.stderr) == (5, True)
    assert entries() == []
    applied(tramai, "a.yaml")
    assert tramai("schedule", "apply", "b.yaml").exit_code == 5
    assert applied(tramai, "b.yaml", "--take-over") == [("changed", "nightly#1")]
    (entry,) = entries()
    assert (entry.cron, os.path.basename(entry.file or "")) == ("0 7 * * *", "b.yaml")


def test_a_file_without_schedules_says_so_and_stands_in_for_none(tramai: Call) -> None:
    write("plain.yaml", "tramai: 1\nname: plain\nsteps:\n  - {id: a, local: 1}\n")
    result = tramai("schedule", "apply", "plain.yaml")
    assert (result.exit_code, "no `schedules`" in result.stderr) == (0, True)
    assert tramai("schedule", "apply", "-", stdin=flow()).exit_code == 2
    assert tramai("schedule", "apply", "nowhere.yaml").exit_code == 3


def test_what_runs_are_given_is_registered_with_them(tramai: Call) -> None:
    write("nightly.yaml", flow())
    applied(tramai, "nightly.yaml", "--queue", "reports", "--priority", "7", "--label", "x", "--label", "x")
    (entry,) = entries()
    assert (entry.queue, entry.priority, entry.labels, entry.inputs) == ("reports", 7, ("x",), '{"who":"world"}')
    assert (entry.cwd, entry.file) == (os.getcwd(), os.path.abspath("nightly.yaml"))
    assert entry.by != ""


def test_a_schedule_is_listed_with_its_next_time_in_its_own_zone(tramai: Call) -> None:
    write("nightly.yaml", flow())
    assert "no schedule is registered" in tramai("schedule", "list").stderr
    applied(tramai, "nightly.yaml")
    (one,) = document(tramai("schedule", "list", "--json"))["schedules"]
    assert (one["name"], one["next"]["at"][10:], one["next"]["utc"][10:]) == (
        "nightly#1", "T06:00:00+09:00", "T21:00:00Z"
    )  # fmt: skip
    assert (one["paused"], one["trouble"], one["last"], one["waiting"]) == (None, None, None, 0)
    assert "nightly#1  0 6 * * *  Asia/Tokyo" in tramai("schedule", "list").stdout
    times = document(tramai("schedule", "next", "-n", "3", "--json"))["times"]
    assert [time["firing"]["at"][10:] for time in times] == ["T06:00:00+09:00"] * 3
    assert tramai("schedule", "next", "nightly", "-n", "2").stdout.count("nightly#1") == 2


def test_an_edit_is_what_everybody_says_at_once(tramai: Call) -> None:
    write("nightly.yaml", flow())
    applied(tramai, "nightly.yaml")
    opened = store()
    scheduler = Scheduler(opened, lambda kind, about: None, by="s")
    scheduler.turn()
    write("nightly.yaml", flow(cron="0 8 * * *"))
    applied(tramai, "nightly.yaml")
    now = opened.roster(now=time.time()).now
    coming = scheduler.turn()
    assert coming is not None
    assert time.gmtime(round(now + coming)).tm_hour == 23
    assert document(tramai("schedule", "list", "--json"))["schedules"][0]["next"]["at"][10:16] == "T08:00"
    assert document(tramai("schedule", "next", "--json"))["times"][0]["firing"]["at"][10:16] == "T08:00"
    opened.close()


def test_what_became_of_times_is_told_in_the_zone_of_the_schedule(tramai: Call) -> None:
    write("nightly.yaml", flow(cron="30 * * * *").replace("allow", "allow, catchup: last"))
    applied(tramai, "nightly.yaml")
    assert "nothing has come yet" in tramai("schedule", "history").stderr
    age(3 * 3600 + 60)
    turn()
    ticks = document(tramai("schedule", "history", "--json"))["ticks"]
    assert [tick["status"] for tick in ticks][:3] == ["fired", "missed", "missed"]
    assert ticks[0]["at"].endswith(":30:00+09:00")
    assert ticks[0]["run_id"] == document(tramai("list", "--json"))["runs"][0]["run_id"]
    shown = document(tramai("schedule", "history", "nightly", "--status", "missed", "-n", "1", "--json"))["ticks"]
    assert [tick["status"] for tick in shown] == ["missed"]
    text = tramai("schedule", "history").stdout
    assert "missed" in text
    assert "nobody fired it in time" in text
    assert tramai("schedule", "history", "nigthly").exit_code == 4


def test_a_pause_lets_times_pass_and_is_told_with_its_reason(tramai: Call) -> None:
    write("nightly.yaml", flow(cron="* * * * *"))
    applied(tramai, "nightly.yaml")
    result = tramai("schedule", "pause", "nightly", "--comment", "the database moves", "--json")
    assert document(result)["done"] == "paused"
    assert tramai("schedule", "pause", "nightly").exit_code == 0
    age(180)
    assert turn() == []
    assert "the database moves" in tramai("schedule", "list").stderr
    assert document(tramai("schedule", "list", "--json"))["schedules"][0]["next"] is None
    assert document(tramai("schedule", "next", "--json"))["times"] == []
    assert "was resumed; next" in tramai("schedule", "resume", "nightly").stderr
    assert turn() == []
    ticks = document(tramai("schedule", "history", "--json"))["ticks"]
    assert {tick["status"] for tick in ticks} == {MISSED}
    assert {tick["reason"] for tick in ticks} == {"it was paused"}


def test_a_run_by_hand_is_one_of_its_own_and_works_while_it_pauses(tramai: Call) -> None:
    write("nightly.yaml", flow())
    applied(tramai, "nightly.yaml")
    tramai("schedule", "pause", "nightly")
    made = document(tramai("schedule", "run", "nightly", "--json"))
    assert made["status"] == "ready"
    assert len(tramai("schedule", "run", "nightly#1").stdout.strip()) == 36
    runs = document(tramai("list", "--label", "schedule:nightly#1", "--json"))["runs"]
    assert len(runs) == 2
    assert document(tramai("schedule", "history", "--json"))["ticks"] == []


def test_a_run_by_hand_takes_inputs_before_those_of_the_schedule(tramai: Call) -> None:
    write(
        "nightly.yaml", flow().replace("{who: {type: string}}", "{who: {type: string}, n: {type: integer, default: 1}}")
    )
    applied(tramai, "nightly.yaml")
    made = document(tramai("schedule", "run", "nightly", "-i", "n=7", "--json"))
    shown = document(tramai("show", made["run_id"], "--json"))["run"]
    assert shown["inputs"] == {"n": 7, "who": "world"}
    for pair, says in (("n=x", "must be an integer"), ("m=1", "not declared"), ("n", "'n' is not an input")):
        refused = tramai("schedule", "run", "nightly", "-i", pair)
        assert refused.exit_code == 2
        assert says in refused.stderr
    assert len(document(tramai("list", "--json"))["runs"]) == 1
    assert document(tramai("schedule", "list", "--json"))["schedules"][0]["inputs"] == {"n": 1, "who": "world"}


def test_what_is_removed_fires_no_more_and_keeps_its_past(tramai: Call) -> None:
    write("nightly.yaml", flow(cron="* * * * *"))
    applied(tramai, "nightly.yaml")
    age(61)
    turn()
    assert document(tramai("schedule", "remove", "nightly", "--json"))["done"] == "removed"
    assert turn() == []
    assert document(tramai("schedule", "history", "nightly#1", "--json"))["ticks"] != []
    assert tramai("schedule", "remove", "nightly#1").exit_code == 4


@pytest.mark.parametrize("verb", ["pause", "resume", "remove", "run", "next"])
def test_a_name_that_nobody_has_or_several_have_is_refused(tramai: Call, verb: str) -> None:
    write("nightly.yaml", flow(more=SECOND))
    applied(tramai, "nightly.yaml")
    result = tramai("schedule", verb, "nigthly")
    assert (result.exit_code, "did you mean nightly" in result.stderr) == (4, True)
    result = tramai("schedule", verb, "nightly")
    assert (result.exit_code, "TRM524" in result.stderr) == (2, True)


def test_a_store_without_schedules_says_so(tramai: Call) -> None:
    write("nightly.yaml", flow())
    for arguments in (("apply", "nightly.yaml"), ("serve",), ("list",)):
        result = tramai("schedule", *arguments, "--store", "file:runs")
        assert (result.exit_code, "TRM520" in result.stderr) == (2, True)
    assert tramai("schedule", "serve", "--store", "memory:").exit_code == 2
    assert tramai("schedule", "serve", "--poll", "0s").exit_code == 2


def test_what_is_damaged_is_listed_and_found_by_a_check(tramai: Call) -> None:
    import sqlite3

    write("nightly.yaml", flow())
    applied(tramai, "nightly.yaml")
    raw = sqlite3.connect(".tramai/tramai.db")
    raw.execute("UPDATE schedule SET body = '{}'")
    raw.commit()
    raw.close()
    assert [fault["name"] for fault in document(tramai("schedule", "list", "--json"))["faults"]] == ["nightly#1"]
    found = tramai("store", "check", "--json")
    assert found.exit_code == 1
    assert "nightly#1" in json.dumps(document(found)["faults"])


@pytest.mark.parametrize("damage", ["body = '{}'", "body = CAST(x'7bff' AS TEXT)", "digest = CAST(x'ff' AS TEXT)"])
@pytest.mark.parametrize("way", ["apply", "remove"])
def test_what_is_damaged_is_applied_anew_or_removed(tramai: Call, damage: str, way: str) -> None:
    import sqlite3

    write("nightly.yaml", flow())
    write("other.yaml", flow("other"))
    applied(tramai, "nightly.yaml", "other.yaml")
    raw = sqlite3.connect(".tramai/tramai.db")
    raw.execute(f"UPDATE schedule SET {damage} WHERE id = 'nightly#1'")
    raw.commit()
    raw.close()
    listed = document(tramai("schedule", "list", "--json"))
    assert ([one["name"] for one in listed["schedules"]], len(listed["faults"])) == (["other#1"], 1)
    if way == "remove":
        done = tramai("schedule", "remove", "nightly#1", "--json")
        assert (done.exit_code, [one["name"] for one in document(done)["schedules"]]) == (0, ["nightly#1"])
    else:
        assert [
            one["change"] for one in document(tramai("schedule", "apply", "nightly.yaml", "--json"))["schedules"]
        ] == ["new"]
    listed = document(tramai("schedule", "list", "--json"))
    names = ["nightly#1", "other#1"] if way == "apply" else ["other#1"]
    assert ([one["name"] for one in listed["schedules"]], listed["faults"]) == (names, [])


def test_what_is_registered_is_counted_pruned_and_left_behind_by_a_move(tramai: Call) -> None:
    write("nightly.yaml", flow(cron="30 * * * *"))
    assert document(tramai("store", "info", "--json"))["schedules"] == 0
    applied(tramai, "nightly.yaml")
    assert document(tramai("store", "info", "--json"))["schedules"] == 1
    assert "1 schedule registered" in tramai("store", "info").stdout
    assert document(tramai("store", "info", "--store", "file:runs", "--json"))["schedules"] == 0
    age(5 * 3600)
    turn()
    assert document(tramai("store", "prune", "--older-than", "2h", "--dry-run", "--json"))["ticks"] == 0
    assert document(tramai("store", "prune", "--older-than", "2h", "--status", "failed", "--json"))["ticks"] == 0
    assert document(tramai("store", "prune", "--older-than", "2h", "--json"))["ticks"] == 3
    assert len(document(tramai("schedule", "history", "--json"))["ticks"]) == 2
    assert "schedules stay" in tramai("store", "move", "--all", "--to", "sqlite:other.db").stderr
    assert len(entries()) == 1


def test_old_entries_of_the_history_go_with_the_runs_where_a_store_keeps_them_for_a_time(tmp_path: Path) -> None:
    from tramai.store import Status
    from tramai.testing._store_given import begin, change
    from tramai.testing._store_timetable import entry, tick
    from tramai.testing.clock import FakeClock

    opened = timetabled(open_store(f"sqlite:{tmp_path / 'runs.db'}?retention=completion"))
    clock = FakeClock()
    opened.enroll(entry(), after=0, ticks=(tick(at=60.0, status=MISSED), tick(at=9e9, status=MISSED)))
    opened.commit(begin(opened, clock), change(clock, status=Status.COMPLETED, finished=clock.now(), release=True))
    assert [one.at for one in opened.ticks(limit=9)] == [9e9]
    opened.close()


def test_a_scheduler_that_cannot_go_on_ends_its_worker_and_is_told_there(
    tramai: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    import contextlib

    from tramai.cli import _scheduling
    from tramai.cli._session import Session
    from tramai.interrupt import Interrupt

    def breaks(loop: _scheduling.Loop) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(_scheduling.Loop, "run", breaks)
    stop, session = Interrupt(), Session()
    until = contextlib.ExitStack()
    _scheduling.join(session, lambda kind, about: None, stop, 0.1, "s", once=False, until=until)
    with pytest.raises(BrokenPipeError):
        until.close()
    assert stop.is_set
    stop.close()
    session.close()


def test_a_store_in_trouble_is_told_once_and_when_it_is_back(tramai: Call) -> None:
    from tramai.cli._scheduling import Loop
    from tramai.errors import StoreUnavailable
    from tramai.interrupt import Interrupt

    answers: list[Any] = [StoreUnavailable(what="away"), StoreUnavailable(what="away"), 5.0, None, 0.0]

    class Turning:
        def turn(self) -> float | None:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[no-any-return]

    told: list[str] = []
    stop = Interrupt()
    loop = Loop(Turning(), lambda kind, about: told.append(kind), stop, 1.0)  # type: ignore[arg-type]
    waits = [loop.turn() for _ in range(5)]
    assert told == ["schedule.store_failed", "schedule.store_back"]
    assert waits[:2] == [1.0, 2.0]
    assert all(0.75 <= wait <= 1.25 for wait in waits[2:4])
    assert waits[4] == 0.01
    stop.close()


def test_a_schedule_in_trouble_is_among_what_needs_you(tramai: Call) -> None:
    write("nightly.yaml", flow())
    applied(tramai, "nightly.yaml")
    assert document(tramai("status", "--json"))["schedules"] == []
    opened = store()
    (entry,) = opened.roster(now=time.time()).entries
    trouble = Trouble(at=time.time(), code="TRM601", message="the secret T is missing", hint="export T=…")
    assert opened.enroll(replace(entry, trouble=trouble), after=entry.revision) is not None
    opened.close()
    (one,) = document(tramai("status", "--json"))["schedules"]
    assert (one["name"], one["code"], one["commands"]) == ("nightly#1", "TRM601", ["tramai schedule history nightly#1"])
    text = tramai("status").stdout
    assert "schedules in trouble" in text
    assert "the secret T is missing (TRM601)" in text
    assert document(tramai("status", "--workflow", "other", "--json"))["schedules"] == []
    assert "the secret T is missing (TRM601)" in tramai("schedule", "list").stderr


def test_shells_offer_what_is_registered(tramai: Call) -> None:
    from tests.cli.test_completion import offered

    write("nightly.yaml", flow(more=SECOND))
    assert offered("tramai schedule pause ") == {}
    applied(tramai, "nightly.yaml")
    tramai("schedule", "pause", "nightly#2")
    assert offered("tramai schedule resume ") == {
        "nightly#1": "0 6 * * *, Asia/Tokyo",
        "nightly#2": "0 8 * * 1, UTC, paused",
    }
    assert {"apply", "history", "serve"} <= set(offered("tramai schedule "))


def test_the_next_run_is_of_the_definition_that_was_registered_last(tramai: Call) -> None:
    write("nightly.yaml", flow(cron="* * * * *"))
    applied(tramai, "nightly.yaml")
    write("nightly.yaml", flow(cron="* * * * *").replace("id: greet", "id: salute"))
    assert applied(tramai, "nightly.yaml") == [("changed", "nightly#1")]
    (entry,) = entries()
    age(61)
    turn()
    (run,) = document(tramai("list", "--json"))["runs"]
    found = document(tramai("show", run["run_id"], "--json"))["run"]
    assert found["digest"] == entry.digest
    assert tramai("worker", "--once", "--poll", "50ms").exit_code == 0
    shown = document(tramai("show", run["run_id"], "--json"))["run"]
    assert (shown["status"], [step["id"] for step in shown["steps"]]) == ("completed", ["salute"])
    assert shown["inputs"] == {"who": "world"}
