"""What the stores whose runs are folders share: turns, handles, leases, and looking runs up.

A subclass says how a run's folder is made, read and written to; everything else of `tramai.store.Store` is here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec.structs import replace

from .. import places, rules
from ..errors import CheckpointConflict, CheckpointCorrupt, LeaseLost, NotFound, StoreUnavailable
from ..store import Change, Definition, Holder, Lease, Mark, NewRun, Note, Record, Run, RunExists
from . import _folder_groups as groups
from ._files import FlushFailed, Folder, Lock, locked, public
from ._folder_place import Place, place_of
from ._folder_run import Content, Kept, Reading
from ._folder_whole import Whole

_T = TypeVar("_T")

_KNOWN = 48
"""Runs kept open for writing at a time; each has a few file handles."""


class FolderStore(Whole):
    """A store in a folder, with a folder for each run."""

    PARAMETERS = ("layout",)
    """What its URL may have behind the path."""

    def __init__(self, where: str = "", *, create: bool = True) -> None:
        """Open the folder, and make it if need be; NotFound instead with `create=False`."""
        super().__init__()
        path, layout = place_of(where, self.KIND)
        self.url = f"{self.KIND.name}:{path}" + (f"?layout={layout}" if layout else "")
        self._mutex = threading.Lock()
        self._kept: dict[str, Kept] = {}
        self._failed = False
        self._open = True
        try:
            self._place = Place(path, self.KIND, layout, create=create)
        except OSError as error:
            raise public(error) from None

    # What a subclass says.

    def _make(self, folder: Folder, content: Content) -> Kept:
        """Write the first content of a run into its folder, flushed but for the folder itself."""
        raise NotImplementedError

    def _writable(self, folder: Folder, run_id: str) -> Kept:
        """Open a run for writing."""
        raise NotImplementedError

    def _started(self, key: str) -> str | None:
        """The id of the run that a start key has started."""
        raise NotImplementedError

    def _announce(self, run: Run, definition: Definition | None) -> Definition | None:
        """In the turn of its maker, before a run gets its name: make durable what leads to it.

        The definition to keep with it: the first source of its digest.
        """
        raise NotImplementedError

    def _define(self, definition: Definition) -> Definition:
        """In a turn, before a run goes on with another definition: the one to keep with it, likewise."""
        raise NotImplementedError

    # The store.

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it; see `Store.create`."""
        rules.check_new(new, owner, ttl)
        with self._guarded(write=True), self._place.turn():
            started = None if new.start_key is None else self._started(new.start_key)
            if started is not None:
                self._place.settle(started)
                with self._find(started) as folder, self._reading(folder, started) as reading:
                    return reading.run(), None
            if self._place.taken(new.run_id):
                raise RunExists(run_id=new.run_id)
            run = rules.begun(new, owner=owner, holder=holder, ttl=ttl, now=now)
            definition = self._announce(run, new.definition)
            self._begin(Content(run=run, definitions=() if definition is None else (definition,)))
        return run, run.lease

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease; see `Store.claim`."""
        rules.check_claim(run_id, owner, ttl)
        with self._writing(run_id) as kept:
            before = kept.run.status
            run, lease = rules.claimed(kept.run, owner=owner, holder=holder, ttl=ttl, now=now)
            kept.append(run, (), (), None)
            return replace(kept.whole(), status=before), lease

    def enter(self, lease: Lease, *, within: Collection[str] = (), now: float) -> tuple[str, ...]:
        """Take a place in the group of the run; see `Store.enter`. Nobody else asks in this turn."""
        with self._guarded(write=True), self._place.turn(), self._leased(lease) as kept:
            run = kept.run
            if places.settled(run, lease, now) or run.group is None:
                return ()
            listed = groups.read(self._place.folder, run.group.name)
            others = self._glances_of(run, listed)
            turn = places.turn(run, listed or (), others, within=within, now=now)
            if turn.listed is not None:
                groups.write(self._place.folder, run.group.name, turn.listed)
            if turn.run is not None:
                kept.append(turn.run, (), (), None)
            return turn.before

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease from now; see `Store.renew`."""
        rules.check_ttl(ttl)
        with self._leased(lease) as kept:
            renewed = rules.renewed(kept.run.lease, lease, ttl=ttl, now=now)
            kept.renew(renewed)
            return renewed

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back; see `Store.release`."""
        with contextlib.suppress(NotFound), self._writing(lease.run_id) as kept:
            if rules.gives_back(kept.run.lease, lease, now=now):
                kept.append(replace(kept.run, lease=None), (), (), None)

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`."""
        with self._defined(change) as new, self._leased(lease) as kept:
            if not rules.current(kept.run.lease, lease, change.now):
                raise LeaseLost
            return self._apply(kept, rules.changed(kept.run, change), change, new)

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        with self._defined(change) as new, self._writing(run_id) as kept:
            return self._apply(kept, rules.amended(kept.run, revision=revision, change=change), change, new)

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        with self._writing(run_id) as kept:
            self._apply(kept, rules.cancelled(kept.run, now=now), Change(now=now, notes=(note,)))
            return kept.whole()

    def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Run:
        """Add a line to the event list; see `Store.post`."""
        with self._writing(run_id) as kept:
            told = rules.posted(kept.run, last=kept.last_note, after=after, due=due, now=now)
            self._apply(kept, told, Change(now=now, notes=(note,)))
            return kept.whole()

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled."""
        return self._look(run_id, lambda reading: reading.header().cancel_requested)

    def get(self, run_id: str) -> Run:
        """The header, checked."""
        return self._look(run_id, lambda reading: reading.run())

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order, each checked, and none missing."""
        return self._look(run_id, lambda reading: reading.records())

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order, checked likewise."""
        return self._look(run_id, lambda reading: reading.notes())

    def close(self) -> None:
        """Give the folder back."""
        with self._mutex:
            if not self._open:
                return
            self._open = False
            kept, self._kept = self._kept, {}
        for one in kept.values():
            with one.mutex:
                one.close()
        self._place.close()

    # Writing.

    @contextmanager
    def _guarded(self, *, write: bool = False) -> Iterator[None]:
        """Failures of files by their public names. After a failed flush this store writes nothing any more."""
        if not self._open:
            raise StoreUnavailable(what="it is closed")
        if write and self._failed:
            raise StoreUnavailable(what="the disk failed in an earlier write", hint="resume when the disk is sound")
        try:
            yield
        except FlushFailed as error:
            self._failed = True
            raise public(error) from None
        except OSError as error:
            raise public(error) from None

    @contextmanager
    def _writing(self, run_id: str) -> Iterator[Kept]:
        """The only one, among threads and processes, who writes to a run meanwhile; what others wrote is known."""
        with self._guarded(write=True):
            while True:
                if not self._open:
                    raise StoreUnavailable(what="it is closed")
                kept = self._opened(run_id)
                with kept.mutex:
                    lock = kept.lock
                    if lock is None:
                        continue  # somebody closed it meanwhile
                    with locked(lock):
                        if kept.gone():
                            self._forget(kept)
                            continue
                        kept.refresh()
                        yield kept
                        return

    @contextmanager
    def _leased(self, lease: Lease) -> Iterator[Kept]:
        """Likewise, of a lease: where there is no run, there is no lease."""
        with contextlib.ExitStack() as stack:
            try:
                kept = stack.enter_context(self._writing(lease.run_id))
            except NotFound:
                raise LeaseLost from None
            yield kept

    @contextmanager
    def _defined(self, change: Change) -> Iterator[Definition | None]:
        """The definition of a change, kept already; nobody tidies it away before the run says that it is its own."""
        if change.definition is None:
            yield None
            return
        with self._guarded(write=True), self._place.turn():
            yield self._define(change.definition)

    def _apply(self, kept: Kept, after: Run, change: Change, new: Definition | None = None) -> int:
        """Check everything first, then write."""
        rules.follows(kept.last_seq, change.records)
        done = [record.path for record in change.records if record.mark is Mark.COMPLETED]
        if done and (len(set(done)) < len(done) or not kept.completed().isdisjoint(done)):
            raise CheckpointConflict
        notes = tuple(replace(note, seq=seq) for seq, note in enumerate(change.notes, kept.last_note + 1))
        kept.append(after, change.records, notes, new)
        return after.revision

    def _opened(self, run_id: str) -> Kept:
        with self._mutex:
            kept = self._kept.pop(run_id, None)
            if kept is not None:
                self._kept[run_id] = kept  # the last used stands last
                return kept
        folder = self._find(run_id)
        try:
            self._place.settle(run_id)
            kept = self._writable(folder, run_id)
        except BaseException:
            folder.close()
            raise
        return self._keep_open(kept)

    def _begin(self, content: Content) -> Kept:
        """Make a run in the turn of its maker."""
        with self._place.staged() as stage:
            kept = self._make(stage.folder, content)
            stage.publish(content.run.run_id, content.run.workflow)
        return self._keep_open(kept)

    def _keep_open(self, kept: Kept) -> Kept:
        """Keep a run open; when there are too many, the one that was longest not used is closed."""
        with self._mutex:
            there = self._kept.get(kept.run_id)
            if there is not None:
                kept.close()
                return there
            self._kept[kept.run_id] = kept
            idle = next((one for one in self._kept.values() if not one.mutex.locked()), kept)
            if len(self._kept) > _KNOWN and idle is not kept and idle.mutex.acquire(blocking=False):
                del self._kept[idle.run_id]
                idle.close()
                idle.mutex.release()
        return kept

    def _forget(self, kept: Kept) -> None:
        with self._mutex:
            if self._kept.get(kept.run_id) is kept:
                del self._kept[kept.run_id]
        kept.close()

    # Reading.

    def _glances_of(self, run: Run, listed: tuple[str, ...] | None) -> Iterator[Run]:
        """The headers of those listed, of every other run where no list can be read; none that cannot be read."""
        if listed is None:
            every = (one.run for _, one in self._glances() if one is not None)
            yield from (other for other in every if other.run_id != run.run_id)
            return
        for run_id in listed:
            with contextlib.suppress(NotFound, CheckpointCorrupt):
                if run_id != run.run_id:
                    yield self._look(run_id, lambda reading: reading.header())

    def _find(self, run_id: str) -> Folder:
        folder = self._place.find(run_id)
        if folder is None:
            raise NotFound(kind="run", name=run_id)
        if not self._place.is_run(folder):
            folder.close()
            raise NotFound(kind="run", name=run_id)
        return folder

    def _look(self, run_id: str, work: Callable[[Reading], _T]) -> _T:
        """Do reading work. What looks wrong is looked at again under the lock: somebody may have been writing."""
        with self._guarded(), self._find(run_id) as folder:
            try:
                with self._reading(folder, run_id) as reading:
                    return work(reading)
            except CheckpointCorrupt:
                lock = self._lock_to_read(folder)
                if lock is None:
                    raise
            try:
                with locked(lock), self._reading(folder, run_id) as reading:
                    return work(reading)
            finally:
                lock.close()

    @staticmethod
    def _lock_to_read(folder: Folder) -> Lock | None:
        with contextlib.suppress(OSError):
            return Lock(folder.open("lock", os.O_RDONLY))
        return None
