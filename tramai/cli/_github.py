"""GitHub Actions' workflow commands: groups, annotations, masks; nothing of a file or a child ever read as one."""

from __future__ import annotations

from ._ci import Annotation
from ._terminal import safe

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


class GitHub:
    """Lines that a runner of GitHub Actions obeys."""

    def __init__(self) -> None:
        self._token = ""

    def open(self, title: str) -> list[str]:
        """A group in which nothing is obeyed but the word, made by chance, that ends it."""
        import secrets

        self._token = secrets.token_hex(16)
        return [f"::group::{title}", f"::stop-commands::{self._token}"]

    def close(self) -> list[str]:
        """The end of the group."""
        return [f"::{self._token}::", "::endgroup::"]

    def annotation(self, one: Annotation) -> str:
        """`::error file=…,line=…::message`, every value escaped."""
        places = {
            "file": one.file,
            "line": one.line,
            "col": one.column,
            "endLine": one.end_line,
            "title": one.title,
        }
        said = ",".join(f"{name}={escaped(value, _PROPERTY)}" for name, value in places.items() if value is not None)
        return f"::{one.severity} {said}::{escaped(one.text, _DATA)}"

    def mask(self, value: str) -> str:
        """The command that hides a value."""
        return f"::add-mask::{''.join(_DATA.get(character, character) for character in value)}"


def escaped(value: object, table: dict[str, str]) -> str:
    """A value as the runner reads it back; what would end the line or the value is spelled out."""
    text = "".join(table.get(character, character) for character in str(value))
    # Line ends are escaped by now; whatever else a log or a terminal would obey is made harmless.
    return safe(text)
