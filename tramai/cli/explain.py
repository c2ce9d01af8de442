"""`tramai explain`: what an error code means, or what a key does, with examples, offline."""

from __future__ import annotations

import os
import re

import click

from ..errors import NotFound
from ._group import verb
from ._session import Session
from ._terminal import Terminal

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "explain")


@verb("explain", "tramai explain TRM104", "tramai explain retry", "tramai explain shell.parse", "tramai explain")
@click.argument("code", metavar="[CODE|KEY]", required=False)
def command(session: Session, code: str | None) -> int:
    """Explain an error code: what it means, a wrong and a right example.

    Or a key of the language: what it does, its type, default and examples. A key
    that stands in several places is named with what it stands in: shell.env.

    Without either, all codes are listed. Works offline.

    Exit status: 0 explained, 4 no such code or key.
    """
    from . import _documents

    if code is not None:
        return show(session, code) if _is_code(code) else _explain_key(session, code)
    known = titles()
    if session.json:
        session.emit(_documents.Codes(codes=[_documents.Code(code=one, title=known[one]) for one in known]))
    else:
        for one, name in known.items():
            session.out.line(f"{session.out.paint(one, 'bold')}  {name}")
    return 0


def show(session: Session, code: str) -> int:
    """Print the page of a code; NotFound with the nearest one."""
    from . import _documents

    known = titles()
    found = _wanted(code, known)
    text = read(found)
    if session.json:
        session.emit(_documents.Explanation(code=found, title=known[found], text=text))
    else:
        for line in render(found, text, session.out):
            session.out.line(line)
    return 0


def _is_code(asked: str) -> bool:
    return re.fullmatch(r"(?:error\[)?(?:TRM)?\d*\]?", asked.strip(), re.IGNORECASE | re.ASCII) is not None


def _explain_key(session: Session, asked: str) -> int:
    from . import _reference

    found = _reference.key(asked)
    if found is None:
        import difflib

        near = difflib.get_close_matches(asked.rpartition(".")[2], _reference.names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "tramai explain lists all codes, tramai schema step all verbs"
        raise NotFound(kind="error code or key", name=asked, hint=hint)
    if session.json:
        session.emit(found)
        return 0
    for line in _reference.lines(found, session.out):
        session.out.line(line)
    return 0


def titles() -> dict[str, str]:
    """Every code and its title, in order."""
    codes = sorted(entry[:-3] for entry in os.listdir(FOLDER) if entry.endswith(".md"))
    return {code: title(read(code)) for code in codes}


def title(text: str) -> str:
    """What the page of a code is called."""
    return text.split("\n", 1)[0].removeprefix("# ").strip()


def render(code: str, text: str, terminal: Terminal) -> list[str]:
    """Markdown as plain lines: headings painted, fences turned into indentation."""
    lines, fenced = [], False
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            lines.append(f"    {line}".rstrip())
        elif line.startswith("# "):
            lines.append(terminal.paint(f"{code}: {line[2:]}", "bold"))
        elif line.startswith("## "):
            lines.append(terminal.paint(line[3:], "bold"))
        else:
            lines.append(line)
    return lines


def read(code: str) -> str:
    """The page of a code, as Markdown."""
    with open(os.path.join(FOLDER, f"{code}.md"), encoding="utf-8") as file:
        return file.read()


def _wanted(code: str, known: dict[str, str]) -> str:
    digits = re.fullmatch(r"(?:error\[)?(?:TRM)?(\d{3})\]?", code.strip(), re.IGNORECASE | re.ASCII)
    name = f"TRM{digits[1]}" if digits else code.upper()
    if name in known:
        return name
    import difflib

    near = difflib.get_close_matches(name, known, n=20)
    near.sort(key=lambda code: code[:5] != name[:5])  # of those that are as near, one of the same kind
    hint = f"did you mean {near[0]} ({known[near[0]]})?" if near else "tramai explain lists all codes"
    raise NotFound(kind="error code", name=code, hint=hint)
