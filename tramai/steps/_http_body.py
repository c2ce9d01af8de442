"""Bodies of answers: inflated within a limit, then decoded by their content type."""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, NoReturn

from .. import codec
from ..step import StepError

ENCODINGS = "gzip, deflate"
"""The content encodings that are asked for, and the only ones that are read."""

_PIECE = 65536
_TEXT = re.compile(
    r"text/.*|application/([^;]*\+)?(xml|yaml|toml|javascript|graphql)|application/x-(www-form-urlencoded|ndjson|yaml)"
    r"|application/(x-)?(javascript|ecmascript|sh|sql|jsonl|ndjson|jwt)|image/svg\+xml|message/.*",
)
_JSON = re.compile(r"(application|text)/json|[a-z]+/[^;]+\+json")
# Codecs that Python counts as text and that no server means.
_NO_CHARSETS = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"}


class TooBig(Exception):
    """The body is longer than the limit; `start` is what was read of it."""

    def __init__(self, start: bytes) -> None:
        self.start = start
        super().__init__("the body is too big")


async def inflated(chunks: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """A body in pieces, inflated."""
    engine = _inflater(encoding)
    async for chunk in chunks:
        for piece in engine.pieces(chunk) if engine else (chunk,):
            yield piece
    if engine:
        yield engine.end()


async def read(chunks: AsyncIterator[bytes], encoding: str, limit: int) -> bytes:
    """The whole body, inflated. TooBig as soon as there are more than `limit` bytes, however small they came."""
    body = bytearray()
    async with contextlib.aclosing(inflated(chunks, encoding)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > limit:
                raise TooBig(bytes(body[:limit]))
    return bytes(body)


def _inflater(encoding: str) -> _Inflater | None:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip", "deflate"):
        return _Inflater(gzip=name != "deflate")
    raise StepError(
        "invalid_output", f"the body has the content-encoding {name[:40]!r}; {ENCODINGS} are read, nothing else"
    )


class _Inflater:
    """Inflates in pieces of at most 64 KiB, so that a bomb is seen before it goes off."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._engine: Any = None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._engine is None:
                self._engine = zlib.decompressobj(self._window(data[0]))
            elif self._engine.eof:
                # A gzip file may hold several members; anything else after the end is ignored, as browsers do.
                if not self._gzip or data[0] != 0x1F:
                    return
                self._engine = zlib.decompressobj(self._window(data[0]))
            try:
                yield self._engine.decompress(data, _PIECE)
            except zlib.error:
                raise StepError("invalid_output", "the body is not compressed as its content-encoding says") from None
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail

    def end(self) -> bytes:
        """The rest; StepError when the compressed stream stops in the middle."""
        if self._engine is None:
            return b""
        rest: bytes = self._engine.flush()
        if not self._engine.eof:
            raise StepError("network", "the answer ended in the middle of its compressed body")
        return rest

    def _window(self, first: int) -> int:
        if self._gzip:
            return zlib.MAX_WBITS | 16
        # "deflate" means zlib (RFC 9110), but some servers send it bare.
        return zlib.MAX_WBITS if first & 0x8F == 0x08 else -zlib.MAX_WBITS


def decode(body: bytes, content_type: str) -> Any:
    """The value of a body.

    Empty is None. JSON types are parsed. Text types, and bodies without a type, are text: by the declared charset,
    else UTF-8, bad bytes replaced. Anything else is `{"base64": …}`.
    """
    if not body:
        return None
    kind = content_type.partition(";")[0].strip().lower()
    charset = _charset(content_type)
    if _JSON.fullmatch(kind):
        return _json(body, charset)
    if not kind or charset is not None or _TEXT.fullmatch(kind):
        return text(body, content_type)
    import base64

    return {"base64": base64.b64encode(body).decode("ascii")}


def text(body: bytes, content_type: str) -> str:
    """The body as text, whatever it holds: a byte order mark, the declared charset, UTF-8 with replacement."""
    charset = _charset(content_type)
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark) and charset in (None, "utf-8", "utf-16"):
            charset = name
    return body.decode(charset or "utf-8", "replace")


def _charset(content_type: str) -> str | None:
    """Python's name of the declared charset; None when there is none or it is unknown."""
    import codecs

    found = re.search(r";\s*charset\s*=\s*[\"']?([^\s;\"']+)", content_type, re.IGNORECASE)
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1]).name
        b"x".decode(name, "replace")
    except (LookupError, UnicodeError, ValueError):  # also codecs that do not make text, such as base64
        return None
    return None if name in _NO_CHARSETS else name


def _json(body: bytes, charset: str | None) -> Any:
    # RFC 8259 wants UTF-8; UTF-16 and UTF-32 show in the first bytes; a declared charset is the last resort.
    guess = json.detect_encoding(body)
    try:
        try:
            source = body.decode(guess)
        except UnicodeDecodeError:
            if charset is None:
                raise
            source = body.decode(charset)
        value = json.loads(source, parse_constant=_constant)
        codec.check(value)
    except RecursionError:
        raise _bad("it is nested too deep") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, NotJson, an integer of thousands of digits
        raise _bad(_reason(error)) from None
    return value


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no {error.encoding}"
    return str(error)[:200]


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _bad(reason: str) -> StepError:
    return StepError("invalid_output", f"the body says that it is JSON, but is not: {reason}")
