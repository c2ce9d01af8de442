"""Make the index of error codes: `python -m tramai.cli._error_index docs/reference/errors.md`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import tramai

from ..errors import TramaiError
from . import explain
from ._language import FAMILIES

_TESTING = "tramai.testing"
_HEAD = """\
# Error codes

`tramai explain CODE` shows the page of a code in a terminal, offline, with a wrong and a right example; each code here
leads to it. A code keeps its meaning for ever ([stability](stability.md)).

A problem of a file (1xx to 3xx) makes `tramai validate` exit with 1, and keeps a run from starting (3); a warning does
neither. Of the others, the exit status and the Python class stand here, where there is one of its own.

This page is made from `tramai/explain`: `python -m tramai.cli._error_index docs/reference/errors.md`.
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_family(digit, title) for digit, title in FAMILIES.items())


def _family(digit: str, title: str) -> str:
    known = [code for code in explain.titles() if code[3] == digit]
    classes = {code: kind for kind in _classes() for code in [kind.code] if "code" in vars(kind)}
    told = any(code in classes for code in known)
    head = "| code | what happened | what it means |" + (" exit | class |" if told else "")
    rows = [head, re.sub(r"[^|]+", "---", head)]
    for code in known:
        name, _, text = explain.read(code).partition("\n")
        row = f"| [{code}](../../tramai/explain/{code}.md) | {_cell(name.lstrip('# '))} | {_cell(_first(text))} |"
        if told:
            kind = classes.get(code)
            row += f" {kind.exit_status} | `{kind.__name__}` |" if kind else " | |"
        rows.append(row)
    return f"\n## {digit}xx: {title[0].lower()}{title[1:]}\n\n" + "\n".join(rows) + "\n"


def _first(text: str) -> str:
    """The first sentence of an explanation."""
    paragraph = " ".join(text.partition("## ")[0].split("\n\n")[0].split())
    match = re.match(r".+?[.!?](?= [A-Z`]|$)", paragraph)
    return match[0] if match else paragraph


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|")


def _classes() -> list[type[TramaiError]]:
    for found in pkgutil.walk_packages(tramai.__path__, "tramai."):
        # `testing` is for pytest, which wants to be the first to load it.
        if not found.name.endswith("__main__") and not found.name.startswith(_TESTING):
            importlib.import_module(found.name)
    known = (kind for kind in set(_below(TramaiError)) if not kind.__module__.startswith(_TESTING))
    return sorted(known, key=lambda kind: kind.__name__)


def _below(kind: type[TramaiError]) -> Iterator[type[TramaiError]]:
    for inner in kind.__subclasses__():
        if inner.__module__.startswith("tramai."):
            yield inner
        yield from _below(inner)


if __name__ == "__main__":
    import sys

    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
