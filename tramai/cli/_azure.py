"""Azure Pipelines' logging commands: groups, issues, secrets; nothing of a file or a child ever read as one."""

from __future__ import annotations

from ._ci import Annotation
from ._terminal import safe

_DATA = {"%": "%AZP25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, "]": "%5D", ";": "%3B"}


class Azure:
    """Lines that an Azure agent obeys."""

    def open(self, title: str) -> list[str]:
        """A group."""
        return [f"##[group]{title}"]

    def close(self) -> list[str]:
        """The end of the group."""
        return ["##[endgroup]"]

    def annotation(self, one: Annotation) -> str | None:
        """An issue of the pipeline; there are only errors and warnings."""
        if one.severity == "notice":
            return None
        places = {"sourcepath": one.file, "linenumber": one.line, "columnnumber": one.column}
        if one.title.startswith("TRM"):
            places["code"] = one.title
        return command("task.logissue", one.text, type=one.severity, **places)

    def mask(self, value: str) -> str | None:
        """A secret."""
        return f"##vso[task.setsecret]{''.join(_DATA.get(character, character) for character in value)}"


def command(name: str, text: str, **properties: object) -> str:
    """`##vso[task.logissue type=error;…]message`, every value escaped."""
    said = ";".join(f"{key}={escaped(value, _PROPERTY)}" for key, value in properties.items() if value is not None)
    return f"##vso[{name}{' ' if said else ''}{said}]{escaped(text, _DATA)}"


def escaped(value: object, table: dict[str, str]) -> str:
    """A value as the agent reads it back."""
    return safe("".join(table.get(character, character) for character in str(value)))
