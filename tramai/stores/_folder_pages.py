"""Looking runs up in a store in a folder: pages, bad runs, the ends of ids.

The names of the folders are the index of ids. When a run was made is read once by each process, for it never changes;
the rest of a header is read for the runs of the page alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

from .. import rules
from ..errors import CheckpointCorrupt, StoreTooNew, TramaiError
from ..store import Run, Status
from ._files import Folder, public
from ._folder_place import Kind, Place
from ._folder_run import Reading
from ._segments import text_of


class Pages:
    """The half of a store that looks runs up."""

    KIND: ClassVar[Kind]
    _place: Place

    def __init__(self) -> None:
        self._born: dict[tuple[str | None, str], tuple[float, str]] = {}
        self._faults: tuple[Mapping[str, str], ...] = ()

    def _guarded(self, *, write: bool = False) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _reading(self, folder: Folder, run_id: str) -> Reading:
        """Read a run."""
        raise NotImplementedError

    def _glance(self, folder: Folder, name: str) -> Run:
        """The header of the run in a folder that has this name, long texts left out."""
        raise NotImplementedError

    def _birth(self, folder: Folder, name: str) -> tuple[float, str]:
        """When the run in a folder was made, and its id."""
        run = self._glance(folder, name)
        return run.created, run.run_id

    def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        status: Status | None = None,
        workflow: str | None = None,
        label: str | None = None,
    ) -> tuple[tuple[Run, ...], str | None]:
        """Newest first; see `Store.page`. A run that cannot be read has no place, and is a fault of every page."""
        rules.check_limit(limit)
        place = rules.cursor_place(after)

        def wanted(run: Run) -> bool:
            return rules.shown(run, status) and workflow in (None, run.workflow) and label in (None, *run.labels)

        with self._guarded():
            faults: list[Mapping[str, str]] = []
            found: list[Run] = []
            for born, group, name in self._order(faults):
                if born >= place:
                    continue
                run = self._shown(group, name, wanted, faults)
                if run is not None:
                    found.append(run)
                if len(found) > limit:
                    break
            self._faults = tuple(faults)
        more = 0 < limit < len(found)
        last = found[limit - 1] if more else None
        return tuple(found[:limit]), None if last is None else rules.cursor_text(last.created, last.run_id)

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Bad records met by the last `page`."""
        return self._faults

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text, by the names of their folders."""
        with self._guarded():
            found = []
            for group, name in self._place.each():
                run_id = text_of(name)
                if run_id is None:
                    with contextlib.suppress(CheckpointCorrupt, StoreTooNew, OSError):
                        run_id = self._born_of(group, name)[1]
                if run_id is not None and run_id.endswith(suffix) and self._is_run(group, name):
                    found.append(run_id)
        return tuple(sorted(found, key=lambda run_id: run_id[::-1])[:limit])

    def _order(self, faults: list[Mapping[str, str]]) -> list[tuple[tuple[float, str], str | None, str]]:
        """Every run by what pages are ordered by, newest first."""
        found = []
        for group, name in self._place.each():
            try:
                found.append((self._born_of(group, name), group, name))
            except (CheckpointCorrupt, StoreTooNew, OSError) as error:
                self._fault(group, name, error, faults)
        found.sort(key=lambda one: one[0], reverse=True)
        return found

    def _born_of(self, group: str | None, name: str) -> tuple[float, str]:
        """When a run was made, and its id: these never change."""
        born = self._born.get((group, name))
        if born is None:
            with self._place.child(group, name) as folder:
                born = self._born[group, name] = self._birth(folder, name)
        return born

    def _shown(
        self, group: str | None, name: str, wanted: Callable[[Run], bool], faults: list[Mapping[str, str]]
    ) -> Run | None:
        try:
            with self._place.child(group, name) as folder:
                run = self._glance(folder, name)
                self._born[group, name] = (run.created, run.run_id)
                if not wanted(run):
                    return None
                with self._reading(folder, run.run_id) as reading:
                    return reading.run()
        except (CheckpointCorrupt, StoreTooNew, OSError) as error:
            self._fault(group, name, error, faults)
            return None

    def _fault(
        self, group: str | None, name: str, error: TramaiError | OSError, faults: list[Mapping[str, str]]
    ) -> None:
        """Note a bad run; what is no run of ours, or has just gone, is none."""
        if isinstance(error, FileNotFoundError) or (isinstance(error, NotADirectoryError) and self.KIND.bare):
            return
        if not self._is_run(group, name):
            return
        shown = (public(error) if isinstance(error, OSError) else error).message
        run_id = self._born.get((group, name), (0.0, text_of(name) or name))[1]
        faults.append({"run_id": run_id, "what": shown})

    def _is_run(self, group: str | None, name: str) -> bool:
        try:
            with self._place.child(group, name) as folder:
                return self._place.is_run(folder)
        except FileNotFoundError:
            return False
        except OSError:
            return not self.KIND.bare
