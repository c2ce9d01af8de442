"""The folder of a store whose runs are folders: its marker, its lock, its layout, and where each run stands."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ..errors import CheckpointCorrupt, ConfigurationError, NotFound, StoreTooNew, StoreUnavailable
from ._files import Folder, Lock, locked, make_folders, network_kind
from ._segments import is_segment, segment

LAYOUTS = ("flat", "workflow")
_MARKER, _LOCK, _STAGE = ".store", ".lock", ".new"


class Marker(msgspec.Struct, frozen=True):
    """What a store's folder says of itself, in its file `.store`."""

    store: str
    format: int = 1
    layout: str = "flat"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What the stores in folders differ in, as far as their folder goes."""

    name: str
    default: str
    main: str
    """The file that makes a folder a run."""
    folders: tuple[str, ...] = ()
    """What else is made with a new store."""
    ignore: str | None = None
    """What Git should not take, of a store that is meant to be in version control."""
    bare: bool = False
    """Runs are taken as they are where there is no marker: they came alone, from a checkout."""
    migrations: tuple[Callable[[Folder], None], ...] = ()
    """The nth makes format n+1 of format n; each must be right to do again after a kill."""

    @property
    def format(self) -> int:
        """The present format."""
        return len(self.migrations) + 1


def place_of(where: str, kind: Kind) -> tuple[str, str | None]:
    """The path and the layout in a URL's text: `DIR` or `DIR?layout=NAME`."""
    if "\x00" in where:
        raise ConfigurationError(what="the path of the store holds a NUL character")
    found = re.fullmatch(r"(.*)\?layout=([^?/]*)", where, re.S)
    path, layout = (found[1], found[2]) if found else (where, None)
    if layout is not None and layout not in LAYOUTS:
        raise ConfigurationError(what=f"no layout goes by {layout!r}", hint=f"layouts: {', '.join(LAYOUTS)}")
    return path or kind.default, layout


def peek(where: str, kind: Kind) -> int | None:
    """The format of the store at a place, nothing changed; None where there is none of this kind."""
    path, _ = place_of(where, kind)
    try:
        with Folder.at(path) as folder:
            marker = msgspec.json.decode(folder.read(_MARKER, 4096), type=Marker)
    except (OSError, msgspec.DecodeError):
        return None
    return marker.format if marker.store == kind.name else None


class Stage:
    """A run's folder while it is made."""

    def __init__(self, place: Place, above: Folder, name: str, folder: Folder) -> None:
        self.folder = folder
        self._place, self._above, self._name = place, above, name

    def publish(self, run_id: str, workflow: str) -> None:
        """Give it the name of its run, for good: whole or not at all, also after a loss of power."""
        self.folder.flush()
        root = self._place.folder
        if self._place.layout == "flat":
            self._above.move(self._name, root, segment(run_id))
            root.flush()
            return
        group = "@" + segment(workflow)
        try:
            into = root.child(group)
        except FileNotFoundError:
            into = root.make(group)
            root.flush()
        with into:
            self._above.move(self._name, into, segment(run_id))
            into.flush()


class Place:
    """The opened folder of a store."""

    def __init__(self, path: str, kind: Kind, layout: str | None, *, create: bool) -> None:
        """Open it, and make it if need be; NotFound instead with `create=False`."""
        self.kind = kind
        self.path = path
        self._mutex = threading.Lock()
        self._lock: Lock | None = None
        made = self._prepare(path, create)
        self.folder = Folder.at(path)
        marker = self._marker()
        if marker is None:
            marker = self._begin(layout, create=create, made=made)
        self.layout = self._agreed(marker, layout, create)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The only one, among threads and processes, who makes runs meanwhile."""
        with self._mutex:
            while True:
                if self._lock is None:
                    self._lock = self.folder.lock(_LOCK)
                with locked(self._lock):
                    if not self._lock.removed():
                        yield
                        return
                self._lock.close()
                self._lock = None

    def busy(self) -> bool:
        """Whether somebody is making a run at this moment."""
        with contextlib.suppress(FileNotFoundError):
            return Lock(self.folder.open(_LOCK, os.O_RDONLY)).taken()
        return False

    def find(self, run_id: str) -> Folder | None:
        """The folder of a run, opened; None where nothing has its name."""
        name = segment(run_id)
        for group in self._groups():
            try:
                return self.child(group, name)
            except FileNotFoundError:
                pass
        return None

    def taken(self, run_id: str) -> bool:
        """Whether anything has the name of a run."""
        return self._above(run_id, lambda above: None)

    def settle(self, run_id: str) -> None:
        """Make the name of a run durable: who made it may have been killed before that."""
        self._above(run_id, Folder.flush)

    def _above(self, run_id: str, work: Callable[[Folder], None]) -> bool:
        """Do something with the folder that has an entry of a run's name; whether there is one."""
        name = segment(run_id)
        for group in self._groups():
            if group is None:
                if self.folder.stat(name) is not None:
                    work(self.folder)
                    return True
                continue
            with self.folder.child(group) as above:
                if above.stat(name) is not None:
                    work(above)
                    work(self.folder)
                    return True
        return False

    def each(self) -> Iterator[tuple[str | None, str]]:
        """Group and segment of every run, in no order."""
        for group in self._groups():
            if group is None:
                names = self.folder.names()
            else:
                with self.folder.child(group) as above:
                    names = above.names()
            for name in names:
                if is_segment(name):
                    yield group, name

    def child(self, group: str | None, name: str) -> Folder:
        """The folder of a run by its group and segment."""
        if group is None:
            return self.folder.child(name)
        with self.folder.child(group) as above:
            return above.child(name)

    def is_run(self, folder: Folder) -> bool:
        """Whether a folder is a run's, damaged or not, and not somebody else's."""
        return any(folder.stat(name) is not None for name in (self.kind.main, "lock"))

    @contextmanager
    def staged(self) -> Iterator[Stage]:
        """A fresh folder that nobody sees yet; in the turn of the caller.

        Whatever stands there from before is of somebody who was killed in his turn.
        """
        try:
            above = self.folder.child(_STAGE)
        except FileNotFoundError:
            above = self.folder.make(_STAGE)
        with above:
            for old in above.names():
                above.remove_folder(old)
            name = os.urandom(8).hex()
            stage = Stage(self, above, name, above.make(name))
            try:
                yield stage
            except BaseException:
                stage.folder.close()
                with contextlib.suppress(OSError):
                    above.remove_folder(name)
                raise

    def close(self) -> None:
        """Give the handles back."""
        self.folder.close()
        if self._lock is not None:
            self._lock.close()

    def _groups(self) -> Iterator[str | None]:
        yield None
        if self.layout == "workflow":
            yield from (name for name in self.folder.names() if name.startswith("@") and is_segment(name[1:]))

    def _prepare(self, path: str, create: bool) -> bool:
        """Make the folder if need be, and refuse a place where locks cannot be trusted. Whether it was made."""
        missing = not os.path.isdir(path)
        if missing:
            if os.path.lexists(path) and not os.path.isdir(path):  # asked again: somebody may just have made it
                raise StoreUnavailable(what=f"{path!r} is a file, not a folder")
            if not create:
                raise NotFound(kind="store", name=path)
            try:
                make_folders(path)
            except OSError as error:
                raise StoreUnavailable(what=f"its folder cannot be made ({error.strerror})") from None
        kind = network_kind(path)
        if kind is not None:
            hint = "its locks need a local disk; use another path, or a store made for several machines"
            raise StoreUnavailable(what=f"{path!r} is on a network file system ({kind})", hint=hint)
        return missing

    def _marker(self) -> Marker | None:
        try:
            data = self.folder.read(_MARKER, 4096)
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(data, type=Marker)
        except msgspec.DecodeError:
            raise CheckpointCorrupt(what=f"the file {_MARKER} of the store is damaged") from None

    def _begin(self, layout: str | None, *, create: bool, made: bool) -> Marker:
        """Make a store of an empty folder; refuse one that holds something else."""
        ours = {_MARKER, _LOCK, _STAGE, ".gitignore", *self.kind.folders}
        marker = Marker(self.kind.name, self.kind.format, layout or "flat")
        others = [name for name in self.folder.names() if name not in ours and not name.endswith(".part")]
        if others:
            there = self._marker()  # somebody may just have made it
            if there is not None or self.kind.bare:
                return there or marker
            what = f"its folder holds other things and no {_MARKER} file"
            raise StoreUnavailable(what=what, hint="it is left as it is; name a folder of its own")
        if not create:
            self.folder.close()
            raise NotFound(kind="store", name=self.kind.name)
        with self.turn():
            there = self._marker()
            if there is not None:
                return there
            for name in self.kind.folders:
                if self.folder.stat(name) is None:
                    self.folder.make(name).close()
            if made and self.kind.ignore is not None:
                self.folder.replace(".gitignore", self.kind.ignore.encode())
            self._mark(marker)
        return marker

    def _mark(self, marker: Marker) -> None:
        self.folder.replace(_MARKER, msgspec.json.encode(marker) + b"\n")

    def _agreed(self, marker: Marker, layout: str | None, create: bool) -> str:
        """The layout, when the store is one of ours; brought to the present format first."""
        if marker.store != self.kind.name:
            raise StoreUnavailable(what=f"its folder holds a store of the kind {marker.store!r}")
        if marker.format > self.kind.format:
            raise StoreTooNew(found=marker.format, known=self.kind.format)
        if marker.layout not in LAYOUTS or marker.format < 1:
            raise CheckpointCorrupt(what=f"the file {_MARKER} of the store is damaged")
        if marker.format < self.kind.format:
            self._migrate()
        if layout is not None and layout != marker.layout:
            what = f"its layout is {marker.layout!r}, not {layout!r}"
            raise ConfigurationError(
                what=what, hint="a store keeps the layout it was made with; leave it out of the URL"
            )
        return marker.layout

    def _migrate(self) -> None:
        """Bring the store to the present format, once; who was killed over it, or comes second, finds that out here."""
        with self.turn():
            marker = self._marker()
            if marker is None:
                raise CheckpointCorrupt(what=f"the file {_MARKER} of the store is missing")
            if marker.format > self.kind.format:  # a newer version was quicker
                raise StoreTooNew(found=marker.format, known=self.kind.format)
            for step in self.kind.migrations[marker.format - 1 :]:
                step(self.folder)
                marker = msgspec.structs.replace(marker, format=marker.format + 1)
                self._mark(marker)
