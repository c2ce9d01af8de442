"""An MCP server that is started once and asked several times, until it is closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import __version__, duration
from ..running import Context
from ..step import StepError
from . import _mcp_faults as faults
from ._mcp_link import Link
from ._mcp_result import result_of
from ._mcp_talk import PARTING, TOTAL, end, fault, left, library, look, tools_in

if TYPE_CHECKING:
    import asyncio

    from mcp import Client


class ToolFailed(Exception):
    """The server has answered, with an error: it can be asked again."""


class Session:
    """`async with`: the server runs inside. A StepError means that there is no use in asking it any more."""

    def __init__(self, link: Link, ctx: Context, show: Callable[[str], None]) -> None:
        import asyncio

        self._link, self._ctx, self._show = link, ctx, show
        self._loop = asyncio.get_running_loop()
        self._jobs: asyncio.Queue[tuple[str, dict[str, Any], asyncio.Future[Any]] | None] = asyncio.Queue()
        self._listed: asyncio.Future[list[Any]] = self._loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._stage = "while it was starting"

    async def __aenter__(self) -> Session:
        """Its task is of its own: the library's scopes of cancellation must not meet those of the run."""
        self._task = self._loop.create_task(self._serve())
        self._task.add_done_callback(look)
        return self

    async def tools(self) -> list[Any]:
        """What it offers, once it has started."""
        return await self._answer(self._listed)  # type: ignore[no-any-return]

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The full record of a call; ToolFailed when the tool says that it failed."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._stage = f"during tool {tool}"
        self._jobs.put_nowait((tool, arguments, answer))
        return await self._answer(answer)  # type: ignore[no-any-return]

    async def _answer(self, wanted: asyncio.Future[Any]) -> Any:
        import asyncio

        began, task = time.monotonic(), self._task
        assert task is not None
        until = began + TOTAL if self._ctx.deadline is None else self._ctx.deadline
        ends: set[asyncio.Future[Any]] = {task, wanted, self._link.broken}
        await asyncio.wait(ends, timeout=left(until), return_when=asyncio.FIRST_COMPLETED)
        if wanted.done():
            return wanted.result()
        wanted.cancel()
        raise await fault(self._link, self._stage, task, duration.spell(until - began))

    async def _serve(self) -> None:
        await self._link.open()
        kind = await self._ctx.blocking(library)
        from mcp_types import Implementation

        me = Implementation(name="tramai", version=__version__)
        async with kind(self._link.transport(), client_info=me, cache=None) as client:
            self._stage = "while it listed its tools"
            found = await tools_in(client)
            if not self._listed.done():
                self._listed.set_result(found)
            while (job := await self._jobs.get()) is not None:
                await self._carry_out(client, *job)

    async def _carry_out(
        self, client: Client, tool: str, arguments: dict[str, Any], answer: asyncio.Future[Any]
    ) -> None:
        try:
            found = result_of(tool, await client.call_tool(tool, arguments, progress_callback=self._progress))
        except Exception as error:  # an edge: the library raises what it likes for an answer that is none
            if faults.is_closed(error):
                raise
            if not answer.done():
                answer.set_exception(ToolFailed(faults.told(error, self._stage).message))
            return
        if not answer.done():
            answer.set_result(found)

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}/{total:g}" if total is not None else f"{progress:g}"
        self._show(f"{share} {message or ''}".strip() + "\n")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The server ends, and all that it has started: by itself when all is well, at once when not."""
        import asyncio

        task = self._task
        assert task is not None
        try:
            if error is None:
                self._jobs.put_nowait(None)
                await asyncio.wait((task,), timeout=PARTING)
                await end(task)
                await self._link.part(PARTING)
            elif not isinstance(error, StepError):
                await self._link.abandon()
        except asyncio.CancelledError:
            await self._link.abandon()
            raise
        finally:
            self._link.hang_up()
            await end(task)
            await self._link.part(0.0)
            self._listed.cancel()
