"""`markdown:DIR`: a run is one Markdown file that people read, compare and keep under version control.

The file alone is enough to resume the run, whatever Git or an editor made of its line ends. Every write replaces the
whole file, so it is meant for runs of up to about a thousand steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

from ..errors import CheckpointCorrupt, NotFound, StoreTooNew
from ..store import Definition, Run
from . import _folder_groups as groups
from . import _folder_keys as keys
from ._files import Folder, Stamp, stamp
from ._folder_place import Kind
from ._folder_run import Content, Kept, Reading
from ._folder_store import FolderStore
from ._markdown_run import CHECKPOINT, Checkpoint, Read, birth, front, refuse_if_started, unreadable
from ._markdown_text import Front
from ._segments import segment
from ._segments import text_of as id_of

_KNOWN = 32
_IGNORED = "lock\n.lock\n.keys/\n.groups/\n.new/\n*.part\n"


class Markdown(FolderStore):
    """A store of Markdown files, shared by the processes of one host."""

    KIND: ClassVar[Kind] = Kind(
        name="markdown",
        default=".tramai/markdown",
        main=CHECKPOINT,
        ignore=_IGNORED,
        bare=True,
        migrations=(groups.prepare,),
    )

    def __init__(self, where: str = "", *, create: bool = True) -> None:
        """Open the folder, and make it if need be; NotFound instead with `create=False`."""
        super().__init__(where, create=create)
        self._fronts: dict[tuple[str | None, str], tuple[Stamp, Front]] = {}
        self._sources: dict[str, Definition] = {}

    def definition(self, digest: str) -> Definition:
        """The source kept for a digest, in the checkpoint of a run that has it."""
        with self._guarded():
            found = self._source(digest)
        if found is None:
            raise NotFound(kind="definition", name=digest)
        return found

    def _make(self, folder: Folder, content: Content) -> Kept:
        return Checkpoint.begun(folder, content)

    def _writable(self, folder: Folder, run_id: str) -> Kept:
        return Checkpoint(folder, run_id)

    def _reading(self, folder: Folder, run_id: str) -> Reading:
        return Read(folder, run_id)

    def _birth(self, folder: Folder, name: str) -> tuple[float, str]:
        born = birth(folder, id_of(name) or name)
        return born if segment(born[1]) == name else super()._birth(folder, name)

    def _glance(self, folder: Folder, name: str) -> Run:
        run = front(folder, id_of(name) or name).run
        if segment(run.run_id) != name:
            what = f"{name}/{CHECKPOINT} is the checkpoint of another run"
            raise CheckpointCorrupt(what=what, run_id=run.run_id)
        return run

    def _started(self, key: str) -> str | None:
        sound: set[str] = set()
        bad: list[tuple[str | None, str]] = []
        for _, name, found in self._all(bad):
            if found.run.start_key == key:
                return found.run.run_id
            sound.add(name)
        for group, name in bad:
            with self._place.child(group, name) as folder:
                refuse_if_started(folder, id_of(name) or name, key)
        self._refuse_if_remembered(key, sound)
        return None

    def _refuse_if_remembered(self, key: str, sound: set[str]) -> None:
        """Raise when the run that a key has started is there, and its checkpoint does not even tell its start key."""
        try:
            run_id = keys.remembered(self._place.folder, key)
        except FileNotFoundError:
            return
        if run_id is None or segment(run_id) in sound:
            return  # who wrote it may have been killed before the run was there, and its id is another run's since
        folder = self._place.find(run_id)
        if folder is not None:
            with folder:
                raise unreadable(folder, run_id)

    def _announce(self, run: Run, definition: Definition | None) -> Definition | None:
        if run.start_key is not None:
            keys.remember(self._place.folder, run.start_key, run.run_id)
        return None if definition is None else self._define(definition)

    def _loose(self, folder: Folder, run: Run) -> bool:
        return run.status.tombstone

    def _define(self, definition: Definition) -> Definition:
        first = self._sources.get(definition.digest) or self._source(definition.digest) or definition
        if len(self._sources) >= _KNOWN:
            self._sources.clear()
        self._sources[first.digest] = first
        return first

    def _source(self, digest: str) -> Definition | None:
        """The definition of a digest in any checkpoint: all of them have the source that was first kept."""
        for group, name, found in self._all():
            if digest in found.definitions:
                with contextlib.suppress(CheckpointCorrupt), self._place.child(group, name) as folder:
                    return next(kept for kept in Read(folder, found.run.run_id).definitions() if kept.digest == digest)
        return None

    def _all(self, bad: list[tuple[str | None, str]] | None = None) -> Iterator[tuple[str | None, str, Front]]:
        """The front matter of every sound checkpoint, each version of a file read once; the others go into `bad`."""
        for group, name in self._place.each():
            try:
                with self._place.child(group, name) as folder:
                    found = self._front(group, name, folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (CheckpointCorrupt, StoreTooNew, OSError):
                if bad is not None:
                    bad.append((group, name))
                continue
            if found is not None:
                yield group, name, found

    def _front(self, group: str | None, name: str, folder: Folder) -> Front | None:
        there = folder.stat(CHECKPOINT)
        if there is None:
            return None
        known = self._fronts.get((group, name))
        if known is None or known[0] != stamp(there):
            found = front(folder, id_of(name) or name)
            if segment(found.run.run_id) != name:
                return None
            known = self._fronts[group, name] = (stamp(there), found)
        return known[1]
