"""The JSON documents of the commands that write and look at files. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ._documents import Body

Text = str | None


class FormattedFile(Struct, frozen=True, kw_only=True):
    """A file that `fmt` looked at."""

    file: str
    status: Annotated[
        Literal["formatted", "unchanged", "refused"],
        Meta(description="formatted (with --check or --diff: would be), unchanged, or refused with an `error`"),
    ]
    note: Annotated[Text, Meta(description="why its keys were not put in order")] = None
    fixed: Annotated[int, Meta(description="mistakes that --fix mended")] = 0
    diff: Annotated[str | UnsetType, Meta(description="with --diff: what would change")] = UNSET
    text: Annotated[str | UnsetType, Meta(description="of standard input: the text in canonical form")] = UNSET
    error: Body | UnsetType = UNSET


class Formatting(Struct, frozen=True, kw_only=True):
    """What `fmt` did."""

    schema: Literal["tramai.formatting/1"] = "tramai.formatting/1"
    files: list[FormattedFile]


class Lost(Struct, frozen=True, kw_only=True):
    """A comment that has no place in the other format."""

    line: int
    text: str


class Conversion(Struct, frozen=True, kw_only=True):
    """What `convert` made; `text` is null when it went to a file."""

    schema: Literal["tramai.conversion/1"] = "tramai.conversion/1"
    file: str
    to: Literal["toml", "yaml"]
    digest: str
    output: Annotated[Text, Meta(description="the file it was written to")]
    text: Text
    lost: Annotated[list[Lost], Meta(description="comments that have no place in the other format")]


class Made(Struct, frozen=True, kw_only=True):
    """What `init` wrote."""

    schema: Literal["tramai.made/1"] = "tramai.made/1"
    template: str
    folder: str
    files: list[str]
    next: Annotated[list[str], Meta(description="the commands to go on with")]


class KeyHelp(Struct, frozen=True, kw_only=True):
    """A key that a verb, or another part of the language, has."""

    key: str
    type: str
    required: bool
    default: Annotated[Any, Meta(description="null when there is none")]
    description: Text
    examples: list[Any]


class Reference(Struct, frozen=True, kw_only=True):
    """`schema step VERB`, and `explain KEY`: a part of the language for people."""

    schema: Literal["tramai.reference/1"] = "tramai.reference/1"
    name: str
    path: Annotated[str, Meta(description="where it stands, as in steps[].shell")]
    description: Text
    short: Annotated[Text, Meta(description="the key that the short form sets")] = None
    type: Text = None
    default: Any = None
    examples: list[Any] = []
    keys: list[KeyHelp] = []
    also: Annotated[list[str], Meta(description="other places of a key of that name")] = []
    replay: Annotated[
        Text, Meta(description="the replay policy of a verb, unless its settings or the step say otherwise")
    ] = None


DOCUMENTS = (Formatting, Conversion, Made, Reference)
