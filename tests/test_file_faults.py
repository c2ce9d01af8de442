"""What the stores of plain files do with damage, links, a full or failing disk, and writers that are killed."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tramai.errors import CheckpointCorrupt, NotFound, StoreTooNew, StoreUnavailable, TramaiError
from tramai.portable import portable
from tramai.store import Note, Status, Store
from tramai.stores import _files, open_store
from tramai.testing._at_once import in_processes
from tramai.testing._store_given import HERE, begin, change, claim, done, everything, expire, new_run, record
from tramai.testing.clock import FakeClock

ROOT = Path(__file__).parent.parent
KINDS = ("file", "markdown")
MAIN = {"file": "journal", "markdown": "checkpoint.md"}
CANARY = "s3cret-canary"

Truth = dict[str, tuple[object, ...]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def fill(url: str) -> Truth:
    """Two runs, small and large values, events, a takeover; what the store says of them."""
    clock = FakeClock()
    store = open_store(url)
    for run_id in ("bad", "good"):
        lease = begin(store, clock, run_id, start_key=f"key of {run_id}", inputs=f'"{CANARY}"')
        for seq in range(1, 4):
            store.commit(lease, change(clock, done(seq, f"p{seq}", value=f'"{CANARY}{seq}"'), step=f"p{seq}"))
        expire(clock)
        _, lease = claim(store, clock, run_id)
        big = done(4, "big", value='"' + "B" * 70_000 + '"') if url.startswith("file") else done(4, "big", value="[4]")
        store.commit(lease, change(clock, big, notes=(Note(at=1.0, type="t", comment=CANARY),)))
        store.commit(lease, change(clock, done(5, "p5"), status=Status.FAILED, error='{"e":1}', release=True))
    truth = {run_id: everything(store, run_id) for run_id in ("bad", "good")}
    store.close()
    return truth


@pytest.fixture(scope="module", params=KINDS)
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Truth]:
    """A sound store: its kind, its folder, its truth. Who damages it mends it again."""
    folder = tmp_path_factory.mktemp(request.param) / "runs"
    return request.param, folder, fill(f"{request.param}:{folder}")


@contextlib.contextmanager
def damaged(path: Path, data: bytes) -> Iterator[None]:
    """Put other bytes into a file meanwhile."""
    sound = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
        assert path.read_bytes() == data, "looking changed the file"
    finally:
        path.write_bytes(sound)


def look(kind: str, folder: Path, truth: Truth) -> TramaiError | None:
    """Read everything: of the good run all must be true, of the bad one what is told, or an error of ours names it."""
    store = open_store(f"{kind}:{folder}")
    error: TramaiError | None = None
    with contextlib.closing(store):
        assert everything(store, "good") == truth["good"]
        for place, ask in enumerate((store.get, store.journal, store.notes)):
            try:
                assert ask("bad") == truth["bad"][place]
            except (CheckpointCorrupt, StoreTooNew) as caught:
                error = caught
        with contextlib.suppress(CheckpointCorrupt, StoreTooNew):
            assert not store.cancel_requested("bad")
        shown = {run.run_id: run for run in store.page(limit=9)[0]}
        faults = {fault["run_id"]: fault["what"] for fault in store.faults()}
        assert shown.pop("good") == truth["good"][0]
        assert shown in ({}, {"bad": truth["bad"][0]})
        assert shown or faults
        assert set(faults) <= {"bad"}
    if error is not None:
        assert error.exit_status == 7
        assert CANARY not in f"{error} {error.hint}"
        if isinstance(error, CheckpointCorrupt):
            assert "bad" in error.message
    return error


def offsets(size: int, count: int) -> list[int]:
    """So many places of a file, the first and the last ones among them."""
    step = max(1, size // count)
    return sorted({*range(0, size, step), *range(min(size, 12)), *range(max(0, size - 12), size)})


def sweep_cuts(golden: tuple[str, Path, Truth], count: int) -> None:
    kind, folder, truth = golden
    main = folder / "bad" / MAIN[kind]
    sound = main.read_bytes()
    for length in offsets(len(sound), count):
        with damaged(main, sound[:length]):
            error = look(kind, folder, truth)
            harmless = kind == "markdown" and length == len(sound) - 1  # the last line end
            assert error is not None or harmless, f"cut to {length} of {len(sound)} and believed"


def sweep_flips(golden: tuple[str, Path, Truth], count: int, *, every: bool = False) -> None:
    kind, folder, truth = golden
    for name in {"file": ("journal", "head"), "markdown": ("checkpoint.md",)}[kind]:
        path = folder / "bad" / name
        sound = path.read_bytes()
        for offset in offsets(len(sound), count):
            for bit in (1 << (offset % 8), 0x20, 0xFF) if every else (1 << (offset % 8),):
                data = bytearray(sound)
                data[offset] ^= bit
                with damaged(path, bytes(data)):
                    error = look(kind, folder, truth)
                    assert error is not None or name == "head", f"{name} flipped at {offset} and believed"


def test_a_file_cut_short_is_never_believed(golden: tuple[str, Path, Truth]) -> None:
    sweep_cuts(golden, 30)


def test_a_flipped_byte_is_never_believed(golden: tuple[str, Path, Truth]) -> None:
    sweep_flips(golden, 40)


@pytest.mark.slow
def test_a_file_cut_at_any_byte_is_never_believed(golden: tuple[str, Path, Truth]) -> None:
    sweep_cuts(golden, 1 << 30)


@pytest.mark.slow
def test_no_byte_can_be_flipped_unseen(golden: tuple[str, Path, Truth]) -> None:
    sweep_flips(golden, 1 << 30, every=True)


CONFLICT = b"<<<<<<< HEAD\n%s=======\n%s>>>>>>> theirs\n"
DAMAGE = {
    "empty": lambda data: b"",
    "zeros": lambda data: b"\0" * len(data),
    "a zero block": lambda data: data[:200] + b"\0" * 100 + data[300:],
    "zeros behind": lambda data: data + b"\0" * 512 + b"\n",
    "junk behind": lambda data: data + b"junk\nmore junk\n",
    "one line of junk": lambda data: data + b"junk\n",
    "junk in front": lambda data: b"junk\n" + data,
    "twice": lambda data: data + data,
    "its last line again": lambda data: data + data.splitlines(keepends=True)[-1],
    "its lines turned round": lambda data: b"".join(reversed(data.splitlines(keepends=True))),
    "a line left out": lambda data: b"".join(line for n, line in enumerate(data.splitlines(keepends=True)) if n != 3),
    "conflict markers": lambda data: CONFLICT % (data, data),
    "a conflict at the end": lambda data: data + CONFLICT % (b"a\n", b"b\n"),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "another program's": lambda data: os.urandom(len(data)),
}  # fmt: skip


@pytest.mark.parametrize("how", DAMAGE)
def test_any_damage_is_told_and_nothing_is_written(golden: tuple[str, Path, Truth], clock: FakeClock, how: str) -> None:
    kind, folder, truth = golden
    main = folder / "bad" / MAIN[kind]
    data = DAMAGE[how](main.read_bytes())
    with damaged(main, data):
        error = look(kind, folder, truth)
        if how == "zeros behind" and kind == "file":
            assert error is None  # as a write that was broken off leaves it
            return
        assert error is not None
        store = open_store(f"{kind}:{folder}")
        clock.advance(1e6)
        for write in (
            lambda: claim(store, clock, "bad"),
            lambda: store.amend("bad", revision=7, change=change(clock, status=Status.READY)),
            lambda: store.request_cancel("bad", Note(at=1.0, type="cancel"), now=clock.now()),
        ):
            with pytest.raises((CheckpointCorrupt, StoreTooNew)):
                write()
        assert started(store, "key of bad") in ("bad", "refused")
        assert started(store, "key of good") == "good"
        store.close()


def started(store: Store, key: str) -> str:
    try:
        run, _ = store.create(new_run("other", start_key=key), owner="a", holder=HERE, ttl=9.0, now=1.0)
    except (CheckpointCorrupt, StoreTooNew):
        return "refused"
    return run.run_id


def test_a_missing_file_is_a_fault_and_no_fresh_start(golden: tuple[str, Path, Truth], clock: FakeClock) -> None:
    kind, folder, truth = golden
    main = folder / "bad" / MAIN[kind]
    sound = main.read_bytes()
    main.unlink()
    try:
        error = look(kind, folder, truth)
        assert error is not None
        assert "is missing" in error.message
        store = open_store(f"{kind}:{folder}")
        with pytest.raises(TramaiError, match="run bad already exists"):
            begin(store, clock, "bad")
        store.close()
    finally:
        main.write_bytes(sound)
        main.chmod(0o600)
    assert look(kind, folder, truth) is None


def test_a_run_in_the_folder_of_another_is_not_taken_for_it(golden: tuple[str, Path, Truth]) -> None:
    kind, folder, _ = golden
    shutil.copytree(folder / "good", folder / "copy")
    try:
        store = open_store(f"{kind}:{folder}")
        with pytest.raises(CheckpointCorrupt, match="another run"):
            store.get("copy")
        assert sorted(run.run_id for run in store.page(limit=9)[0]) == ["bad", "good"]
        assert [fault["run_id"] for fault in store.faults()] == ["copy"]
        store.close()
    finally:
        shutil.rmtree(folder / "copy")


# A write that was broken off.


def test_a_torn_last_entry_is_cut_off_and_the_cut_is_noted(tmp_path: Path) -> None:
    truth = fill(f"file:{tmp_path}/runs")
    journal = tmp_path / "runs" / "bad" / "journal"
    sound = journal.read_bytes()
    last = sound.splitlines(keepends=True)[-1]
    for torn in (last[:1], last[:40], last[:80], last[:-1], b"\0" * 300, last[:100] + b"\0" * 50 + last[150:]):
        journal.write_bytes(sound + torn)
        clock = FakeClock()
        clock.advance(1e6)
        store = open_store(f"file:{tmp_path}/runs")
        assert everything(store, "bad") == truth["bad"]
        assert store.page(limit=9)[0]
        assert store.faults() == ()
        assert journal.read_bytes() == sound + torn, "looking changed the file"
        run, lease = claim(store, clock, "bad")
        assert run.revision == 8
        store.commit(lease, change(clock, done(6, "p6")))
        cut = store.notes("bad")[-1]
        assert (cut.type, cut.data) == ("journal.cut", f'{{"bytes":{len(torn)}}}')
        assert [line.seq for line in store.journal("bad")] == [1, 2, 3, 4, 5, 6]
        assert journal.read_bytes().startswith(sound)
        store.close()
        journal.write_bytes(sound)
        (journal.parent / "head").unlink()  # it has seen more than the journal that was put back


@pytest.mark.parametrize("count", [40, pytest.param(1 << 30, marks=pytest.mark.slow)])
def test_a_power_cut_leaves_what_was_written_before(tmp_path: Path, count: int) -> None:
    """Without a head that bears witness, a journal cut anywhere is the run as it once was, or refused; never else."""
    fill(f"file:{tmp_path}/runs")
    journal = tmp_path / "runs" / "bad" / "journal"
    (journal.parent / "head").unlink()
    sound = journal.read_bytes()
    ends = [place + 1 for place, byte in enumerate(sound) if byte == 10]
    for length in offsets(len(sound), count):
        journal.write_bytes(sound[:length])
        store = open_store(f"file:{tmp_path}/runs")
        whole = sum(end <= length for end in ends) - 1
        if whole < 1:
            with pytest.raises(CheckpointCorrupt):
                store.get("bad")
        else:
            assert store.get("bad").revision == whole
            clock = FakeClock()
            clock.advance(1e6)
            assert claim(store, clock, "bad")[1].fence > 0
            assert len(store.journal("bad")) == max(0, min(whole - 1, 3)) + max(0, whole - 5)
            types = [note.type for note in store.notes("bad")]
            assert ("journal.cut" in types) == (length not in ends)
        store.close()
        (journal.parent / "head").unlink(missing_ok=True)


def test_a_head_behind_its_journal_is_caught_up_with(tmp_path: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{tmp_path}/runs")
    lease = begin(store, clock)
    heads = [(tmp_path / "runs" / "r1" / "head").read_bytes()]
    for seq in range(1, 6):
        store.commit(lease, change(clock, done(seq, f"p{seq}"), outputs=f'"{"o" * 2000}{seq}"'))
        heads.append((tmp_path / "runs" / "r1" / "head").read_bytes())
    truth = everything(store)
    for head in (*heads, b"", b"junk", heads[-1][:-9], heads[0] + b"left over from a longer one"):
        (tmp_path / "runs" / "r1" / "head").write_bytes(head)
        with contextlib.closing(open_store(f"file:{tmp_path}/runs")) as other:
            assert everything(other) == truth
            other.commit(lease, change(clock))
            truth = everything(other)
    assert everything(store) == truth
    store.close()


def test_a_journal_that_was_put_back_is_refused_until_its_head_is_removed(tmp_path: Path, clock: FakeClock) -> None:
    folder = tmp_path / "runs" / "r1"
    store = open_store(f"file:{tmp_path}/runs")
    lease = begin(store, clock)
    older = (folder / "journal").read_bytes()
    store.commit(lease, change(clock, done(1)))
    store.close()
    (folder / "journal").write_bytes(older)
    store = open_store(f"file:{tmp_path}/runs")
    for ask in (store.get, store.journal, store.notes, lambda _: store.commit(lease, change(clock, done(1)))):
        with pytest.raises(CheckpointCorrupt, match="run r1: its journal ends before what was acknowledged"):
            ask("r1")
    (folder / "head").unlink()
    assert store.get("r1").revision == 1
    store.commit(lease, change(clock, done(1, "again")))
    store.close()


# Large values, definitions, start keys.


@pytest.mark.parametrize("gone", [True, False])
def test_a_large_value_must_be_what_it_was(tmp_path: Path, clock: FakeClock, gone: bool) -> None:
    store = open_store(f"file:{tmp_path}/runs")
    value = '"' + "v" * 100_000 + '"'
    lease = begin(store, clock)
    store.commit(lease, change(clock, done(1, value=value)))
    (blob,) = (tmp_path / "runs" / "r1" / "blobs").iterdir()
    blob.unlink() if gone else blob.write_bytes(b"x")
    with pytest.raises(CheckpointCorrupt, match="run r1: a large value of it is missing or damaged"):
        store.journal("r1")
    store.close()
    store = open_store(f"file:{tmp_path}/runs")
    store.commit(lease, change(clock, done(2, "again", value=value)))
    assert [line.value for line in store.journal("r1")] == [value, value]
    store.close()


def test_a_large_value_that_was_tidied_away_after_a_full_disk_is_kept_again(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file:{tmp_path / 'runs'}"
    store, other = open_store(url), open_store(url)
    lease = begin(store, clock)
    large = change(clock, done(1, value='"' + "v" * 100_000 + '"'))
    with monkeypatch.context() as patch:
        patch.setattr("tramai.stores._file_run.write", _no_room)
        with pytest.raises(StoreUnavailable, match="no space"):
            store.commit(lease, large)
    assert portable(other, "tidy").tidy() > 100_000
    store.commit(lease, large)
    assert other.journal("r1")[0].value == large.records[0].value
    for one in (store, other):
        one.close()


def _no_room(handle: int, data: bytes, offset: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_damaged_definition_is_told_and_made_again_by_the_next_run(tmp_path: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{tmp_path}/runs")
    begin(store, clock)
    path = tmp_path / "runs" / ".definitions" / "d1"
    for data in (b"", path.read_bytes()[:-5], path.read_bytes().replace(b"wf", b"fw")):
        path.write_bytes(data)
        with pytest.raises(CheckpointCorrupt, match="the definition d1 is damaged"):
            store.definition("d1")
        assert store.verify() == ("the definition d1 is damaged",)  # type: ignore[attr-defined]
    begin(store, clock, "r2")
    assert store.definition("d1").name == "wf"
    store.close()


@pytest.mark.parametrize("what", ["torn", "of another key", "gone with its run"])
def test_a_start_key_starts_once_whatever_became_of_its_file(tmp_path: Path, clock: FakeClock, what: str) -> None:
    store = open_store(f"file:{tmp_path}/runs")
    begin(store, clock, start_key="key")
    begin(store, clock, "r2", start_key="key2")
    keys = tmp_path / "runs" / ".keys"
    if what == "torn":
        (keys / "key").write_bytes(b"12 ab")
    elif what == "of another key":
        shutil.copy(keys / "key2", keys / "key")
    else:  # its maker was killed between the two
        shutil.rmtree(tmp_path / "runs" / "r1")
    run, lease = store.create(new_run("r3", start_key="key"), owner="a", holder=HERE, ttl=9.0, now=1.0)
    assert run.run_id == ("r3" if what == "gone with its run" else "r1")
    assert (lease is None) == (what != "gone with its run")
    store.close()


def test_a_start_key_whose_run_cannot_be_read_starts_nothing(golden: tuple[str, Path, Truth]) -> None:
    kind, folder, _ = golden
    main = folder / "bad" / MAIN[kind]
    with damaged(main, main.read_bytes().replace(b"p2", b"p9", 1).replace(b"p1", b"p8", 1)):
        store = open_store(f"{kind}:{folder}")
        assert started(store, "key of bad") in ("bad", "refused")
        assert started(store, "key of good") == "good"
        store.close()


# Links and other things in the way.


@pytest.mark.parametrize("kind", KINDS)
def test_no_link_leads_out_of_the_store(tmp_path: Path, clock: FakeClock, kind: str) -> None:
    store = open_store(f"{kind}:{tmp_path}/runs")
    begin(store, clock, "good")
    outside = tmp_path / "outside"
    shutil.copytree(tmp_path / "runs" / "good", outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    (tmp_path / "runs" / "linked").symlink_to(outside)
    for ask in (store.get, store.journal, store.notes, lambda run_id: claim(store, clock, run_id)):
        with pytest.raises(StoreUnavailable, match=r"(something else|a symbolic link) stands where"):
            ask("linked")
    with pytest.raises(TramaiError, match="already exists"):
        begin(store, clock, "linked")
    assert [run.run_id for run in store.page(limit=9)[0]] == ["good"]
    for name in (MAIN[kind], "lock"):
        (tmp_path / "runs" / "good" / name).unlink()
        (tmp_path / "runs" / "good" / name).symlink_to(outside / name)
    store.close()
    store = open_store(f"{kind}:{tmp_path}/runs")
    expire(clock)
    with pytest.raises(StoreUnavailable, match="a symbolic link stands where a file of it should"):
        claim(store, clock, "good")
    with pytest.raises(StoreUnavailable, match="a symbolic link stands where a file of it should"):
        store.get("good")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    store.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [".store", ".lock", ".new"])
def test_no_link_in_the_place_of_the_stores_own_files_is_followed(
    tmp_path: Path, clock: FakeClock, kind: str, name: str
) -> None:
    open_store(f"{kind}:{tmp_path}/runs").close()
    victim = tmp_path / "victim"
    victim.mkdir() if name == ".new" else victim.write_text("mine")
    path = tmp_path / "runs" / name
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(victim)
    with pytest.raises(TramaiError):
        begin(open_store(f"{kind}:{tmp_path}/runs"), clock)
    assert victim.is_dir() or victim.read_text() == "mine"


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipe_in_the_place_of_a_file_hangs_nobody(tmp_path: Path, clock: FakeClock, kind: str) -> None:
    store = open_store(f"{kind}:{tmp_path}/runs")
    begin(store, clock)
    store.close()
    main = tmp_path / "runs" / "r1" / MAIN[kind]
    main.unlink()
    os.mkfifo(main)
    store = open_store(f"{kind}:{tmp_path}/runs")
    with pytest.raises(StoreUnavailable, match="something that is no file"):
        store.get("r1")
    assert store.page(limit=3)[0] == ()
    store.close()


# Disks that are full, fail, or may not be written.


@pytest.fixture
def tiny() -> Iterator[Path]:
    """A file system of its own that is soon full."""
    folder = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("a file system cannot be mounted here: a full disk cannot be tried")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_stops_the_run_and_it_goes_on_with_room(tiny: Path, clock: FakeClock, kind: str) -> None:
    store = open_store(f"{kind}:{tiny}/runs")
    lease = begin(store, clock)
    seq = 0
    with pytest.raises(StoreUnavailable, match="no space is left") as caught:  # noqa: PT012 (which one is the question)
        for seq in range(1, 500):
            store.commit(lease, change(clock, done(seq, f"p{seq}", value='"' + "x" * 3000 + '"')))
    assert caught.value.hint == "make room and resume; what was saved is intact"
    assert seq > 10
    with pytest.raises(StoreUnavailable, match="no space is left"):
        begin(store, clock, "another", inputs='"' + "x" * 250_000 + '"')
    with contextlib.closing(open_store(f"{kind}:{tiny}/runs")) as other:
        assert [line.seq for line in other.journal("r1")] == list(range(1, seq))
        assert [run.run_id for run in other.page(limit=9)[0]] == ["r1"]
    assert [path.name for path in tiny.rglob("*.part")] == []
    subprocess.run(["mount", "-o", "remount,size=4m", str(tiny)], check=True)
    store.commit(lease, change(clock, done(seq, "room again")))
    begin(store, clock, "another")
    assert [line.seq for line in store.journal("r1")] == list(range(1, seq + 1))
    assert [note.type for note in store.notes("r1")] == []
    store.close()


LIMITED = """
import resource, sys
from tramai.errors import StoreUnavailable
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done
from tramai.testing.clock import FakeClock
store, clock = open_store(sys.argv[1]), FakeClock()
lease = begin(store, clock)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
seq = 0
try:
    while True:
        store.commit(lease, change(clock, done(seq + 1, f"p{seq + 1}", value='"' + "x" * 2000 + '"')))
        seq += 1
except StoreUnavailable as error:
    print(seq, error.message)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_may_not_grow_keeps_what_was_acknowledged(tmp_path: Path, clock: FakeClock, kind: str) -> None:
    url = f"{kind}:{tmp_path}/runs"
    child = [sys.executable, "-c", LIMITED, url]
    answer = subprocess.run(child, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    count, message = answer.stdout.strip().split(" ", 1)
    assert int(count) > 3
    assert message == "the store cannot be used: a file of it may not grow any further"
    store = open_store(url)
    assert len(store.journal("r1")) == int(count)
    lease = store.get("r1").lease
    assert lease is not None
    store.commit(lease, change(clock, done(int(count) + 1, "room again")))
    assert store.notes("r1") == ()
    store.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", range(4))
def test_after_a_failed_flush_nothing_is_written_any_more(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: str, after: int
) -> None:
    store = open_store(f"{kind}:{tmp_path}/runs")
    lease = begin(store, clock)
    store.commit(lease, change(clock, done(1)))
    left = [after]

    def fail(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(StoreUnavailable, match=r"^the store cannot be used: the disk failed to write"):  # noqa: PT012
            for seq in range(2, 9):
                store.commit(lease, change(clock, done(seq, f"p{seq}")))
    told = {"file": 1 + after, "markdown": 1 + after // 2}[kind]
    for write in (
        lambda: store.commit(lease, change(clock, done(9))),
        lambda: begin(store, clock, "r2"),
        lambda: store.renew(lease, ttl=9.0, now=clock.now()),
    ):
        with pytest.raises(StoreUnavailable, match="the disk failed in an earlier write"):
            write()
    assert len(store.journal("r1")) in (told, told + 1)
    store.close()
    store = open_store(f"{kind}:{tmp_path}/runs")
    count = len(store.journal("r1"))
    assert count in (told, told + 1)
    store.commit(lease, change(clock, done(count + 1, "sound again")))
    store.close()


def test_an_entry_that_may_not_be_on_the_disk_is_written_again(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed flush leaves the pages marked clean: the next would not take them, unless they are written anew."""
    store = open_store(f"file:{tmp_path}/runs")
    lease = begin(store, clock)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(StoreUnavailable):
            store.commit(lease, change(clock, done(1)))
    store.close()
    written: list[tuple[int, int]] = []
    pwrite = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda handle, data, offset: written.append((offset, len(data))) or pwrite(handle, data, offset)
    )
    journal = tmp_path / "runs" / "r1" / "journal"
    *before, last = journal.read_bytes().splitlines(keepends=True)
    store = open_store(f"file:{tmp_path}/runs")
    store.commit(lease, change(clock, record(2)))
    assert written[0] == (sum(map(len, before)), len(last))
    assert [line.seq for line in store.journal("r1")] == [1, 2]
    store.close()


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder, and an effective user whom permissions bind: root reads and writes what it likes."""
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
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_may_not_be_written_can_be_looked_at(unprivileged: Path, clock: FakeClock, kind: str) -> None:
    url = f"{kind}:{unprivileged}/runs"
    store = open_store(url)
    begin(store, clock)
    truth = everything(store)
    store.close()
    folders = [unprivileged / "runs", *(path for path in (unprivileged / "runs").rglob("*") if path.is_dir())]
    for path in (unprivileged / "runs").rglob("*"):
        if path.is_file():
            path.chmod(0o400)
    for path in folders:
        path.chmod(0o500)
    store = open_store(url)
    assert everything(store) == truth
    assert store.page(limit=5)[0] == (truth[0],)
    expire(clock)
    for write in (lambda: claim(store, clock), lambda: begin(store, clock, "r2")):
        with pytest.raises(StoreUnavailable, match=r"it is not (accessible|writable)"):
            write()
    assert everything(store) == truth
    store.close()
    for path in folders:
        path.chmod(0o700)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_may_not_be_read_or_made_is_refused(unprivileged: Path, kind: str) -> None:
    open_store(f"{kind}:{unprivileged}/runs").close()
    (unprivileged / "runs").chmod(0)
    with pytest.raises(StoreUnavailable, match="it is not accessible"):
        open_store(f"{kind}:{unprivileged}/runs")
    unprivileged.chmod(0o500)
    with pytest.raises(StoreUnavailable, match="its folder cannot be made"):
        open_store(f"{kind}:{unprivileged}/new/runs")


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from tramai.stores import _folder_place

    monkeypatch.setattr(_folder_place, "network_kind", lambda folder: "nfs4")
    with pytest.raises(StoreUnavailable, match=r"is on a network file system \(nfs4\)") as caught:
        open_store(f"{kind}:{tmp_path}/runs")
    assert caught.value.hint


# Crowds, and writers that are killed.


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_somebody_keeps_is_called_busy(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    store = open_store(f"{kind}:{tmp_path}/runs")
    lease = begin(store, clock)
    monkeypatch.setattr(_files, "PATIENCE", 0.05)
    with _files.Folder.at(str(tmp_path / "runs" / "r1")) as folder:
        lock = folder.lock("lock")
        lock.take()
        with pytest.raises(StoreUnavailable, match=r"^the store cannot be used: busy"):
            store.commit(lease, change(clock, record(1)))
        assert store.get("r1").run_id == "r1"
        begin(store, clock, "r2")
        lock.give()
        lock.close()
    assert store.commit(lease, change(clock, record(1))) == 2
    store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_share_a_run_lose_nothing_and_read_no_half(tmp_path: Path, clock: FakeClock, kind: str) -> None:
    url = f"{kind}:{tmp_path}/runs"
    store = open_store(url)
    lease = begin(store, clock)
    calls = [("write", lease, clock.now(), n) for n in range(2)] + [("read", lease, clock.now(), n) for n in range(2)]
    answers = in_processes(functools.partial(open_store, url), _share, calls)
    assert [kind for kind, _ in answers] == ["won"] * 4, answers
    written = sum(count for _, count in answers[:2])
    assert [line.seq for line in store.journal("r1")] == list(range(1, written + 1))
    store.close()


def _share(store: Store, what: str, lease: object, now: float, number: int) -> int:
    """Append what fits, as one that knows nothing of the other; or read, over and over."""
    clock, done_ = FakeClock(now), 0
    for turn in range(60):
        if what == "read":
            lines = store.journal("r1")
            assert [line.seq for line in lines] == list(range(1, len(lines) + 1))
            assert store.get("r1").revision >= len(lines) + 1
            continue
        with contextlib.suppress(TramaiError):
            seq = len(store.journal("r1")) + 1
            value = '"' + "v" * (turn * 200) + '"'
            store.commit(lease, change(clock, done(seq, f"{number}-{turn}", value=value)))  # type: ignore[arg-type]
            done_ += 1
    return done_


KILLED = """
import sys
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, done
from tramai.testing.clock import FakeClock
store, clock = open_store(sys.argv[1]), FakeClock()
lease = begin(store, clock)
for seq in range(1, 10_000):
    store.commit(lease, change(clock, done(seq, f"p{seq}", value='"' + "x" * 3000 + '"')))
    print(seq, flush=True)
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [1, 40])
def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path, kind: str, after: int) -> None:
    url = f"{kind}:{tmp_path}/runs"
    child = subprocess.Popen([sys.executable, "-c", KILLED, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        told = [int(child.stdout.readline()) for _ in range(after)]
        child.kill()
        told += [int(line) for line in child.stdout if line.endswith("\n")]
    child.wait(60)
    store = open_store(url)
    seqs = [line.seq for line in store.journal("r1")]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) in (told[-1], told[-1] + 1)
    assert store.get("r1").revision == len(seqs) + 1
    lease = store.get("r1").lease
    assert lease is not None
    store.commit(lease, change(FakeClock(), done(len(seqs) + 1, "next")))
    assert list((tmp_path / "runs" / "r1").glob("*.part")) == []
    store.close()


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    for kind in KINDS:
        store = open_store(f"{kind}:{tmp_path}/none", create=False)
        with pytest.raises(NotFound):
            store.get("r1")
    assert os.listdir(tmp_path) == []
