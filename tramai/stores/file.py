"""`file:DIR`: a folder per run with an append-only journal, for one host without a database.

A commit is one append and one flush, whatever the length of the journal. A write is accepted only under the lock of
the run and, checked in the same turn, the writer's fence, token and time.
"""

from __future__ import annotations

import contextlib
import os
from typing import ClassVar, TypeVar

from ..errors import CheckpointCorrupt, NotFound
from ..store import Definition, Record, Run
from . import _folder_groups as groups
from . import _folder_keys as keys
from ._file_blobs import BLOBS
from ._file_journal import Entry, corrupt
from ._file_read import JOURNAL, Read, birth, claimed_id
from ._file_run import Journal
from ._files import Folder, Stamp, stamp
from ._folder_place import Kind
from ._folder_run import Content, Kept, Reading
from ._folder_store import FolderStore
from ._sealed import noun_of, seal, text_of, unseal
from ._segments import segment
from ._segments import text_of as id_of

_KEYS, _DEFINITIONS = ".keys", ".definitions"
_DEFINITIONS = ".definitions"
_T = TypeVar("_T")


class File(FolderStore):
    """A store of plain files, shared by the processes of one host."""

    KIND: ClassVar[Kind] = Kind(
        name="file",
        default=".tramai/runs",
        main=JOURNAL,
        folders=(keys.KEYS, _DEFINITIONS, groups.GROUPS),
        migrations=(groups.prepare,),
    )

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order, each checked, and none missing."""

        def work(reading: Reading) -> tuple[Record, ...]:
            if isinstance(reading, Read):
                reading.spare = lambda now: self._spare(run_id, now)
            return reading.records()

        return self._look(run_id, work)

    def definition(self, digest: str) -> Definition:
        """The source first kept for a digest."""
        with self._guarded(), self._place.folder.child(_DEFINITIONS) as folder:
            try:
                found = _sealed(folder, segment(digest), Definition)
            except FileNotFoundError:
                raise NotFound(kind="definition", name=digest) from None
        if found is None or found.digest != digest:
            raise CheckpointCorrupt(what=f"the definition {digest} is damaged")
        return found

    def _spare(self, run_id: str, now: os.stat_result) -> list[Entry] | None:
        """What a claim has just read of a journal, so that a resume reads it once."""
        with self._mutex:
            kept = self._kept.get(run_id)
        if not isinstance(kept, Journal) or not kept.mutex.acquire(blocking=False):
            return None
        try:
            return kept.spare(now)
        finally:
            kept.mutex.release()

    def _make(self, folder: Folder, content: Content) -> Kept:
        return Journal.begun(folder, content)

    def _writable(self, folder: Folder, run_id: str) -> Kept:
        return Journal.opened(folder, run_id)

    def _reading(self, folder: Folder, run_id: str) -> Reading:
        return Read(folder, run_id)

    def _birth(self, folder: Folder, name: str) -> tuple[float, str]:
        run_id = id_of(name)
        return (run_id is not None and birth(folder, run_id)) or super()._birth(folder, name)

    def _glance(self, folder: Folder, name: str) -> Run:
        run_id = id_of(name)
        if run_id is None:
            run_id = claimed_id(folder, name)
        if segment(run_id) != name:
            raise corrupt(name, "its folder holds another run")
        with Read(folder, run_id) as reading:
            return reading.header()

    def _started(self, key: str) -> str | None:
        try:
            run_id = keys.remembered(self._place.folder, key)
        except FileNotFoundError:
            return None
        if run_id is None:
            return self._search(key)
        # Who wrote it may have been killed before the run was there, and its id may be another run's since.
        run = self._header_of(run_id)
        return run_id if run is not None and run.start_key == key else None

    def _search(self, key: str) -> str | None:
        """The run of a start key whose file is damaged, by the headers of all runs; they must all be readable."""
        for group, name in self._place.each():
            with self._place.child(group, name) as folder:
                run = self._glance(folder, name)
            if run.start_key == key:
                return run.run_id
        return None

    def _header_of(self, run_id: str) -> Run | None:
        with contextlib.suppress(NotFound), self._find(run_id) as folder, Read(folder, run_id) as reading:
            return reading.header()
        return None

    def _announce(self, run: Run, definition: Definition | None) -> Definition | None:
        if definition is not None:
            self._keep_definition(definition)
        if run.start_key is not None:
            keys.remember(self._place.folder, run.start_key, run.run_id)
        return definition

    def _define(self, definition: Definition) -> Definition:
        self._keep_definition(definition)
        return definition

    def _loose(self, folder: Folder, run: Run) -> bool:
        return folder.stat(BLOBS) is not None

    def _candidates(self) -> dict[str, Stamp]:
        with self._place.folder.child(_DEFINITIONS) as folder:
            found = {name: folder.stat(name) for name in folder.names()}
        return {name: stamp(there) for name, there in found.items() if there is not None}

    def _tidy(self, candidates: dict[str, Stamp], used: set[str]) -> int:
        kept = set(map(segment, used))
        unused = {name: seen for name, seen in self._candidates().items() if name not in kept}
        with self._place.folder.child(_DEFINITIONS) as folder:
            # What was kept again meanwhile has another time, and belongs to somebody.
            return sum(folder.remove(name) for name, seen in unused.items() if candidates.get(name) == seen)

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the folder itself, beside its runs: definitions and start keys that cannot be read."""
        found = []
        with self._guarded(), self._place.folder.child(_DEFINITIONS) as folder:
            found += [f"the definition {name} is damaged" for name in _damaged(folder, Definition)]
        with self._guarded(), self._place.folder.child(keys.KEYS) as folder:
            found += [f"the start key {id_of(name) or name} is damaged" for name in _damaged(folder, keys.Started)]
        return tuple(found)

    def _keep_definition(self, definition: Definition) -> None:
        name = segment(definition.digest)
        with self._place.folder.child(_DEFINITIONS) as folder:
            found = None
            with contextlib.suppress(FileNotFoundError):
                found = _sealed(folder, name, Definition)
            if found is None:
                folder.replace(name, seal(text_of(definition))[0])
            else:
                folder.touch(name)  # whoever tidies just now lets it be
                folder.flush()  # its maker may have been killed before that


def _damaged(folder: Folder, kind: type[Definition | keys.Started]) -> list[str]:
    names = (name for name in folder.names() if not name.startswith("."))
    return sorted(name for name in names if _sealed(folder, name, kind) is None)


def _sealed(folder: Folder, name: str, kind: type[_T]) -> _T | None:
    """What a file holds in one sealed line; None when it is damaged."""
    line = unseal(folder.read(name))
    if line is None:
        return None
    try:
        return noun_of(line.payload, kind)
    except ValueError:
        return None
