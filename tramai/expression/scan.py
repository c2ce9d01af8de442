"""Find the `${{ … }}` in a text, and in prompts the `{% … %}` too, without looking inside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .values import ExpressionError

_PLAIN = re.compile(r"\$\$\{\{|\$\{\{")
_BLOCKS = re.compile(r"\$\$\{\{|\$\{\{|\{%|(?<!\$)\{##")
_INSIDE = re.compile(
    r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|(?P<open>[(\[{])|(?P<end>\}\}|%\})|(?P<close>[)\]}])""", re.S
)
_RAW = re.compile(r"[-+]?\s*raw\s*[-+]?")
_ENDRAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")


class Part(NamedTuple):
    """A piece of a text: `text` is literal; `expression` and `block` are tags, with `inner` between the delimiters."""

    sort: str
    start: int
    end: int
    inner: str
    inner_start: int


def scan(text: str, *, blocks: bool) -> Iterator[Part]:
    """The pieces of a text in order; ExpressionError for a tag without an end.

    `-` beside a delimiter takes away the white space on that side of the tag, as in Jinja2.
    """
    position, strip = 0, False
    pattern = _BLOCKS if blocks else _PLAIN
    while found := pattern.search(text, position):
        start, mark = found.start(), found.group()
        literal = text[position:start]
        if mark == "$${{":
            yield _text(literal.lstrip() + "${{" if strip else literal + "${{", position, found.end())
            position, strip = found.end(), False
            continue
        part, cut_before, cut_after = _tag(text, start, mark)
        literal = literal.lstrip() if strip else literal
        yield _text(literal.rstrip() if cut_before else literal, position, start)
        if part.sort == "block" and _RAW.fullmatch(part.inner):
            part = _raw(text, part)
        yield part
        position, strip = part.end, cut_after
    rest = text[position:]
    yield _text(rest.lstrip() if strip else rest, position, len(text))


def _text(text: str, start: int, end: int) -> Part:
    return Part("text", start, end, text, start)


def _tag(text: str, start: int, mark: str) -> tuple[Part, bool, bool]:
    """The tag that opens at `start`, and whether it takes away the white space before and after."""
    if mark == "{##":
        close = text.find("##}", start + 3)
        if close < 0:
            raise ExpressionError(
                "{## is never closed", text=text, start=start, end=start + 3, hint="close it with ##}"
            )
        return Part("comment", start, close + 3, "", start), text[start + 3] == "-", text[close - 1] == "-"
    inner_start = start + len(mark)
    cut_before = text[inner_start : inner_start + 1] == "-"
    if text[inner_start : inner_start + 1] in {"-", "+"}:
        inner_start += 1
        if mark == "${{" and not text[inner_start : inner_start + 1].isspace():
            raise ExpressionError(
                f"a sign at the very start of {mark} is ambiguous",
                text=text,
                start=start,
                end=inner_start,
                hint="write `${{ -x }}` for the number, `${{- x }}` to take away white space",
            )
    close = _close(text, start, inner_start, "%}" if mark == "{%" else "}}")
    inner_end = close
    if inner_end > inner_start and (text[inner_end - 1] == "-" or (mark == "{%" and text[inner_end - 1] == "+")):
        inner_end -= 1
    sort = "block" if mark == "{%" else "expression"
    part = Part(sort, start, close + 2, text[inner_start:inner_end], inner_start)
    return part, cut_before, text[close - 1] == "-" and inner_end < close


def _close(text: str, start: int, position: int, wanted: str) -> int:
    """Where the delimiter that closes a tag begins: not in a text literal and not inside brackets."""
    depth, bracket = 0, False
    while found := _INSIDE.search(text, position):
        position = found.end()
        if found["open"]:
            depth += 1
        elif found["end"] and depth == 0 and found["end"] == wanted:
            return found.start()
        elif found["end"] == "}}":
            bracket = bracket or depth > 0
            depth = max(0, depth - 1)
            position -= 1
        elif found["end"] or found["close"]:
            depth = max(0, depth - 1)
    opening, literal = ("{%", "") if wanted == "%}" else ("${{", "; for a literal ${{ write $${{")
    hint = "a bracket or a text literal in it is not closed" if bracket else f"close it with {wanted}{literal}"
    raise ExpressionError(f"{opening} is never closed", text=text, start=start, end=start + len(opening), hint=hint)


def _raw(text: str, begin: Part) -> Part:
    """What stands between `{% raw %}` and `{% endraw %}`, as a literal."""
    end = _ENDRAW.search(text, begin.end)
    if end is None:
        raise ExpressionError("{% raw %} is never closed", text=text, start=begin.start, end=begin.end)
    return Part("text", begin.start, end.end(), text[begin.end : end.start()], begin.end)
