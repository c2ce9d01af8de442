"""Whole runs between stores: a copy is as it was, and a moved run goes on in exactly one place, whoever dies when."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.engine.functions import calls
from tests.engine.support import call, make, name
from tests.engine.support import run_r as run
from tramai import engine, moving
from tramai.errors import CheckpointConflict, LeaseHeld, NotInThatState, UsageError
from tramai.portable import Bundle, Portable, StartKeyTaken, Unsupported
from tramai.store import Holder, Mark, Note, RunExists, Status, Store
from tramai.stores import open_store
from tramai.stores.memory import Memory
from tramai.testing._store_given import begin, change, dead_holder, done, everything, record
from tramai.testing.clock import FakeClock

ROOT = Path(__file__).parent.parent
KINDS = ("memory", "sqlite", "file", "markdown")
PAIRS = [("memory", "memory"), ("sqlite", "sqlite"), *zip(KINDS, (*KINDS[1:], KINDS[0]), strict=True)]
SERVED = [("sqlite", "postgres"), ("postgres", "file"), ("postgres", "postgres")]
WRITES = ("create", "claim", "commit", "amend", "adopt", "bury", "release", "request_cancel", "post")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], Portable]]:
    """Opens a store of a kind under a name; closed afterwards."""
    stores: list[Store] = []

    def call(kind: str, name: str) -> Portable:
        if kind == "postgres":
            stores.append(request.getfixturevalue("database").store())
            return cast(Portable, stores[-1])
        url = "memory:" if kind == "memory" else f"{kind}:{tmp_path}/{name}"
        stores.append(open_store(url))
        return cast(Portable, stores[-1])

    yield call
    for store in stores:
        store.close()


@pytest.fixture(params=PAIRS, ids="-to-".join)
def pair(request: pytest.FixtureRequest, opened: Callable[[str, str], Portable]) -> tuple[Portable, Portable]:
    one, other = request.param
    return opened(one, "a.db"), opened(other, "b.db")


def full(
    store: Store, clock: FakeClock, run_id: str = "r1", *, status: Status = Status.SLEEPING, **fields: Any
) -> None:
    """A run with a bit of everything."""
    lease = begin(store, clock, run_id, labels=("x",), **fields)
    long = '"' + "v" * 100_000 + '"'
    records = (record(1, "a", Mark.FAILED, error=long), done(2, "a", long, saves="{}"), record(3, "b"))
    over = clock.now() if status.terminal else None
    clock.advance(1)
    store.commit(
        lease,
        change(
            clock, *records, notes=(Note(at=1.0, type="n", data=long),), status=status, finished=over, wake_at=9e9,
            outputs=long, tokens=7, release=True,
        ),
    )  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Whether two runs are one but for what a move changes."""
    return replace(one, fence=0, revision=0, updated=0.0, status=Status.READY) == replace(
        other, fence=0, revision=0, updated=0.0, status=Status.READY
    )


# Copies.


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED, Status.DEAD])
def test_a_copy_is_the_run_as_it_ended(pair: tuple[Portable, Portable], clock: FakeClock, status: Status) -> None:
    source, target = pair
    full(source, clock, status=status)
    before = everything(source, "r1")
    assert moving.copy(source, target, "r1", by="me", clock=clock)
    assert everything(source, "r1") == before
    assert target.get("r1") == source.get("r1")
    assert target.journal("r1") == source.journal("r1")
    assert target.notes("r1")[:-1] == source.notes("r1")
    assert (target.notes("r1")[-1].type, target.notes("r1")[-1].by) == ("run.copied", "me")
    assert target.definition("d1") == source.definition("d1")
    assert not moving.copy(source, target, "r1", clock=clock)


@pytest.mark.parametrize("status", [one for one in Status if not one.terminal and one is not Status.ARRIVING])
def test_a_run_that_could_go_on_is_not_copied(
    pair: tuple[Portable, Portable], clock: FakeClock, status: Status
) -> None:
    source, target = pair
    full(source, clock, status=status)
    with pytest.raises(NotInThatState, match="it can still go on, and its copy could too"):
        moving.copy(source, target, "r1", clock=clock)
    assert target.page(limit=1) == ((), None)


def test_a_copy_overwrites_nothing(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    source, target = pair
    full(source, clock, status=Status.COMPLETED)
    full(source, clock, "r2", status=Status.COMPLETED, start_key="k")
    begin(target, clock)
    begin(target, clock, "other", start_key="k")
    before = everything(target, "r1")
    with pytest.raises(RunExists):
        moving.copy(source, target, "r1", clock=clock)
    with pytest.raises(StartKeyTaken):
        moving.copy(source, target, "r2", clock=clock)
    assert everything(target, "r1") == before


def test_what_an_archive_has_stays_when_the_source_lets_go_of_it(
    pair: tuple[Portable, Portable], clock: FakeClock
) -> None:
    source, target = pair
    full(source, clock, status=Status.COMPLETED)
    moving.copy(source, target, "r1", clock=clock)
    gone = Note(at=1.0, type="run.removed")
    source.bury("r1", gone, revision=source.get("r1").revision, status=Status.REMOVED, now=clock.now())
    assert not moving.copy(source, target, "r1", clock=clock)
    assert target.get("r1").status is Status.COMPLETED


# Moves.


@pytest.mark.parametrize("status", [one for one in Status if not one.tombstone and one is not Status.ARRIVING])
def test_a_moved_run_is_there_and_no_longer_here(
    pair: tuple[Portable, Portable], clock: FakeClock, status: Status
) -> None:
    source, target = pair
    full(source, clock, status=status, start_key="k")
    before, journal, notes = source.get("r1"), source.journal("r1"), source.notes("r1")
    run = moving.move(source, target, "r1", by="me", clock=clock)
    assert same(run, before)
    assert run.status is status
    assert target.get("r1") == run
    assert target.journal("r1") == journal
    brought = [] if status.terminal else ["run.arriving"]
    assert [note.type for note in target.notes("r1")[len(notes) :]] == [*brought, "run.arrived"]
    left = source.get("r1")
    assert (left.status, left.start_key, source.journal("r1")) == (Status.MOVED, "k", ())
    assert left.fence > before.fence
    assert moving.moved_to(source, "r1") == moving.address(target)
    again = moving.move(source, target, "r1", clock=clock)
    assert again == run


def test_a_run_that_somebody_works_on_is_not_moved(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    source, target = pair
    lease = begin(source, clock)
    with pytest.raises(LeaseHeld):
        moving.move(source, target, "r1", clock=clock)
    assert target.page(limit=1) == ((), None)
    clock.advance(30)
    run = moving.move(source, target, "r1", clock=clock)
    assert (run.status, run.lease, run.stale(clock.now())) == (Status.RUNNING, None, True)
    assert source.get("r1").fence > lease.fence


def test_a_run_of_a_holder_known_dead_is_moved_at_once(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    source, target = pair
    begin(source, clock)
    clock.advance(30)
    source.claim("r1", owner="x", holder=dead_holder(), ttl=30.0, now=clock.now())
    assert moving.move(source, target, "r1", clock=clock).status is Status.RUNNING


def test_a_run_that_is_claimed_while_it_is_moved_stays(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    source, target = pair
    full(source, clock)
    adopt = target.adopt

    def meanwhile(bundle: Bundle) -> Any:
        taken = adopt(bundle)
        source.claim("r1", owner="x", holder=Holder.here(), ttl=30.0, now=clock.now())
        return taken

    target.adopt = meanwhile  # type: ignore[method-assign]
    with pytest.raises((LeaseHeld, CheckpointConflict)):
        moving.move(source, target, "r1", clock=clock)
    target.adopt = adopt  # type: ignore[method-assign]
    assert source.get("r1").lease is not None
    with pytest.raises(NotInThatState, match="r1 is arriving"):
        target.claim("r1", owner="x", holder=Holder.here(), ttl=30.0, now=clock.now())
    clock.advance(30)
    run = moving.move(source, target, "r1", clock=clock)
    assert (run.status, run.fence) == (Status.RUNNING, source.get("r1").fence + 1)


def test_a_run_comes_home(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    source, target = pair
    full(source, clock)
    full(source, clock, "over", status=Status.COMPLETED)
    before = source.get("r1")
    for _ in range(3):
        for one, other in ((source, target), (target, source)):
            for run_id in ("r1", "over"):
                moving.move(one, other, run_id, clock=clock)
    assert same(source.get("r1"), before)
    assert target.get("r1").status is Status.MOVED
    run, _ = source.claim("r1", owner="x", holder=Holder.here(), ttl=30.0, now=clock.now())
    assert run.status is Status.SLEEPING
    assert (source.get("over").status, target.get("over").status) == (Status.COMPLETED, Status.MOVED)


@pytest.mark.parametrize("status", [Status.SLEEPING, Status.COMPLETED])
def test_a_move_onto_itself_is_refused_and_harms_nothing(opened: Any, clock: FakeClock, status: Status) -> None:
    one, other = opened("sqlite", "a.db"), opened("sqlite", "a.db")
    full(one, clock, status=status)
    before = everything(one, "r1")
    with pytest.raises((UsageError, RunExists)):
        moving.move(one, other, "r1", clock=clock)
    with pytest.raises((UsageError, RunExists, NotInThatState)):
        moving.copy(one, other, "r1", clock=clock)
    assert everything(one, "r1") == before


def test_a_moved_run_is_copied_or_moved_no_more(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    source, target = pair
    full(source, clock)
    moving.move(source, target, "r1", clock=clock)
    with pytest.raises(NotInThatState, match=r"it is in .* now"):
        moving.move(source, Memory(), "r1", clock=clock)
    third = Memory()
    assert moving.copy(source, third, "r1", clock=clock)
    assert third.get("r1").status is Status.MOVED


def test_a_store_that_cannot_says_so(clock: FakeClock) -> None:
    class Plain:
        url = "plain:"

    with pytest.raises(Unsupported, match="the store plain: cannot take whole runs in"):
        moving.copy(Memory(), cast(Store, Plain()), "r1", clock=clock)
    with pytest.raises(Unsupported, match="the store plain: cannot leave a tombstone"):
        moving.move(cast(Store, Plain()), Memory(), "r1", clock=clock)


# Death at each step.


class Killed(BaseException):
    """The mover is gone."""


def deadly(stores: tuple[Store, ...], at: int, *, after: bool) -> Callable[[], None]:
    """Let the mover die before or after its nth write to any of the stores; what takes that back again."""
    count, undo = itertools.count(1), []

    def wrap(store: Store, method: str) -> None:
        write = getattr(store, method)

        def strike(*args: Any, **kwargs: Any) -> Any:
            here = next(count) == at
            if here and not after:
                raise Killed
            answer = write(*args, **kwargs)
            if here:
                raise Killed
            return answer

        setattr(store, method, strike)
        undo.append(lambda: setattr(store, method, write))

    for store, method in itertools.product(stores, WRITES):
        wrap(store, method)
    return lambda: [back() for back in undo] and None


POINTS = [(at, after) for at in (1, 2, 3) for after in (False, True)]


def waiting_run(store: Store, counter: str) -> None:
    """A run with an effect behind it and one before it."""
    steps = [
        {"id": "a", "local": call("count", name=counter)},
        {"id": "nap", "delay": "2h"},
        {"id": "b", "local": call("count", name=counter)},
    ]
    assert run(store, make(steps), clock=FakeClock(1000.0)).status == "sleeping"


def goes_on(store: Store) -> bool:
    """Whether the run can be resumed to its end from here."""
    try:
        return engine.resume("r", store=store, clock=FakeClock(50_000.0)).resumed
    except NotInThatState:
        return False


@pytest.mark.parametrize("first", ["source", "target"])
@pytest.mark.parametrize(("at", "after"), POINTS)
def test_whenever_a_mover_dies_the_run_goes_on_in_exactly_one_place(
    opened: Any, monkeypatch: pytest.MonkeyPatch, first: str, at: int, after: bool
) -> None:
    source, target = opened("sqlite", "a.db"), opened("sqlite", "b.db")
    counter = name()
    waiting_run(source, counter)
    undo = deadly((source, target), at, after=after)
    with pytest.raises(Killed):
        moving.move(source, target, "r", clock=FakeClock(2000.0))
    undo()
    order = (source, target) if first == "source" else (target, source)
    went = [store for store in order if target_has(target) or store is source if goes_on(store)]
    assert len(went) == 1
    assert went[0] is (target if (at, after) >= (2, True) else source)
    assert calls[counter] == 2


def target_has(target: Store) -> bool:
    return target.match("r") == ("r",)


@pytest.mark.parametrize(("at", "after"), POINTS)
@pytest.mark.parametrize("kinds", [*PAIRS, *SERVED], ids="-to-".join)
def test_a_move_that_was_cut_off_is_finished_by_the_next(
    opened: Any, kinds: tuple[str, str], at: int, after: bool
) -> None:
    source, target = opened(kinds[0], "a.db"), opened(kinds[1], "b.db")
    counter = name()
    waiting_run(source, counter)
    undo = deadly((source, target), at, after=after)
    with pytest.raises(Killed):
        moving.move(source, target, "r", clock=FakeClock(2000.0))
    undo()
    assert moving.move(source, target, "r", clock=FakeClock(3000.0)).status is Status.SLEEPING
    assert not goes_on(source)
    assert goes_on(target)
    assert calls[counter] == 2


def test_a_run_that_went_on_after_a_broken_move_leaves_no_second_life_behind(opened: Any) -> None:
    """The mover dies after the first write, the run goes on at the source and is moved elsewhere."""
    source, target, other = (opened("sqlite", f"{one}.db") for one in "abc")
    counter = name()
    waiting_run(source, counter)
    undo = deadly((source, target), 1, after=True)
    with pytest.raises(Killed):
        moving.move(source, target, "r", clock=FakeClock(2000.0))
    undo()
    moving.move(source, other, "r", clock=FakeClock(2500.0))
    assert not goes_on(target)
    assert goes_on(other)
    assert not goes_on(source)
    assert calls[counter] == 2


def test_an_arrival_whose_source_cannot_be_asked_waits_and_says_what_to_do(opened: Any, tmp_path: Path) -> None:
    source, target = opened("sqlite", "a.db"), opened("sqlite", "b.db")
    waiting_run(source, name())
    undo = deadly((source, target), 2, after=True)
    with pytest.raises(Killed):
        moving.move(source, target, "r", clock=FakeClock(2000.0))
    undo()
    os.rename(tmp_path / "a.db", tmp_path / "away.db")
    with pytest.raises(NotInThatState, match=r"only sqlite:.*a\.db can say whether it goes on here") as caught:
        engine.resume("r", store=target)
    assert caught.value.hint is not None
    assert "tramai store move r --store sqlite:" in caught.value.hint
    os.rename(tmp_path / "away.db", tmp_path / "a.db")
    assert goes_on(target)


def test_a_slow_mover_cannot_bring_back_what_has_gone_on(pair: tuple[Portable, Portable], clock: FakeClock) -> None:
    """It has read the run, sleeps while another moves it there and back, and wakes up."""
    source, target = pair
    full(source, clock)
    stale = moving.bundle(source, "r1")
    moving.move(source, target, "r1", clock=clock)
    moving.move(target, source, "r1", clock=clock)
    late = replace(stale, run=replace(stale.run, status=Status.ARRIVING, revision=stale.run.revision + 1))
    with pytest.raises(RunExists):
        target.adopt(late)
    with pytest.raises(CheckpointConflict):
        source.bury("r1", Note(at=1.0, type="x"), revision=stale.run.revision, status=Status.MOVED, now=clock.now())
    assert source.get("r1").status is Status.SLEEPING


def test_two_movers_at_once_move_it_once(opened: Any, clock: FakeClock) -> None:
    from tramai.testing._at_once import at_once

    for round_ in range(5):
        source, target = opened("sqlite", "a.db"), opened("sqlite", "b.db")
        full(source, clock, f"r{round_}")
        answers = at_once([functools.partial(moving.move, source, target, f"r{round_}", clock=clock)] * 2)
        assert any(not isinstance(answer, Exception) for answer in answers)
        assert (source.get(f"r{round_}").status, target.get(f"r{round_}").status) == (Status.MOVED, Status.SLEEPING)


MOVER = """
import os, signal, sys
from tests.test_moving import deadly
from tramai import moving
from tramai.clock import SystemClock
from tramai.stores import open_store
import tests.test_moving as here

class Really(BaseException):
    def __init__(self):
        os.kill(os.getpid(), signal.SIGKILL)

here.Killed = Really
source, target = map(open_store, sys.argv[1:3])
deadly((source, target), int(sys.argv[3]), after=sys.argv[4] == "after")
moving.move(source, target, "r", clock=SystemClock())
"""


@pytest.mark.parametrize(("at", "after"), POINTS[1:5])
def test_a_mover_that_is_really_killed_leaves_one_place(opened: Any, tmp_path: Path, at: int, after: bool) -> None:
    source, target = opened("sqlite", "a.db"), opened("sqlite", "b.db")
    counter = name()
    waiting_run(source, counter)
    when = "after" if after else "before"
    done = subprocess.run(
        [sys.executable, "-c", MOVER, source.url, target.url, str(at), when],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -9, done.stderr
    assert [goes_on(store) for store in (target, source)].count(True) == 1
    assert calls[counter] == 2


def test_an_address_can_be_used_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Some:
        def __init__(self, url: str) -> None:
            self.url = url

    monkeypatch.chdir(tmp_path)
    for url, wanted in (
        ("sqlite:a.db", f"sqlite:{tmp_path}/a.db"),
        ("sqlite:/a.db", "sqlite:/a.db"),
        ("file:x?layout=y", f"file:{tmp_path}/x?layout=y"),
        ("memory:", "memory:"),
        ("postgresql://host/db", "postgresql://host/db"),
    ):
        assert moving.address(cast(Store, Some(url))) == wanted
