"""`validate --format github`: problems as workflow commands of GitHub Actions, nothing of a file ever read as one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._documents import File, Finding

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}
_MOST = 10
"""Annotations of one kind that GitHub shows of a step: the first ones."""


def lines(files: list[File], workspace: str | None) -> list[str]:
    """A command per problem, errors first, because GitHub shows the first ten of a kind."""
    found = [(one, report.file) for report in files for one in report.problems]
    found.sort(key=lambda pair: pair[0].severity != "error")
    commands = [command(one, _inside(file, workspace)) for one, file in found]
    errors = sum(one.severity == "error" for one, _ in found)
    for count, kind in ((errors, "errors"), (len(found) - errors, "warnings")):
        if count > _MOST:
            commands.append(f"{count} {kind}; GitHub shows {_MOST} of them as annotations, this log has all")
    return commands


def command(one: Finding, file: str) -> str:
    """`::error file=…,line=…::message`, every value escaped."""
    places = {
        "file": file,
        "line": one.line,
        "col": one.column,
        "endLine": one.end_line,
        "title": one.code,
    }
    said = ",".join(f"{name}={escaped(value, _PROPERTY)}" for name, value in places.items() if value is not None)
    text = one.message + (f"\n{one.hint}" if one.hint else "")
    for other in one.related:
        text += f"\n{other.file}:{other.line}:{other.column}: {other.message}"
    return f"::{one.severity} {said}::{escaped(text, _DATA)}"


def escaped(value: object, table: dict[str, str]) -> str:
    """A value as the runner reads it back; what would end the line or the value is spelled out."""
    from ._terminal import safe

    text = "".join(table.get(character, character) for character in str(value))
    # Line ends are escaped by now; whatever else a log or a terminal would obey is made harmless.
    return safe(text)


def _inside(file: str, workspace: str | None) -> str:
    """The path as GitHub wants it: from the root of the repository."""
    if workspace and not file.startswith("<"):
        path = os.path.relpath(os.path.abspath(file), workspace)
        if not path.startswith(".."):
            return path.replace(os.sep, "/")
    return file
