"""What the SQLite store does with a damaged file, a place that cannot be written, a full disk, and crowds."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tramai.errors import CheckpointCorrupt, NotFound, StoreUnavailable, TramaiError
from tramai.portable import portable
from tramai.store import Note, Store
from tramai.stores import _sqlite_file, open_store
from tramai.testing._at_once import in_processes
from tramai.testing._store_given import begin, change, claim, done, everything, record
from tramai.testing.clock import FakeClock

RUNS = tuple(f"run-{number}" for number in range(6))
CANARY = "s3cret-canary"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound file with six runs, small and large values, events and labels."""
    path, clock = tmp_path_factory.mktemp("golden") / "runs.db", FakeClock()
    store = open_store(f"sqlite:{path}")
    for number, run_id in enumerate(RUNS):
        inputs = '"' + "i" * 1500 + f'{number}"'
        lease = begin(store, clock, run_id, labels=("a",), created=float(number), inputs=inputs)
        lines = [done(seq, f"p{seq}", value=f'"{CANARY}{seq}"') for seq in range(1, 9)]
        store.commit(lease, change(clock, *lines, notes=(Note(at=1.0, type="t", comment=CANARY),)))
    store.commit(lease, change(clock, done(9, "big", value='"' + "B" * 70_000 + '"')))
    store.close()
    return path


@pytest.fixture(scope="module")
def truth(golden: Path) -> dict[str, tuple[object, ...]]:
    """What the sound file says of each run."""
    store = open_store(f"sqlite:{golden}")
    found = {run_id: everything(store, run_id) for run_id in RUNS}
    store.close()
    return found


def look(path: Path, truth: dict[str, tuple[object, ...]]) -> dict[str, TramaiError]:
    """Read everything of a damaged file: what is told must be true, the rest an error of ours that tells no secret."""
    errors: dict[str, TramaiError] = {}
    try:
        store = open_store(f"sqlite:{path}")
    except TramaiError as error:
        return dict.fromkeys(RUNS, error)
    with contextlib.closing(store):
        for run_id in RUNS:
            try:
                assert everything(store, run_id) == truth[run_id]
            except TramaiError as error:
                errors[run_id] = error
        try:
            for run in store.page(limit=9)[0]:
                assert run == truth[run.run_id][0]
            for fault in store.faults():
                assert fault["what"]
        except TramaiError as error:
            errors["page"] = error
    for error in errors.values():
        assert CANARY not in str(error)
        assert "SELECT" not in str(error)
    return errors


def damaged(golden: Path, folder: Path, data: bytes) -> Path:
    path = folder / "damaged.db"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("part", range(8))
def test_a_flipped_bit_is_never_believed(
    golden: Path, truth: dict[str, tuple[object, ...]], tmp_path: Path, part: int
) -> None:
    sound = golden.read_bytes()
    found = 0
    for offset in range(part * 101, len(sound), 8 * 101 * 4):
        data = bytearray(sound)
        data[offset] ^= 1 << (offset % 8)
        found += bool(look(damaged(golden, tmp_path, bytes(data)), truth))
        assert (tmp_path / "damaged.db").read_bytes() == bytes(data)
    assert found


@pytest.mark.slow
def test_no_flipped_byte_is_ever_believed(golden: Path, truth: dict[str, tuple[object, ...]], tmp_path: Path) -> None:
    sound = golden.read_bytes()
    for offset in range(len(sound)):
        data = bytearray(sound)
        data[offset] ^= 0x55
        look(damaged(golden, tmp_path, bytes(data)), truth)


@pytest.mark.parametrize("offset", range(100))
def test_a_damaged_head_of_the_file_is_refused_or_harmless(
    golden: Path, truth: dict[str, tuple[object, ...]], tmp_path: Path, offset: int
) -> None:
    data = bytearray(golden.read_bytes())
    data[offset] ^= 0xFF
    look(damaged(golden, tmp_path, bytes(data)), truth)


@pytest.mark.parametrize("percent", [0, 1, 5, 25, 50, 75, 95, 99])
def test_a_file_cut_short_is_refused_and_left_as_it_is(
    golden: Path, truth: dict[str, tuple[object, ...]], tmp_path: Path, percent: int
) -> None:
    sound = golden.read_bytes()
    path = damaged(golden, tmp_path, sound[: len(sound) * percent // 100])
    errors = look(path, truth)
    assert errors
    assert path.read_bytes() == sound[: len(sound) * percent // 100]
    assert all(error.exit_status == 7 or isinstance(error, NotFound) for error in errors.values())


def test_an_empty_file_is_no_fresh_store(tmp_path: Path, clock: FakeClock) -> None:
    path = damaged(tmp_path, tmp_path, b"")
    with pytest.raises(StoreUnavailable, match="is empty") as caught:
        open_store(f"sqlite:{path}")
    assert caught.value.hint == "it was cut off, or never was a store; remove it to start afresh"
    assert path.read_bytes() == b""


@pytest.mark.parametrize("content", [b"name: hello\n" * 400, b"\x00" * 8192, b"SQLite format 3\x00", b"x"], ids=len)
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = damaged(tmp_path, tmp_path, content)
    with pytest.raises((StoreUnavailable, CheckpointCorrupt)) as caught:
        open_store(f"sqlite:{path}")
    assert caught.value.exit_status == 7
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE run (id)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="is a database of another program"):
        open_store(f"sqlite:{path}")
    assert path.read_bytes() == before


def test_one_bad_header_does_not_hide_the_others(
    golden: Path, truth: dict[str, tuple[object, ...]], tmp_path: Path
) -> None:
    path = damaged(golden, tmp_path, golden.read_bytes())
    meddler = sqlite3.connect(path)
    meddler.execute("UPDATE head SET body = replace(body, '\"revision\":2', '\"revision\":9') WHERE run = 3")
    meddler.execute("UPDATE run SET status = 'failed' WHERE id = 4")
    meddler.commit()
    meddler.close()
    store = open_store(f"sqlite:{path}")
    page, cursor = store.page(limit=4)
    assert [run.run_id for run in page] == ["run-5", "run-4"]
    assert {fault["run_id"]: fault["what"] for fault in store.faults()} == {
        run_id: f"corrupt checkpoint: the header of run {run_id} does not match its checksum"
        for run_id in ("run-3", "run-2")
    }
    assert [run.run_id for run in store.page(limit=4, after=cursor)[0]] == ["run-1", "run-0"]
    assert store.faults() == ()
    with pytest.raises(CheckpointCorrupt, match="header of run run-2"):
        store.get("run-2")
    assert everything(store, "run-1") == truth["run-1"]
    store.close()


def test_a_run_that_lost_half_its_header_is_damaged_not_unknown(golden: Path, tmp_path: Path) -> None:
    path = damaged(golden, tmp_path, golden.read_bytes())
    meddler = sqlite3.connect(path)
    meddler.execute("DELETE FROM head WHERE run = 2")
    meddler.commit()
    meddler.close()
    store = open_store(f"sqlite:{path}")
    for ask in (store.get, store.journal, store.notes, store.cancel_requested):
        with pytest.raises(CheckpointCorrupt, match="the header of run run-1 does not match"):
            ask("run-1")
    assert len(store.page(limit=9)[0]) == 5
    assert [fault["run_id"] for fault in store.faults()] == ["run-1"]
    store.close()


@pytest.mark.parametrize(
    ("meddling", "message"),
    [
        (
            "UPDATE record SET value = '7' WHERE run = 2 AND path = 'p3'",
            "record 3 of run run-1 does not match its checksum",
        ),
        ("DELETE FROM record WHERE run = 2 AND path = 'p3'", "record 3 of run run-1 is missing"),
        ("DELETE FROM record WHERE run = 2 AND path = 'p8'", "run run-1 has 7 of its 8 records"),
        ("UPDATE record SET run = 2, path = 'x' WHERE run = 1 AND path = 'p1'", "does not match its checksum"),
        ("UPDATE head SET last_seq = 7 WHERE run = 2", "the header of run run-1 does not match its checksum"),
    ],
)
def test_a_meddled_journal_is_told_by_run_and_seq(golden: Path, tmp_path: Path, meddling: str, message: str) -> None:
    path = damaged(golden, tmp_path, golden.read_bytes())
    meddler = sqlite3.connect(path)
    assert meddler.execute(meddling).rowcount == 1
    meddler.commit()
    meddler.close()
    store = open_store(f"sqlite:{path}")
    with pytest.raises(CheckpointCorrupt, match=rf"^corrupt checkpoint: .*{message} \(ref \w+\)$"):
        store.journal("run-1")
    store.close()


@pytest.mark.parametrize("meddling", ["DELETE FROM blob", "UPDATE blob SET data = 'other'"])
def test_a_large_value_must_be_what_it_was(golden: Path, tmp_path: Path, meddling: str) -> None:
    path = damaged(golden, tmp_path, golden.read_bytes())
    meddler = sqlite3.connect(path)
    meddler.execute(meddling)
    meddler.commit()
    meddler.close()
    store = open_store(f"sqlite:{path}")
    with pytest.raises(CheckpointCorrupt, match="a large value of run run-5 is missing or damaged"):
        store.journal("run-5")
    value = '"' + "B" * 70_000 + '"'
    clock = FakeClock()
    store.commit(begin(store, clock, "again"), change(clock, done(1, value=value)))
    assert store.journal("again")[0].value == value
    store.close()


def test_a_damaged_header_is_not_written_over(golden: Path, tmp_path: Path, clock: FakeClock) -> None:
    path = damaged(golden, tmp_path, golden.read_bytes())
    store = open_store(f"sqlite:{path}")
    lease = store.get("run-0").lease
    assert lease is not None
    meddler = sqlite3.connect(path)
    meddler.execute("UPDATE head SET body = replace(body, '\"revision\":2', '\"revision\":9') WHERE run = 1")
    meddler.commit()
    meddler.close()
    with pytest.raises(CheckpointCorrupt):
        store.commit(lease, change(clock, record(9)))
    store.close()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a folder, not a file"):
        open_store(f"sqlite:{tmp_path}")


@pytest.mark.parametrize("where", ["file/in/file.db", "file/runs.db"])
def test_a_path_through_a_file_is_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable) as caught:
        open_store(f"sqlite:{tmp_path}/{where}")
    assert caught.value.exit_status == 7


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder, and an effective user whom permissions bind: root reads and writes what it likes."""
    for name in ("sqlite_utils", "tramai.stores._sqlite_reading", "tramai.portable"):
        importlib.import_module(name)  # that user may not be able to reach this Python
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        if root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            os.listdir(folder)
        except PermissionError:
            pytest.skip("another user cannot reach the folder for temporary files: permissions cannot be tried")
        yield folder
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_a_folder_that_may_not_be_written_is_refused(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    for where in ("runs.db", "new/runs.db"):
        with pytest.raises(StoreUnavailable) as caught:
            open_store(f"sqlite:{unprivileged}/{where}")
        assert "Permission denied" in str(caught.value)


def test_a_file_that_may_not_be_read_is_refused(unprivileged: Path) -> None:
    path = unprivileged / "runs.db"
    open_store(f"sqlite:{path}").close()
    path.chmod(0)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        open_store(f"sqlite:{path}")


def test_a_file_that_may_not_be_written_can_only_be_looked_at(unprivileged: Path, clock: FakeClock) -> None:
    path = unprivileged / "runs.db"
    store = open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    store.close()
    path.chmod(0o400)
    store = open_store(f"sqlite:{path}")
    assert store.get("r1").run_id == "r1"
    with pytest.raises(StoreUnavailable, match="it is not writable"):
        store.commit(lease, change(clock, record(1)))
    store.close()


def looked_at(path: Path, *runs: str) -> Store:
    store = open_store(f"sqlite:{path}", create=False)
    assert [run.run_id for run in store.page(limit=9)[0]] == sorted(runs, reverse=True)
    for run_id in runs:
        assert len(store.journal(run_id)) == 1
    return store


def test_what_may_not_be_written_at_all_can_be_looked_at(unprivileged: Path, clock: FakeClock) -> None:
    """Neither the file nor its folder: no log, no lock can be made there."""
    path = unprivileged / "runs.db"
    store = open_store(f"sqlite:{path}")
    lease = begin(store, clock)
    store.commit(lease, change(clock, record(1)))
    store.close()
    path.chmod(0o400)
    (unprivileged / "runs.db.lock").unlink()
    unprivileged.chmod(0o500)
    before = path.read_bytes()
    store = looked_at(path, "r1")
    assert portable(store, "info").info().runs == {"running": 1}
    assert list(portable(store, "info").verify()) == []  # type: ignore[attr-defined]
    clock.advance(1000.0)
    for write in (lambda: store.commit(lease, change(clock, record(2))), lambda: claim(store, clock)):
        with pytest.raises(StoreUnavailable, match="it is not writable"):
            write()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.get("r1")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        open_store(f"sqlite:{path}")
    assert (path.read_bytes(), os.listdir(unprivileged)) == (before, ["runs.db"])


def test_who_only_looks_sees_what_others_write_meanwhile(unprivileged: Path, clock: FakeClock) -> None:
    path = unprivileged / "runs.db"
    writer = open_store(f"sqlite:{path}")
    writer.commit(begin(writer, clock), change(clock, record(1)))
    (unprivileged / "runs.db.lock").chmod(0)
    unprivileged.chmod(0o500)
    store = looked_at(path, "r1")  # while the writer's log is there
    writer.commit(begin(writer, clock, "r2"), change(clock, record(1)))
    assert [run.run_id for run in store.page(limit=9)[0]] == ["r2", "r1"]
    unprivileged.chmod(0o700)
    writer.close()
    assert len(store.page(limit=9)[0]) == 2  # the log is gone
    (unprivileged / "runs.db.lock").chmod(0o600)
    writer = open_store(f"sqlite:{path}")
    writer.commit(begin(writer, clock, "r3"), change(clock, record(1)))
    writer.close()
    assert store.get("r3").run_id == "r3"
    store.close()


@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("application_id=7", "a database of another program"),
        ("user_version=0", "the older format 0"),
        ("user_version=9", "the store has format 9"),
    ],
)
def test_who_only_looks_refuses_what_is_no_store_of_this_format(unprivileged: Path, pragma: str, said: str) -> None:
    path = unprivileged / "runs.db"
    open_store(f"sqlite:{path}").close()
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA {pragma}")
    raw.close()
    (unprivileged / "runs.db.lock").unlink()
    unprivileged.chmod(0o500)
    with pytest.raises(TramaiError, match=said):
        open_store(f"sqlite:{path}", create=False)


FULL = """
import resource, signal, sys
from tramai.errors import StoreUnavailable
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done
from tramai.testing.clock import FakeClock
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store, clock = open_store("sqlite:" + sys.argv[1]), FakeClock()
lease = begin(store, clock)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
seq = 0
try:
    while True:
        store.commit(lease, change(clock, done(seq + 1, f"p{seq + 1}", value='"' + "x" * 20_000 + '"')))
        seq += 1
except StoreUnavailable as error:
    print(seq, error.message)
"""


def test_a_file_that_may_not_grow_keeps_what_was_acknowledged(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "runs.db"
    child = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    count, message = child.stdout.strip().split(" ", 1)
    assert int(count) > 3
    assert message in (
        "the store cannot be used: no space is left",
        "the store cannot be used: the disk failed to read or write",
    )
    store = open_store(f"sqlite:{path}")
    assert len(store.journal("r1")) == int(count)
    lease = store.get("r1").lease
    assert lease is not None
    store.commit(lease, change(clock, done(int(count) + 1, "room again")))
    store.close()


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("nfs", True),
        ("nfs4", True),
        ("cifs", True),
        ("fuse.sshfs", True),
        ("fuse.mount-s3", True),
        ("beegfs", True),
        ("ext4", False),
        ("tmpfs", False),
    ],
)
def test_a_network_file_system_is_told_by_its_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, refused: bool
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        f"36 22 0:42 / /mnt/share rw,relatime shared:9 master:1 - {kind} server:/export rw\n"
    )
    stat = os.stat(tmp_path)
    fake = os.stat_result((stat.st_mode, stat.st_ino, os.makedev(0, 42), *tuple(stat)[3:]))
    monkeypatch.setattr(os, "stat", lambda *_: fake)
    assert _sqlite_file.network_kind("/mnt/share", str(mounts)) == (kind if refused else None)


def test_a_store_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_file, "network_kind", lambda folder: "nfs4")
    with pytest.raises(StoreUnavailable, match=r"is on a network file system \(nfs4\)") as caught:
        open_store(f"sqlite:{tmp_path}/runs.db")
    assert caught.value.hint
    assert os.listdir(tmp_path) == []


def commits(store: Store, run_id: str, now: float) -> int:
    clock = FakeClock(now)
    lease = begin(store, clock, run_id)
    for seq in range(1, 21):
        revision = store.commit(lease, change(clock, done(seq, f"p{seq}", value=f'"{run_id}"')))
    return revision


def test_eight_processes_write_beside_a_reader_and_nobody_is_locked_out(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:{tmp_path}/runs.db"
    store = open_store(url)
    begin(store, clock, "before")
    reader = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM run").fetchone() == (1,)
    answers = in_processes(functools.partial(open_store, url), commits, [(f"r{n}", clock.now()) for n in range(8)])
    assert answers == [("won", 21)] * 8
    assert reader.execute("SELECT count(*) FROM run").fetchone() == (1,)
    reader.close()
    for number in range(8):
        assert [line.value for line in store.journal(f"r{number}")] == [f'"r{number}"'] * 20
    store.close()
    check = sqlite3.connect(tmp_path / "runs.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


KILLED = """
import sys
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done
from tramai.testing.clock import FakeClock
store, clock = open_store("sqlite:" + sys.argv[1]), FakeClock()
lease = begin(store, clock)
for seq in range(1, 10_000):
    store.commit(lease, change(clock, done(seq, f"p{seq}", value='"' + "x" * 3000 + '"')))
    print(seq, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 60])
def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path, after: int) -> None:
    path = tmp_path / "runs.db"
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        told = [int(child.stdout.readline()) for _ in range(after)]
        child.kill()
        told += [int(line) for line in child.stdout if line.endswith("\n")]
    child.wait(60)
    store = open_store(f"sqlite:{path}")
    seqs = [line.seq for line in store.journal("r1")]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) in (told[-1], told[-1] + 1)
    assert store.get("r1").revision == len(seqs) + 1
    store.close()
