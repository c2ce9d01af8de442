"""Servers on loopback for the tests of `http`, and one step against one of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tramai.step import Replay, StepError
from tramai.steps.http import Http

from .step_context import StepContext, made, result_of


class Asked(msgspec.Struct):
    """One request as a server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Server:
    """Answers every request by `route`; keeps what it was asked."""

    def __init__(self, route: Callable[[Asked], Any]) -> None:
        self.route = route
        self.asked: list[Asked] = []
        self.port = 0
        self.tasks: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in head[1:] if line}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.asked.append(Asked(method, path, headers, body))
            answer = self.route(self.asked[-1])
            if isinstance(answer, bytes):
                writer.write(answer)
            else:
                async for piece in answer:
                    writer.write(piece)
                    await writer.drain()
            await writer.drain()


@contextlib.asynccontextmanager
async def serving(route: Callable[[Asked], Any], *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(route)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in server.tasks:
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        await listener.wait_closed()


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """A whole answer; header names are written with underscores."""
    named = {"content_length": str(len(body)), "connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@contextlib.contextmanager
def background(*answers: bytes) -> Iterator[str]:
    """A server on a thread of its own, for runs that bring their own loop. The last answer is given for ever."""

    def serve() -> None:
        for whole in itertools.chain(answers, itertools.repeat(answers[-1])):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(whole)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def fetch(
    route: Callable[[Asked], Any] | bytes,
    method: str = "get",
    path: str = "/",
    *,
    scope: Any = None,
    policy: Replay = Replay.NON_REPLAYABLE,
    folder: Path | None = None,
    **settings: Any,
) -> tuple[Any, list[Asked]]:
    """The result of one step against one server, and what the server was asked; `folder` is that of the run."""

    async def go() -> tuple[Any, list[Asked]]:
        async with serving(route if callable(route) else lambda asked: route) as server:
            step = made(Http, **{method: server.url + path, "allow_private": True, **settings})
            ctx = StepContext(scope, policy=policy)
            ctx.cwd = str(folder) if folder is not None else ctx.cwd
            return await result_of(step, ctx), server.asked

    return asyncio.run(go())


def failure(*args: Any, **settings: Any) -> StepError:
    """The error of one step against one server."""
    with pytest.raises(StepError) as caught:
        fetch(*args, **settings)
    return caught.value
