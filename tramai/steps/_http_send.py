"""Bodies of requests that are made of files: sent piece by piece, with a length that is known before."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..expression import Text, Value
from ..step import StepError
from ._http_files import Opened, readable

if TYPE_CHECKING:
    from ..running import Context

BINARY = "application/octet-stream"


class Content:
    """A body in pieces. It can be sent more than once: each look at it begins with the first byte."""

    def __init__(self, *pieces: bytes | Opened) -> None:
        self._pieces = pieces
        self.length = sum(len(piece) if isinstance(piece, bytes) else piece.size for piece in pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
                continue
            async for chunk in piece.chunks():
                yield chunk


def file_body(source: Text, ctx: Context, opened: ExitStack) -> tuple[Content, str]:
    """A file as the whole body, and its content type by its name."""
    file, path = _open("body_file", source, ctx, opened)
    return Content(file), _guessed(path)


def multipart(
    parts: dict[str, Value], ctx: Context, opened: ExitStack, texts: Callable[[str, Any], str]
) -> tuple[Content, str]:
    """A body of several parts after RFC 7578, and its content type. `texts` makes a text of a value, or an error."""
    boundary = f"tramai-{secrets.token_hex(16)}"
    pieces: list[bytes | Opened] = []
    for name, source in parts.items():
        for head, piece in _part(name, source, ctx, opened, texts):
            pieces += [f"--{boundary}\r\n{head}\r\n\r\n".encode(), piece, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return Content(*pieces), f"multipart/form-data; boundary={boundary}"


def _part(
    name: str, source: Value, ctx: Context, opened: ExitStack, texts: Callable[[str, Any], str]
) -> Iterator[tuple[str, bytes | Opened]]:
    """One part, or one for each text of a list: its head, and what is in it."""
    where = f"multipart.{name}"
    # The shape is that of the file, never that of a value: data cannot say `{file: …}`.
    if not isinstance(source.data, dict):
        value = ctx.value(source)
        for item in value if isinstance(value, list) else (value,):
            yield _head(name), _bytes(where, texts(where, item))
        return
    given = {key: Text(text) for key, text in source.data.items()}
    kind = _line(f"{where}.type", ctx.text(given["type"])) if "type" in given else None
    if "text" in given:
        yield _head(name, kind=kind), _bytes(where, ctx.text(given["text"]))
        return
    file, path = _open(f"{where}.file", given["file"], ctx, opened)
    shown = ctx.text(given["name"]) if "name" in given else path.rpartition("/")[2]
    yield _head(name, shown, kind or _guessed(shown)), file


def _open(where: str, source: Text, ctx: Context, opened: ExitStack) -> tuple[Opened, str]:
    path = readable(where, source, ctx)
    file = Opened(where, path)
    opened.callback(file.close)
    return file, path


def _head(name: str, filename: str | None = None, kind: str | None = None) -> str:
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if filename is not None:
        head += f'; filename="{_quoted(filename)}"'
    return head if kind is None else f"{head}\r\nContent-Type: {kind}"


def _quoted(name: str) -> str:
    """As the HTML standard has it, so that no name ends its line or its quotes."""
    safe = name.encode("utf-8", "replace").decode()
    return safe.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _bytes(where: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise StepError("expression", f"{where} holds half of a surrogate pair, which no encoding can say") from None


def _line(where: str, text: str) -> str:
    if not text.isascii() or not text.isprintable() or "/" not in text:
        raise StepError("expression", f"{where} is no content type", hint="write one such as application/json")
    return text


def _guessed(name: str) -> str:
    """The type that a name says, by the table that is built into Python, so that every machine says the same."""
    import mimetypes

    kind, packed = mimetypes.MimeTypes().guess_type(f"x/{name.rpartition('/')[2]}")
    return kind if kind is not None and packed is None else BINARY
