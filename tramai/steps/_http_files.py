"""The files that `http` reads and writes: which of them it may, and how they are opened.

What a file's author wrote out is taken as it is. What an expression made may only be a file in the run's folder, and no
part of it may begin with a dot: a value from outside then leads neither out of the folder nor to `.env` or `.git`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ..expression import Template
from ..permits import guard_folder
from ..step import StepError

if TYPE_CHECKING:
    from ..running import Context

_PIECE = 262144


def readable(where: str, source: Template, ctx: Context) -> str:
    """The whole path of a file that is read. StepError `refused` where it may not be."""
    text = _rendered(where, source, ctx)
    path = os.path.join(ctx.cwd, text)
    if not source.constant and not _inside(ctx.cwd, os.path.realpath(path)):
        raise StepError(
            "refused",
            f"{where}: {text} leads out of the folder in which the run was started",
            hint="write the path without an expression if it is meant",
        )
    return path


def writable(where: str, source: Template, ctx: Context) -> tuple[str, str]:
    """The path of a file that is written: as it was said, and whole, links in its folder resolved.

    Without `permits` it lies in the run's folder; with them, in a folder that `permits.write` names.
    """
    text = _rendered(where, source, ctx)
    folder, name = os.path.split(os.path.join(ctx.cwd, text))
    folder = os.path.realpath(folder)
    if name in ("", ".", "..") or os.path.isdir(os.path.join(folder, name)):
        raise StepError("refused", f"{where}: {text} is a folder", hint="write the name of a file")
    guard_folder(ctx, folder)
    if not ctx.permits and not _inside(ctx.cwd, folder):
        raise StepError(
            "refused",
            f"{where}: {text} leads out of the folder in which the run was started",
            hint="name its folder in permits.write if it is meant",
        )
    return text, os.path.join(folder, name)


def _rendered(where: str, source: Template, ctx: Context) -> str:
    text = ctx.text(source)
    if not text.strip() or "\0" in text:
        raise StepError("expression", f"{where} is {'empty' if not text.strip() else 'no path: it holds a NUL'}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise StepError("expression", f"{where} is no path: it holds half of a surrogate pair") from None
    if not source.constant:
        before = source.text.partition("${{")[0]
        made = text[len(before) :]
        if re.search(r"/\." if before and not before.endswith("/") else r"(^|/)\.", made):
            hint = "what an expression makes of a path has no `..` and no name that begins with a dot"
            raise StepError("refused", f"{where}: {text} has a part that begins with a dot", hint=hint)
    return text


def _inside(folder: str, path: str) -> bool:
    home = os.path.realpath(folder)
    return path == home or path.startswith(home.rstrip("/") + "/")


class FileTrouble(StepError):
    """A file that cannot be used: nothing that was asked of the network is to blame."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__("refused", message, hint=hint)


class Opened:
    """A file that is sent: opened once, so that what is sent again is the same, and never read as a whole."""

    def __init__(self, where: str, path: str) -> None:
        self._where, self._path = where, path
        try:
            # Without O_NONBLOCK a pipe would be waited for.
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise FileTrouble(f"{where}: {path} cannot be read: {error.strerror}") from None
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise FileTrouble(f"{where}: {path} is no ordinary file")
        self.size = found.st_size

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its bytes, from the first one; as many as there were when it was opened."""
        done = 0
        while done < self.size:
            piece = os.pread(self._file, min(_PIECE, self.size - done), done)
            if not piece:
                raise FileTrouble(f"{self._where}: {self._path} became shorter while it was sent")
            done += len(piece)
            yield piece
