"""Schedulers: a schedule and what was decided for it are one write; of many who decide, and settle, one is heard."""

from __future__ import annotations

import os
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import NotFound
from ..portable import Unsupported, portable
from ..store import Note, Status, Store
from ..timetable import (
    DUE,
    FAILED,
    FIRED,
    LOOK_BACK,
    MISSED,
    QUEUED,
    SKIPPED,
    Entry,
    Tick,
    Timetable,
    start_key,
    tick_id,
    timetabled,
)
from ._at_once import at_once, in_processes
from ._store_given import AWKWARD, Given, definition, new_run
from .clock import FakeClock

ROUNDS = range(5)


class Schedules(Given):
    """`enroll` goes by the revision; `settle` by what a tick was."""

    @pytest.fixture
    def table(self, store: Store) -> Timetable:
        """The store, where schedules can be kept in it."""
        try:
            return timetabled(store)
        except Unsupported as lacks:
            pytest.skip(str(lacks))

    def test_a_schedule_is_read_as_it_was_written(self, table: Timetable, clock: FakeClock) -> None:
        wanted = entry(inputs='{"a":"' + "x" * 70_000 + '"}', labels=("x", AWKWARD), comment=AWKWARD, paused=7.25)
        written = table.enroll(wanted, after=0, definition=definition(text="a: 1\n"))
        assert written == replace(wanted, revision=1)
        found = table.roster(now=clock.now())
        assert (found.entries, found.open, found.faults) == ((written,), (), ())
        assert abs(found.now - clock.now()) < 5
        assert table.definition("d1").text == "a: 1\n"

    def test_they_come_by_id_and_an_awkward_one_is_one_of_them(self, table: Timetable, clock: FakeClock) -> None:
        names = ["b#1", "a#2", "a#1", AWKWARD]
        for name in names:
            assert table.enroll(entry(name), after=0) is not None
        assert [one.id for one in table.roster(now=clock.now()).entries] == sorted(names)
        table.enroll(entry(AWKWARD), after=1, ticks=(tick(AWKWARD, 60.0, DUE),))
        assert [one.schedule for one in table.ticks(AWKWARD, limit=9)] == [AWKWARD]

    def test_who_does_not_know_how_it_stands_writes_nothing(self, table: Timetable, clock: FakeClock) -> None:
        one = entry()
        assert table.enroll(one, after=3, ticks=(tick(at=60.0),)) is None
        assert table.enroll(one, after=0) is not None
        assert table.enroll(replace(one, cron="1 * * * *"), after=0, ticks=(tick(at=60.0),)) is None
        assert table.enroll(replace(one, cron="2 * * * *"), after=1) is not None
        assert table.enroll(replace(one, cron="3 * * * *"), after=1, ticks=(tick(at=60.0),)) is None
        (found,) = table.roster(now=clock.now()).entries
        assert (found.cron, found.revision) == ("2 * * * *", 2)
        assert table.ticks(limit=9) == ()

    def test_one_that_is_made_anew_begins_to_count_at_a_number_of_its_own(
        self, table: Timetable, clock: FakeClock
    ) -> None:
        first = table.enroll(replace(entry(), revision=500), after=0)
        assert first is not None
        assert table.strike(first)
        again = table.enroll(replace(entry(), revision=2**48), after=0)
        assert again == replace(entry(), revision=2**48 + 1)
        assert table.enroll(replace(first, cron="1 * * * *"), after=first.revision) is None
        assert not table.strike(first)
        assert table.enroll(replace(again, paused=1.0), after=again.revision) is not None
        (found,) = table.roster(now=clock.now()).entries
        assert (found.paused, found.revision) == (1.0, 2**48 + 2)

    def test_a_tick_is_written_once_and_only_a_queued_one_is_replaced(self, table: Timetable, clock: FakeClock) -> None:
        one = entry()
        table.enroll(one, after=0, ticks=(tick(at=60.0, status=QUEUED), tick(at=120.0, status=SKIPPED)))
        table.enroll(one, after=1, ticks=(tick(at=60.0, status=DUE), tick(at=120.0, status=DUE)))
        assert {found.at: found.status for found in table.ticks(limit=9)} == {60.0: DUE, 120.0: SKIPPED}
        table.enroll(one, after=2, ticks=(tick(at=60.0, status=QUEUED),))
        assert [found.status for found in table.roster(now=clock.now()).open] == [DUE]

    def test_open_ticks_come_by_time(self, table: Timetable, clock: FakeClock) -> None:
        given = tuple(tick(at=at, status=status) for at, status in ((180.0, QUEUED), (60.0, DUE), (120.0, MISSED)))
        table.enroll(entry(), after=0, ticks=given)
        assert [found.at for found in table.roster(now=clock.now()).open] == [60.0, 180.0]

    def test_a_tick_becomes_something_if_it_still_is_what_it_was(self, table: Timetable) -> None:
        due = tick(at=60.0, status=DUE)
        table.enroll(entry(), after=0, ticks=(due,))
        fired = replace(due, status=FIRED, run_id="r1", reason=AWKWARD)
        assert not table.settle(fired, was=(QUEUED,))
        assert table.settle(fired, was=(DUE,))
        assert not table.settle(replace(due, status=FAILED), was=(DUE, QUEUED))
        assert table.ticks(limit=9) == (fired,)
        assert not table.settle(tick(at=999.0), was=(DUE,))

    def test_ticks_are_told_newest_first_and_by_what_is_asked_for(self, table: Timetable) -> None:
        for name in ("a#1", "b#1"):
            ticks = tuple(tick(name, at, FIRED if at < 100 else MISSED) for at in (60.0, 120.0, 180.0))
            table.enroll(entry(name), after=0, ticks=ticks)
        assert [found.at for found in table.ticks("a#1", limit=2)] == [180.0, 120.0]
        assert [found.at for found in table.ticks("a#1", before=180.0, limit=9)] == [120.0, 60.0]
        assert [found.schedule for found in table.ticks(status=FIRED, limit=9)] != []
        assert {found.at for found in table.ticks(status=FIRED, limit=9)} == {60.0}
        assert len(table.ticks(limit=9)) == 6

    def test_runs_that_go_are_those_of_its_last_ticks(self, table: Timetable, clock: FakeClock) -> None:
        table.enroll(entry(), after=0, ticks=tuple(tick(at=60.0 * n, status=DUE) for n in range(1, 4)))
        for n, name in enumerate(("r1", "r2", "r3"), 1):
            table.enqueue(new_run(name), now=clock.now())
            table.settle(tick(at=60.0 * n, status=FIRED, run_id=name), was=(DUE,))
        assert table.going("wf#1") == ("r3", "r2", "r1")
        table.request_cancel("r2", Note(at=1.0, type="cancel.requested"), now=clock.now())
        assert table.going("wf#1") == ("r3", "r1")
        assert table.going("other") == ()
        more = tuple(tick(at=1000.0 + n, status=FIRED, run_id="gone") for n in range(LOOK_BACK))
        assert table.enroll(entry(), after=1, ticks=more) is not None
        assert table.going("wf#1") == ()

    def test_a_schedule_that_was_taken_out_leaves_its_ticks(self, table: Timetable, clock: FakeClock) -> None:
        written = table.enroll(entry(), after=0, ticks=(tick(at=60.0, status=DUE),))
        assert written is not None
        assert not table.strike(replace(written, revision=7))
        assert table.strike(written)
        assert not table.strike(written)
        found = table.roster(now=clock.now())
        assert (found.entries, [one.status for one in found.open]) == ((), [DUE])
        again = table.enroll(entry(), after=0, ticks=(tick(at=60.0, status=MISSED),))
        assert again is not None
        assert [one.status for one in table.ticks(limit=9)] == [DUE]

    def test_old_ticks_go_but_not_open_ones_nor_those_of_a_run_that_goes(
        self, table: Timetable, clock: FakeClock
    ) -> None:
        statuses = (DUE, QUEUED, MISSED, SKIPPED, FIRED, FIRED)
        runs = (None, None, None, "r1", "r1", "r2")
        given = [tick(at=60.0 * n, status=status) for n, status in enumerate(statuses)]
        given = [replace(one, run_id=run) for one, run in zip(given, runs, strict=True)]
        table.enroll(entry(), after=0, ticks=(*given, tick(at=9000.0, status=MISSED)))
        for name in ("r1", "r2"):
            table.enqueue(new_run(name), now=clock.now())
        table.request_cancel("r1", Note(at=1.0, type="cancel.requested"), now=clock.now())
        assert table.forget_ticks(before=9000.0) == 3
        assert [(one.status, one.run_id) for one in table.ticks(limit=9)] == [
            (MISSED, None), (FIRED, "r2"), (QUEUED, None), (DUE, None)
        ]  # fmt: skip
        assert table.forget_ticks(before=9000.0) == 0

    def test_the_definition_of_a_schedule_stays_while_it_is_there(self, table: Timetable) -> None:
        written = table.enroll(entry(), after=0, definition=definition())
        assert written is not None
        holder = portable(table, "tidy")
        holder.tidy()
        assert table.definition("d1").digest == "d1"
        table.strike(written)
        holder.tidy()
        with pytest.raises(NotFound):
            table.definition("d1")

    @pytest.mark.parametrize("round_", ROUNDS)
    def test_of_many_who_decide_at_once_one_is_heard(self, table: Timetable, round_: int) -> None:
        written = table.enroll(entry(), after=0)
        assert written is not None

        def decide(number: int) -> bool:
            decided = replace(written, evaluated=60.0 + number)
            ticks = (replace(tick(at=60.0, status=DUE), by=f"s{number}"),)
            return table.enroll(decided, after=1, ticks=ticks) is not None

        answers = at_once([lambda n=n: decide(n) for n in range(6)])  # type: ignore[misc]
        assert sorted(map(str, answers)) == ["False"] * 5 + ["True"]
        (found,) = table.ticks(limit=9)
        assert found.by == f"s{answers.index(True)}"

    def test_of_many_who_settle_a_tick_at_once_one_does(self, table: Timetable) -> None:
        due = tick(at=60.0, status=DUE)
        table.enroll(entry(), after=0, ticks=(due,))
        answers = at_once(
            [lambda n=n: table.settle(replace(due, status=FIRED, run_id=f"r{n}"), was=(DUE,)) for n in range(6)]  # type: ignore[misc]
        )
        assert sorted(map(str, answers)) == ["False"] * 5 + ["True"]
        assert table.ticks(limit=9)[0].run_id == f"r{answers.index(True)}"

    def test_of_many_processes_one_decides(self, table: Timetable) -> None:
        opener = self.opener(table)
        if opener is None:
            pytest.skip("no other process sees this store")
        assert table.enroll(entry(), after=0) is not None
        answers = in_processes(opener, _decide, [()] * 4)
        assert {said for said, _ in answers} == {"won"}
        assert sorted(answer for _, answer in answers) == [False, False, False, True]
        assert len(table.ticks(limit=9)) == 1

    def test_a_tick_has_one_run_however_often_it_is_made(self, table: Timetable, clock: FakeClock) -> None:
        due = tick(at=60.0, status=DUE)
        first = table.enqueue(new_run("r1", start_key=start_key(due)), now=clock.now())
        assert table.enqueue(new_run("r2", start_key=start_key(due)), now=clock.now()) == first
        assert first.status is Status.READY


def entry(name: str = "wf#1", **fields: Any) -> Entry:
    """A schedule."""
    given: dict[str, Any] = {"workflow": "wf", "version": "1", "digest": "d1", "cron": "0 * * * *", "zone": "UTC"}
    return Entry(id=name, **(given | fields))


def tick(schedule: str = "wf#1", at: float = 0.0, status: str = DUE, **fields: Any) -> Tick:
    """A tick."""
    given: dict[str, Any] = {"recorded": 1000.0, "by": "s", "status": status}
    return Tick(id=tick_id(schedule, at), schedule=schedule, at=at, **(given | fields))


def _decide(store: Store) -> bool:
    mine = float(os.getpid())
    ticks = (tick(at=60.0, by=str(mine)),)
    return timetabled(store).enroll(entry(evaluated=mine), after=1, ticks=ticks) is not None
