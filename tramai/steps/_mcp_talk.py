"""One exchange with an MCP server: connect, ask, part, all of it within the time there is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from .. import __version__, duration
from ..expression import suggest
from ..running import Context
from ..step import StepError
from . import _mcp_faults as faults
from ._mcp_link import Link
from ._mcp_result import result_of, tools_of

if TYPE_CHECKING:
    import asyncio

    from mcp import Client

TOTAL = 300.0
"""Seconds for the whole call when the step has no `timeout`."""
PARTING = 2.0
"""Most seconds that taking leave may last once the answer is there: for the session, and again for the server."""
_PAGES = 100


class Ask(msgspec.Struct, kw_only=True):
    """What the server is asked: a tool, or its list of them (`tool` None). `stage` says how far it has come."""

    tool: str | None
    arguments: dict[str, Any]
    show: Callable[[str], None]
    stage: str = "while it was starting"

    async def put(self, client: Client) -> dict[str, Any]:
        """Ask it, over an open session; the full record."""
        self.stage = "while it listed its tools"
        tools = await tools_in(client)
        if self.tool is None:
            return tools_of(tools)
        if self.tool not in (names := [tool.name for tool in tools]):
            near = suggest(self.tool, names)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(sorted(names)[:20]) or 'none'}"
            raise StepError("refused", f"the server has no tool {self.tool[:100]}", hint=hint)
        self.stage = f"during tool {self.tool}"
        found = await client.call_tool(self.tool, self.arguments, progress_callback=self._progress)
        return result_of(self.tool, found)

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}/{total:g}" if total is not None else f"{progress:g}"
        self.show(f"{share} {message or ''}".strip() + "\n")


async def tools_in(client: Client) -> list[Any]:
    """All tools that a server has, from every page."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise StepError("limit", f"the list of tools has more than {_PAGES} pages")


async def carry(link: Link, ask: Ask, ctx: Context) -> dict[str, Any]:
    """Ask, and be done with the server. StepError for everything else than a good answer, by the attempt's deadline."""
    import asyncio

    began = time.monotonic()
    until = began + TOTAL if ctx.deadline is None else ctx.deadline
    answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    talk = asyncio.ensure_future(_session(link, ask, ctx, answer))
    talk.add_done_callback(look)
    try:
        ends: set[asyncio.Future[Any]] = {talk, answer, link.broken}
        await asyncio.wait(ends, timeout=left(until), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise await fault(link, ask.stage, talk, duration.spell(until - began))
        await asyncio.wait((talk,), timeout=min(PARTING, left(until)))
        await end(talk)
        await link.part(min(PARTING, left(until)))
        return answer.result()
    except asyncio.CancelledError:
        await link.abandon()
        raise
    finally:
        link.hang_up()
        await end(talk)
        await link.part(0.0)
        answer.cancel()


async def _session(link: Link, ask: Ask, ctx: Context, answer: asyncio.Future[dict[str, Any]]) -> None:
    """A task of its own: the library's scopes of cancellation must not meet those of the run."""
    await link.open()
    # It takes a second to load, in which the server starts as well.
    kind = await ctx.blocking(library)
    from mcp_types import Implementation

    me = Implementation(name="tramai", version=__version__)
    async with kind(link.transport(), client_info=me, cache=None) as client:
        found = await ask.put(client)
        if not answer.done():
            answer.set_result(found)


def library() -> type[Client]:
    """The client of the library, which takes a second to load."""
    import logging

    from mcp import Client

    # It logs what it cannot handle; without a handler Python would write that to the terminal.
    logger = logging.getLogger("mcp")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return Client


async def fault(link: Link, stage: str, talk: asyncio.Task[None], allowed: str) -> StepError:
    """Why there is no answer."""
    if link.broken.done():
        return link.broken.result()
    if talk.done():
        return await link.explained(faults.root(talk.exception()), stage)
    details = link.details()
    return StepError("timeout", f"the server did not answer within {allowed} ({stage})", details=details)


async def end(talk: asyncio.Task[None]) -> None:
    """Stop the session's task, if it has not ended by itself; it is not waited for longer than a moment."""
    import asyncio

    if not talk.done():
        talk.cancel()
        await asyncio.wait((talk,), timeout=1.0)


def look(talk: asyncio.Task[None]) -> None:
    """Look at how it ended, so that asyncio does not complain."""
    if not talk.cancelled():
        talk.exception()


def left(until: float) -> float:
    """Seconds until an instant, none when it has passed."""
    return max(0.0, until - time.monotonic())
