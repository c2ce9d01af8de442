"""Sealed lines: length, SHA-256 and JSON on one line, so that what was cut, torn or changed is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ..hashing import sha256

_T = TypeVar("_T")

_SHA = 64
_LONGEST = 15  # digits of a length; more cannot be one
_BEGINNING = re.compile(rb"[1-9][0-9]{0,14}(?: (?:[0-9a-f]{0,63}|[0-9a-f]{64}(?: [^\n]*\n?)?))?")

_encode = msgspec.json.Encoder().encode
_decoders: dict[Any, Callable[[bytes], Any]] = {}


class Line(msgspec.Struct, frozen=True):
    """A sealed line as found: where it ends in the data, its seal, its JSON."""

    end: int
    sha: str
    payload: bytes


def seal(payload: bytes) -> tuple[bytes, str]:
    """The line of a JSON text, and its SHA-256."""
    sha = sha256(payload)
    return b"%d %s %s\n" % (len(payload), sha.encode("ascii"), payload), sha


def unseal(data: bytes, start: int = 0) -> Line | None:
    """The line that begins there; None unless it is whole and as it was sealed."""
    space = data.find(b" ", start, start + _LONGEST + 1)
    digits = data[start:space]
    if space < 0 or not digits.isdigit() or digits[:1] == b"0":
        return None
    begin = space + 1 + _SHA + 1
    end = begin + int(digits)
    if data[end : end + 1] != b"\n" or data[begin - 1 : begin] != b" ":
        return None
    payload = data[begin:end]
    sha = sha256(payload)
    if sha.encode("ascii") != data[space + 1 : begin - 1]:
        return None
    return Line(end + 1, sha, payload)


def torn(rest: bytes) -> bool:
    """Whether these bytes at the end of a file can be one line whose writing was broken off.

    Its beginning, or more of it with holes where a block never reached the disk; never more than one line, and never
    one that is all there and only does not fit its seal.
    """
    newline = rest.find(b"\n")
    if newline not in (-1, len(rest) - 1):
        return False
    beginning, hole, _ = rest.partition(b"\0")
    if beginning and not _BEGINNING.fullmatch(beginning):
        return False
    digits, space, _ = beginning.partition(b" ")
    whole = len(digits) + 1 + _SHA + 1 + int(digits) + 1 if space else None
    return whole is None or len(rest) < whole or (len(rest) == whole and hole != b"")


def text_of(noun: object) -> bytes:
    """The JSON text of a Struct or of plain data."""
    try:
        return _encode(noun)
    except UnicodeEncodeError:  # msgspec knows no lone surrogates; json escapes them
        return json.dumps(msgspec.to_builtins(noun)).encode("ascii")


def noun_of(payload: bytes, kind: type[_T]) -> _T:
    """The Struct in a JSON text that `text_of` wrote; ValueError when it is none."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind).decode
    try:
        return decoder(payload)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except msgspec.DecodeError:
        pass  # a lone surrogate, most likely
    try:
        return msgspec.convert(json.loads(payload), kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
