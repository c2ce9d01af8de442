"""Files of the user written anew: whole or not at all, with the mode they had."""

from __future__ import annotations

import difflib
import os
import stat
import tempfile

from ..errors import ConfigurationError


def replace(path: str, text: str, *, exclusive: bool = False) -> None:
    """Put a text in the place of a file. A reader sees the old one or the new one; a link stays a link.

    `exclusive`: only where there is no file yet. ConfigurationError when it cannot be written.
    """
    try:
        if exclusive:
            _make(path, text.encode("utf-8"))
            return
        _replace(os.path.realpath(path), text.encode("utf-8"))
    except FileExistsError:
        raise ConfigurationError(what=f"{path} is there already", hint="choose another name, or remove it") from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigurationError(what=f"cannot write {path}: {reason.lower()}") from None


def _make(path: str, content: bytes) -> None:
    """A new file, which is not there when it could not be written whole."""
    with open(path, "xb") as file:
        try:
            file.write(content)
            file.flush()
        except BaseException:
            os.unlink(path)
            raise


def private(path: str, text: str) -> None:
    """The same, for what its owner alone may read: a new file has the mode 0600, whatever was there before."""
    try:
        _replace(os.path.realpath(path), text.encode("utf-8", "backslashreplace"), mode=0o600)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigurationError(what=f"cannot write {path}: {reason.lower()}") from None


def _replace(path: str, content: bytes, *, mode: int | None = None) -> None:
    try:
        before: os.stat_result | None = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):  # a device or a pipe is written to, not replaced
        with open(path, "wb") as file:
            file.write(content)
        return
    if before is not None:
        with open(path, "r+b"):  # read-only files stay as they are
            pass
    handle, made = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".tramai-", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(made, mode or (stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~_umask()))
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def diff(path: str, old: str, new: str) -> list[str]:
    """The lines of a unified diff, without their line ends."""
    lines = difflib.unified_diff(
        old.split("\n"), new.split("\n"), fromfile=f"a/{path.lstrip('/')}", tofile=f"b/{path.lstrip('/')}", lineterm=""
    )
    return list(lines)


def has_mark(path: str) -> bool:
    """Whether a file begins with a byte order mark, which is no part of its text."""
    with open(path, "rb") as file:
        return file.read(3) == b"\xef\xbb\xbf"
