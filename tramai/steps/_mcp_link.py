"""What an `mcp` step has at the other end: a way to a server, and what went wrong on it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ..codec import Json
from ..permits import guard_server
from ..running import Context
from ..step import StepError

if TYPE_CHECKING:
    import asyncio

    from ._mcp_server import Server


class Link(Protocol):
    """A way to one server."""

    transport_name: str
    """`stdio` or `http`."""
    broken: asyncio.Future[StepError]
    """Set when there is no use in waiting any longer."""

    async def open(self) -> None:
        """Reach for the server; StepError when that cannot be."""
        ...

    def transport(self) -> AbstractAsyncContextManager[Any]:
        """What the library sends and receives by."""
        ...

    async def explained(self, error: BaseException | None, stage: str) -> StepError:
        """Why a session ended with this error."""
        ...

    def details(self) -> dict[str, Json]:
        """What is known of the server, for the `error` record."""
        ...

    def hang_up(self) -> None:
        """Say at once, without waiting, that nothing more is wanted."""
        ...

    async def part(self, patience: float) -> None:
        """Be done with the server: it has `patience` seconds to end by itself."""
        ...

    async def abandon(self) -> None:
        """The attempt is cancelled: the server has to end now."""
        ...


def need_library(asker: str = "an mcp step needs") -> None:
    """StepError, before anything is done, where the library is not installed. It is not loaded here."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("httpx2") is None:  # mcp 1.x comes without httpx2
        what = f"{asker} the extra 'mcp' (the library mcp, 2.0 or newer)"
        raise StepError("refused", what, hint="pip install 'tramai[mcp]'")


def named(name: str, ctx: Context) -> Server:
    """The server that the configuration calls so."""
    import msgspec

    from ..expression import dec_hook, suggest
    from ._mcp_server import Server

    if name not in ctx.servers:
        near = suggest(name, list(ctx.servers))
        hint = f"did you mean {near}?" if near else f"write a table [mcp_servers.{name}] in tramai.toml"
        raise StepError("refused", f"the configuration has no MCP server {name}", hint=hint)
    try:
        return msgspec.convert(ctx.servers[name], Server, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise StepError("refused", f"the MCP server {name} of the configuration is not valid: {error}") from None


def link_to(server: Server, ctx: Context, limit: int, name: str | None = None) -> Link:
    """The link to a server, its settings rendered and permitted; nothing is started yet.

    `name`: what the configuration calls it, which `permits` go by then.
    """
    if name is not None:
        guard_server(ctx, name)
    if server.url is not None:
        from ._mcp_http import Remote, rendered

        return Remote(*rendered(server, ctx, name), limit=limit, ctx=ctx, name=name)
    from ._child_env import environment
    from ._mcp_stdio import Program

    argv = [ctx.text(item) for item in server.command or ()]
    if name is None:
        guard_server(ctx, argv[0])
    env = environment(ctx, {name: ctx.text(value) for name, value in server.env.items()})
    return Program(argv, env, limit=limit, ctx=ctx)
