"""A scheduler: one run for each time, whoever else is there and whenever somebody dies."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tramai import enrolling, scheduler
from tramai.enrolling import Asked
from tramai.interrupt import Interrupt
from tramai.results import Options
from tramai.scheduler import Scheduler
from tramai.store import Note, Status
from tramai.stores import open_store
from tramai.testing._at_once import at_once
from tramai.testing.clock import FakeClock
from tramai.timetable import DUE, FAILED, FIRED, MISSED, QUEUED, SKIPPED, Entry, Tick, Timetable, instant, timetabled

from .reading import planned

HOUR = 3600.0
BASE = """\
tramai: 1
name: {name}
inputs: {{day: {{type: string, default: today}}}}
schedules:
  - {{cron: "0 * * * *", timezone: UTC, {more}}}
steps:
  - id: a
    local: ${{{{ inputs.day }}}}
"""
SECRET = """\
tramai: 1
name: careful
secrets: {TOKEN: {env: SCHEDULER_TEST_TOKEN}}
schedules: [{cron: "0 * * * *", timezone: UTC}]
steps:
  - id: a
    shell: {run: "true", env: {T: "${{ secrets.TOKEN }}"}}
"""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    opened = open_store("memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'runs.db'}")
    yield timetabled(opened)
    opened.close()


class Told(list[tuple[str, dict[str, Any]]]):
    def __call__(self, kind: str, about: dict[str, Any]) -> None:
        self.append((kind, about))

    @property
    def kinds(self) -> list[str]:
        return [kind.removeprefix("schedule.") for kind, _ in self]


def clock_at(text: str) -> FakeClock:
    return FakeClock(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def text(name: str = "wf", more: str = "") -> str:
    return BASE.format(name=name, more=more)


def apply(store: Timetable, clock: FakeClock, source: str, file: str = "/flows/wf.yaml") -> Entry:
    """Register the schedules of a file; the first."""
    wanted = enrolling.entries(planned(source), file, Asked(cwd="/"))
    roster = store.roster(now=clock.now())
    for change in enrolling.compare(wanted, roster.entries, files=[file]):
        entry, ticks = enrolling.enrolled(change, roster.now, "ann")
        after = 0 if change.before is None else change.before.revision
        written = store.enroll(entry, after=after, ticks=ticks, definition=planned(source).definition())
        assert written is not None
    return store.roster(now=clock.now()).entries[0]


def made(store: Timetable, clock: FakeClock, told: Told | None = None, by: str = "s1") -> Scheduler:
    return Scheduler(store, told if told is not None else Told(), by=by, clock=clock)


def runs(store: Timetable) -> list[str]:
    """The slots of all runs there are, by their labels."""
    found, _ = store.page(limit=500)
    return sorted(label.removeprefix("slot:") for run in found for label in run.labels if label.startswith("slot:"))


def statuses(store: Timetable) -> list[tuple[str, str]]:
    return sorted((instant(tick.at)[11:16], tick.status) for tick in store.ticks(limit=500))


def end_runs(store: Timetable, clock: FakeClock) -> None:
    for run in store.page(limit=500)[0]:
        if not run.status.terminal:
            store.request_cancel(run.run_id, Note(at=1.0, type="cancel.requested"), now=clock.now())


# On time.


def test_a_time_that_comes_makes_one_run_that_says_where_it_is_from(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    apply(store, clock, text(more="inputs: {day: monday}"))
    one = made(store, clock, told)
    assert one.turn() == 1800
    assert runs(store) == []
    clock.advance(1800)
    assert one.turn() == HOUR
    assert runs(store) == ["2026-11-30T06:00:00Z"]
    (run,) = store.page(limit=9)[0]
    assert (run.status, run.inputs, run.workflow) == (Status.READY, '{"day":"monday"}', "wf")
    assert run.labels == ("schedule:wf#1", "slot:2026-11-30T06:00:00Z")
    assert (run.started_by, run.file, run.cwd) == ("schedule wf#1", "/flows/wf.yaml", "/")
    (tick,) = store.ticks(limit=9)
    assert (tick.status, tick.run_id, tick.made_up, tick.by) == (FIRED, run.run_id, False, "s1")
    assert told == [
        ("schedule.fired",
         {"schedule": "wf#1", "slot": "2026-11-30T06:00:00Z", "run_id": run.run_id, "late": 0.0, "queue": "default"})
    ]  # fmt: skip
    assert one.turn() == HOUR
    assert len(runs(store)) == 1


def test_two_schedulers_that_take_turns_make_one_run_each_time(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    apply(store, clock, text(more="overlap: allow"))
    several = [made(store, clock, told, f"s{number}") for number in range(3)]
    for _ in range(6):
        clock.advance(1800)
        for one in several:
            one.turn()
    assert [slot[11:13] for slot in runs(store)] == ["06", "07", "08"]
    assert told.kinds == ["fired"] * 3


@pytest.mark.parametrize("round_", range(5))
def test_schedulers_at_the_same_moment_make_one_run_each_time(store: Timetable, round_: int) -> None:
    clock, told = clock_at("2026-11-30T05:00"), Told()
    for name in ("a", "b", "c"):
        apply(store, clock, text(name, "overlap: allow"), f"/flows/{name}.yaml")
    several = [made(store, clock, told, f"s{number}") for number in range(4)]
    for _ in range(3):
        clock.advance(HOUR)
        answers = at_once([one.turn for one in several])
        assert not [answer for answer in answers if isinstance(answer, Exception)]
        for one in several:
            one.turn()
    assert Counter(slot[11:13] for slot in runs(store)) == {"06": 3, "07": 3, "08": 3}
    assert Counter(told.kinds)["fired"] == 9
    assert {tick.status for tick in store.ticks(limit=99)} == {FIRED}


# Whoever dies.


class Death(BaseException):
    """Here somebody ends."""


class Mortal:
    """A store whose user dies at one of its calls: before it, or after."""

    def __init__(self, store: Timetable, at: int, *, before: bool) -> None:
        self._store, self._at, self._before, self.calls = store, at, before, 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if not callable(real):
            return real

        def call(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._at and self._before:
                raise Death
            answer = real(*given, **named)
            if self.calls == self._at:
                raise Death
            return answer

        return call


@pytest.mark.parametrize("catchup", ["none", "last", "all"])
@pytest.mark.parametrize("later", [1.0, 20 * 60.0])
def test_whoever_dies_anywhere_leaves_one_run_for_each_time(store: Timetable, catchup: str, later: float) -> None:
    clock = clock_at("2026-11-30T05:30")
    deaths, at = 0, 0
    while True:
        at += 1
        name = f"wf{at}"
        entry = apply(store, clock, text(name, f"catchup: {catchup}, overlap: queue"), f"/flows/{name}.yaml")
        clock.jump(3600 - clock.now() % 3600)
        mortal = Mortal(store, at, before=at % 2 == 0)
        try:
            scheduler.Scheduler(mortal, Told(), by="s1", clock=clock).turn()  # type: ignore[arg-type]
            died = False
        except Death:
            died = True
            deaths += 1
        clock.advance(later)
        made(store, clock, by="s2").turn()
        made(store, clock, by="s3").turn()
        ticks = store.ticks(name + "#1", limit=9)
        made_runs = [run for run in store.page(limit=500)[0] if f"schedule:{name}#1" in run.labels]
        assert len(ticks) == 1
        assert ticks[0].status in (FIRED, MISSED)
        assert [run.run_id for run in made_runs] == ([] if ticks[0].status == MISSED else [ticks[0].run_id])
        assert ticks[0].status == FIRED or (catchup == "none" and later > 60)
        written = [one for one in store.roster(now=clock.now()).entries if one.id == entry.id]
        assert store.strike(written[0])
        end_runs(store, clock)
        if not died:
            break
    assert deaths >= 5


def test_a_time_that_fired_does_so_no_more_after_a_crash_nor_when_the_clock_goes_back(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:30")
    apply(store, clock, text(more="catchup: all, overlap: allow"))
    clock.advance(1801)
    made(store, clock).turn()
    clock.jump(-1800)
    made(store, clock).turn()
    clock.jump(1800)
    made(store, clock).turn()
    assert runs(store) == ["2026-11-30T06:00:00Z"]


# Missed, skipped, queued.


@pytest.mark.parametrize(("catchup", "count"), [("none", 0), ("last", 1), ("all", 5)])
def test_what_nobody_fired_is_made_up_for_once_and_every_time_is_told(
    store: Timetable, catchup: str, count: int
) -> None:
    clock, told = clock_at("2026-11-29T23:30"), Told()
    apply(store, clock, text(more=f"catchup: {catchup}"))
    clock.advance(1800)
    made(store, clock).turn()
    end_runs(store, clock)
    clock.advance(5.5 * HOUR)
    for _ in range(8):
        made(store, clock, told).turn()
        end_runs(store, clock)
    assert [slot[11:13] for slot in runs(store)] == ["00", *(f"{hour:02}" for hour in range(6 - count, 6))]
    assert Counter(told.kinds)["fired"] == count
    assert Counter(told.kinds)["missed"] == 5 - count
    assert all(about.get("made_up") for kind, about in told if kind == "schedule.fired")
    by_status = Counter(tick.status for tick in store.ticks(limit=99))
    assert by_status == Counter({FIRED: 1 + count}) + Counter({MISSED: 5 - count})


def test_a_run_that_is_going_lets_the_next_time_be_skipped_and_is_named(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    apply(store, clock, text())
    one = made(store, clock, told)
    clock.advance(1800)
    one.turn()
    (going,) = store.page(limit=9)[0]
    clock.advance(HOUR)
    one.turn()
    assert told[-1] == (
        "schedule.skipped",
        {
            "schedule": "wf#1",
            "slot": "2026-11-30T07:00:00Z",
            "run_id": going.run_id,
            "reason": "a run of it was ready, and no worker had taken it",
        },
    )
    end_runs(store, clock)
    clock.advance(HOUR)
    one.turn()
    assert statuses(store) == [("06:00", FIRED), ("07:00", SKIPPED), ("08:00", FIRED)]


def test_a_time_that_waits_fires_when_the_run_before_it_is_over(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:00")
    apply(store, clock, text(more="overlap: queue"))
    one = made(store, clock)
    for _ in range(3):
        clock.advance(HOUR)
        one.turn()
    assert statuses(store) == [("06:00", FIRED), ("07:00", QUEUED), ("08:00", QUEUED)]
    for _ in range(2):
        one.turn()
        end_runs(store, clock)
        one.turn()
        one.turn()
    assert statuses(store) == [("06:00", FIRED), ("07:00", FIRED), ("08:00", FIRED)]
    assert [slot[11:13] for slot in runs(store)] == ["06", "07", "08"]


# What is changed meanwhile.


def test_a_schedule_that_was_changed_fires_by_what_it_says_now(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:30")
    apply(store, clock, text().replace("0 * * * *", "0 6 * * *"))
    one = made(store, clock)
    one.turn()
    entry = apply(store, clock, text().replace("0 * * * *", "0 8 * * *"))
    assert entry.cron == "0 8 * * *"
    assert one.turn() == 2.5 * HOUR
    clock.advance(3 * HOUR)
    for _ in range(3):
        one.turn()
        clock.advance(1.0)
    assert runs(store) == []  # half an hour late is missed
    clock.jump(24 * HOUR - clock.now() % (24 * HOUR) + 8 * HOUR)
    one.turn()
    assert [slot[11:16] for slot in runs(store)] == ["08:00"]


def test_who_decides_by_what_was_changed_meanwhile_is_not_heard(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:30")
    entry = apply(store, clock, text())
    clock.advance(1800)

    class Late:
        """A store in which the schedule changes just before it is written."""

        def __getattr__(self, name: str) -> Any:
            if name == "enroll":
                store.enroll(enrolling.paused(entry, clock.now(), "ann", None), after=entry.revision)
            return getattr(store, name)

    Scheduler(Late(), Told(), by="s1", clock=clock).turn()  # type: ignore[arg-type]
    made(store, clock).turn()
    assert runs(store) == []
    assert store.ticks(limit=9) == ()


def test_who_decides_by_one_that_was_removed_and_applied_anew_is_not_heard(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:30")
    entry = apply(store, clock, text())
    clock.advance(1800)
    nightly = text().replace("0 * * * *", "30 2 * * *")

    class Late:
        """A store in which the schedule is removed and applied anew just before it is written."""

        def __getattr__(self, name: str) -> Any:
            if name == "enroll":
                assert store.strike(entry)
                apply(store, clock, nightly)
            return getattr(store, name)

    Scheduler(Late(), Told(), by="s1", clock=clock).turn()  # type: ignore[arg-type]
    (there,) = store.roster(now=clock.now()).entries
    assert there.cron == "30 2 * * *"
    assert not store.strike(entry)
    assert runs(store) == []


def test_a_paused_schedule_lets_its_times_pass_and_makes_up_for_none(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    entry = apply(store, clock, text(more="catchup: all"))
    one = made(store, clock, told)
    stopped = store.enroll(enrolling.paused(entry, clock.now(), "ann", "moving house"), after=entry.revision)
    assert stopped is not None
    clock.advance(3 * HOUR)
    assert one.turn() is None
    after, ticks = enrolling.resumed(stopped, clock.now(), "ann", None)
    assert store.enroll(after, after=stopped.revision, ticks=ticks) is not None
    assert one.turn() == 1800
    assert statuses(store) == [("06:00", MISSED), ("07:00", MISSED), ("08:00", MISSED)]
    assert {tick.reason for tick in store.ticks(limit=9)} == {"it was paused"}
    assert runs(store) == []


def test_what_was_queued_for_a_schedule_that_is_gone_is_let_go(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:00")
    apply(store, clock, text(more="overlap: queue"))
    one = made(store, clock)
    for _ in range(2):
        clock.advance(HOUR)
        one.turn()
    (entry,) = store.roster(now=clock.now()).entries
    store.strike(entry)
    one.turn()
    assert statuses(store) == [("06:00", FIRED), ("07:00", MISSED)]


# Trouble.


def test_a_schedule_in_trouble_is_told_once_and_stops_no_other(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    bad = apply(store, clock, text("bad"), "/flows/bad.yaml")
    apply(store, clock, text("good", "overlap: allow"), "/flows/good.yaml")
    assert store.enroll(replace(bad, zone="Mars/Olympus"), after=bad.revision) is not None
    one = made(store, clock, told)
    for _ in range(4):
        clock.advance(1800)
        one.turn()
    assert [slot[11:13] for slot in runs(store)] == ["06", "07"]
    assert told.kinds == ["trouble", "fired", "fired"]
    (entry, _) = store.roster(now=clock.now()).entries
    assert entry.trouble is not None
    assert (entry.trouble.code, "Mars/Olympus" in entry.trouble.message) == ("TRM460", True)
    mended = store.enroll(replace(entry, zone="UTC"), after=entry.revision)
    assert mended is not None
    clock.advance(301)
    one.turn()
    one.turn()
    (entry, _) = store.roster(now=clock.now()).entries
    assert entry.trouble is None
    assert "recovered" in told.kinds


def test_without_its_secret_no_run_is_made_until_it_is_there(store: Timetable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDULER_TEST_TOKEN", raising=False)
    clock, told = clock_at("2026-11-30T05:30"), Told()
    apply(store, clock, SECRET)
    one = made(store, clock, told)
    clock.advance(1800)
    for _ in range(5):
        one.turn()
        clock.advance(2.0)
    assert told.kinds == ["trouble"]
    assert told[0][1]["code"] == "TRM601"
    assert statuses(store) == [("06:00", DUE)]
    monkeypatch.setenv("SCHEDULER_TEST_TOKEN", "s3cr3t-value")
    clock.advance(300)
    one.turn()
    assert statuses(store) == [("06:00", FIRED)]
    assert told.kinds[:2] == ["trouble", "fired"]


def test_what_could_not_be_made_by_the_next_time_has_failed(store: Timetable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDULER_TEST_TOKEN", raising=False)
    clock, told = clock_at("2026-11-30T05:30"), Told()
    apply(store, clock, SECRET)
    one = made(store, clock, told)
    clock.advance(1800)
    one.turn()
    clock.advance(HOUR)
    one.turn()
    assert statuses(store) == [("06:00", FAILED), ("07:00", DUE)]
    failed = next(tick for tick in store.ticks(limit=9) if tick.status == FAILED)
    assert "TRM601" in (failed.reason or "")
    assert told.kinds == ["trouble", "failed"]


def test_one_that_is_removed_and_applied_anew_with_other_times_comes_at_these(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:30")
    monthly = text().replace("0 * * * *", "0 0 1 * *")
    assert monthly != text()
    one = made(store, clock)
    entry = apply(store, clock, monthly)
    assert one.turn() == 18.5 * HOUR
    assert store.strike(entry)
    assert apply(store, clock, text()).revision != entry.revision
    assert one.turn() == 1800
    clock.advance(1800)
    one.turn()
    assert runs(store) == ["2026-11-30T06:00:00Z"]


def test_a_clock_that_was_a_year_ahead_leaves_no_schedule_that_is_silent_for_a_year(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    entry = apply(store, clock, text(more="overlap: allow"))
    one = made(store, clock, told)
    clock.advance(366 * 24 * HOUR)
    one.turn()
    wrong = len(runs(store))
    clock.jump(-365 * 24 * HOUR)
    for _ in range(3):
        clock.advance(HOUR)
        one.turn()
    assert told.kinds.count("trouble") == 1
    about = next(about for kind, about in told if kind == "schedule.trouble")
    assert (about["code"], "decided up to 2027-12-01T05:00:00Z" in str(about["message"])) == ("TRM460", True)
    assert len(runs(store)) == wrong
    assert store.strike(store.roster(now=clock.now()).entries[0])
    apply(store, clock, text(more="overlap: allow"))
    clock.advance(1800)
    one.turn()
    assert (len(runs(store)), told.kinds[-1]) == (wrong + 1, "fired")
    assert store.roster(now=clock.now()).entries[0].trouble is None
    assert entry.id == "wf#1"


def test_a_definition_that_is_gone_is_trouble_of_its_schedule_alone(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    bad = apply(store, clock, text("bad"), "/flows/bad.yaml")
    apply(store, clock, text("good"), "/flows/good.yaml")
    assert store.enroll(replace(bad, digest="0" * 64), after=bad.revision) is not None
    clock.advance(1800)
    made(store, clock, told).turn()
    assert sorted(told.kinds) == ["fired", "trouble"]
    assert len(runs(store)) == 1


def test_inputs_that_bind_no_more_are_trouble_of_their_schedule_alone(store: Timetable) -> None:
    clock, told = clock_at("2026-11-30T05:30"), Told()
    bad = apply(store, clock, text("bad"), "/flows/bad.yaml")
    apply(store, clock, text("good"), "/flows/good.yaml")
    assert store.enroll(replace(bad, inputs='{"night":1}'), after=bad.revision) is not None
    clock.advance(1800)
    made(store, clock, told).turn()
    assert sorted(told.kinds) == ["fired", "trouble"]
    assert next(about for kind, about in told if kind == "schedule.trouble")["code"] == "TRM702"


def test_a_schedule_whose_row_is_damaged_is_told_and_the_others_fire(tmp_path: Path) -> None:
    import sqlite3

    store = timetabled(open_store(f"sqlite:{tmp_path / 'runs.db'}"))
    clock, told = clock_at("2026-11-30T05:30"), Told()
    apply(store, clock, text("bad"), "/flows/bad.yaml")
    apply(store, clock, text("good"), "/flows/good.yaml")
    raw = sqlite3.connect(tmp_path / "runs.db")
    raw.execute("UPDATE schedule SET body = '{}' WHERE id = 'bad#1'")
    raw.commit()
    raw.close()
    one = made(store, clock, told)
    for _ in range(2):
        clock.advance(1800)
        one.turn()
    assert told.kinds == ["trouble", "fired"]
    assert told[0][1]["code"] == "TRM461"
    store.close()


def test_one_that_is_told_to_end_leaves_the_rest_to_others(store: Timetable) -> None:
    clock, stop = clock_at("2026-11-30T05:00"), Interrupt()
    for number in range(5):
        apply(store, clock, text(f"wf{number}"), f"/flows/{number}.yaml")
    clock.advance(HOUR)

    def told(kind: str, about: dict[str, Any]) -> None:
        stop.set("signal")

    Scheduler(store, told, by="s1", options=Options(interrupt=stop), clock=clock).turn()
    assert len(runs(store)) == 1
    made(store, clock, by="s2").turn()
    assert len(runs(store)) == 5
    stop.close()


def test_a_secret_that_is_waited_for_at_the_end_is_no_trouble(store: Timetable) -> None:
    clock, told, stop = clock_at("2026-11-30T05:00"), Told(), Interrupt()
    apply(store, clock, SECRET.replace("{env: SCHEDULER_TEST_TOKEN}", '{command: [sleep, "100"]}'))
    clock.advance(HOUR)
    timer = threading.Timer(0.3, stop.set, ["signal"])
    timer.start()
    Scheduler(store, told, by="s1", options=Options(interrupt=stop), clock=clock).turn()
    timer.join()
    (entry,) = store.roster(now=clock.now()).entries
    assert (told, entry.trouble, statuses(store)) == ([], None, [("06:00", DUE)])
    stop.close()


def test_what_schedulers_ask_for_is_found_by_index(tmp_path: Path) -> None:
    import sqlite3

    from tramai.stores import _sqlite_timetable as statements

    open_store(f"sqlite:{tmp_path / 'runs.db'}").close()
    raw = sqlite3.connect(tmp_path / "runs.db")
    asked = {
        statements._GOING: ("wf#1", 20, "[]"),
        statements._FORGET: (1.0, "[]"),
        statements._SET_TICK: ("fired", "r", "", 0, "id", "[]"),
        "SELECT * FROM tick WHERE status IN ('due', 'queued')": (),
        "SELECT * FROM tick WHERE schedule=? ORDER BY at DESC, id DESC LIMIT 5": ("wf#1",),
        "SELECT * FROM tick ORDER BY at DESC, id DESC LIMIT 5": (),
    }
    for statement, values in asked.items():
        plan = [str(row[3]) for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert any("INDEX" in line for line in plan), plan
        assert not [line for line in plan if line == "SCAN tick"], plan
    raw.close()


# What is told apart.


def test_a_run_by_hand_uses_up_no_time_and_is_none_that_another_waits_for(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:40")
    entry = apply(store, clock, text())
    by_hand = scheduler.by_hand(entry, store, clock=clock)
    assert (by_hand.start_key, by_hand.labels) == (None, ("schedule:wf#1",))
    assert scheduler.by_hand(entry, store, clock=clock).run_id != by_hand.run_id
    clock.advance(1200)
    made(store, clock).turn()
    assert runs(store) == ["2026-11-30T06:00:00Z"]


def test_names_that_two_files_want_are_refused_and_what_is_gone_is_known(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:40")
    apply(store, clock, text())
    there = store.roster(now=clock.now()).entries
    elsewhere = enrolling.entries(planned(text()), "/flows/copy.yaml", Asked(cwd="/"))
    compare: Callable[..., Any] = enrolling.compare
    with pytest.raises(enrolling.NameTaken, match=r"wf#1 of /flows/copy.yaml .* /flows/wf.yaml"):
        compare(elsewhere, there, files=["/flows/copy.yaml"])
    (change,) = compare(elsewhere, there, files=["/flows/copy.yaml"], take_over=True)
    assert (change.kind, change.differs) == ("changed", ("file",))
    with pytest.raises(enrolling.NameTaken):
        compare([*elsewhere, replace(elsewhere[0], file="/c.yaml")], (), files=["/flows/copy.yaml", "/c.yaml"])
    (change,) = compare([], there, files=["/flows/wf.yaml"])
    assert change.kind == "gone"
    assert compare([], there, files=["/flows/other.yaml"]) == ()


def test_nothing_is_written_while_nothing_happens(store: Timetable) -> None:
    clock = clock_at("2026-11-30T05:30")
    apply(store, clock, text())
    one = made(store, clock)
    before = store.roster(now=clock.now()).entries
    for _ in range(10):
        clock.advance(60.0)
        one.turn()
    assert store.roster(now=clock.now()).entries == before


def test_ticks_of_a_kind_are_told_with_all_that_is_known() -> None:
    tick = Tick(id="x", schedule="wf#1", at=0.0, status=MISSED, recorded=0.0, by="s", reason="why", count=3)
    assert scheduler._about(tick) == {"schedule": "wf#1", "slot": "1970-01-01T00:00:00Z", "reason": "why", "count": 3}
