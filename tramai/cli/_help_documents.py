"""The JSON document of `tramai help`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Text = str | None


class Topic(Struct, frozen=True, kw_only=True):
    """A topic and its title."""

    name: str
    title: str


class Help(Struct, frozen=True, kw_only=True):
    """`help`: a topic (`text` is Markdown), the help of a command, or with neither the list of both."""

    schema: Literal["tramai.help/1"] = "tramai.help/1"
    kind: Annotated[Literal["topic", "command", "list"], Meta(description="what the text is about")]
    name: Text
    text: Text
    topics: list[Topic]
    commands: list[Topic]


DOCUMENTS = (Help,)
