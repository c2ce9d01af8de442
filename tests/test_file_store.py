"""The file store keeps the contract of a store; and what is its own: files, flushes, what is read, formats, layouts."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tramai.errors import ConfigurationError, LeaseHeld, NotFound, StoreTooNew, StoreUnavailable, TramaiError
from tramai.portable import Bundle
from tramai.store import Group, Lease, Mark, Note, Status, Store
from tramai.stores import _files, _folder_store, open_store
from tramai.stores._files import Folder
from tramai.stores._folder_place import Place
from tramai.stores._segments import is_segment, segment, text_of
from tramai.stores.file import File
from tramai.testing._store_given import HERE, begin, change, claim, definition, done, expire, new_run, record
from tramai.testing.clock import FakeClock
from tramai.testing.store_contract import Opener, StoreContract

ROOT = Path(__file__).parent.parent
FOLDERS = ("file", "markdown")


class TestFile(StoreContract):
    def make_store(self, folder: Path) -> Store:
        return open_store(f"file:{folder}/runs")

    def opener(self, store: Store) -> Opener:
        return functools.partial(open_store, store.url)


@pytest.mark.slow
class TestByWorkflow(StoreContract):
    """The other layout keeps the same contract; what needs processes is tried above."""

    def make_store(self, folder: Path) -> Store:
        return open_store(f"file:{folder}/runs?layout=workflow")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


# Where things stand.


@pytest.mark.parametrize(("kind", "where"), [("file", ".tramai/runs"), ("markdown", ".tramai/markdown")])
def test_a_url_without_a_folder_is_one_that_git_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(f"{kind}:")
    assert store.url == f"{kind}:{where}"
    store.close()
    assert (tmp_path / where).is_dir()
    assert (tmp_path / ".tramai" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_can_read_what_is_stored(tmp_path: Path, clock: FakeClock, kind: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = open_store(f"{kind}:{tmp_path}/a/b")
        lease = begin(store, clock, start_key="k")
        store.commit(lease, change(clock, done(1, value='"' + "x" * 70_000 + '"')))
        store.close()
    finally:
        os.umask(before)
    for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("kind", FOLDERS)
def test_looking_makes_nothing(tmp_path: Path, clock: FakeClock, kind: str) -> None:
    url = f"{kind}:{tmp_path}/runs"
    store = open_store(url, create=False)
    assert (store.url, store.page(limit=5)) == (url, ((), None))
    with pytest.raises(StoreUnavailable):
        begin(store, clock)
    assert os.listdir(tmp_path) == []
    (tmp_path / "runs").mkdir()
    assert open_store(url, create=False).page(limit=5) == ((), None)
    assert os.listdir(tmp_path / "runs") == []


def test_a_folder_that_holds_something_else_is_left_as_it_is(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(StoreUnavailable, match="holds other things"):
        File(str(folder))
    assert os.listdir(folder) == ["thesis.txt"]


@pytest.mark.parametrize(("kind", "other"), [FOLDERS, FOLDERS[::-1]])
def test_two_kinds_of_store_do_not_share_a_folder(folder: Path, kind: str, other: str) -> None:
    open_store(f"{kind}:{folder}").close()
    before = sorted(os.listdir(folder))
    with pytest.raises(StoreUnavailable, match=f"holds a store of the kind '{kind}'"):
        open_store(f"{other}:{folder}")
    assert sorted(os.listdir(folder)) == before


def test_a_file_is_no_store_and_neither_is_a_folder_in_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for where in ("file", "file/in"):
        with pytest.raises(StoreUnavailable) as caught:
            File(f"{tmp_path}/{where}")
        assert caught.value.exit_status == 7


HOSTILE = ["order/a", "order?a", "Daily", "daily", "..", ".", "CON", "aux.txt", "com1", "x" * 300, "é", "e\u0301", " "]
HOSTILE += [
    "a.",
    ".lock",
    ".store",
    ".new",
    "-rf",
    "~",
    "@wf",
    "a\nb",
    "\x00",
    "\ud800",
    "%2e%2e",
    "C:\\x",
    "/etc/passwd",
]


def test_no_id_leaves_the_store_or_meets_another(tmp_path: Path, clock: FakeClock, folder: Path) -> None:
    store = open_store(f"file:{folder}")
    ids = [run_id for run_id in HOSTILE if run_id.strip()]
    for run_id in ids:
        begin(store, clock, run_id, start_key=run_id, inputs=json.dumps(run_id))
    assert [store.get(run_id).inputs for run_id in ids] == [json.dumps(run_id) for run_id in ids]
    assert sorted(os.listdir(tmp_path)) == ["runs"]
    assert {run.run_id for run in store.page(limit=99)[0]} == set(ids)
    names = [name for name in os.listdir(folder) if is_segment(name)]
    assert len({name.lower() for name in names}) == len(ids)
    assert all(len(name) <= 120 and name == name.lower() and name[-1] != "." for name in names)
    assert (folder / "daily" / "journal").is_file()
    store.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_a_segment_tells_its_id_or_is_too_short_for_it(text: str) -> None:
    assert is_segment(segment(text))
    assert text_of(segment(text)) == (text if len(text) < 100 else None)
    assert "/" not in segment(text)


# What it costs.


SYSCALLS = """
import sys
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, claim, done, expire
from tramai.testing.clock import FakeClock
store, clock = open_store(sys.argv[1]), FakeClock()
lease = begin(store, clock)
for seq in range(1, int(sys.argv[2]) + 1):
    store.commit(lease, change(clock, done(seq, f"p{seq}"), step=f"p{seq}"))
store.close()
"""


def flushes(folder: Path, kind: str, commits: int) -> int:
    log = folder / f"strace-{commits}"
    traced = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    child = [sys.executable, "-c", SYSCALLS, f"{kind}:{folder}/{kind}{commits}", str(commits)]
    subprocess.run([*traced, *child], cwd=ROOT, check=True, timeout=120, capture_output=True)
    return sum("sync(" in line for line in log.read_text().splitlines())


@pytest.mark.parametrize(("kind", "each"), [("file", 1), ("markdown", 2)])
def test_a_commit_costs_so_many_flushes(tmp_path: Path, kind: str, each: int) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: flushes cannot be counted")
    if subprocess.run(["strace", "-qq", "true"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("strace may not trace here (ptrace is forbidden): flushes cannot be counted")
    assert flushes(tmp_path, kind, 60) - flushes(tmp_path, kind, 10) == 50 * each


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all writes."""
    sizes: list[int] = []
    pwrite = os.pwrite

    def writing(handle: int, data: bytes, offset: int) -> int:
        sizes.append(len(data))
        return pwrite(handle, data, offset)

    monkeypatch.setattr(os, "pwrite", writing)
    return sizes


@pytest.fixture
def got(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads."""
    sizes: list[int] = []
    pread = os.pread

    def reading(handle: int, size: int, offset: int) -> bytes:
        data = pread(handle, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", reading)
    return sizes


def test_what_a_commit_writes_does_not_grow_with_the_run(folder: Path, clock: FakeClock, written: list[int]) -> None:
    store = open_store(f"file:{folder}")
    lease = begin(store, clock, inputs='"' + "i" * 60_000 + '"')
    store.commit(lease, change(clock, outputs='"' + "o" * 500_000 + '"', error='"' + "e" * 30_000 + '"'))
    sizes = []
    for first in (1, 202, 403):
        store.commit(lease, change(clock, *(done(seq, f"p{seq:05}") for seq in range(first, first + 200))))
        written.clear()
        store.commit(lease, change(clock, done(first + 200, f"p{first + 200:05}")))
        sizes.append(sum(written))
    assert max(sizes) < 3000
    assert max(sizes) - min(sizes) < 20
    store.close()


def test_a_look_at_a_long_run_reads_little_of_it(folder: Path, clock: FakeClock, got: list[int]) -> None:
    store = open_store(f"file:{folder}")
    lease = begin(store, clock)
    for first in range(1, 5001, 500):
        store.commit(lease, change(clock, *(done(seq, f"p{seq}") for seq in range(first, first + 500))))
    store.commit(lease, change(clock, done(5001, "last")))
    size = (folder / "r1" / "journal").stat().st_size
    assert size > 500_000
    store.close()
    store = open_store(f"file:{folder}")
    for ask in (store.get, store.cancel_requested, lambda _: store.page(limit=5), lambda _: store.page(limit=5)):
        got.clear()
        assert ask("r1") is not None
        assert sum(got) < 10_000
    got.clear()
    clock.advance(1e6)
    claim(store, clock)
    assert len(store.journal("r1")) == 5001
    assert sum(got) < size * 1.1, "a resume reads the journal once"
    store.close()


def test_a_large_value_is_stored_once_in_a_run(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    value = '"' + "x" * 1_000_000 + '"'
    lease = begin(store, clock, inputs=value)
    for seq in range(1, 6):
        store.commit(lease, change(clock, done(seq, f"p{seq}", value=value, saves=value)))
    store.close()
    assert len(os.listdir(folder / "r1" / "blobs")) == 1
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 1_100_000


def test_what_a_replaced_run_held_is_gone_from_the_disk(folder: Path, clock: FakeClock) -> None:
    store = File(str(folder))
    secret = '"' + "canary" * 20_000 + '"'
    lease = begin(store, clock, inputs=secret)
    store.commit(lease, change(clock, done(1, value='"small canary"'), status=Status.COMPLETED))
    store.bury("r1", Note(at=1.0, type="run.removed"), revision=2, status=Status.REMOVED, now=clock.now())
    assert [path for path in folder.rglob("*") if path.is_file() and b"canary" in path.read_bytes()] == []
    store.close()


def test_a_large_value_whose_commit_was_refused_is_let_go(folder: Path, clock: FakeClock) -> None:
    store = File(str(folder))
    lease = begin(store, clock)
    kept, lost = ('"' + letter * 70_000 + '"' for letter in "kl")
    store.commit(lease, change(clock, done(1, value=kept)))
    shutil.copy(next((folder / "r1" / "blobs").iterdir()), folder / "r1" / "blobs" / ("0" * 64))
    (folder / "r1" / "blobs" / ".0123456789abcdef.part").write_text(lost)
    assert store.tidy() > 140_000
    assert len(os.listdir(folder / "r1" / "blobs")) == 1
    assert store.journal("r1")[0].value == kept
    assert store.tidy() == 0
    store.close()


def test_a_definition_that_a_run_is_about_to_go_on_with_is_not_tidied_away(
    folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = File(str(folder)), File(str(folder))
    lease = begin(store, clock)
    writing, tidied = store._writing, []

    def tidying(run_id: str) -> Any:
        with monkeypatch.context() as patch, contextlib.suppress(StoreUnavailable):  # busy: it waits for its turn
            patch.setattr(_files, "PATIENCE", 0.05)
            tidied.append(other.tidy())
        return writing(run_id)

    monkeypatch.setattr(store, "_writing", tidying)
    store.commit(lease, change(clock, done(1), definition=definition("d2")))
    assert store.get("r1").digest == "d2"
    assert store.definition("d2").digest == "d2"
    assert tidied in ([], [0])
    for one in (store, other):
        one.close()


def test_who_makes_a_run_does_not_wait_for_somebody_who_tidies_many(
    folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = File(str(folder)), File(str(folder))
    for run_id in ("r1", "r2"):
        lease = begin(store, clock, run_id, definition=definition(f"of {run_id}"))
        store.commit(lease, change(clock, done(1, value='"' + "x" * 100_000 + '"'), status=Status.COMPLETED))
        store.bury(run_id, Note(at=1.0, type="run.removed"), revision=2, status=Status.REMOVED, now=clock.now())
    glance, made = store._glance, []
    monkeypatch.setattr(_files, "PATIENCE", 0.05)

    def making(inside: Folder, name: str) -> Any:
        if not made:
            made.append(begin(other, clock, "r3", definition=definition("of r1")))
        return glance(inside, name)

    monkeypatch.setattr(store, "_glance", making)
    assert store.tidy() > 0
    assert store.definition("of r1").digest == "of r1"  # it was let go of by all, and is kept again
    with pytest.raises(NotFound):
        store.definition("of r2")
    for one in (store, other):
        one.close()


def test_many_runs_at_a_time_do_not_use_up_the_handles(
    folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_folder_store, "_KNOWN", 4)
    store = open_store(f"file:{folder}")
    leases = [begin(store, clock, f"r{number}") for number in range(20)]
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for seq in (1, 2, 3):
        for lease in leases:
            store.commit(lease, change(clock, done(seq, f"p{seq}")))
            for other in leases[:2]:
                store.get(other.run_id)
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert all(len(store.journal(lease.run_id)) == 3 for lease in leases)
    store.close()


def test_a_closed_store_holds_nothing_open(folder: Path, clock: FakeClock) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not tell open files")
    before = len(os.listdir("/proc/self/fd"))
    for kind in FOLDERS:
        store = open_store(f"{kind}:{folder}-{kind}")
        store.commit(begin(store, clock), change(clock, done(1)))
        store.page(limit=1), store.journal("r1"), store.definition("d1")
        store.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_run_imports_nothing_dear(folder: Path) -> None:
    code = (
        "import sys; from tramai.stores import open_store; store = open_store(sys.argv[1]); store.page(limit=1);"
        "print(sorted({'filelock', 'random', 'tempfile', 'shutil', 'asyncio', '_hashlib'} & set(sys.modules)))"
    )
    for kind in FOLDERS:
        child = [sys.executable, "-c", code, f"{kind}:{folder}-{kind}"]
        answer = subprocess.run(child, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60)
        assert answer.stdout.strip() == "[]"


# The journal is what the page says.


def renewed(store: Store, clock: FakeClock, lease: Lease, times: int) -> Lease:
    for _ in range(times):
        clock.advance(10.0)
        lease = store.renew(lease, ttl=30.0, now=clock.now())
    return lease


def test_a_run_that_only_lasts_grows_by_nothing(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    lease = begin(store, clock)
    store.commit(lease, change(clock, done(1, "a")))

    def size() -> int:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    lease = renewed(store, clock, lease, 2)
    before = size()
    lease = renewed(store, clock, lease, 500)
    assert size() == before
    assert store.get("r1").lease == lease
    store.commit(lease, change(clock, done(2, "b")))
    journal = (folder / "r1" / "journal").read_bytes()
    assert journal.count(lease.token.encode()) == 1  # as it was given: no commit says it again
    for other in (open_store(f"file:{folder}"), store):
        run = other.get("r1")
        assert run.lease == lease
        assert other.page(limit=1)[0] == (run,)
        with pytest.raises(LeaseHeld):
            claim(other, clock)


def test_of_a_renewal_that_was_torn_the_one_before_it_stands(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    first = begin(store, clock)
    leases = [first, *(renewed(store, clock, first, 1) for _ in range(3))]
    file = folder / "r1" / "lease"
    whole = file.read_bytes()
    for cut in range(0, 200, 7):
        places = [bytearray(whole[:512]), bytearray(whole[512:])]
        places[3 % 2][cut : cut + 7] = bytes(7)
        file.write_bytes(b"".join(places))
        assert store.get("r1").lease in (leases[2], leases[3])
    file.write_bytes(b"")
    assert open_store(f"file:{folder}").get("r1").lease == store.get("r1").lease == first


def test_the_last_renewal_counts_though_it_be_the_shorter(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    lease = begin(store, clock)
    for ttl in (100.0, 50.0, 20.0):
        lease = store.renew(lease, ttl=ttl, now=clock.now())
        assert store.get("r1").lease == open_store(f"file:{folder}").get("r1").lease == lease
    assert lease.expires == clock.now() + 20.0


def test_the_renewals_of_a_former_owner_are_not_the_next_ones(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    store.renew(begin(store, clock), ttl=30.0, now=clock.now())
    clock.advance(30.0)
    _, lease = claim(store, clock)
    assert store.get("r1").lease == lease
    other = open_store(f"file:{folder}")
    (folder / "r1" / "lease").unlink()  # cleaned away
    assert store.renew(lease, ttl=40.0, now=clock.now()) == other.get("r1").lease
    store.release(lease, now=clock.now())
    assert other.get("r1").lease is None


def test_the_journal_can_be_checked_with_common_tools(folder: Path, clock: FakeClock) -> None:
    import hashlib

    store = open_store(f"file:{folder}")
    store.commit(begin(store, clock), change(clock, done(1, value='{"a":1}'), notes=(Note(at=1.0, type="t"),)))
    first, *entries = (folder / "r1" / "journal").read_bytes().splitlines()
    assert first == b"tramai journal 1"
    for number, entry in enumerate(entries, 1):
        length, sha, text = entry.split(b" ", 2)
        assert (int(length), sha.decode()) == (len(text), hashlib.sha256(text).hexdigest())
        assert json.loads(text)["n"] == number
    assert json.loads(text)["set"].keys() == {"revision"}
    assert json.loads(text)["records"][0]["value"] == '{"a":1}'
    store.close()


# Formats and makers.


def marker(folder: Path, **fields: object) -> None:
    found = json.loads((folder / ".store").read_text())
    (folder / ".store").write_text(json.dumps(found | fields))


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_newer_store_is_refused_untouched(folder: Path, clock: FakeClock, kind: str) -> None:
    store = open_store(f"{kind}:{folder}")
    begin(store, clock)
    store.close()
    marker(folder, format=99)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for create in (True, False):
        with pytest.raises(StoreTooNew, match="the store has format 99; this tramai knows formats up to 2") as caught:
            open_store(f"{kind}:{folder}", create=create)
        assert caught.value.exit_status == 7
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert File.peek(str(folder)) == (99 if kind == "file" else None)


def test_a_newer_journal_is_refused_untouched_and_the_others_are_not(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    begin(store, clock, "new")
    begin(store, clock, "old")
    store.close()
    path = folder / "new" / "journal"
    path.write_bytes(path.read_bytes().replace(b"journal 1", b"journal 2", 1))
    before = path.read_bytes()
    store = open_store(f"file:{folder}")
    expire(clock)
    for ask in (store.get, store.journal, lambda run_id: claim(store, clock, run_id)):
        with pytest.raises(StoreTooNew):
            ask("new")
    assert [run.run_id for run in store.page(limit=5)[0]] == ["old"]
    assert [fault["run_id"] for fault in store.faults()] == ["new"]
    assert path.read_bytes() == before
    store.close()


def newer_kind(monkeypatch: pytest.MonkeyPatch, *migrations: Callable[[_files.Folder], None]) -> None:
    import msgspec

    every = (*File.KIND.migrations, *migrations)
    monkeypatch.setattr(File, "KIND", msgspec.structs.replace(File.KIND, migrations=every))


def test_an_older_store_is_migrated_once(folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    old = open_store(f"file:{folder}")
    begin(old, clock)
    old.close()
    seen: list[int] = []
    newer_kind(monkeypatch, lambda folder: seen.append(len(folder.names())))
    barrier, stores = threading.Barrier(4), []

    def open_it() -> None:
        barrier.wait(30)
        stores.append(open_store(f"file:{folder}"))

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) == 1
    assert [store.get("r1").run_id for store in stores] == ["r1"] * 4
    for store in stores:
        store.close()
    assert json.loads((folder / ".store").read_text())["format"] == 3


def test_a_migration_that_comes_second_to_a_newer_version_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(f"file:{folder}").close()
    newer_kind(monkeypatch, lambda _: None)
    turn = Place.turn

    def quicker(place: Place) -> Any:
        (folder / ".store").write_text('{"store":"file","format":9,"layout":"flat"}')
        return turn(place)

    monkeypatch.setattr(Place, "turn", quicker)
    with pytest.raises(StoreTooNew, match="format 9"):
        open_store(f"file:{folder}")
    assert json.loads((folder / ".store").read_text())["format"] == 9


def test_a_migration_that_was_killed_is_done_again(
    folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(f"file:{folder}").close()
    tries: list[int] = []

    def dies_once(_: _files.Folder) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise KeyboardInterrupt

    newer_kind(monkeypatch, lambda _: None, dies_once)
    with pytest.raises(KeyboardInterrupt):
        open_store(f"file:{folder}")
    assert json.loads((folder / ".store").read_text())["format"] == 3
    store = open_store(f"file:{folder}")
    begin(store, clock)
    store.close()
    assert len(tries) == 2
    assert json.loads((folder / ".store").read_text())["format"] == 4


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_store_of_format_1_learns_of_groups(folder: Path, clock: FakeClock, kind: str) -> None:
    old = open_store(f"{kind}:{folder}")
    begin(old, clock)
    old.close()
    shutil.rmtree(folder / ".groups", ignore_errors=True)
    marker = folder / ".store"
    marker.write_text(marker.read_text().replace('"format":2', '"format":1'))
    store = open_store(f"{kind}:{folder}")
    assert json.loads(marker.read_text())["format"] == 2
    assert (folder / ".groups").is_dir()
    assert store.get("r1").group is None
    assert store.enter(begin(store, clock, "r2", group=Group("g")), now=clock.now()) == ()
    store.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_damaged_list_of_a_group_lets_nobody_in_who_must_wait(folder: Path, clock: FakeClock, kind: str) -> None:
    store = open_store(f"{kind}:{folder}")
    assert store.enter(begin(store, clock, "r1", group=Group("g")), now=clock.now()) == ()
    (folder / ".groups" / "g").write_bytes(b"junk")
    late = begin(store, clock, "r2", group=Group("g"), created=1001.0)
    assert store.enter(late, now=clock.now()) == ("r1",)
    assert b"junk" not in (folder / ".groups" / "g").read_bytes()
    store.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_many_makers_at_once_make_one_store(folder: Path, clock: FakeClock, kind: str) -> None:
    barrier, stores = threading.Barrier(8), []

    def make() -> None:
        barrier.wait(30)
        stores.append(open_store(f"{kind}:{folder}"))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    begin(stores[0], clock)
    assert [store.get("r1").run_id for store in stores] == ["r1"] * 8
    for store in stores:
        store.close()


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir"])
@pytest.mark.parametrize("at", range(1, 9))
def test_a_maker_who_is_stopped_leaves_no_half_made_run(
    folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: str, call: str, at: int
) -> None:
    store = open_store(f"{kind}:{folder}")
    left, real = [at], getattr(os, call)

    def stop(*arguments: object, **options: object) -> object:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, stop)
        try:
            begin(store, clock, start_key="key", owner="first")
            told = True
        except KeyboardInterrupt:
            told = False
    if left[0] > 0:
        assert told
    again = open_store(f"{kind}:{folder}")
    run, lease = again.create(new_run("r2", start_key="key"), owner="second", holder=HERE, ttl=9.0, now=clock.now())
    assert run.run_id in ("r1", "r2")
    assert run.run_id == "r1" or not told
    assert (lease is None) == (run.run_id == "r1")
    assert [found.run_id for found in again.page(limit=9)[0]] == [run.run_id]
    assert again.faults() == ()
    assert again.definition("d1").name == "wf"
    assert os.listdir(folder / ".new") == [] or run.run_id == "r1"
    again.close()
    store.close()


def test_a_run_that_was_removed_and_made_again_is_told_from_the_old_one(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}")
    old = begin(store, clock)
    other = open_store(f"file:{folder}")
    other.commit(old, change(clock, done(1)))
    shutil.rmtree(folder / "r1")
    with pytest.raises(NotFound):
        store.get("r1")
    new = begin(store, clock, owner="new")
    for late in (store, other):
        with pytest.raises(TramaiError, match="Workflow lease is no longer active"):
            late.commit(old, change(clock, done(2)))
    other.commit(new, change(clock, done(1)))
    assert store.get("r1").revision == 2
    store.close()
    other.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_lock_that_was_cleaned_away_is_made_again(folder: Path, clock: FakeClock, kind: str) -> None:
    """The locks are not under version control, and `git clean` removes what is not."""
    stores = [open_store(f"{kind}:{folder}") for _ in range(2)]
    lease = begin(stores[0], clock)
    seq = 0
    for _ in range(3):
        for store in stores:
            seq += 1
            store.commit(lease, change(clock, done(seq, f"p{seq}")))
            begin(store, clock, f"other{seq}")
        for path in (folder / ".lock", folder / "r1" / "lock"):
            path.unlink()
    for store in stores:
        store.commit(lease, change(clock))
        inode = (folder / "r1" / "lock").stat().st_ino
        assert os.fstat(store._kept["r1"].lock._handle).st_ino == inode  # type: ignore[attr-defined]
        store.close()


# Layouts.


def test_runs_can_stand_by_workflow(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{folder}?layout=workflow")
    begin(store, clock, "a", definition=definition("d1", name="Nightly build"))
    begin(store, clock, "b", definition=definition("d2", name="review"), created=5.0)
    assert (folder / "@review" / "b" / "journal").is_file()
    assert (folder / f"@{segment('Nightly build')}" / "a" / "journal").is_file()
    for url in (f"file:{folder}", f"file:{folder}?layout=workflow"):
        with_runs = open_store(url)
        assert [run.run_id for run in with_runs.page(limit=9)[0]] == ["a", "b"]
        assert with_runs.match("b") == ("b",)
        with pytest.raises(TramaiError, match="run a already exists"):
            begin(with_runs, clock, "a", definition=definition("d2", name="review"))
        with_runs.close()
    store.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_store_keeps_its_layout(folder: Path, kind: str) -> None:
    open_store(f"{kind}:{folder}").close()
    with pytest.raises(ConfigurationError, match="its layout is 'flat', not 'workflow'"):
        open_store(f"{kind}:{folder}?layout=workflow")
    with pytest.raises(ConfigurationError, match="no layout goes by 'round'") as caught:
        open_store(f"{kind}:{folder}?layout=round")
    assert caught.value.hint == "layouts: flat, workflow"


def test_a_question_mark_may_stand_in_a_path(tmp_path: Path, clock: FakeClock) -> None:
    store = open_store(f"file:{tmp_path}/what?now/layout=x")
    begin(store, clock)
    assert (tmp_path / "what?now" / "layout=x" / "r1" / "journal").is_file()
    store.close()


# What it says of itself.


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_store_says_how_it_is(folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    store = open_store(f"{kind}:{folder}")
    begin(store, clock)
    found = store.info()  # type: ignore[attr-defined]
    assert (found.place, found.format, found.runs, found.locks) == (str(folder), 2, {"running": 1}, (".lock: free",))
    assert found.size == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    with _files.Folder.at(str(folder)) as root:
        lock = root.lock(".lock")
        lock.take()
        assert store.info().locks == (".lock: taken, somebody makes a run",)  # type: ignore[attr-defined]
        lock.close()
    assert type(store).peek(str(folder)) == 2  # type: ignore[attr-defined]
    assert type(store).peek(f"{folder}/none") is None  # type: ignore[attr-defined]
    store.close()


def test_a_run_is_taken_from_one_kind_of_store_to_the_other(tmp_path: Path, clock: FakeClock) -> None:
    source, target = open_store(f"file:{tmp_path}/f"), open_store(f"markdown:{tmp_path}/m")
    value = '"' + "v" * 70_000 + '"'
    lines = (record(1), done(2, value=value), record(3, "b", Mark.FAILED, error='{"e":"\\ud800"}'))
    store = source
    store.commit(begin(store, clock, start_key="k"), change(clock, *lines, status=Status.FAILED, release=True))
    run = source.get("r1")
    bundle = Bundle(run=run, definition=source.definition("d1"), records=source.journal("r1"), notes=source.notes("r1"))
    assert target.adopt(bundle) == run  # type: ignore[attr-defined]
    assert (target.get("r1"), target.journal("r1")) == (run, lines)
    source.close()
    target.close()
