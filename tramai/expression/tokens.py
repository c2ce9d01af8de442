"""The tokens of Jinja2's own lexer, with the place of every token in the field where Jinja2 keeps a line number."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from jinja2 import Environment
from jinja2.lexer import Token, get_lexer, operators

from . import foreign
from .scan import Part

_MOST_TOKENS = 20_000
_DEEPEST = 32
_DEPTH = {"lparen": 1, "lbracket": 1, "lbrace": 1, "rparen": -1, "rbracket": -1, "rbrace": -1}
_SIGNS = frozenset({"add", "sub"})
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-7]{1,3}|.)", re.S)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_HINTS = {"&": "write `and`", "!": "write `not`", "?": "write `a if b else c`", "$": "names have no $"}
_HINTS |= dict.fromkeys("'\"", "close the text literal")


class Unreadable(Exception):
    """The text cannot be read as an expression; `start` and `end` are offsets in the field."""

    def __init__(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        self.message = message
        self.start = start
        self.end = end
        self.hint = hint
        super().__init__(message)


class Tokens:
    """The tokens of a field in order, and where each of them ends."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.ends: list[int] = []
        self._at: dict[int, int] | None = None

    def add(self, start: int, end: int, sort: str, value: Any) -> None:
        """Append a token."""
        if len(self.tokens) >= _MOST_TOKENS:
            raise Unreadable("the expression is too long", start, end)
        self.tokens.append(Token(start, sort, value))
        self.ends.append(end)

    def index(self, start: int) -> int:
        """Which token starts at this offset."""
        if self._at is None:
            self._at = {}
            for number, token in enumerate(self.tokens):
                self._at.setdefault(token.lineno, number)
        return self._at[start]

    def closing(self, number: int) -> int:
        """Where the bracket ends that this token opens."""
        depth = 0
        for at in range(number, len(self.tokens)):
            depth += _DEPTH.get(self.tokens[at].type, 0)
            if depth == 0:
                return self.ends[at]
        return self.ends[-1]


@functools.cache
def environment() -> Environment:
    """Jinja2 with everything as it is by default; only its lexer and parser are used."""
    return Environment()  # noqa: S701 - nothing is rendered by it


def read_tag(part: Part, into: Tokens) -> None:
    """Append the tokens inside a tag; Unreadable for what is no token."""
    if not part.inner.strip():
        raise Unreadable("there is no expression between the braces", part.start, part.end)
    pattern = _lexer()
    position = depth = signs = 0
    while found := pattern.match(part.inner, position):
        start, position = part.inner_start + position, found.end()
        sort, text = found.lastgroup, found.group()
        if sort == "whitespace":
            continue
        kind = operators[text] if sort == "operator" else str(sort)
        into.add(start, part.inner_start + position, kind, _value(kind, text, start, part.inner_start + position))
        depth += _DEPTH.get(kind, 0)
        signs = signs + 1 if kind in _SIGNS or text == "not" else 0
        if depth > _DEEPEST or signs > _DEEPEST:
            raise Unreadable("the expression is nested too deeply", start, part.inner_start + position)
    if position < len(part.inner):
        character, start = part.inner[position], part.inner_start + position
        hint = foreign.of_token(part.inner, position, position + 1) or _HINTS.get(character)
        raise Unreadable(f"unexpected '{character}'", start, start + 1, hint)


@functools.cache
def _lexer() -> re.Pattern[str]:
    """Jinja2's patterns, in the order in which it tries them, as one."""
    rules = get_lexer(environment()).rules["variable_begin"]
    flags = ((re.IGNORECASE, "i"), (re.VERBOSE, "x"), (re.DOTALL, "s"))
    parts = []
    for pattern, name, command in rules:
        if command is not None:  # the end of the tag, which `scan` has found already
            continue
        letters = "".join(letter for flag, letter in flags if pattern.flags & flag)
        inside = f"(?{letters}:{pattern.pattern}\n)" if "x" in letters else f"(?{letters}:{pattern.pattern})"
        parts.append(f"(?P<{name}>{inside if letters else pattern.pattern})")
    return re.compile("|".join(parts))


def read_parts(parts: Iterable[Part], into: Tokens) -> None:
    """Append the tokens of a whole field."""
    for part in parts:
        if part.sort == "text" and part.inner:
            into.add(part.start, part.end, "data", part.inner)
        if part.sort in {"expression", "block"}:
            name = "variable" if part.sort == "expression" else "block"
            into.add(part.start, part.inner_start, f"{name}_begin", "")
            read_tag(part, into)
            into.add(part.end - 2, part.end, f"{name}_end", "")


def _value(sort: str, text: str, start: int, end: int) -> Any:
    """The value of a token, read as Jinja2 does."""
    if sort == "string":
        return _unescape(text[1:-1], start, end)
    if sort == "name" and not text.isidentifier():
        raise Unreadable(f"'{text[:60]}' is no name", start, end)
    try:
        if sort == "integer":
            return int(text.replace("_", ""), 0)
        if sort == "float":
            value = float(text.replace("_", ""))
            if value - value != 0:
                raise ValueError(text)
            return value
    except ValueError:
        raise Unreadable("the number is too large", start, end) from None
    return text


def _unescape(text: str, start: int, end: int) -> str:
    """A literal with its escapes resolved as in Python; an escape nobody knows stays as it is."""
    if "\\" not in text:
        return text

    def escape(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
        elif code[0] == "N" and len(code) > 1:
            import unicodedata

            return unicodedata.lookup(code[2:-1])
        elif code[0] in "01234567":
            number = int(code, 8)
        elif code[0] in "xuUN":
            raise ValueError(code)
        else:
            return _ESCAPES.get(code, code if code in "\\'\"" else found[0])
        if 0xD800 <= number < 0xE000:
            raise ValueError(code)
        return chr(number)

    try:
        return _ESCAPE.sub(escape, text)
    except (ValueError, KeyError, OverflowError):
        raise Unreadable("the text literal has an escape that stands for no character", start, end) from None
