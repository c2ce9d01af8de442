"""A small real proxy on loopback: it forwards what it is sent in the clear, and tunnels what is not (CONNECT)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator


class Proxy:
    """Keeps the first line and the headers of everything it is asked. Each name is on this machine for it."""

    def __init__(self, password: str | None = None) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.port = 0
        self._password = password
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
            self.asked.append((first, headers))
            if self._password is not None and headers.get("proxy-authorization") != self._wanted():
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
                return
            await self._pass_on(first, head, reader, writer)

    def _wanted(self) -> str:
        return "Basic " + base64.b64encode(f"user:{self._password}".encode()).decode()

    async def _pass_on(self, first: str, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = first.split(" ")
        place = target.partition("://")[2].partition("/")[0] if method != "CONNECT" else target
        there, out = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            lines = head.split("\r\n")
            lines[0] = f"{method} /{target.partition('://')[2].partition('/')[2]} HTTP/1.1"
            kept = [line for line in lines if not line.lower().startswith("proxy-")]
            out.write("\r\n".join(kept).encode("latin-1"))
        with contextlib.closing(out):
            ways = [asyncio.ensure_future(_copy(reader, out)), asyncio.ensure_future(_copy(there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()


@contextlib.asynccontextmanager
async def proxying(password: str | None = None, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """A proxy while it is needed."""
    proxy = Proxy(password)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        for task in proxy.tasks:
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close
        await listener.wait_closed()
