"""What a YAML parser's complaint means to the person who wrote the file."""

from __future__ import annotations

import re

from . import _lines_at_fault
from ._nodes import Lines
from .errors import Problem

_QUOTE = "a value with `: `, ` #`, or one of `@ ` % & * ! | > { [ \" '` at its start needs quotes"
_UNCLOSED = "this quote is never closed"
# The parsers' words (libyaml's and the pure one's), what to say instead, and what to do.
_WORDS: tuple[tuple[str, str, str | None], ...] = (
    (
        r"mapping values are not allowed",
        "a `:` that cannot be here",
        "either this line is indented too far, or the text before it holds `: ` and needs quotes",
    ),
    (r"end of stream.*quoted|quoted.*end of (stream|file)", _UNCLOSED, "close it with the same quote"),
    (
        r"unknown escape character|found unknown escape",
        "an unknown escape in double quotes",
        "write \\\\ for a backslash, or use single quotes",
    ),
    (
        r"Unicode character escape",
        "an escape that names no character",
        "write characters beyond U+FFFF as \\U0001F600, or as themselves",
    ),
    (
        r"did not find expected ',' or '[\]}]'|expected ',' or '[\]}]'",
        "a `,` or the closing bracket is missing",
        _QUOTE,
    ),
    (
        r"could not find expected ':'|did not find expected key",
        "a line that is no `key: value`",
        "check the indentation here and above, and close every quote",
    ),
    (
        r"did not find expected '-' indicator|expected <block end>|block collection|block entry|sequence entries",
        "the indentation does not fit the lines above",
        "keys of one mapping, and the `-` of one list, start in one column",
    ),
    (r"found character.*that cannot start any token", "this character cannot start a value", "quote the value"),
    (r"expected the node content|expected node content", "a value is missing here", "quote the value"),
    (r"scanning an (alias|anchor)", "`*` starts an alias and `&` an anchor", "quote the value if it is text"),
    (r"block scalar", "after `|` or `>` the line must end", "put the text on the next lines, indented"),
)


def explain(error: Exception, lines: Lines, text: str) -> Problem:
    """The problem behind a parser's error, with its place and advice."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    offset = min(mark.index if mark else getattr(error, "position", 0) or 0, len(text))
    words = " ".join(str(part) for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
    if tab := _tab(text, offset):
        hint = "YAML is indented with spaces; replace the tab"
        return lines.problem("TRM101", "a tab indents this line", *tab, hint=hint)
    if expression := _expression(text, offset):
        start, end, inner = expression
        hint = f'quote the expression: "${{{{ {inner} }}}}"'
        return lines.problem("TRM120", "an expression inside { } or [ ] needs quotes", start, end, hint=hint)
    message, advice = _say(words or str(error).splitlines()[0])
    begun = getattr(error, "context_mark", None)
    if begun is not None and message == _UNCLOSED:
        return lines.problem("TRM101", message, begun.index, begun.index + 1, hint=advice)
    if looks := _lines_at_fault.yaml(text, offset):
        message, advice, offset = looks
    other = None
    if begun is not None and mark is not None and begun.index < offset and begun.line != mark.line:
        what = str(getattr(error, "context", "") or "it").removeprefix("while ")
        other = (begun.index, begun.index + 1, f"{what} that starts here")
    return lines.problem("TRM101", message, offset, min(offset + 1, len(text)), hint=advice, other=other)


def is_old_rule(error: Exception) -> bool:
    """Whether libyaml may have refused valid YAML 1.2: a `:` inside a flow value, or right after a quoted key."""
    return bool(re.search(r"found unexpected ':'|did not find expected ',' or", str(getattr(error, "problem", ""))))


def _say(words: str) -> tuple[str, str | None]:
    for pattern, message, hint in _WORDS:
        if re.search(pattern, words, re.DOTALL):
            return message, hint
    return f"not valid YAML: {words}", None


def _tab(text: str, offset: int) -> tuple[int, int] | None:
    """A tab in the indentation of the line at the offset."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    found = re.compile(r" *(\t+)").match(text, start)
    return found.span(1) if found else None


def _expression(text: str, offset: int) -> tuple[int, int, str] | None:
    """An unquoted `${{ }}` on the line at the offset, in which or after which the parser lost its way."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    found = re.compile(r"[^\r\n]*").match(text, start)
    end = found.end() if found else start
    for part in re.compile(r"(?<![\"'$])\$\{\{(.*?)\}\}").finditer(text, start, end):
        if part.start() <= offset <= part.end() and _in_flow(text[start : part.start()]):
            return part.start(), part.end(), part[1].strip()
    return None


def _in_flow(before: str) -> bool:
    bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\$\{\{.*?\}\}", "", before)
    return bare.count("{") > bare.count("}") or bare.count("[") > bare.count("]")
