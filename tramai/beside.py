"""Reads the files that a workflow file names: prompts, schemas, other workflows."""

from __future__ import annotations

import os

from ._nodes import LARGEST_FILE
from .document import Document
from .expression import suggest


class Unreadable(Exception):
    """Why a file cannot be used, and what to do about it."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        self.why = why
        self.hint = hint
        super().__init__(why)


def path_of(name: str, source: Document) -> str:
    """Where a file is: names start at the folder of the file that says them."""
    return os.path.normpath(os.path.join(os.path.dirname(source.file), name))


def read(path: str, *, endings: tuple[str, ...] = ()) -> bytes:
    """The bytes of a file; `endings` are those of files that may be meant instead of one that is not there."""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise Unreadable("there is no such file", _near(path, endings)) from None
    except OSError as error:
        raise Unreadable((error.strerror or str(error)).lower(), _near(path, endings)) from None
    except ValueError:  # a NUL, or half of a surrogate pair
        raise Unreadable("no file can have this name", "write the path as it is") from None
    return content


def text_of(path: str) -> tuple[str, bytes]:
    """The text of a file, and its bytes."""
    content = read(path)
    if len(content) > LARGEST_FILE:
        raise Unreadable("it is larger than 1 MiB")
    try:
        return content.decode("utf-8").removeprefix("\ufeff"), content
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8", "save the file as UTF-8") from None


def _near(path: str, endings: tuple[str, ...]) -> str:
    """The file in the same folder that may be meant."""
    folder = os.path.dirname(path) or "."
    try:
        files = [name for name in os.listdir(folder) if not endings or name.endswith(endings)]
    except OSError:
        return f"there is no folder {folder} either"
    near = suggest(os.path.basename(path), files)
    return f"did you mean {os.path.join(os.path.dirname(path), near)}?" if near else "the path starts at this file"
