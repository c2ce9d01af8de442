"""What the stores in folders have of `tramai.portable.Portable`: whole runs in, tombstones, and how the folder is."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ..errors import CheckpointCorrupt, NotFound, StoreTooNew
from ..store import Definition, Note, Run, Status
from ._files import Folder, Stamp
from ._folder_pages import Pages
from ._folder_place import peek
from ._folder_run import Content, Kept

if TYPE_CHECKING:
    from ..portable import Bundle, Info


_Name = tuple[str | None, str]


class _Glance(msgspec.Struct, frozen=True):
    """The header of a run, and whether something in it may be loose."""

    run: Run
    loose: bool


class Whole(Pages):
    """The part of a store that is about whole runs and the store itself."""

    url: str

    def _writing(self, run_id: str) -> AbstractContextManager[Kept]:
        raise NotImplementedError

    def _begin(self, content: Content) -> Kept:
        """Make a run in the turn of its maker."""
        raise NotImplementedError

    def _started(self, key: str) -> str | None:
        raise NotImplementedError

    def _announce(self, run: Run, definition: Definition | None) -> Definition | None:
        raise NotImplementedError

    def _candidates(self) -> dict[str, Stamp]:
        """The definitions that are kept apart from runs, by the names of their files."""
        return {}

    def _tidy(self, candidates: dict[str, Stamp], used: set[str]) -> int:
        """In a turn, let go of those that are as they were and not among these digests; the bytes that frees."""
        return 0

    def adopt(self, bundle: Bundle) -> Run:
        """Take a whole run in; see `Portable.adopt`."""
        from ..portable import StartKeyTaken
        from . import _whole

        _whole.check_bundle(bundle)
        run = bundle.run
        with self._guarded(write=True), self._place.turn():
            if self._place.taken(run.run_id):
                there = self._read_header(run.run_id)
                if not _whole.replaces(there, run):
                    return there
            started = None if run.start_key is None else self._started(run.start_key)
            if started not in (None, run.run_id):
                raise StartKeyTaken(key=run.start_key, run_id=started)
            if self._place.taken(run.run_id):
                with self._writing(run.run_id) as kept:
                    _whole.replaces(kept.run, run)  # asked again: nothing but a claim can have happened to it
                    kept.rewrite(self._content(bundle))
            else:
                self._begin(self._content(bundle))
        return run

    def bury(self, run_id: str, note: Note, *, revision: int, status: Status, now: float) -> Run:
        """Leave a tombstone; see `Portable.bury`."""
        from . import _whole

        with self._writing(run_id) as kept:
            run = _whole.buried(kept.run, revision=revision, status=status, now=now)
            kept.rewrite(Content(run=run, notes=(replace(note, seq=1),), definitions=kept.definitions()))
            return run

    def tidy(self) -> int:
        """Remove definitions and long texts that no run refers to; nothing while there is a run that cannot be read.

        Nobody has to wait for it who makes a run: in a turn only those runs are looked at that were made meanwhile.
        """
        with self._guarded(write=True):
            candidates = self._candidates()
            found = dict(self._glances())
            if None in found.values():
                return 0
            freed = sum(self._tidy_run(one.run.run_id) for one in found.values() if one is not None and one.loose)
            with self._place.turn():
                found |= dict(self._glances(known=found))
                runs = [None if one is None else one.run for one in found.values()]
                used = {run.digest for run in runs if run is not None and not run.status.tombstone}
                return freed if None in runs else freed + self._tidy(candidates, used)

    def info(self) -> Info:
        """How the folder is."""
        from ..portable import Info

        with self._guarded():
            runs = Counter(one.run.status.value for _, one in self._glances() if one is not None)
            place = self._place
            return Info(
                kind=self.KIND.name,
                url=self.url,
                place=os.path.abspath(place.path),
                format=self.KIND.format,
                size=_size(place.path),
                runs=dict(runs),
                locks=(f".lock: {'taken, somebody makes a run' if place.busy() else 'free'}",),
                hints=tuple(self._hints()),
            )

    @classmethod
    def peek(cls, where: str) -> int | None:
        """The format of the store at a place; None where there is none."""
        return peek(where, cls.KIND)

    @classmethod
    def newest(cls) -> int:
        """The format that stores have now."""
        return cls.KIND.format

    def _hints(self) -> Iterator[str]:
        yield f"layout {self._place.layout}"

    def _tidy_run(self, run_id: str) -> int:
        with contextlib.suppress(NotFound), self._writing(run_id) as kept:
            return kept.tidy()
        return 0

    def _loose(self, folder: Folder, run: Run) -> bool:
        """Whether a run may hold something that it does not refer to."""
        raise NotImplementedError

    def _content(self, bundle: Bundle) -> Content:
        definition = self._announce(bundle.run, bundle.definition)
        definitions = () if definition is None else (definition,)
        return Content(run=bundle.run, records=bundle.records, notes=bundle.notes, definitions=definitions)

    def _read_header(self, run_id: str) -> Run:
        folder = self._place.find(run_id)
        if folder is None:
            raise NotFound(kind="run", name=run_id)
        with folder, self._reading(folder, run_id) as reading:
            return reading.run()

    def _glances(self, known: Collection[_Name] = ()) -> Iterator[tuple[_Name, _Glance | None]]:
        """The header of every run but those known, by the name of its folder; None for a bad one."""
        for group, name in self._place.each():
            if (group, name) in known:
                continue
            try:
                with self._place.child(group, name) as folder:
                    run = self._glance(folder, name)
                    yield (group, name), _Glance(run, self._loose(folder, run))
            except (CheckpointCorrupt, StoreTooNew, OSError):
                if self._is_run(group, name):
                    yield (group, name), None


def _size(path: str) -> int:
    """The bytes of all files in a folder."""
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
    return size
