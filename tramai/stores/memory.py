"""`memory:`: runs kept in this process alone, for tests and for trying things out.

Nothing is shared: another process, and another `Memory`, sees none of it, and all of it ends with the process.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from .. import places, rules
from ..errors import CheckpointConflict, ConfigurationError, LeaseLost, NotFound, StoreUnavailable
from ..portable import Bundle, Info, StartKeyTaken
from ..store import Change, Definition, Holder, Lease, Mark, NewRun, Note, Record, Run, RunExists, Status
from . import _whole
from ._memory_pool import Pool
from ._memory_timetable import Timetable


class _Kept(msgspec.Struct):
    """One run as it stands. What is handed out is frozen: Structs, and tuples made anew."""

    run: Run
    records: list[Record] = []
    notes: list[Note] = []
    completed: set[str] = set()


class Memory(Pool, Timetable):
    """A store in memory: the whole contract, nothing shared between processes."""

    def __init__(self, where: str = "", *, create: bool = True, url: str = "memory:", sealed: bool = False) -> None:
        if where:
            raise ConfigurationError(what=f"memory: takes no place, but got {where!r}")
        self.url = url
        self._sealed = sealed
        self._lock = threading.Lock()
        self._open = True
        self._runs: dict[str, _Kept] = {}
        self._start_keys: dict[str, str] = {}
        self._definitions: dict[str, Definition] = {}
        self._groups: dict[str, tuple[str, ...]] = {}
        self._workers = {}
        self._entries = {}
        self._ticks = {}

    def create(self, new: NewRun, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease | None]:
        """Make the run and claim it; see `Store.create`."""
        rules.check_new(new, owner, ttl)
        with self._lock:
            self._check_takes()
            if new.start_key is not None and new.start_key in self._start_keys:
                return self._kept(self._start_keys[new.start_key]).run, None
            if new.run_id in self._runs:
                raise RunExists(run_id=new.run_id)
            run = rules.begun(new, owner=owner, holder=holder, ttl=ttl, now=now)
            self._definitions.setdefault(new.definition.digest, new.definition)
            self._runs[new.run_id] = _Kept(run)
            if new.start_key is not None:
                self._start_keys[new.start_key] = new.run_id
            return run, run.lease

    def claim(self, run_id: str, *, owner: str, holder: Holder, ttl: float, now: float) -> tuple[Run, Lease]:
        """Take the lease; see `Store.claim`."""
        rules.check_claim(run_id, owner, ttl)
        with self._lock:
            kept = self._kept(run_id)
            before = kept.run.status
            kept.run, lease = rules.claimed(kept.run, owner=owner, holder=holder, ttl=ttl, now=now)
            return replace(kept.run, status=before), lease

    def enter(self, lease: Lease, *, within: Collection[str] = (), now: float) -> tuple[str, ...]:
        """Take a place in the group of the run; see `Store.enter`."""
        with self._lock:
            kept = self._leased(lease)
            run = kept.run
            if places.settled(run, lease, now) or run.group is None:
                return ()
            listed = self._groups.get(run.group.name, ())
            others = [self._runs[run_id].run for run_id in listed if run_id != run.run_id]
            turn = places.turn(run, listed, others, within=within, now=now)
            if turn.listed is not None:
                self._groups[run.group.name] = turn.listed
            kept.run = turn.run or run
            return turn.before

    def call_up(self, group: str, *, now: float) -> None:
        """Wake who is next in line; see `Lines.call_up`."""
        with self._lock:
            listed = [self._runs[run_id] for run_id in self._groups.get(group, ()) if run_id in self._runs]
            next_up = places.next_up([kept.run for kept in listed], group, now)
            for kept in listed:
                if kept.run.run_id in next_up:
                    kept.run = places.called_up(kept.run, now)

    def renew(self, lease: Lease, *, ttl: float, now: float) -> Lease:
        """Extend the lease from now; see `Store.renew`."""
        rules.check_ttl(ttl)
        with self._lock:
            kept = self._leased(lease)
            renewed = rules.renewed(kept.run.lease, lease, ttl=ttl, now=now)
            kept.run = replace(kept.run, lease=renewed)
            return renewed

    def release(self, lease: Lease, *, now: float) -> None:
        """Give the lease back; see `Store.release`."""
        with self._lock:
            self._check_open()
            kept = self._runs.get(lease.run_id)
            if kept is not None and rules.gives_back(kept.run.lease, lease, now=now):
                kept.run = replace(kept.run, lease=None)

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`."""
        with self._lock:
            kept = self._leased(lease)
            if not rules.current(kept.run.lease, lease, change.now):
                raise LeaseLost
            return self._apply(kept, rules.changed(kept.run, change), change)

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        with self._lock:
            kept = self._kept(run_id)
            return self._apply(kept, rules.amended(kept.run, revision=revision, change=change), change)

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        with self._lock:
            kept = self._kept(run_id)
            kept.run = rules.cancelled(kept.run, now=now)
            kept.notes.append(replace(note, seq=len(kept.notes) + 1))
            return kept.run

    def post(self, run_id: str, note: Note, *, after: int, due: bool = False, now: float) -> Run:
        """Add a line to the event list; see `Store.post`."""
        with self._lock:
            kept = self._kept(run_id)
            kept.run = rules.posted(kept.run, last=len(kept.notes), after=after, due=due, now=now)
            kept.notes.append(replace(note, seq=after + 1))
            return kept.run

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled."""
        with self._lock:
            return self._kept(run_id).run.cancel_requested

    def get(self, run_id: str) -> Run:
        """The header."""
        with self._lock:
            return self._kept(run_id).run

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order."""
        with self._lock:
            return tuple(self._kept(run_id).records)

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order."""
        with self._lock:
            return tuple(self._kept(run_id).notes)

    def definition(self, digest: str) -> Definition:
        """The source first kept for a digest."""
        with self._lock:
            self._check_open()
            if digest not in self._definitions:
                raise NotFound(kind="definition", name=digest)
            return self._definitions[digest]

    def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        status: Status | None = None,
        workflow: str | None = None,
        label: str | None = None,
    ) -> tuple[tuple[Run, ...], str | None]:
        """Newest first; see `Store.page`."""
        rules.check_limit(limit)
        place = rules.cursor_place(after)
        with self._lock:
            self._check_open()
            wanted = [
                kept.run
                for kept in self._runs.values()
                if (kept.run.created, kept.run.run_id) < place
                and rules.shown(kept.run, status)
                and workflow in (None, kept.run.workflow)
                and (label is None or label in kept.run.labels)
            ]
        wanted.sort(key=lambda run: (run.created, run.run_id), reverse=True)
        found = tuple(wanted[:limit])
        more = bool(found) and len(wanted) > limit
        return found, rules.cursor_text(found[-1].created, found[-1].run_id) if more else None

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Nothing: what is in memory is not read back from anywhere."""
        return ()

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text."""
        with self._lock:
            self._check_open()
            found = [run_id for run_id in self._runs if run_id.endswith(suffix)]
        return tuple(sorted(found, key=lambda run_id: run_id[::-1])[:limit])

    def adopt(self, bundle: Bundle) -> Run:
        """Take a whole run in; see `Portable.adopt`."""
        _whole.check_bundle(bundle)
        run = bundle.run
        with self._lock:
            self._check_takes()
            there = self._runs.get(run.run_id)
            if there is not None and not _whole.replaces(there.run, run):
                return there.run
            if run.start_key is not None:
                taken_by = self._start_keys.setdefault(run.start_key, run.run_id)
                if taken_by != run.run_id:
                    raise StartKeyTaken(key=run.start_key, run_id=taken_by)
            if bundle.definition is not None:
                self._definitions.setdefault(run.digest, bundle.definition)
            done = {record.path for record in bundle.records if record.mark is Mark.COMPLETED}
            self._runs[run.run_id] = _Kept(run, [*bundle.records], [*bundle.notes], done)
            return run

    def bury(self, run_id: str, note: Note, *, revision: int, status: Status, now: float) -> Run:
        """Leave a tombstone; see `Portable.bury`."""
        with self._lock:
            run = _whole.buried(self._kept(run_id).run, revision=revision, status=status, now=now)
            self._runs[run_id] = _Kept(run, [], [replace(note, seq=1)])
            return run

    def tidy(self) -> int:
        """Forget definitions that no run has."""
        with self._lock:
            self._check_open()
            used = {kept.run.digest for kept in self._runs.values() if not kept.run.status.tombstone}
            used |= {entry.digest for entry in self._entries.values()}
            unused = [self._definitions.pop(digest) for digest in self._definitions.keys() - used]
        return sum(len(one.canonical) + len(one.text) for one in unused)

    def info(self) -> Info:
        """How many runs there are; nothing lies anywhere."""
        with self._lock:
            self._check_open()
            counts = Counter(kept.run.status.value for kept in self._runs.values())
        kind = self.url.partition(":")[0]
        hint = "nothing is stored there yet" if self._sealed else "nothing of it outlives this process"
        return Info(kind=kind, url=self.url, runs=dict(counts), hints=(hint,))

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._open = False
            self._runs.clear()

    def _check_takes(self) -> None:
        self._check_open()
        if self._sealed:
            raise StoreUnavailable(what="it was opened for reading")

    def _check_open(self) -> None:
        if not self._open:
            raise StoreUnavailable(what="it is closed")

    def _keep(self, run: Run) -> None:
        self._runs[run.run_id] = _Kept(run)

    def _kept(self, run_id: str) -> _Kept:
        self._check_open()
        if run_id not in self._runs:
            raise NotFound(kind="run", name=run_id)
        return self._runs[run_id]

    def _leased(self, lease: Lease) -> _Kept:
        self._check_open()
        if lease.run_id not in self._runs:
            raise LeaseLost
        return self._runs[lease.run_id]

    def _apply(self, kept: _Kept, after: Run, change: Change) -> int:
        """Check everything first, then set: a refused change leaves nothing behind."""
        rules.follows(len(kept.records), change.records)
        completed = [record.path for record in change.records if record.mark is Mark.COMPLETED]
        if len(set(completed)) < len(completed) or not kept.completed.isdisjoint(completed):
            raise CheckpointConflict
        count = len(kept.notes)
        kept.notes += [replace(note, seq=count + place) for place, note in enumerate(change.notes, 1)]
        kept.records += change.records
        kept.completed.update(completed)
        kept.run = after
        if change.definition is not None:
            self._definitions.setdefault(change.definition.digest, change.definition)
        return after.revision
