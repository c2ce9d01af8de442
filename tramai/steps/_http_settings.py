"""Settings of `http` that have parts of their own, and the shapes of what it gives."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..expression import Expression, Text, Value

Texts = Annotated[Value, Meta(extra_json_schema={"type": ["string", "array"], "items": {"type": "string"}})]
"""A text, or a list of texts for a name that is repeated."""
Part = Annotated[
    Value,
    Meta(
        extra_json_schema={
            "type": ["string", "array", "object"],
            "items": {"type": "string"},
            "properties": {
                "text": {"type": "string", "title": "text", "description": "What is in the part.", "examples": ["{}"]},
                "file": {
                    "type": "string",
                    "title": "file",
                    "description": "The path of the file that is sent.",
                    "examples": ["report.pdf"],
                },
                "name": {
                    "type": "string",
                    "title": "name",
                    "description": "The file's name for the server, if not its own.",
                    "examples": ["report.pdf"],
                },
                "type": {
                    "type": "string",
                    "title": "type",
                    "description": "The content type of the part; of a file by its name, if it is not said.",
                    "examples": ["application/json"],
                },
            },
            "additionalProperties": False,
        }
    ),
]
"""A part of a body: a text, texts that repeat the name, `{text: …, type: …}` or `{file: …, name: …, type: …}`."""
Credentials = Annotated[tuple[Text, ...], Meta(min_length=2, max_length=2)]
"""User name and password."""
Status = Annotated[int, Meta(ge=100, le=599)] | Annotated[str, Meta(pattern="^[1-5]xx$")]


_TEXT: dict[str, Any] = {"type": "string"}
LIST: dict[str, Any] = {"type": "array"}
SAVED: dict[str, Any] = {
    "path": {"type": ["string", "null"]},
    "bytes": {"type": ["integer", "null"]},
    "sha256": {"type": ["string", "null"]},
}


def record(more: dict[str, Any]) -> dict[str, Any]:
    """The shape of an answer."""
    links = {
        "type": "object",
        "properties": {"next": {"type": ["string", "null"]}},
        "additionalProperties": {"type": ["string", "null"]},
    }
    headers = {"type": "object", "additionalProperties": _TEXT}
    fields = {"status": {"type": "integer"}, "headers": headers, "body": {}, "url": _TEXT, "links": links}
    return {"type": "object", "properties": {**fields, **more}}


class Auth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials for the Authorization header: `bearer`, or `basic` with a user name and a password."""

    bearer: Annotated[Text | None, Meta(description="A token, usually a secret.")] = None
    basic: Annotated[Credentials | None, Meta(description="User name and password.")] = None


class Paginate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Go on to the next page until there is none. In both expressions `result` is the answer of the page."""

    next: Annotated[
        Expression,
        Meta(
            description="The URL of the next page, or a map of parameters that its query differs by; null or an empty "
            "text, also of a parameter, after the last one.",
            examples=["${{ result.links.next }}", "${{ {'cursor': result.body.cursor | default(none)} }}"],
        ),
    ]
    items: Annotated[
        Expression,
        Meta(
            description="The list of a page; the lists of all pages are joined.",
            examples=["${{ result.body }}", "${{ result.body.items }}"],
        ),
    ]
    max_pages: Annotated[int, Meta(ge=1, le=10_000, description="More pages than this fail the step.")] = 100


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A certificate that is shown to the server of the URL, in PEM files."""

    cert: Annotated[Text, Meta(description="The file of the certificate.", examples=["client.pem"])]
    key: Annotated[
        Text | None, Meta(description="The file of its key, if that is another.", examples=["client.key"])
    ] = None
    password: Annotated[
        Text | None, Meta(description="What opens an encrypted key.", examples=["${{ secrets.KEY_PASSWORD }}"])
    ] = None
