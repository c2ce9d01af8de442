"""Jinja2's own parser, fed with our tokens, and with errors in words that do not speak of templates and tokens."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.lexer import TokenStream
from jinja2.parser import Parser

from . import foreign
from .tokens import Tokens, Unreadable, environment

_EXPECTED = re.compile(r"expected token '(.+?)', got .*", re.S)
_ENDS = {"end of print statement": "}}", "end of statement block": "%}"}


class FieldParser(Parser):
    """Parses the tokens of one field; errors have their place in it."""

    def __init__(self, text: str, tokens: Tokens) -> None:
        super().__init__(environment(), "")
        self._text = text
        self._tokens = tokens
        self.stream = TokenStream(iter(tokens.tokens), None, None)

    def statements(self) -> list[nodes.Node]:
        """What the whole field consists of; Unreadable for what does not follow the grammar."""
        try:
            return self.subparse()
        except TemplateSyntaxError as error:
            number = self._tokens.index(error.lineno)
            if "end of template" in str(error.message):
                self._refuse_unclosed()
            end = self._tokens.ends[number]
            raise Unreadable(self._message(error, number), error.lineno, end, self._hint(number)) from None
        except RecursionError:
            raise Unreadable("the expression is nested too deeply", 0, self._tokens.ends[-1]) from None

    def _message(self, error: TemplateSyntaxError, number: int) -> str:
        """What Jinja2 says, in words that do not speak of templates and tokens."""
        message = str(error.message)
        found = self._text[error.lineno : self._tokens.ends[number]]
        expected = _EXPECTED.fullmatch(message)
        if expected and expected[1] == "end of print statement":
            return f"unexpected '{found}'"
        if expected:
            wanted = "a name" if expected[1] == "name" else f"'{_ENDS.get(expected[1], expected[1])}'"
            return f"expected {wanted}, found '{found}'"
        if message.startswith("unexpected '"):
            return (
                f"the expression ends too early, before '{found}'"
                if found in _ENDS.values()
                else f"unexpected '{found}'"
            )
        if message.startswith("Encountered unknown tag"):
            return f"unexpected tag '{found}'"
        if message.startswith("Expected an expression"):
            return f"expected an expression, found '{found}'"
        return message.rstrip(".")

    def _refuse_unclosed(self) -> None:
        """Point at the last tag that was opened and not closed."""
        opened: list[Any] = []
        for before, token in pairwise(self._tokens.tokens):
            if before.type == "block_begin" and token.value in {"if", "for", "set"}:
                opened.append(token)
            elif before.type == "block_begin" and token.value in {"endif", "endfor", "endset"} and opened:
                opened.pop()
        opened = [token for token in opened if token.value != "set"] or opened
        if opened:
            start, name = opened[-1].lineno, opened[-1].value
            raise Unreadable(
                f"the tag '{name}' is never closed", start, start + len(name), f"close it with {{% end{name} %}}"
            )

    def _hint(self, number: int) -> str | None:
        token, before = self._tokens.tokens[number], self._tokens.tokens[max(0, number - 1)]
        habit = foreign.of_token(self._text, token.lineno, self._tokens.ends[number])
        if habit is not None:
            return habit
        if token.type == "assign":
            return "to compare, write =="
        return "write `or`" if token.type == before.type == "pipe" else None
