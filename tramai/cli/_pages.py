"""Short pages of Markdown as plain lines for a terminal, wrapped to its width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from ._terminal import Terminal

_ITEM = re.compile(r"- |\d+\. ")


def render(text: str, terminal: Terminal, *, width: int = 80) -> list[str]:
    """Headings painted, fences turned into indentation, paragraphs and lists wrapped."""
    lines: list[str] = []
    for kind, part in _parts(text):
        if kind == "code":
            lines += [f"    {line}".rstrip() for line in part]
        elif kind == "head":
            lines.append(terminal.paint(part[0].lstrip("# "), "bold"))
        elif kind == "item":
            lines += _wrapped(part, width, "  ")
        elif kind == "text":
            lines += _wrapped(part, width, "")
        else:
            lines.append("")
    return lines


def _wrapped(part: list[str], width: int, indent: str) -> list[str]:
    """The lines; words are kept whole, since many can be copied."""
    return textwrap.wrap(
        " ".join(part), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _parts(text: str) -> Iterator[tuple[str, list[str]]]:
    """The pieces of a page: heading, text, item of a list, code, blank."""
    kind, part, fenced = "", [], False  # type: ignore[var-annotated]
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("```"):
            if part:
                yield kind, part
            kind, part, fenced = "code", [], not fenced
        elif fenced:
            part.append(line)
        elif not line or line.startswith("#") or _ITEM.match(line) or kind not in ("text", "item"):
            if part:
                yield kind, part
            kind, part = _kind(line), [line.strip()]
        else:
            part.append(line.strip())
    if part:
        yield kind, part


def _kind(line: str) -> str:
    if not line:
        return "blank"
    if line.startswith("#"):
        return "head"
    return "item" if _ITEM.match(line) else "text"
