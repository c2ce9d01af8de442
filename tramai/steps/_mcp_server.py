"""An MCP server as a workflow file or the configuration gives it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ..errors import Pointer
from ..expression import Text, Value


class Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MCP server: a program that is started for the call (`command`), or one that is asked over HTTP (`url`)."""

    command: Annotated[
        Annotated[tuple[Text, ...], Meta(min_length=1)] | None,
        Meta(description="A program and its arguments, without a shell.", examples=[["uvx", "mcp-server-time"]]),
    ] = None
    env: Annotated[dict[str, Text], Meta(description="Environment variables of the program.")] = {}
    url: Annotated[
        Text | None, Meta(description="The address of a server, for streamable HTTP.", examples=["https://x.dev/mcp"])
    ] = None
    headers: Annotated[dict[str, Text], Meta(description="Headers of every request to the `url`.")] = {}
    allow_private: Annotated[
        Value | None,
        Meta(
            description="Whether the `url` may lead to addresses that are not public (loopback, private, metadata).",
            extra_json_schema={"type": ["boolean", "string"]},
        ),
    ] = None


def reach(server: Server | str) -> tuple[str, Pointer, str | None]:
    """What `permits` go by, for `Step.reaches`: the name of the configuration, the program, or the host."""
    from ._mcp_check import literal_host

    if isinstance(server, str):
        return "mcp", (), server
    if server.url is not None:
        return "mcp", ("url",), literal_host(server.url.text)
    program = server.command[0] if server.command else None
    name = program.text if program is not None and program.constant else None
    return "mcp", ("command", 0), name
