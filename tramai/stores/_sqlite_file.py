"""The place of the SQLite store: its folder, and where a database must not live."""

from __future__ import annotations

import os

from ..errors import CheckpointCorrupt, ConfigurationError, NotFound, StoreUnavailable
from ._files import network_kind

_MAGIC = b"SQLite format 3\x00"


def default_path(where: str) -> str:
    """The path of a URL's text; `.tramai/tramai.db` for none."""
    if "\x00" in where:
        raise ConfigurationError(what="the path of the store holds a NUL character")
    return where or os.path.join(".tramai", "tramai.db")


def followed(path: str) -> str:
    """The path of the file itself where a link stands: its log and its lock lie beside it, under its own name.

    Two who came by different names would each take a lock of their own.
    """
    return os.path.realpath(path) if os.path.islink(path) else path


def prepare(path: str, *, create: bool) -> None:
    """Make the folder if need be, and refuse a place where a database cannot live. NotFound without `create`."""
    if os.path.isdir(path):
        raise StoreUnavailable(what=f"{path!r} is a folder, not a file")
    folder = os.path.dirname(path) or "."
    if not _is_there(path):
        if not create:
            raise NotFound(kind="store", name=path)
        _make_folder(folder)
        _keep_out_of_git(folder)
    elif os.stat(path).st_size == 0:
        hint = "it was cut off, or never was a store; remove it to start afresh"
        raise StoreUnavailable(what=f"{path!r} is empty", hint=hint)
    elif _is_cut_short(path):
        raise CheckpointCorrupt(what="the database file is damaged: its end is missing")
    kind = network_kind(folder)
    if kind is not None:
        hint = "SQLite needs a local disk; use another path, or a store made for several machines"
        raise StoreUnavailable(what=f"{path!r} is on a network file system ({kind})", hint=hint)


def _is_there(path: str) -> bool:
    """Whether there is such a file; where that may not be known, nobody is told that there is none."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreUnavailable(what=f"it cannot be reached ({error.strerror})") from None
    return True


def _is_cut_short(path: str) -> bool:
    """Whether pages at the end are missing. SQLite would notice only when it needs one of them.

    While there is a log beside the file, they may stand in the log; so it is looked for before and after.
    """
    try:
        if os.path.exists(f"{path}-wal"):
            return False
        with open(path, "rb") as file:
            head = file.read(100)
        if len(head) < 100 or not head.startswith(_MAGIC) or os.path.exists(f"{path}-wal"):
            return False
        page = int.from_bytes(head[16:18], "big")
        return os.stat(path).st_size < int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)
    except OSError:
        return False  # opening it will say why


def _make_folder(folder: str) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder) or "."
    try:
        for name in reversed(missing):
            _make_one(name)
    except OSError as error:
        raise StoreUnavailable(what=f"its folder cannot be made ({error.strerror})") from None


def _make_one(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
        return  # somebody else made it first
    flush(os.path.dirname(folder) or ".")


def _keep_out_of_git(folder: str) -> None:
    if os.path.basename(folder) != ".tramai":
        return
    try:
        with open(os.path.join(folder, ".gitignore"), "x", encoding="ascii") as file:
            file.write("*\n")
    except FileExistsError:
        pass  # it is somebody's, and may say something else
    except OSError as error:
        raise StoreUnavailable(what=f"its folder cannot be written ({error.strerror})") from None


def flush(path: str) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
