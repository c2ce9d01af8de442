"""Commits of several that share a statement, of threads or of calls that take turns in one: in whatever company, each
is accepted or refused for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from tests.postgres import Database
from tramai.cli._strands import Strands
from tramai.errors import LeaseLost, StoreUnavailable
from tramai.pool import Wanted, pooled
from tramai.store import Lease, Mark, Status
from tramai.stores import _postgres_connection, open_store, postgres
from tramai.stores import _postgres_many as many
from tramai.stores._postgres_failures import Lost
from tramai.testing._store_given import HERE, change, new_run, record
from tramai.testing.clock import FakeClock

COUNT = 24


@pytest.fixture
def url(database: Database) -> str:
    return database.url()


@pytest.fixture
def store(url: str) -> Iterator[Any]:
    store = open_store(url)
    yield store
    store.close()


def taken(store: Any, count: int = COUNT) -> list[Lease]:
    """Leases of so many runs, taken in one go, and known: no commit begins with a reading."""
    pool = pooled(store)
    for number in range(count):
        pool.enqueue(new_run(f"r{number:02}", created=float(number)), now=0.0)
    by = {"owner": "w", "holder": HERE, "ttl": 60.0, "now": 0.0, "most_claims": 5}
    found = pool.take(Wanted(), limit=count, **by)  # type: ignore[arg-type]
    for one in found:
        store.recall(one)
    return [one.lease for one in found if one.lease is not None]


AtOnce = Callable[[list[Callable[[], Any]]], list[Any]]


def caught(work: Callable[[], Any]) -> Any:
    """What it gives or raises."""
    try:
        return work()
    except Exception as error:
        return error


def in_threads(works: list[Callable[[], Any]]) -> list[Any]:
    """All in threads that begin together."""
    found: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def body(number: int) -> None:
        start.wait()
        found[number] = caught(works[number])

    threads = [threading.Thread(target=body, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def by_turns(store: Any, works: list[Callable[[], Any]]) -> list[Any]:
    """All in this thread; each turn is one statement."""
    found: list[Any] = [None] * len(works)
    strands = Strands()
    strands.send = store.gather(strands.park)

    def body(number: int) -> None:
        found[number] = caught(works[number])

    for number in range(len(works)):
        strands.begin(partial(body, number))
    for _ in range(20):
        strands.turn()
    return found


@pytest.fixture(params=["threads", "turns"])
def at_once(request: pytest.FixtureRequest, store: Any) -> AtOnce:
    """What each of some works gives or raises, all carried out at once."""
    return in_threads if request.param == "threads" else partial(by_turns, store)


def step(seq: int) -> Any:
    return record(seq, f"s{seq}", Mark.COMPLETED, value=f'"{seq} \\" \u00e4"')


def test_many_share_few_statements_and_every_commit_is_there(store: Any, monkeypatch: Any, at_once: AtOnce) -> None:
    leases, sent = taken(store), []
    assert len(leases) == COUNT
    real = store._send
    monkeypatch.setattr(store, "_send", lambda writes: sent.append(len(writes)) or real(writes))
    clock = FakeClock()

    def carry(lease: Lease) -> None:
        for seq in range(1, 6):
            store.commit(lease, change(clock, step(seq)))
        store.commit(lease, change(clock, status=Status.COMPLETED, finished=1.0, outputs="{}", release=True))

    assert at_once([lambda lease=lease: carry(lease) for lease in leases]) == [None] * COUNT  # type: ignore[misc]
    assert max(sent) > 1
    for lease in leases:
        run = store.get(lease.run_id)
        assert (run.status, run.lease, run.revision, run.outputs) == (Status.COMPLETED, None, 8, "{}")
        assert [(one.seq, one.value) for one in store.journal(lease.run_id)] == [
            (seq, f'"{seq} \\" \u00e4"') for seq in range(1, 6)
        ]


def test_one_that_lost_its_lease_is_refused_and_its_neighbours_are_not(store: Any, url: str, at_once: AtOnce) -> None:
    leases, other = taken(store), open_store(url)
    for lost in leases[::3]:
        other.release(lost, now=0.0)
    found = at_once([lambda lease=lease: store.commit(lease, change(FakeClock(), step(1))) for lease in leases])  # type: ignore[misc]
    assert [isinstance(one, LeaseLost) for one in found] == [number % 3 == 0 for number in range(COUNT)]
    assert [len(other.journal(lease.run_id)) for lease in leases] == [0 if n % 3 == 0 else 1 for n in range(COUNT)]
    other.close()


def test_a_change_behind_the_back_of_one_is_found_and_it_is_written_all_the_same(
    store: Any, url: str, at_once: AtOnce
) -> None:
    leases, other = taken(store), open_store(url)
    for lease in leases[::2]:
        from tramai.store import Note

        other.request_cancel(lease.run_id, Note(at=0.0, type="cancel.requested"), now=0.0)
    found = at_once([lambda lease=lease: store.commit(lease, change(FakeClock(), step(1))) for lease in leases])  # type: ignore[misc]
    assert found == [4 if number % 2 == 0 else 3 for number in range(COUNT)]
    assert all(store.get(lease.run_id).cancel_requested for lease in leases[::2])
    other.close()


@pytest.mark.parametrize("done", [True, False])
def test_when_the_answer_to_all_of_them_is_lost_each_looks_for_himself(
    store: Any, monkeypatch: Any, at_once: AtOnce, *, done: bool
) -> None:
    leases, real = taken(store), store._send

    def send(writes: Any) -> Any:
        if done:
            real(writes)
        raise OSError("the answer is lost")

    monkeypatch.setattr(store, "_send", send)
    found = at_once([lambda lease=lease: store.commit(lease, change(FakeClock(), step(1))) for lease in leases])  # type: ignore[misc]
    assert found == [3] * COUNT
    assert [len(store.journal(lease.run_id)) for lease in leases] == [1] * COUNT


def test_calls_that_take_turns_send_one_statement_for_each_turn(store: Any, monkeypatch: Any) -> None:
    leases, sent, real = taken(store), [], store._send
    monkeypatch.setattr(store, "_send", lambda writes: sent.append(len(writes)) or real(writes))  # type: ignore[func-returns-value]

    def carry(lease: Lease, steps: int) -> None:
        for seq in range(1, steps + 1):
            store.commit(lease, change(FakeClock(), step(seq)))

    works = [partial(carry, lease, 1 if number else 3) for number, lease in enumerate(leases)]
    assert by_turns(store, works) == [None] * COUNT
    assert sent == [COUNT]  # and the two commits of one that is alone then are sent as they always were
    assert [len(store.journal(lease.run_id)) for lease in leases] == [3] + [1] * (COUNT - 1)


def test_large_values_go_alone_and_come_back_whole(store: Any, at_once: AtOnce) -> None:
    leases = taken(store, 8)
    big = '"' + "x" * 100_000 + '"'
    work = [
        lambda lease=lease: store.commit(lease, change(FakeClock(), record(1, "a", Mark.COMPLETED, value=big)))
        for lease in leases
    ]  # type: ignore[misc]
    assert at_once(work) == [3] * 8
    assert {store.journal(lease.run_id)[0].value for lease in leases} == {big}


def test_who_carries_in_another_process_knows_what_was_taken(store: Any, url: str) -> None:
    pool = pooled(store)
    pool.enqueue(new_run("r"), now=0.0)
    by = {"owner": "w", "holder": HERE, "ttl": 60.0, "now": 0.0, "most_claims": 5}
    (one,) = pool.take(Wanted(), limit=1, **by)  # type: ignore[arg-type]
    there: Any = open_store(url)
    there.recall(one)
    read: list[str] = []
    real = there._header
    there._header = lambda db, run_id: read.append(run_id) or real(db, run_id)
    assert there.commit(one.lease, change(FakeClock(), step(1))) == 3
    assert read == []
    there.close()


def test_every_guard_of_a_shared_commit_refuses_one_and_none_of_its_neighbours(store: Any, database: Database) -> None:
    wrong: list[dict[str, Any]] = [{"was_fence": 9}, {"was_token": "x"}, {"was_revision": 9}, {"was_owner": "x"}]
    count = 2 * len(wrong) + 2
    for number in range(count):
        pooled(store).enqueue(new_run(f"r{number:02}", created=float(number)), now=0.0)
    by = {"owner": "w", "holder": HERE, "ttl": 60.0, "now": 0.0, "most_claims": 5}
    found = pooled(store).take(Wanted(), limit=count, **by)  # type: ignore[arg-type]
    writes = []
    for one in found:
        store.recall(one)
        writes.append(store._ready(one.lease, change(FakeClock(), step(1)), {})[1])
    for number, values in enumerate(wrong):
        writes[2 * number] = replace(writes[2 * number], given=writes[2 * number].given | values)
    last = writes[-2]
    schema = store.url.rpartition("=")[2]
    database.admin.execute(f'UPDATE "{schema}".tramai_lease SET expires = 1 WHERE run = %s', (last.head.key,))
    assert store._send(writes) == {write.head.key for write in writes[1::2]}
    assert [len(store.journal(one.run_id)) for one in found] == [0, 1] * (count // 2)


def test_a_claim_of_several_takes_none_that_was_taken_meanwhile(store: Any, url: str, monkeypatch: Any) -> None:
    for number in range(6):
        pooled(store).enqueue(new_run(f"r{number:02}", created=float(number)), now=0.0)
    other, real = open_store(url), many.claims

    def claims(writes: Any) -> Any:
        other.claim("r02", owner="other", holder=HERE, ttl=60.0, now=0.0)
        return real(writes)

    monkeypatch.setattr(many, "claims", claims)
    by = {"owner": "w", "holder": HERE, "ttl": 60.0, "now": 0.0, "most_claims": 5}
    found = pooled(store).take(Wanted(), limit=6, **by)  # type: ignore[arg-type]
    assert [one.run_id for one in found] == ["r00", "r01", "r03", "r04", "r05"]
    assert (other.get("r02").lease.owner, other.get("r02").fence) == ("other", 1)
    other.close()


def test_who_shares_a_statement_has_as_much_patience_with_the_server_as_alone(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, strands, answers = taken(store, 3), Strands(), []
    strands.send = store.gather(strands.park)
    away, connect = iter([True, True]), _postgres_connection.connect

    def sometimes(*arguments: Any, **named: Any) -> Any:
        if next(away, False):
            raise Lost(StoreUnavailable(what="away"), sent=False)
        return connect(*arguments, **named)

    monkeypatch.setattr(_postgres_connection, "connect", sometimes)
    monkeypatch.setattr(postgres, "OPENING", 0.0)
    store._pool._forget()
    one = change(FakeClock(), record(1, "one", Mark.COMPLETED))
    for lease in leases:
        strands.begin(lambda lease=lease: answers.append(caught(lambda: store.commit(lease, one))))  # type: ignore[misc]
    strands.turn()
    assert [isinstance(answer, int) for answer in answers] == [True] * 3, answers
    assert [len(store.journal(lease.run_id)) for lease in leases] == [1] * 3
