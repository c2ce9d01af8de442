"""MCP servers of the configuration: `[mcp_servers.NAME]`, in the form that a workflow gives them."""

from __future__ import annotations

from typing import Any


def wrong(name: str, data: Any) -> tuple[str, str | None] | None:
    """What is wrong with a server and how it is mended; None when nothing is.

    Expressions stand in `env` and `headers` only: they are evaluated in the run that uses the server, so that the
    secrets that the workflow declares can be given to it, and to nothing else.
    """
    import msgspec

    from ..expression import dec_hook
    from ..steps._mcp_check import NAME, of_server
    from ..steps._mcp_server import Server

    if not NAME.fullmatch(name):
        return "a server's name is letters, digits, `_`, `-` and `.`", None
    try:
        server = msgspec.convert(data, Server, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        return str(error), "the keys are command, env, url, headers and allow_private"
    for text in (*(server.command or ()), *([server.url] if server.url is not None else ())):
        if not text.constant:
            return "an expression stands in `env` and `headers` only", "write the value itself"
    for finding in of_server(server):
        if finding.severity == "error":
            return finding.message, finding.hint
    return None
