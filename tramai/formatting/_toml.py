"""A TOML text in canonical form: pairs in order, one blank line before a table; tables and values stay as they are."""

from __future__ import annotations

from .._shape import Shape
from ..document import Document
from ..errors import Pointer
from . import _order
from ._remarks import BLANK, settle
from ._toml_lines import Pair, Section, Sections


def format_toml(source: Document, *, reorder: bool) -> str:
    """The text in canonical form. Line ends are `\\n`.

    The order of tables has a meaning where they are elements of a list, and most authors give it one elsewhere.
    """
    sections = Sections(source.text)
    lines = list(sections.head)
    for number, section in enumerate(sections.sections):
        if section.header:
            lines += [BLANK, *(line for line in section.remarks.before if line)]
            lines.append(section.header + _behind(section.remarks.beside))
        for index, pair in enumerate(_ordered(section, reorder)):
            before = pair.remarks.before
            if index == 0:
                while before[:1] == [BLANK] and (section.header or number):
                    before = before[1:]
            lines += [*before, *f"{pair.key} = {pair.value}{_behind(pair.remarks.beside)}".split("\n")]
        lines += section.remarks.tail
    lines += sections.end
    return _joined(lines, source)


def comments(source: Document) -> list[str]:
    """The text of every comment that stands outside of values."""
    found: list[str] = []
    sections = Sections(source.text)
    for lines in (sections.head, sections.end):
        found += filter(None, lines)
    for section in sections.sections:
        for remarks in (section.remarks, *(pair.remarks for pair in section.pairs)):
            found += filter(None, [*remarks.before, remarks.beside or "", *remarks.tail])
    return found


def _joined(lines: list[str], source: Document) -> str:
    # Empty lines inside a string look like blank ones: where there are strings of several lines, none is taken away.
    if '"""' in source.text or "'''" in source.text:
        return _joined_with_strings(lines)
    return "\n".join(settle(lines)).strip("\n") + "\n"


def _joined_with_strings(lines: list[str]) -> str:
    kept: list[str] = []
    inside = ""
    for line in lines:
        if line == BLANK and not inside and (not kept or kept[-1] == BLANK):
            continue
        kept.append(line)
        inside = _open_string(line, inside)
    return "\n".join(kept).strip("\n") + "\n"


def _open_string(line: str, inside: str) -> str:
    """The quotes of the string of several lines that is open at the end of a line."""
    at = 0
    while at < len(line):
        if inside:
            end = line.find(inside, at)
            while inside == '"""' and end > 0 and (end - len(line[:end].rstrip("\\"))) % 2:
                end = line.find(inside, end + 1)
            if end < 0:
                return inside
            at, inside = end + 3, ""
            while line[at : at + 1] in ("'", '"') and line[at - 1] == line[at]:
                at += 1
        elif line.startswith(('"""', "'''"), at):
            inside, at = line[at : at + 3], at + 3
        elif line[at] in "\"'":
            end = at + 1
            while end < len(line) and line[end] != line[at]:
                end += 2 if line[end] == "\\" and line[at] == '"' else 1
            at = end + 1
        elif line[at] == "#":
            return ""
        else:
            at += 1
    return inside


def _behind(comment: str | None) -> str:
    return f" {comment}" if comment else ""


def _ordered(section: Section, reorder: bool) -> list[Pair]:
    if not reorder:
        return section.pairs
    shape = _shape(section.at)
    wanted = {
        key: place for place, key in enumerate(_order.keys(shape, dict.fromkeys(p.names[0] for p in section.pairs)))
    }
    return sorted(section.pairs, key=lambda pair: wanted[pair.names[0]])


def _shape(at: Pointer) -> Shape:
    shape = _order.root()
    for part in at:
        shape = shape.item() if isinstance(part, int) else shape.at(part)
    return shape
