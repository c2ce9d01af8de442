"""Filters on text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..values import Refused, Run, is_number, kind, text_of
from . import arguments as _arguments

_WORD_START = re.compile(r"([-\s({\[<]+)")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}
_WORD = re.compile(r"\w+")
_CONVERSION = re.compile(r"%(?:\((\w+)\))?([-+ #0]*)(\d{0,4})(?:\.(\d{0,4}))?(.?)", re.S)


def upper(run: Run, value: Any) -> str:
    """Text in capital letters."""
    run.wrote(len(_arguments.text(value, "upper")))
    return str(value.upper())


def lower(run: Run, value: Any) -> str:
    """Text in small letters."""
    run.wrote(len(_arguments.text(value, "lower")))
    return str(value.lower())


def capitalize(run: Run, value: Any) -> str:
    """Text whose first letter is large and whose others are small."""
    run.wrote(len(_arguments.text(value, "capitalize")))
    return str(value.capitalize())


def title(run: Run, value: Any) -> str:
    """Text with a capital letter at the start of each word."""
    run.spend(len(_arguments.text(value, "title")) >> 2)
    return "".join(word[0].upper() + word[1:].lower() for word in _WORD_START.split(value) if word)


def trim(run: Run, value: Any, chars: str | None = None) -> str:
    """Text without white space (or without `chars`) at both ends."""
    run.wrote(len(_arguments.text(value, "trim")))
    if chars is not None:
        run.spend(len(_arguments.text(chars, "the characters of trim")) * len(value) >> 8)
    return str(value.strip(chars))


def replace(run: Run, value: Any, old: str, new: str, count: int | None = None) -> str:
    """Text with `old` replaced by `new`, everywhere or `count` times."""
    _arguments.text(value, "replace")
    _arguments.text(old, "what replace looks for")
    _arguments.text(new, "what replace puts in")
    limit = -1 if count is None else _arguments.whole(count, "the count of replace", least=-1)
    run.spend(len(value) >> 6)
    times = value.count(old)
    if limit >= 0:
        times = min(times, limit)
    run.wrote(len(value) + times * (len(new) - len(old)))
    return str(value.replace(old, new, limit))


def truncate(
    run: Run, value: Any, length: int = 255, killwords: bool = False, end: str = "...", leeway: int = 5
) -> str:
    """Text cut to `length` characters at a space (or anywhere, with `killwords`), with `end` put behind it."""
    _arguments.text(value, "truncate")
    least = len(_arguments.text(end, "the end of truncate"))
    _arguments.whole(length, "the length of truncate", least=least, most=1 << 30)
    _arguments.whole(leeway, "the leeway of truncate")
    if len(value) <= length + leeway:
        return str(value)
    run.wrote(length)
    head = str(value[: length - len(end)])
    return (head if _arguments.flag(killwords, "killwords") else head.rsplit(" ", 1)[0]) + end


def indent(run: Run, value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Text with its lines moved in by `width` spaces (or by that text): not the first, not blank ones, unless asked."""
    _arguments.text(value, "indent")
    margin = width if isinstance(width, str) else " " * _arguments.whole(width, "the width of indent", most=1000)
    rows = (value + "\n").splitlines()
    run.wrote(len(value) + len(rows) * len(margin))
    run.spend(len(rows))
    blank, first = _arguments.flag(blank, "blank"), _arguments.flag(first, "first")
    moved = [margin + row if row or blank else row for row in rows[1:]]
    return "\n".join([margin + rows[0] if first else rows[0], *moved])


def wordcount(run: Run, value: Any) -> int:
    """The number of words in a text."""
    run.spend(len(_arguments.text(value, "wordcount")) >> 2)
    return len(_WORD.findall(value))


def split(run: Run, value: Any, separator: str | None = None, maxsplit: int = -1) -> list[Any]:
    """The parts of a text between separators; without one, the words."""
    _arguments.text(value, "split")
    if separator is not None and not _arguments.text(separator, "the separator of split"):
        raise Refused("the separator of split cannot be empty", "`| list` gives the characters")
    run.spend(len(value) >> 6)
    parts = value.split(separator, _arguments.whole(maxsplit, "maxsplit", least=-1))
    run.spend(len(parts))
    return list(parts)


def lines(run: Run, value: Any) -> list[Any]:
    """The lines of a text, without their ends."""
    rows = _arguments.text(value, "lines").splitlines()
    run.spend(len(rows) + (len(value) >> 6))
    return list(rows)


def format_(run: Run, value: Any, *values: Any, **named: Any) -> str:
    """Text with `%s`, `%d`, `%05.2f`, `%x` or `%(name)s` filled in."""
    _arguments.text(value, "format")
    run.wrote(len(value))
    left = list(values)

    def conversion(found: re.Match[str]) -> str:
        name, flags, width, precision, letter = found.groups()
        if letter == "%" and found[0] == "%%":
            return "%"
        if letter not in set("sdifeEgGxXo"):
            raise Refused("format knows %s %d %f %e %g %x %o and %%", "write %% for a percent sign")
        if name is None and not left:
            raise Refused("format is given fewer values than the text has places")
        if name is not None and name not in named:
            raise Refused(f"format is given no '{name}'")
        given = left.pop(0) if name is None else named[name]
        spec = f"%{flags}{width}{'' if precision is None else '.' + precision}{letter}"
        text = str(spec % _convertible(given, letter, run))
        run.wrote(len(text))
        return text

    filled = _CONVERSION.sub(conversion, str(value))
    if left:
        raise Refused("format is given more values than the text has places")
    run.wrote(len(filled))
    return filled


def urlencode(run: Run, value: Any, safe: str = "/") -> str:
    """Text for a URL path (`safe=""` encodes the slash as well), or a mapping or list of pairs as a query."""
    from urllib.parse import quote

    def query(part: Any) -> str:
        text = text_of(part, run)
        run.wrote(3 * len(text))
        return quote(text, safe="", errors="replace").replace("%20", "+")

    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else value
        run.spend(len(value))
        if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs):
            raise Refused("urlencode needs text, a mapping or a list of pairs")
        return "&".join(f"{query(name)}={query(part)}" for name, part in pairs)
    text = text_of(value, run)
    run.wrote(3 * len(text))
    if not _arguments.text(safe, "what is safe").isascii():
        raise Refused("what is safe must be ASCII")
    return quote(text, safe=safe, errors="replace")


def escape(run: Run, value: Any) -> str:
    """Text with `& < > " '` written so that HTML shows them."""
    text = text_of(value, run)
    run.wrote(len(text) + 4 * sum(map(text.count, _HTML)))
    return text.translate({ord(sign): written for sign, written in _HTML.items()})


def quote(run: Run, value: Any) -> str:
    """Text as one word of a POSIX shell. `env` and `argv` are the better way to give a value to a program."""
    import shlex

    text = text_of(value, run)
    run.wrote(len(text) + 4 * text.count("'") + 2)
    return shlex.quote(text)


def basename(run: Run, value: Any) -> str:
    """The last part of a path."""
    run.wrote(len(_arguments.text(value, "basename")))
    return str(value.rpartition("/")[2])


def dirname(run: Run, value: Any) -> str:
    """A path without its last part."""
    import posixpath

    run.wrote(len(_arguments.text(value, "dirname")))
    return posixpath.dirname(str(value))


def sha256(run: Run, value: Any) -> str:
    """The SHA-256 of a text in UTF-8, as lower-case hex."""
    import hashlib

    run.spend(len(_arguments.text(value, "sha256")) >> 6)
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def b64encode(run: Run, value: Any) -> str:
    """The UTF-8 bytes of a text in Base64."""
    import base64

    run.wrote(2 * len(_arguments.text(value, "b64encode")))
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def b64decode(run: Run, value: Any) -> str:
    """The text whose UTF-8 bytes are given in Base64."""
    import base64

    run.wrote(len(_arguments.text(value, "b64decode")))
    try:
        return base64.b64decode("".join(value.split()), validate=True).decode()
    except ValueError:
        raise Refused("the text is no Base64 of UTF-8 text") from None


def _convertible(value: Any, letter: str, run: Run) -> Any:
    if letter == "s":
        return text_of(value, run)
    if not is_number(value):
        raise Refused(f"%{letter} needs a number, not {kind(value)}", "write `| int` or `| float`, or use %s")
    if letter in "xXo" and not isinstance(value, int):
        raise Refused(f"%{letter} needs a whole number")
    if letter in "di":
        return int(value)
    if letter in "feEgG" and isinstance(value, int) and abs(value) > 10**300:
        raise Refused("the number is too large")
    return value
