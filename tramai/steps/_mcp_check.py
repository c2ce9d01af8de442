"""What is wrong with the settings of an `mcp` step, before anything is rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import size
from ..errors import Pointer
from ..step import Finding
from . import _child_env
from ._http_guard import host_problem, reason

if TYPE_CHECKING:
    from ._mcp_server import Server
    from .mcp import Mcp

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""How a server of the configuration may be called."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SET_BY_US = frozenset(("host", "content-length", "transfer-encoding", "connection", "content-type", "accept"))
"""What follows from a request; the headers `mcp-…` do as well."""
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>[^/?#@]*@)?(?P<host>\[[^\]/?#]*\]|[^:/?#\[\]@]*)"
    r"(?P<end>(?::[0-9]*)?(?:[/?#]|$))"
)
_WHOLE = re.compile(r"\s*\$\{\{.*\}\}\s*", re.DOTALL)


def findings(step: Mcp) -> Iterator[Finding]:
    """Every finding, in no order."""
    if isinstance(step.server, str):
        if (wrong := named_wrong(step.server)) is not None:
            yield Finding(("server",), "TRM336", *wrong)
    else:
        yield from of_server(step.server)
    yield from _asked(step)
    if size.parse(step.max_response) < 1:
        yield Finding(("max_response",), "TRM314", "`max_response` must be at least one byte", "write a size: 1MiB")


def named_wrong(name: str) -> tuple[str, str] | None:
    """Message and hint, if no server of the configuration can be called so."""
    if NAME.fullmatch(name):
        return None
    hint = "write {command: [program, …]} or {url: https://…}; a name stands in tramai.toml, [mcp_servers.NAME]"
    return f"`{name[:80]}` is no name of a server", hint


def of_server(server: Server) -> Iterator[Finding]:
    """What is wrong with a server; pointers begin with `server`."""
    if (server.command is None) == (server.url is None):
        what = "has both" if server.command is not None else "has neither"
        hint = "write {command: [program, …]} for a program, {url: https://…} for a server that runs elsewhere"
        yield Finding(("server",), "TRM332", f"a server has either `command` or `url`; this one {what}", hint)
    else:
        yield from _strays(server)
    yield from _program(server)
    yield from _url(server)
    yield from _child_env.findings(server.env, ("server", "env"))
    yield from _headers(server)


def _strays(server: Server) -> Iterator[Finding]:
    """Keys that go with the other kind of server."""
    wrong = {"headers": server.headers, "allow_private": server.allow_private is not None} if server.command else {}
    for name, given in (wrong or ({} if server.command else {"env": server.env})).items():
        if given:
            kind = "is started by `command`" if server.command else "is asked at a `url`"
            text = f"`{name}` means nothing to a server that {kind}"
            yield Finding(("server", name), "TRM332", text, "remove it")


def _program(server: Server) -> Iterator[Finding]:
    if server.command is None or not server.command[0].constant:
        return
    program, at = server.command[0].text, ("server", "command", 0)
    if not program.strip():
        yield Finding(at, "TRM332", "the program's name is empty", "the first item of `command` is the program")
    elif " " in program.strip() and "/" not in program and len(server.command) == 1:
        words = ", ".join(program.split())
        what = f"`{program[:60]}` is taken as the name of one program, blanks included"
        yield Finding(at, "TRM389", what, f"write command: [{words}]", "warning")


def _url(server: Server) -> Iterator[Finding]:
    """What a URL shows before it is rendered: its scheme, and its host where that is literal."""
    if server.url is None:
        return
    at: Pointer = ("server", "url")
    text = server.url.text
    start, literal = text.partition("${{")[0], "${{" not in text
    found = _URL.match(start)
    if found is None:
        if literal:
            yield Finding(at, "TRM334", "this is no URL", "write it as https://host/path")
    elif found["scheme"].lower() not in ("http", "https"):
        scheme = found["scheme"][:20]
        yield Finding(at, "TRM334", f"the scheme `{scheme}` is never requested", "start it with https:// or http://")
    elif found["user"]:
        hint = 'use headers: {Authorization: "Bearer ${{ secrets.NAME }}"}'
        yield Finding(at, "TRM334", "a URL may not hold a user name or password", hint)
    elif literal or found["end"]:
        yield from _host(server, found["host"].strip("[]").lower())


def _host(server: Server, host: str) -> Iterator[Finding]:
    at: Pointer = ("server", "url")
    private = server.allow_private
    if private is not None and not isinstance(private.data, bool) and not _WHOLE.fullmatch(str(private.data)):
        text = "allow_private must be true, false or one whole ${{ … }}"
        yield Finding(("server", "allow_private"), "TRM326", text, "write allow_private: true")
    problem = host_problem(host) if host.isascii() else None
    if problem is not None:
        yield Finding(at, "TRM334", f"the URL {problem}", "write it as https://host/path")
    elif (private is None or private.data is False) and re.fullmatch(r"[0-9.]+|.*:.*", host):
        why = reason(host)
        if why is not None:
            hint = "add `allow_private: true` to the server if the workflow may reach it"
            yield Finding(at, "TRM334", f"{host} is not a public address ({why})", hint)


def literal_host(text: str) -> str | None:
    """The host of a URL, None when only the run will know it."""
    found = _URL.match(text.partition("${{")[0])
    if found is None or not ("${{" not in text or found["end"]):
        return None
    return found["host"].strip("[]").lower()


def _headers(server: Server) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in server.headers:
        at: Pointer = ("server", "headers", name)
        if not _NAME.fullmatch(name):
            yield Finding(at, "TRM335", f"{name!r} is no header name", "letters, digits and hyphens, without a colon")
        elif name.lower() in _SET_BY_US or name.lower().startswith("mcp-"):
            yield Finding(at, "TRM335", f"the header {name} belongs to the protocol", "remove it")
        elif name.lower() in seen:
            yield Finding(at, "TRM335", f"the header {name} is given twice, also as {seen[name.lower()]}", "keep one")
        seen[name.lower()] = name


def _asked(step: Mcp) -> Iterator[Finding]:
    """Either one tool, or all their names."""
    hint = "write `tool: name` to call a tool, or `list: true` to see what there is"
    if step.tool is None and not step.list_:
        yield Finding((), "TRM333", "an mcp step needs either `tool` or `list: true`, and has neither", hint)
    elif step.tool is not None and step.list_:
        yield Finding(("list",), "TRM333", "an mcp step needs either `tool` or `list: true`, not both", hint)
    elif step.tool is not None and not step.tool.text.strip():
        yield Finding(("tool",), "TRM333", "the name of the tool is empty", hint)
    elif step.list_ and step.arguments is not None:
        yield Finding(("arguments",), "TRM333", "`arguments` go with a `tool`; listing takes none", "remove them")
    data = step.arguments.data if step.arguments is not None else {}
    if not isinstance(data, dict) and not (isinstance(data, str) and _WHOLE.fullmatch(data)):
        text = "`arguments` are a map of names to values, or one whole ${{ … }} that gives one"
        yield Finding(("arguments",), "TRM337", text, "write arguments: {name: value}")
