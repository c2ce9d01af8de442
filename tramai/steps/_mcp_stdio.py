"""An MCP server that is started for the call and talked to by its standard input and output."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from .. import size
from ..codec import Json
from ..interrupt import Interrupt
from ..running import Context
from ..step import StepError
from . import _mcp_faults as faults
from . import _process
from ._capture import Log
from ._mcp_lines import Lines, Message

if TYPE_CHECKING:
    import asyncio

KILL_AFTER = 2.0
"""Seconds between SIGTERM and SIGKILL for a server that does not end when its standard input does."""
_CRASH = 1.5
"""Seconds in which the end of the process is expected once its standard output has ended."""
_SHOWN = 20
"""Lines on standard output that are no messages and are shown; the log has them all."""
_CHUNK = 1 << 16


class Program:
    """`Link` to a child process."""

    transport_name = "stdio"

    def __init__(self, argv: list[str], env: dict[str, str], *, limit: int, ctx: Context) -> None:
        import asyncio

        self._argv, self._env, self._ctx = argv, env, ctx
        self._lines = Lines(limit)
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self.broken: asyncio.Future[StepError] = self._loop.create_future()
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._child: asyncio.Future[_process.Finished] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = Interrupt()
        self._reader = self._writer = -1
        self._over = False
        self._noise = 0
        self._sent: set[str] = set()
        self._log = Log(ctx.log_path, hidden=ctx.hidden)

    # The process.

    async def open(self) -> None:
        """Start it."""
        import asyncio

        ctx = self._ctx
        ctx.interrupt.on_set(self._pass_on)
        grace = KILL_AFTER + _process.SETTLE + 2 * _process.PATIENCE
        self._child = asyncio.ensure_future(ctx.blocking(self._run, grace=grace))
        self._child.add_done_callback(_look)
        await asyncio.wait((self._child, self._started), return_when=asyncio.FIRST_COMPLETED)
        if not self._started.done():
            self._child.result()  # says why it could not be started

    def _run(self) -> _process.Finished:
        ctx = self._ctx
        return _process.run(
            self._argv,
            env=self._env,
            cwd=os.path.abspath(ctx.cwd),
            interrupt=self._stop,
            hurry=ctx.hurry,
            kill_after=KILL_AFTER,
            cookie=_process.cookie(ctx.run_id, ctx.path, ctx.attempt),
            log_path=ctx.log_path,
            hidden=ctx.hidden,
            on_output=ctx.output,
            names={index: f"server.command[{index}]" for index in range(len(self._argv))},
            talk=self._take,
        )

    def _take(self, reader: int, writer: int) -> None:
        """The ends of the pipes, in the thread that has started the process."""
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        try:
            self._loop.call_soon_threadsafe(self._taken, reader, writer)
        except RuntimeError:  # the loop is closed: nobody is there any more
            _close(reader, writer)

    def _taken(self, reader: int, writer: int) -> None:
        if self._over:
            _close(reader, writer)
            return
        self._reader, self._writer = reader, writer
        if not self._started.done():
            self._started.set_result(None)

    def _pass_on(self) -> None:
        self._stop.set(self._ctx.interrupt.reason or "signal")

    def hang_up(self) -> None:
        """End its standard input, and stop it if it still runs."""
        self._end_input()
        self._over = True
        self._stop.set("over")

    async def part(self, patience: float) -> None:
        """Its standard input ends; then SIGTERM, then SIGKILL to all that it has started."""
        import asyncio

        self._end_input()
        if self._child is not None and not self._child.done():
            if patience > 0:
                await asyncio.wait((self._child,), timeout=patience)
            self._stop.set("over")
            await asyncio.wait((self._child,))
        self._over = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        reader, self._reader = self._reader, -1
        _close(reader)
        self._log.close()
        self._ctx.interrupt.forget(self._pass_on)
        if self._child is None or self._child.done():
            self._stop.close()

    async def abandon(self) -> None:
        """Its runner is told why: a lost lease leaves no time."""
        import asyncio

        self._end_input()
        if self._child is not None:
            self._child.cancel()
        for _ in range(5):  # until the cancelled task has told the reason
            if not self._stop.is_set:
                await asyncio.sleep(0)
        self._stop.set("cancelled")

    def _end_input(self) -> None:
        writer, self._writer = self._writer, -1
        _close(writer)

    # What is said.

    @contextlib.asynccontextmanager
    async def transport(self) -> AsyncIterator[Any]:
        """Streams of messages, over the pipes."""
        import anyio

        to_us, ours_in = anyio.create_memory_object_stream[Any](0)
        ours_out, from_us = anyio.create_memory_object_stream[Any](0)
        self._tasks += [self._loop.create_task(self._read(to_us)), self._loop.create_task(self._write(from_us))]
        async with to_us, ours_in, ours_out, from_us:
            yield ours_in, ours_out

    async def _read(self, to_us: Any) -> None:
        """Give every message on, until the stream ends; whatever comes after the session is read and dropped."""
        import anyio
        from mcp.shared.message import SessionMessage

        async with to_us:
            while data := await self._chunk():
                for found in self._lines.feed(data):
                    if not isinstance(found, Message):
                        self._say(found)
                    elif (wrong := found.problem(self._sent)) is not None:
                        self._break(wrong)
                    else:
                        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                            await to_us.send(SessionMessage(found.content))
                if self._lines.too_long:
                    what = f"the server's answer is longer than max_response ({size.spell(self._limit)})"
                    self._break(StepError("limit", what, hint="set max_response to what is needed"))
        await anyio.sleep(2 * _CRASH)  # the session sees the end as well, and knows more of it
        self._break(await self.explained(None, "before it answered"))

    async def _chunk(self) -> bytes:
        import anyio

        while True:
            if self._reader < 0:
                return b""
            try:
                return os.read(self._reader, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._reader)
            except OSError:
                return b""

    async def _write(self, from_us: Any) -> None:
        import anyio

        async with from_us:
            async for item in from_us:
                if (number := getattr(item.message, "id", None)) is not None and hasattr(item.message, "method"):
                    self._sent.add(str(number))
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                rest = memoryview(text.encode("utf-8", "replace") + b"\n")
                while rest and self._writer >= 0:
                    try:
                        rest = rest[os.write(self._writer, rest[:_CHUNK]) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self._writer)
                    except OSError:  # it has closed its standard input: what it still says may tell why
                        self._end_input()

    def _say(self, noise: bytes) -> None:
        """A line on standard output that is no message."""
        self._log.feed(noise)
        self._noise += 1
        if self._noise <= _SHOWN and noise.strip():
            self._ctx.output("stdout", noise.decode("utf-8", "replace").rstrip("\r\n")[:2000] + "\n")

    def _break(self, error: StepError) -> None:
        if not self.broken.done():
            self.broken.set_result(error)

    # What went wrong.

    async def explained(self, error: BaseException | None, stage: str) -> StepError:
        """The end of the process, if that is what ended the session."""
        import asyncio

        child = self._child
        if isinstance(error, StepError) or child is None:
            return faults.told(error, stage)
        if not child.done() and faults.is_closed(error):
            await asyncio.wait((child,), timeout=_CRASH)
        if not faults.is_closed(error):
            return _with(faults.told(error, stage), self.details())
        if not child.done():
            return StepError("network", f"the server closed its standard output {stage}")
        if child.cancelled() or child.exception() is not None:
            return faults.told(child.exception() if not child.cancelled() else None, stage)
        ended = child.result()
        how = f"was ended by {ended.signal}" if ended.signal else f"exited with code {ended.exit_code}"
        last = ended.tail.rpartition("\n")[2]
        text = f"the server {how} {stage}" + (f": {last}" if last else "")
        return StepError(f"exit.{ended.exit_code}", text, details={"exit_code": ended.exit_code, "output": ended.tail})

    def details(self) -> dict[str, Json]:
        """The program."""
        return {"program": self._argv[0]}


def _with(error: StepError, details: dict[str, Json]) -> StepError:
    error.details = {**details, **error.details}
    return error


def _close(*numbers: int) -> None:
    for number in numbers:
        if number >= 0:
            os.close(number)


def _look(child: asyncio.Future[Any]) -> None:
    if not child.cancelled():
        child.exception()
