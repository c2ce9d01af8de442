"""What the PostgreSQL store does when connections break, the server restarts or hangs, rows are damaged; and crowds."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tramai import engine
from tramai.errors import CheckpointConflict, CheckpointCorrupt, LeaseHeld, LeaseLost, StoreUnavailable, TramaiError
from tramai.store import Change, Holder, Mark, Note, Status, Store
from tramai.stores import _postgres_connection, open_store
from tramai.stores.postgres import Postgres
from tramai.testing import store_contract  # noqa: F401 (before its parts: it has pytest rewrite their asserts)
from tramai.testing._at_once import PATIENCE, in_processes, running
from tramai.testing._store_given import HERE, begin, change, claim, done, everything, new_run, record
from tramai.testing._store_whole import bundle, header
from tramai.testing.clock import FakeClock

from .engine.support import call, make
from .postgres import Server, new_server

CANARY = "s3cret-canary"
NOTE = Note(at=1.0, type="seen", comment="once")
OTHERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that only these tests use: they stop it."""
    server = new_server()
    yield server
    server.remove()


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> str:
    made: int = getattr(server, "made", 0) + 1
    server.made = made  # type: ignore[attr-defined]
    return f"{server.url}?schema=t{made}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = open_store(url)
    yield store
    store.close()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


# Answers and requests that never arrive.


class Proxy:
    """Stands between a store and its server, and cuts the connection when it is told to.

    `cut = "answer"`: the next statement that writes is done, and nobody hears of it. `cut = "request"`: it is lost.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut = ""
        self.marker = b""
        self.cuts = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._open += [client, there]
            lost = threading.Event()
            threading.Thread(target=self._up, args=(client, there, lost), daemon=True).start()
            threading.Thread(target=self._down, args=(there, client, lost), daemon=True).start()

    def _up(self, client: socket.socket, there: socket.socket, lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                if self.cut and self.marker in data:
                    how, self.cut = self.cut, ""
                    self.cuts += 1
                    if how == "request":
                        break
                    lost.set()
                there.sendall(data)
        _end(client, there)

    def _down(self, there: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := there.recv(1 << 20):
                if lost.is_set():
                    break
                client.sendall(data)
        _end(client, there)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def far(url: str, server: Server, proxy: Proxy) -> Iterator[Postgres]:
    """A store on the other side of the proxy."""
    store = open_store(url.replace(f":{server.port}/", f":{proxy.port}/") + "&sslmode=disable")
    assert isinstance(store, Postgres)
    yield store
    store.close()


CUTS = ["answer", "request"]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", ["progress", "notes", "step", "turn", "release", "end"])
def test_a_commit_nobody_heard_of_is_done_once(
    far: Postgres, proxy: Proxy, clock: FakeClock, cut: str, kind: str
) -> None:
    lease = begin(far, clock)
    far.commit(lease, change(clock, record(1), notes=(NOTE,)))
    made = {
        "progress": change(clock, done(2), record(3, "other")),
        "notes": change(clock, notes=(NOTE, NOTE)),
        "step": change(clock, step="later"),
        "turn": change(clock, done(2), status=Status.FAILED, wake_at=5.0),
        "release": change(clock, record(2), status=Status.SLEEPING, release=True),
        "end": change(clock, done(2, value='"' + "v" * 100_000 + '"'), status=Status.COMPLETED, notes=(NOTE,)),
    }[kind]
    proxy.cut, proxy.marker = cut, b"moved AS (UPDATE"
    assert far.commit(lease, made) == 3
    assert proxy.cuts == 1
    run = far.get("r1")
    assert run.revision == 3
    assert far.journal("r1") == (record(1), *made.records)
    assert len(far.notes("r1")) == 1 + len(made.notes)
    assert run.step == (made.step or None)
    assert (run.lease is None) is (kind in ("release", "end"))


@pytest.mark.parametrize("cut", CUTS)
def test_a_prepared_commit_nobody_heard_of_is_done_once(
    far: Postgres, proxy: Proxy, clock: FakeClock, cut: str
) -> None:
    lease = begin(far, clock)
    for seq in range(1, 9):
        far.commit(lease, change(clock, done(seq, f"p{seq}")))
    proxy.cut, proxy.marker = cut, b"the-ninth-path"
    assert far.commit(lease, change(clock, done(9, "the-ninth-path"))) == 10
    assert (proxy.cuts, far.get("r1").revision, len(far.journal("r1"))) == (1, 10, 9)


@pytest.mark.parametrize("cut", CUTS)
def test_a_run_is_made_once(far: Postgres, proxy: Proxy, clock: FakeClock, cut: str) -> None:
    proxy.cut, proxy.marker = cut, b"moved AS (INSERT"
    run, lease = far.create(new_run(start_key="k"), owner="a", holder=HERE, ttl=30.0, now=0.0)
    assert proxy.cuts == 1
    assert lease is not None
    assert (far.get("r1"), far.get("r1").lease) == (run, lease)
    far.commit(lease, change(clock, record(1)))
    assert len(far.page(limit=9)[0]) == 1


@pytest.mark.parametrize("cut", CUTS)
def test_a_run_is_claimed_once(far: Postgres, proxy: Proxy, clock: FakeClock, cut: str) -> None:
    far.commit(begin(far, clock), change(clock, record(1), status=Status.SLEEPING, release=True))
    proxy.cut, proxy.marker = cut, b"found AS (SELECT"
    run, lease = claim(far, clock)
    assert proxy.cuts == 1
    assert (run.status, run.fence, run.claims_without_progress, lease.fence) == (Status.SLEEPING, 2, 1, 2)
    assert far.get("r1").lease == lease


@pytest.mark.parametrize("cut", CUTS)
def test_operators_write_once(far: Postgres, proxy: Proxy, clock: FakeClock, cut: str) -> None:
    far.commit(begin(far, clock), change(clock, record(1), status=Status.BLOCKED, release=True))
    proxy.marker = b"found AS (SELECT"
    proxy.cut = cut
    assert far.amend("r1", revision=2, change=change(clock, status=Status.FAILED)) == 3
    proxy.cut = cut
    assert far.amend("r1", revision=3, change=change(clock, record(2, mark=Mark.UNKNOWN), notes=(NOTE,))) == 4
    proxy.cut = cut
    assert far.request_cancel("r1", NOTE, now=0.0).status is Status.CANCELLED
    assert proxy.cuts == 3
    run = far.get("r1")
    assert (run.revision, run.fence, run.status) == (5, 4, Status.CANCELLED)
    assert [note.seq for note in far.notes("r1")] == [1, 2]


@pytest.mark.parametrize("cut", CUTS)
def test_a_lease_is_renewed_and_given_back_all_the_same(
    far: Postgres, proxy: Proxy, clock: FakeClock, cut: str
) -> None:
    lease = begin(far, clock)
    proxy.cut, proxy.marker = cut, b"RETURNING l.expires"
    assert far.renew(lease, ttl=60.0, now=0.0).expires > lease.expires
    proxy.cut, proxy.marker = cut, b"found AS (SELECT"
    far.release(lease, now=0.0)
    assert proxy.cuts == 2
    assert far.get("r1").lease is None
    assert far.get("r1").revision == 1


@pytest.mark.parametrize("cut", CUTS)
def test_whole_runs_come_and_go_once(far: Postgres, proxy: Proxy, clock: FakeClock, cut: str) -> None:
    arriving = header(status=Status.ARRIVING, labels=("a",), start_key="k")
    proxy.cut, proxy.marker = cut, b"moved AS (INSERT"
    assert far.adopt(bundle(arriving, done(1), notes=(NOTE,))) == arriving
    proxy.cut, proxy.marker = cut, b"gone_head AS (DELETE"
    home = header(status=Status.FAILED, revision=9, labels=("a", "b"), start_key="k")
    assert far.adopt(bundle(home, done(1, "other"), notes=(NOTE, NOTE))) == home
    assert everything(far) == (home, (done(1, "other"),), tuple(replace(NOTE, seq=seq) for seq in (1, 2)))
    assert [run.run_id for run in far.page(limit=9, label="b")[0]] == ["r1"]
    proxy.cut = cut
    gone = far.bury("r1", NOTE, revision=9, status=Status.REMOVED, now=0.0)
    assert proxy.cuts == 3
    assert everything(far) == (gone, (), (replace(NOTE, seq=1),))
    assert (gone.revision, gone.fence) == (10, home.fence + 1)
    assert far.verify() == ()


def test_a_rule_broken_in_doubt_is_still_told(far: Postgres, proxy: Proxy, clock: FakeClock) -> None:
    lease = begin(far, clock)
    far.commit(lease, change(clock, done(1)))
    proxy.cut, proxy.marker = "answer", b"moved AS (UPDATE"
    with pytest.raises(CheckpointConflict):
        far.commit(lease, change(clock, done(2)))
    proxy.cut = "request"
    far.release(lease, now=0.0)
    with pytest.raises(LeaseLost):
        far.commit(lease, change(clock, done(2, "b")))
    assert far.get("r1").revision == 2


def test_in_doubt_another_writers_lines_are_not_taken_for_ones_own(
    far: Postgres, store: Store, proxy: Proxy, clock: FakeClock
) -> None:
    """The request is lost, and somebody else writes a line of the same number before it is sent again."""
    lease = begin(far, clock)
    once: list[Store] = []
    proxy.cut, proxy.marker = "request", b"moved AS (UPDATE"
    real = far._header

    def header(*args: Any) -> Any:
        if not once:
            once.append(store)
            store.commit(lease, change(clock, record(1, "theirs")))
        return real(*args)

    far._header = header  # type: ignore[method-assign]
    with pytest.raises(CheckpointConflict):
        far.commit(lease, change(clock, record(1, "mine")))
    assert [line.path for line in far.journal("r1")] == ["theirs"]


# The server goes away under load.


class Load:
    """Threads that each carry a run from its first commit to its last, and what they were told."""

    def __init__(self, store: Store, runs: int, commits: int) -> None:
        self._store, self._commits = store, commits
        self.acknowledged: dict[str, list[int]] = {f"r{n}": [] for n in range(runs)}
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._carry, args=(name,)) for name in self.acknowledged]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    @property
    def at_work(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def done(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def _carry(self, name: str) -> None:
        clock = FakeClock()
        try:
            _, lease = self._store.create(new_run(name), owner="o", holder=HERE, ttl=120.0, now=0.0)
            assert lease is not None
            for seq in range(1, self._commits + 1):
                last = seq == self._commits
                more: dict[str, Any] = {"status": Status.COMPLETED} if last else {}
                made = change(clock, done(seq, f"p{seq}", value=f'"{name}.{seq}"'), notes=(NOTE,), **more)
                assert self._store.commit(lease, made) == seq + 1
                self.acknowledged[name].append(seq)
                if not last and seq % 7 == 0:
                    self._store.renew(lease, ttl=120.0, now=0.0)
        except BaseException as error:
            self.failures.append(f"{name}: {error!r}")

    def audit(self, store: Store) -> None:
        """Everything acknowledged is there, once, in order; nothing else is."""
        assert self.failures == []
        for name, seqs in self.acknowledged.items():
            run, lines = store.get(name), store.journal(name)
            assert seqs == list(range(1, self._commits + 1))
            assert [line.value for line in lines] == [f'"{name}.{seq}"' for seq in seqs]
            assert [note.seq for note in store.notes(name)] == seqs
            assert (run.revision, run.status, run.lease) == (self._commits + 1, Status.COMPLETED, None)


def test_backends_ended_under_load_cost_nothing(server: Server, store: Store) -> None:
    with Load(store, 4, 60) as load:
        ended = 0
        while load.at_work:
            ended += len(server.sql(OTHERS))
            time.sleep(0.03)
    load.audit(store)
    assert ended > 10


def test_a_server_restarted_under_load_costs_nothing(server: Server, store: Store) -> None:
    with Load(store, 4, 120) as load:
        for share in (1, 2, 3):
            until(lambda: load.done() > share * 100 or not load.at_work)  # noqa: B023
            server.restart()
    load.audit(store)


@pytest.mark.slow
def test_a_server_restarted_again_and_again_costs_nothing(server: Server, store: Store) -> None:
    with Load(store, 6, 4000) as load:
        restarts = 0
        while load.at_work:
            time.sleep(1.0)
            server.restart()
            restarts += 1
    load.audit(store)
    assert restarts > 5


def test_a_backend_ended_in_the_middle_of_its_commit(server: Server, store: Store, url: str, clock: FakeClock) -> None:
    """A constraint that is checked at COMMIT takes its time there; the backend is ended meanwhile, and later is not."""
    lease = begin(store, clock)
    schema = url.rpartition("=")[2]
    server.sql(f"""
        CREATE TABLE {schema}.slow (x int);
        INSERT INTO {schema}.slow VALUES (1);
        CREATE FUNCTION {schema}.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM {schema}.slow) THEN PERFORM pg_sleep(60); END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON {schema}.tramai_record DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION {schema}.wait()""")
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(store.commit(lease, change(clock, done(1)))))
    thread.start()
    sleeping = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    for _ in range(2):
        until(lambda: server.sql(sleeping))
        server.sql(f"SELECT pg_terminate_backend(pid) FROM ({sleeping}) AS s")
    server.sql(f"DELETE FROM {schema}.slow; SELECT 1")
    until(lambda: answers or server.sql(f"SELECT pg_terminate_backend(pid) FROM ({sleeping}) AS s") or answers)
    thread.join(PATIENCE)
    assert answers == [2]
    assert (store.get("r1").revision, store.journal("r1")) == (2, (done(1),))


def test_a_call_waits_for_a_server_that_comes_back(server: Server, store: Store, clock: FakeClock) -> None:
    lease = begin(store, clock)
    server.stop()
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.append(store.commit(lease, change(clock, record(1)))))
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    server.start()
    waiting.join(PATIENCE)
    assert answers == [2]


def test_patience_with_a_server_that_stays_away_is_granted_once(
    server: Server, url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(url)
    _, lease = store.create(new_run(), owner="o", holder=HERE, ttl=1.0, now=0.0)
    assert lease is not None
    monkeypatch.setattr(_postgres_connection, "OPENING", 0.2)
    server.stop()
    try:
        waited = []
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable, match=r"the server cannot be reached|the connection to the server"):
                store.commit(lease, change(clock, record(1)))
            waited.append(time.monotonic() - began)
        assert 0.5 < waited[0] < 10
        assert max(waited[1:]) < 0.5
        with pytest.raises(StoreUnavailable):
            store.cancel_requested("r1")
        with pytest.raises(StoreUnavailable, match="the server cannot be reached"):
            open_store(url)
    finally:
        server.start()
    assert store.get("r1").revision == 1
    with pytest.raises(LeaseLost):  # it was away for longer than the lease
        until(lambda: store.commit(lease, Change(now=0.0)) and False)
    store.close()


def test_a_server_that_hangs_is_not_waited_for_in_vain(
    server: Server, url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(url + "&application_name=frozen")
    lease = begin(store, clock)
    store.renew(lease, ttl=60.0, now=0.0)
    pids = [pid for (pid,) in server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'frozen'")]
    assert len(pids) == 2
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        assert store.renew(lease, ttl=3.0, now=0.0).token == lease.token  # over a new connection, within ttl / 3
        assert time.monotonic() - began < 5
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    store.commit(lease, change(clock, record(1)))
    assert store.get("r1").revision == 2
    store.close()


# Runs, by the engine.

_SERVERS: dict[str, Server] = {}


def end_connections() -> int:
    """A step that ends every connection of the server."""
    return len(_SERVERS["it"].sql(OTHERS))


def restart_server() -> str:
    """A step that lets the server crash and recover."""
    _SERVERS["it"].restart()
    return "restarted"


def step(number: int, function: str) -> dict[str, Any]:
    return {"id": f"s{number}", "local": {"call": f"tests.test_postgres_faults:{function}", "with": {}}}


def test_a_run_goes_on_over_broken_connections_and_a_crash_of_the_server(server: Server, store: Store) -> None:
    _SERVERS["it"] = server
    names = [f"n{number}" for number in range(3)]
    steps = [
        {"id": "a", "local": call("count", name=names[0])},
        step(1, "end_connections"),
        {"id": "b", "local": call("count", name=names[1])},
        step(2, "restart_server"),
        {"id": "c", "local": call("count", name=names[2])},
    ]
    outputs = {name: f"${{{{ steps.{name}.output }}}}" for name in "abc"}
    result = engine.run(make(steps, outputs=outputs), {}, store=store, options=engine.Options(run_id="r"))
    assert (result.status, result.outputs) == ("completed", {"a": 1, "b": 1, "c": 1})
    run, lines = store.get("r"), store.journal("r")
    assert [line.path for line in lines if line.mark is Mark.COMPLETED] == ["a", "s1", "b", "s2", "c"]
    assert all(line.attempt == 1 for line in lines)
    assert (run.status, run.fence) == (Status.COMPLETED, 1)


def test_a_server_down_for_longer_than_the_lease_ends_the_work(server: Server, store: Store, tmp_path: Path) -> None:
    slow = {"id": "slow", "shell": f"touch {tmp_path}/began; sleep 60; touch {tmp_path}/ended"}
    steps = [slow, {"id": "never", "shell": f"touch {tmp_path}/never"}]
    stopper = threading.Thread(target=lambda: (until((tmp_path / "began").exists), server.stop()))
    stopper.start()
    began = time.monotonic()
    try:
        result = engine.run(make(steps), {}, store=store, options=engine.Options(run_id="r", lease=1.5))
    finally:
        stopper.join(PATIENCE)
        server.start()
    assert (result.status, result.exit_status) == ("interrupted", 5)
    assert result.error is not None
    assert result.error["type"] == "lease_lost"
    assert time.monotonic() - began < 30
    assert sorted(path.name for path in tmp_path.iterdir()) == ["began"]
    run = store.get("r")
    assert (run.status, run.revision) == (Status.RUNNING, 2)
    until(lambda: store.get("r").lease is not None and claimable(store))


def claimable(store: Store) -> bool:
    try:
        store.claim("r", owner="other", holder=Holder.here(), ttl=5.0, now=0.0)
    except LeaseHeld:
        return False
    return True


# Crowds and stopped clients.


def _claim_all(store: Store, me: str, runs: int) -> list[str]:
    won = []
    for number in range(runs):
        with contextlib.suppress(LeaseHeld):
            store.claim(f"r{number}", owner=me, holder=Holder.here(), ttl=60.0, now=0.0)
            won.append(f"r{number}")
    return won


def test_of_eight_processes_one_claims_each_run(store: Store, url: str, clock: FakeClock) -> None:
    runs = 40
    for number in range(runs):
        store.release(begin(store, clock, f"r{number}"), now=0.0)
    answers = in_processes(functools.partial(open_store, url), _claim_all, [(f"w{n}", runs) for n in range(8)])
    assert {kind for kind, _ in answers} == {"won"}
    winners = {run_id: f"w{n}" for n, (_, won) in enumerate(answers) for run_id in won}
    assert sum(len(won) for _, won in answers) == len(winners) == runs
    for run_id, winner in winners.items():
        run = store.get(run_id)
        assert run.lease is not None
        assert (run.lease.owner, run.fence, run.revision) == (winner, 2, 2)


def _work_on(store: Store, pipe: Connection) -> None:
    clock = FakeClock()
    lease = begin(store, clock)
    pipe.send("began")
    seq = 0
    while not pipe.poll(0):
        seq += 1
        store.commit(lease, change(clock, done(seq, f"p{seq}", value='"' + "x" * 20_000 + '"')))
    pipe.send(seq)


def test_a_stopped_client_holds_no_lock(server: Server, store: Store, url: str) -> None:
    import psycopg

    schema = url.rpartition("=")[2]
    held = "SELECT state FROM pg_stat_activity WHERE application_name = 'worker' AND state LIKE '%in transaction%'"
    with running(functools.partial(open_store, url + "&application_name=worker"), _work_on, ()) as (process, pipe):
        assert pipe.poll(PATIENCE)
        assert pipe.recv() == "began"
        assert process.pid is not None
        with psycopg.connect(server.url, autocommit=True) as other:
            for round_ in range(25):
                until(lambda: store.get("r1").revision > round_ * 3)  # noqa: B023
                os.kill(process.pid, signal.SIGSTOP)
                try:
                    until(lambda: free(other, schema))
                    assert other.execute(held).fetchall() == []
                finally:
                    os.kill(process.pid, signal.SIGCONT)
        pipe.send("enough")
        assert pipe.poll(PATIENCE)
        seq = pipe.recv()
    assert (store.get("r1").revision, len(store.journal("r1"))) == (seq + 1, seq)


def free(connection: Any, schema: str) -> bool:
    """Whether all rows of the run can be had at once; a statement that was already sent may still be at work."""
    import psycopg

    try:
        for table in ("head", "lease", "run"):
            connection.execute(f"SELECT FROM {schema}.tramai_{table} FOR UPDATE NOWAIT")
    except psycopg.errors.LockNotAvailable:
        return False
    return True


def _hold_and_write(store: Store, pipe: Connection) -> None:
    clock = FakeClock()
    _, lease = store.create(new_run(), owner="first", holder=Holder.here(), ttl=1.0, now=0.0)
    assert lease is not None
    pipe.send("held")
    pipe.recv()
    try:
        pipe.send(store.commit(lease, change(clock, done(1, value='"late"'))))
    except LeaseLost as error:
        pipe.send(error.message)


def test_who_was_stopped_past_his_lease_cannot_write(store: Store, url: str, clock: FakeClock) -> None:
    with running(functools.partial(open_store, url), _hold_and_write, ()) as (process, pipe):
        assert pipe.poll(PATIENCE)
        assert pipe.recv() == "held"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: _took_over(store))
        lease = store.get("r1").lease
        assert lease is not None
        store.commit(lease, change(clock, done(1, value='"new"', fence=2)))
        os.kill(process.pid, signal.SIGCONT)
        pipe.send("go on")
        assert pipe.poll(PATIENCE)
        assert pipe.recv() == "Workflow lease is no longer active"
    assert [line.value for line in store.journal("r1")] == ['"new"']


def _took_over(store: Store) -> bool:
    try:
        store.claim("r1", owner="second", holder=Holder.here(), ttl=60.0, now=0.0)
    except LeaseHeld:
        return False
    return True


# What people may read.


def words_of(error: BaseException) -> str:
    """All that a person or a log can see of an error."""
    hint = getattr(error, "hint", None)
    return "".join(traceback.format_exception(error)) + f"{error!r} {hint} {getattr(error, 'details', '')}"


def test_no_failure_tells_a_password_or_a_statement(
    server: Server, url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_postgres_connection, "OPENING", 0.2)
    server.sql(f"DROP ROLE IF EXISTS locked; CREATE ROLE locked LOGIN PASSWORD '{CANARY}'; SELECT 1")
    secret = url.replace("tramai@", f"locked:{CANARY}@")
    wrong = [
        secret.replace(f"{CANARY}@", f"{CANARY}x@"),  # the wrong password
        secret,  # no right to make a schema
        secret.replace("/postgres?", "/nowhere?"),
        secret.replace(f":{server.port}/", ":1/"),
        secret + f"&sslrootcert={CANARY}&sslmode=verify-full",
        secret.replace("127.0.0.1", f"{CANARY}.invalid"),
    ]
    found = []
    for place in wrong:
        with pytest.raises(TramaiError) as caught:
            open_store(place)
        found.append(caught.value.message.removeprefix("the store cannot be used: "))
        assert f"locked:{CANARY}" not in words_of(caught.value)
        assert CANARY not in f"{caught.value} {caught.value.hint} {caught.value.details}"
    assert found == [
        "the server refused the login",
        "the user may not do this there",
        "there is no such database",
        "the server cannot be reached",
        "no secure connection could be made",
        "the server cannot be reached",
    ]


@pytest.mark.parametrize(
    ("meddling", "message"),
    [
        ("UPDATE {0}record SET value = '7' WHERE seq = 3", "record 3 of run r1 does not match its checksum"),
        ("UPDATE {0}record SET body = replace(body, 'shell', 'local') WHERE seq = 2", "record 2 of run r1 does not"),
        ("UPDATE {0}record SET path = 'x' WHERE seq = 2", "record 2 of run r1 is not the one that was written there"),
        ("UPDATE {0}record SET mark = 'failed' WHERE seq = 2", "record 2 of run r1 is not the one that was written"),
        ("UPDATE {0}record SET seq = 9 WHERE seq = 3", "record 3 of run r1 is missing"),
        ("DELETE FROM {0}record WHERE seq = 3", "record 3 of run r1 is missing"),
        ("DELETE FROM {0}record WHERE seq = 5", "run r1 has 4 of its 5 records"),
        ("UPDATE {0}head SET last_seq = 4", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}head SET body = body || ' '", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}head SET fence = 0", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}head SET revision = 9", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}head SET token = 'x'", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}lease SET owner = 'x'", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}lease SET fence = 2", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}lease SET expires = NULL", "the header of run r1 does not match its checksum"),
        ("DELETE FROM {0}lease", "the header of run r1 does not match its checksum"),
        ("DELETE FROM {0}head", "half of the header of run r1 is missing"),
        ("UPDATE {0}run SET status = 'failed'", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}run SET body = replace(body, 'wf', 'WF')", "the header of run r1 does not match its checksum"),
        ("UPDATE {0}note SET body = replace(body, 'seen', 'SEEN')", "event 1 of run r1 is missing or damaged"),
        ("DELETE FROM {0}note", "run r1 has 0 of its 1 events"),
        ("DELETE FROM {0}blob", "a large value of run r1 is missing or damaged"),
        ("UPDATE {0}blob SET data = '\\x00'", "a large value of run r1 is missing or damaged"),
    ],
)
def test_a_meddled_row_is_told_and_never_believed(
    server: Server, store: Store, url: str, clock: FakeClock, meddling: str, message: str
) -> None:
    big = '"' + "B" * 70_000 + '"'
    lease = begin(store, clock)
    begin(store, clock, "r2")
    lines = [done(seq, f"p{seq}", value=f'"{seq}"') for seq in range(1, 5)]
    store.commit(lease, change(clock, *lines, done(5, "big", value=big), notes=(NOTE,)))
    sound = everything(store, "r2")
    table = f"{url.rpartition('=')[2]}.tramai_"
    scope = "" if "blob" in meddling else f" run = (SELECT id FROM {table}run WHERE run_id = 'r1')"
    if "{0}run" in meddling:
        scope = " run_id = 'r1'"
    joint = " AND" if "WHERE" in meddling else " WHERE"
    server.sql(meddling.replace("{0}", table) + (joint + scope if scope else ""))
    with pytest.raises(CheckpointCorrupt, match=message) as caught:
        everything(store)
    assert caught.value.exit_status == 7
    assert everything(store, "r2") == sound
    runs = {run.run_id for run in store.page(limit=9)[0]} | {fault["run_id"] for fault in store.faults()}
    assert runs == {"r1", "r2"}


def test_tables_that_vanish_are_told(server: Server, store: Store, url: str, clock: FakeClock) -> None:
    lease = begin(store, clock)
    server.sql(f"DROP SCHEMA {url.rpartition('=')[2]} CASCADE")
    for work in (lambda: store.get("r1"), lambda: store.commit(lease, change(clock, record(1)))):
        with pytest.raises(StoreUnavailable, match="its tables are not there"):
            work()


def test_a_full_disk_and_a_lock_are_told_in_our_words() -> None:
    from tramai.stores import _postgres_failures

    for state in ("53100", "55P03", "57014", "99999", ""):
        error = _postgres_failures.public(state)
        assert isinstance(error, StoreUnavailable)
    assert isinstance(_postgres_failures.public("XX001"), CheckpointCorrupt)


def test_a_row_that_somebody_keeps_locked_is_busy(
    server: Server, store: Store, url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    quick = _postgres_connection._SESSION.replace("'lock_timeout', '10s'", "'lock_timeout', '100ms'")
    monkeypatch.setattr(_postgres_connection, "_SESSION", quick)
    other = open_store(url)
    lease = begin(other, clock)
    with psycopg.connect(server.url) as locker:
        locker.execute(f"SELECT FROM {url.rpartition('=')[2]}.tramai_head FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="busy"):
            other.commit(lease, change(clock, record(1)))
        locker.rollback()
    assert other.commit(lease, change(clock, record(1))) == 2
    other.close()
