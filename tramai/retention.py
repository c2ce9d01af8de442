"""How long runs that are over are kept; what is left of each still refuses its id and its start key.

`due` and `remove` are what `tramai store prune` is made of. `Retaining` is a store that does it by itself: whenever a
run ends in it, a few of those that were over long enough ago are removed, and now and then old ticks of schedules.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from .called import called_run
from .clock import Clock
from .errors import CheckpointConflict, CheckpointCorrupt, ConfigurationError, LeaseHeld, NotFound, NotInThatState
from .portable import portable
from .rules import cursor_text
from .store import CALLED, Change, Lease, Note, Run, Status, Store

OVER = (Status.COMPLETED, Status.CANCELLED, Status.DEAD)
"""Runs that nothing will ever change."""
REMOVABLE = (*OVER, Status.FAILED)
"""Runs that may be removed at all: a failed one can be resumed, so only who names that status means it."""
AT_ONCE = 10
"""Runs that the end of another one removes, at most, so that no run pays for all that have gathered."""
COMPLETION = "completion"
_TIDY = 32
_PAGE = 200


def due(store: Store, *, before: float, statuses: Sequence[Status] = OVER) -> Iterator[Run]:
    """The runs of these statuses that ended before an instant; those that other ones have called come behind these."""
    given: set[str] = set()
    called: list[Run] = []
    for status in statuses:
        if status not in REMOVABLE:
            raise ValueError(f"a run that is {status.value} is not removed")
        for run in _every(store, status):
            if ended(run) < before and not awaited(store, run):
                given.add(run.run_id)
                yield run
            elif ended(run) < before:
                called.append(run)
    for run in sorted(called, key=lambda run: (run.created, run.run_id)):
        if _caller(run) in given or not awaited(store, run):
            given.add(run.run_id)
            yield run


def ended(run: Run) -> float:
    """When a run ended; what was written last counts where that is not known."""
    return run.updated if run.finished is None else run.finished


def awaited(store: Store, run: Run) -> bool:
    """Whether another run has called this one and is not over: it may not have recorded yet how this one ended."""
    caller = _caller(run)
    if caller is None:
        return False
    try:
        return not store.get(caller).status.terminal
    except NotFound:
        return False
    except CheckpointCorrupt:
        return True


def remove(store: Store, run: Run, *, by: str = "", clock: Clock) -> bool:
    """Leave a tombstone in the place of a run; False when it has gone on meanwhile, and so stays.

    CheckpointCorrupt when the store cannot read what it would have to change.
    """
    return _remove(store, run, by=by, now=clock.now())


def seconds(text: str) -> float:
    """How long a rule keeps runs: `30d`, or `completion` for not at all; ConfigurationError for anything else."""
    from .duration import parse

    if text == COMPLETION:
        return 0.0
    try:
        return parse(text)
    except ValueError as error:
        hint = "write ?retention=30d, or ?retention=completion to keep nothing of a run that is over"
        raise ConfigurationError(what=f"retention={text}: {error}", hint=hint) from None


def split(url: str) -> tuple[str, str | None]:
    """The URL of a store without its `retention`, and that; None where it has none."""
    place, mark, query = url.rpartition("?")
    pairs = query.split("&")
    found = [pair for pair in pairs if pair.startswith("retention=")] if mark else []
    if not found:
        return url, None
    if len(found) > 1:
        raise ConfigurationError(what="the URL of the store has two retentions", hint="leave one of them")
    left = "&".join(pair for pair in pairs if pair not in found)
    return (f"{place}?{left}" if left else place), found[0].partition("=")[2]


class Retaining:
    """A store with a rule: what was over long enough ago is removed when a run ends, `AT_ONCE` runs at most.

    It is the store inside in everything else. What could not be removed is left for the next time: the end of a run
    is told whatever becomes of the others.
    """

    def __init__(self, store: Store, rule: str) -> None:
        self._store = store
        self._age = seconds(rule)
        self._portable = portable(store, "bury", "tidy")
        self.url = f"{store.url}{'&' if '?' in store.url else '?'}retention={rule}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, lease: Lease, change: Change) -> int:
        """Apply a change under the lease; see `Store.commit`."""
        revision = self._store.commit(lease, change)
        self._after(lease.run_id, change.status, change.now)
        return revision

    def amend(self, run_id: str, *, revision: int, change: Change) -> int:
        """Apply an operator's change; see `Store.amend`."""
        after = self._store.amend(run_id, revision=revision, change=change)
        self._after(run_id, change.status, change.now)
        return after

    def request_cancel(self, run_id: str, note: Note, *, now: float) -> Run:
        """Record the wish to cancel; see `Store.request_cancel`."""
        run = self._store.request_cancel(run_id, note, now=now)
        self._after(run_id, run.status, now)
        return run

    def _after(self, run_id: str, status: Status | None, now: float) -> None:
        if status in OVER:
            with contextlib.suppress(Exception):  # the run is over, and its writer must be told so
                self._sweep(run_id, now)

    def _sweep(self, run_id: str, now: float) -> None:
        before = now - self._age
        runs = list(self._due(before))[:AT_ONCE]
        if not self._age:  # whatever the clocks say, this one has ended, and with it what it has called
            known = {run.run_id for run in runs}
            ours = [run for run in self._with_called(run_id) if run.run_id not in known]
            runs = [*ours, *runs[: max(AT_ONCE - len(ours), 0)]]
        removed = [run for run in runs if self._let_go(run, now)]
        # Tidying looks through the whole store, so not every removal may cost one. Where nothing is kept there is
        # little to look through, and what a run held must be gone with it.
        if removed and (not self._age or any(_one_in(_TIDY, run) for run in removed)):
            self._portable.tidy()
            if forget := getattr(self._store, "forget_ticks", None):
                forget(before=before)

    def _due(self, before: float) -> Iterator[Run]:
        # A run begins before it ends, so the pages begin there, with runs of which nearly all are due.
        start = cursor_text(before + 1.0, "")
        for status in OVER:
            runs, _ = self._store.page(limit=AT_ONCE, after=start, status=status)
            yield from (run for run in runs if ended(run) <= before and not awaited(self._store, run))

    def _with_called(self, run_id: str) -> Iterator[Run]:
        """A run that has ended, unless it is awaited, behind those that it has called and that are over."""
        run = self._store.get(run_id)
        if awaited(self._store, run):
            return
        with contextlib.suppress(CheckpointCorrupt):
            for name in filter(None, map(called_run, self._store.journal(run_id))):
                with contextlib.suppress(NotFound):
                    one = self._store.get(name)
                    if one.status in OVER:
                        yield one
        yield run

    def _let_go(self, run: Run, now: float) -> bool:
        logs: set[str] = set()
        with contextlib.suppress(CheckpointCorrupt):  # it goes all the same: nothing will ever read it again
            logs = {record.log for record in self._store.journal(run.run_id) if record.log}
        try:
            if not _remove(self._store, run, by="retention", now=now):
                return False
        except CheckpointCorrupt:
            return False  # it stays as it is, and keeps no other from going
        for folder in {os.path.dirname(log) for log in logs}:
            _remove_logs(folder, run.run_id)
        return True


def _remove(store: Store, run: Run, *, by: str, now: float) -> bool:
    note = Note(at=now, type="run.removed", by=by or None)
    leaves = portable(store, "bury")
    try:
        leaves.bury(run.run_id, note, revision=run.revision, status=Status.REMOVED, now=now)
    except (CheckpointConflict, LeaseHeld, NotInThatState):
        return False
    return True


def _every(store: Store, status: Status) -> Iterator[Run]:
    cursor: str | None = None
    while True:
        runs, cursor = store.page(limit=_PAGE, after=cursor, status=status)
        yield from runs
        if cursor is None:
            return


def _caller(run: Run) -> str | None:
    return run.started_by.removeprefix(CALLED) if run.started_by.startswith(CALLED) else None


def _remove_logs(folder: str, run_id: str) -> None:
    """The folder of what a run's children wrote, if it is that: `logs/RUN`, on this machine."""
    above, name = os.path.split(folder)
    if name == run_id and os.path.basename(above) == "logs" and os.path.isabs(folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _one_in(many: int, run: Run) -> bool:
    """True for one run in so many, whoever asks: a generation is random."""
    from zlib import crc32

    return crc32(run.generation.encode()) % many == 0
