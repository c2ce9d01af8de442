"""A disk of its own whose power is cut: `unshare -m python -m tests.faults.power …` (root, loop devices, e2fsprogs).

The disk is an ext4 file system in a file. FS_IOC_SHUTDOWN without a flush of its log stops it for good: whatever was
not on it by then is lost, as in a loss of power. It is mounted anew, and what the store says is compared with what
was acknowledged. The argument is a JSON object: folder, kind, game (`after`, `during`, `probe`), points, careless.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tramai.errors import NotFound, TramaiError
from tramai.store import Note, Status, Store
from tramai.stores import open_store
from tramai.testing._store_given import begin, change, claim, done, everything
from tramai.testing.clock import FakeClock

SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
PATIENCE = 60.0
LARGE = '"' + "L" * 70_000 + '"'


class Disk:
    """An ext4 file system in a file, never written back by itself while a test lasts."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self._pristine = folder / "pristine.img"
        self.top = folder / "disk"
        self.top.mkdir()
        with open(self._pristine, "wb") as file:
            file.truncate(24 << 20)
        _call("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self._pristine))

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """A new, empty disk, mounted."""
        _call("cp", "--sparse=always", str(self._pristine), str(self._image))
        self.mount()
        try:
            yield
        finally:
            self.unmount()

    def mount(self) -> None:
        """Mount it; its log is replayed."""
        _call("mount", "-o", "loop,commit=600", str(self._image), str(self.top))

    def unmount(self) -> None:
        """Take it away."""
        _call("umount", str(self.top))

    def cut(self) -> None:
        """The power fails."""
        handle = os.open(self.top, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)


def acts(kind: str) -> list[Callable[[Store, FakeClock], Any]]:
    """Every kind of write a run meets, one after the other."""

    def commit(**fields: Any) -> Callable[[Store, FakeClock], Any]:
        def act(store: Store, clock: FakeClock) -> Any:
            lease = store.get("r1").lease
            assert lease is not None
            seq = len(store.journal("r1")) + 1
            records = (done(seq, f"p{seq}", value=fields.pop("value", f'"{seq}"')),)
            return store.commit(lease, change(clock, *records, **fields))

        return act

    def take_over(store: Store, clock: FakeClock) -> Any:
        clock.advance(60.0)
        return claim(store, clock)

    def renew(store: Store, clock: FakeClock) -> Any:
        lease = store.get("r1").lease
        assert lease is not None
        return store.renew(lease, ttl=30.0, now=clock.now())

    def operator(store: Store, clock: FakeClock) -> Any:
        revision = store.get("r1").revision
        return store.amend("r1", revision=revision, change=change(clock, status=Status.READY, error=None))

    return [
        lambda store, clock: begin(store, clock, start_key="key", labels=("a",), inputs=f'"{"i" * 3000}"'),
        commit(),
        commit(notes=(Note(at=1.0, type="seen"),)),
        commit(value=LARGE),
        renew,
        take_over,
        commit(value=LARGE),
        commit(status=Status.FAILED, error='{"e":1}', release=True),
        operator,
        lambda store, clock: begin(store, clock, "another/run"),
        lambda store, clock: claim(store, clock),
        lambda store, clock: store.request_cancel("r1", Note(at=1.0, type="cancel"), now=clock.now()),
        commit(outputs='{"o":1}', status=Status.COMPLETED, release=True),
    ]


def after(disk: Disk, kind: str, points: int, careless: bool) -> dict[str, Any]:
    """The power fails after each acknowledged write: all that was acknowledged must be there, and nothing else."""
    count = len(acts(kind))
    places = (
        range(1, count + 1) if points >= count else sorted({1 + i * (count - 1) // (points - 1) for i in range(points)})
    )
    violations = []
    for place in places:
        with disk.fresh():
            told = _apart(_work_until, disk, kind, place, careless)
            disk.unmount()
            disk.mount()
            violations += [f"{kind}, after write {place}: {what}" for what in _compare(disk, kind, told)]
    return {"points": len(places), "violations": violations}


def during(disk: Disk, kind: str, points: int, careless: bool) -> dict[str, Any]:
    """The power fails at any moment: what was acknowledged is there, and of the rest at most the write under way."""
    violations, unheard = [], 0
    chance = random.Random(4)
    for place in range(points):
        with disk.fresh():
            before, last, there = _interrupted(disk, kind, chance.uniform(0.0, 0.04), careless)
            unheard += there == last + 1
            if there is None or not before <= there <= last + 1:
                violations.append(
                    f"{kind}, cut {place}: {before} acknowledged before it, {last} by the end, {there} there"
                )
    return {"points": points, "unheard": unheard, "violations": violations}


def probe(disk: Disk, kind: str, points: int, careless: bool) -> dict[str, Any]:
    """Whether a disk can be made, mounted and cut here at all."""
    del kind, points, careless
    with disk.fresh():
        disk.cut()
    return {}


def _work_until(disk: Disk, kind: str, place: int, careless: bool, pipe: Connection) -> None:
    store, clock = _opened(disk, kind, careless), FakeClock()
    for act in acts(kind)[:place]:
        act(store, clock)
    pipe.send([_seen(store, run_id) for run_id in ("r1", "another/run")])
    disk.cut()


def _compare(disk: Disk, kind: str, told: Any) -> list[str]:
    """What is wrong with a store after the power came back."""
    try:
        store = open_store(_url(disk, kind))
    except TramaiError as error:
        return [f"it cannot be opened: {error}"]
    with contextlib.closing(store):
        found = [_seen(store, run_id) for run_id in ("r1", "another/run")]
        wrong = [
            f"{name} is not as it was acknowledged"
            for name, *pair in zip(("r1", "another"), told, found, strict=True)
            if pair[0] != pair[1]
        ]
        if not wrong and not store.get("r1").status.terminal:
            clock = FakeClock(2e9)
            _, lease = claim(store, clock)
            seq = len(store.journal("r1")) + 1
            store.commit(lease, change(clock, done(seq, "goes on")))
            wrong += ["it does not go on"] * (store.journal("r1")[-1].path != "goes on")
        return wrong


def _seen(store: Store, run_id: str) -> str | None:
    """All that a store says of a run, as text that can be compared."""
    try:
        return repr(everything(store, run_id))
    except NotFound:
        return None


def _interrupted(disk: Disk, kind: str, pause: float, careless: bool) -> tuple[int, int, int | None]:
    """How many writes were acknowledged before the power failed, and ever; how many are there afterwards.

    A flush that is under way at that very moment may be acknowledged by the kernel and be lost all the same: the
    ioctl fails the disk below it, while the program that waits lives on. A real loss of power lets nobody hear of it.
    """
    with _child(_write_on, disk, kind, careless) as pipe:
        assert pipe.poll(PATIENCE)
        before: int = pipe.recv()
        time.sleep(pause)
        while pipe.poll(0):
            before = pipe.recv()
        disk.cut()
        last = before
        with contextlib.suppress(EOFError):
            while pipe.poll(PATIENCE):
                last = pipe.recv()
    disk.unmount()
    disk.mount()
    try:
        with contextlib.closing(open_store(_url(disk, kind))) as store:
            there = len(store.journal("r1"))
            assert store.get("r1").revision == there + 1
            clock = FakeClock(2e9)
            store.commit(claim(store, clock)[1], change(clock, done(there + 1, "goes on")))
            return before, last, there
    except TramaiError:
        return before, last, None


def _write_on(disk: Disk, kind: str, careless: bool, pipe: Connection) -> None:
    store, clock = _opened(disk, kind, careless), FakeClock()
    lease = begin(store, clock)
    pipe.send(0)
    for seq in range(1, 100_000):
        store.commit(lease, change(clock, done(seq, f"p{seq}", value='"' + "v" * (seq % 7 * 900) + '"')))
        pipe.send(seq)


def _opened(disk: Disk, kind: str, careless: bool) -> Store:
    if careless:  # to see that the power is really cut: without a flush this must lose something
        os.fsync = os.fdatasync = lambda _: None  # type: ignore[assignment]
    store = open_store(_url(disk, kind))
    if careless and kind == "sqlite":
        store._connection._raw.execute("PRAGMA synchronous=NORMAL")  # type: ignore[attr-defined]
    return store


def _url(disk: Disk, kind: str) -> str:
    return f"{kind}:{disk.top}/deep/er/{'runs.db' if kind == 'sqlite' else 'runs'}"


def _apart(work: Callable[..., None], *given: Any) -> Any:
    """What a process of its own sends; it is gone when this returns."""
    with _child(work, *given) as pipe:
        assert pipe.poll(PATIENCE), "no answer"
        answer = pipe.recv()
        with contextlib.suppress(EOFError):
            pipe.poll(PATIENCE)
        return answer


@contextlib.contextmanager
def _child(work: Callable[..., None], *given: Any) -> Iterator[Connection]:
    here, there = Pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            here.close()
            work(*given, there)
            status = 0
        except TramaiError:
            pass  # the disk is gone
        finally:
            os._exit(status)
    there.close()
    try:
        yield here
    finally:
        here.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _call(*command: str) -> None:
    for _ in range(20):
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode == 0 or "busy" not in ended.stderr:
            break
        time.sleep(0.05)  # somebody of the system may be looking at a new disk
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: {ended.stderr.strip()}")


def main() -> None:
    """Play one game and print what came of it."""
    given = json.loads(sys.argv[1])
    game = {"after": after, "during": during, "probe": probe}[given["game"]]
    disk = Disk(Path(given["folder"]))
    print(json.dumps(game(disk, given["kind"], given["points"], given.get("careless", False))))


if __name__ == "__main__":
    main()
