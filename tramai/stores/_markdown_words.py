"""How values stand in a Markdown checkpoint: plain words where YAML allows it, JSON where not, fences for texts."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import msgspec

from ..codec import NotJson, encode

# What an editor or a line-based tool may take for something else, and what UTF-8 cannot say.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_NOT_AS_IS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_BARE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_CONSTANTS: dict[str, Any] = {"null": None, "true": True, "false": False}
_MEANING = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_FENCE = re.compile(r"`{3,}([a-z]+) ([a-z]+)( as-is| quoted)?")

_QUICK = 400
_INDENTED = (80, 20_000)
"""Characters between which a JSON text is written indented: less is read at a glance, more by nobody."""


def scalar(value: Any) -> str:
    """A value on one line, as YAML and for people."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _MEANING:
        return value
    return _escaped(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))


def scalar_value(text: str) -> Any:
    """The value that `scalar` wrote, a comment behind a number left out; ValueError when it is none."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[:1] in '"[{':
        return _json(text)
    if _BARE.fullmatch(text):
        return text
    number = text.split("  #", 1)[0]
    if _NUMBER.fullmatch(number):
        return _json(number)
    raise ValueError(text)


def instant(seconds: float) -> str:
    """An instant as the number that is kept, and as people write it."""
    try:
        shown = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return scalar(seconds)
    return f"{scalar(seconds)}  # {shown}"


def shown(text: str) -> str:
    """A text in a heading: one line, nothing that Markdown takes for itself."""
    line = " ".join(_NOT_AS_IS.sub("\ufffd", text).split())
    return re.sub(r"([\\`*_{}<>#|])", r"\\\1", line[:200])


def json_fence(name: str, text: str) -> str:
    """A fenced block for a JSON text, from which exactly this text comes back.

    Canonical JSON is shown indented and in its own letters. A text of another form stands there as it is, and one
    that a text file cannot hold is quoted.
    """
    if len(text) <= _INDENTED[1]:
        try:
            value = json.loads(text)
            if encode(value) == text:
                indent = 2 if len(text) > _INDENTED[0] else None
                return _fenced(f"json {name}", _escaped(json.dumps(value, ensure_ascii=False, indent=indent)))
        except (ValueError, NotJson, RecursionError):
            pass
    return _plain_fence("json", name, text)


def text_fence(language: str, name: str, text: str) -> str:
    """A fenced block for any text; its last line end is that of the block."""
    if text.endswith("\n") and not _NOT_AS_IS.search(text):
        return _fenced(f"{language} {name} as-is", text[:-1])
    return _fenced(f"json {name} quoted", _quoted(text))


def opens_fence(line: str) -> tuple[str, str]:
    """The name and the form that a line opens a block with; ValueError for other lines."""
    found = _FENCE.fullmatch(line)
    if found is None:
        raise ValueError(line)
    return found[2], found[1] + (found[3] or "")


def fence_text(form: str, content: str) -> str:
    """The text that `json_fence` or `text_fence` put into a block of this form."""
    language, _, kept = form.partition(" ")
    if kept == "quoted":
        return str(json.loads(content))
    if kept == "as-is":
        return content if language == "json" else content + "\n"
    return encode(json.loads(content))


def _json(text: str) -> Any:
    if len(text) > _QUICK or "\\u" in text:
        return json.loads(text)  # msgspec knows no lone surrogates, and makes a float of a large integer
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def _plain_fence(language: str, name: str, text: str) -> str:
    if text and not _NOT_AS_IS.search(text):
        return _fenced(f"{language} {name} as-is", text)
    return _fenced(f"json {name} quoted", _quoted(text))


def _fenced(info: str, content: str) -> str:
    longest = max(map(len, re.findall("`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{content}\n{fence}\n"


def _quoted(text: str) -> str:
    return _escaped(json.dumps(text, ensure_ascii=False))


def _escaped(text: str) -> str:
    """JSON with what is not safe in a text file escaped; it stands inside of strings only."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
