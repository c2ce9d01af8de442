"""An MCP server that is asked over HTTP, by the same rules of addresses as the `http` verb."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx2

from .. import __version__, size
from ..codec import Json
from ..permits import guard_server
from ..running import Context
from ..step import StepError
from . import _http_guard as guard
from . import _mcp_faults as faults
from ._http_exchange import retry_after

if TYPE_CHECKING:
    import asyncio

    from ._mcp_server import Server

_GENERIC = frozenset(("Server returned an error response", "Not Found", "Session terminated"))
"""What the library says of a status without a message of the server."""


def rendered(server: Server, ctx: Context, name: str | None) -> tuple[str, dict[str, str], bool]:
    """The URL, the headers, and whether private addresses may be asked; StepError for what cannot be."""
    assert server.url is not None  # asked by the caller
    url = str(guard.parse(ctx.text(server.url).strip()))
    headers = {header: _line(header, ctx.text(value)) for header, value in server.headers.items()}
    private = False if server.allow_private is None else ctx.value(server.allow_private)
    if not isinstance(private, bool):
        raise StepError("expression", "allow_private must be true or false")
    if name is None:
        guard_server(ctx, httpx2.URL(url).raw_host.decode("ascii"))
    return url, headers, private


def _line(name: str, text: str) -> str:
    text = text.strip(" \t")
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text) or not text.isascii():
        hint = "a line break at the end of a secret's file is often the cause"
        raise StepError("expression", f"the header {name} holds what a header cannot: a line break, say", hint=hint)
    return text


class Remote:
    """`Link` to a URL."""

    transport_name = "http"

    def __init__(
        self, url: str, headers: dict[str, str], private: bool, *, limit: int, ctx: Context, name: str | None
    ) -> None:
        import asyncio

        self.name = name
        self._url, self._limit, self._ctx, self._private = url, limit, ctx, private
        self._headers = {"User-Agent": f"tramai/{__version__}", **headers, "Accept-Encoding": "identity"}
        self.broken: asyncio.Future[StepError] = asyncio.get_running_loop().create_future()
        self.last: StepError | None = None
        """What the last POST was answered, when that was no good answer."""

    async def open(self) -> None:
        """Nothing to do before the first request."""

    @contextlib.asynccontextmanager
    async def transport(self) -> AsyncIterator[Any]:
        """Streams of messages, over requests that go where they may."""
        from mcp.client.streamable_http import streamable_http_client

        wire = Wire(self, allow_private=self._private, limit=self._limit, ctx=self._ctx)
        client = httpx2.AsyncClient(
            transport=wire,
            headers=self._headers,
            timeout=httpx2.Timeout(None, connect=guard.CONNECT),
            trust_env=False,
            follow_redirects=False,
        )
        async with (
            client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=2 * self._limit + 4096) as streams,
        ):
            yield streams

    def fail(self, error: StepError) -> StepError:
        """There is no use in going on."""
        if not self.broken.done():
            self.broken.set_result(error)
        return error

    async def explained(self, error: BaseException | None, stage: str) -> StepError:
        """What the server or the network did."""
        from mcp import MCPError

        place = guard.shown(self._url)
        if isinstance(error, httpx2.TransportError):
            text = str(error)[:200] or type(error).__name__
            lost = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
            what = "no connection" if lost else "the connection broke"
            return StepError("network", f"POST {place}: {what} ({stage}): {text}")
        last = self.last
        if last is not None and not isinstance(error, StepError):
            certain = not last.type.startswith("http.")
            if certain or not isinstance(error, MCPError) or error.message in _GENERIC:
                return last
        return faults.told(error, stage)

    def details(self) -> dict[str, Json]:
        """The host."""
        return {"host": httpx2.URL(self._url).host}

    def hang_up(self) -> None:
        """The connections end with the session."""

    async def part(self, patience: float) -> None:
        """Nothing is left of the session."""

    async def abandon(self) -> None:
        """Nothing runs here."""


class Wire(httpx2.AsyncBaseTransport):
    """Connects to checked addresses only; no proxies. What comes back is bounded, and what it means is noted."""

    def __init__(self, link: Remote, *, allow_private: bool, limit: int, ctx: Context) -> None:
        self._link, self._limit, self._ctx = link, limit, ctx
        self._private = allow_private
        self._inner: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send to the very address that was checked."""
        url = request.url
        host = url.raw_host.decode("ascii")
        try:
            guard.parse(str(url))
            if self._link.name is None:
                guard_server(self._ctx, host)
            addresses = await guard.addresses(
                host, url.port or (443 if url.scheme == "https" else 80), allow_private=self._private
            )
        except StepError as error:
            self._ctx.signal("security.request_denied", method=request.method)
            raise self._link.fail(error) from None
        response = await self._sent(request, addresses, host)
        if request.method == "POST":
            self._link.last = _judged(response, guard.shown(str(url)), self._ctx.now())
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise self._link.fail(
                StepError("invalid_output", "the server packed an answer that was asked for as it is")
            )
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(stream, self._limit, self._link)
        return response

    async def _sent(self, request: httpx2.Request, addresses: list[str], host: str) -> httpx2.Response:
        failure: httpx2.TransportError | None = None
        extensions = {**request.extensions, "sni_hostname": host}
        for address in addresses:
            direct = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions=extensions,
            )
            try:
                return await self._transport(request.url.scheme).handle_async_request(direct)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # a name without addresses does not resolve
        raise failure

    def _transport(self, scheme: str) -> httpx2.AsyncHTTPTransport:
        if scheme not in self._inner:
            self._inner[scheme] = httpx2.AsyncHTTPTransport(verify=guard.tls(scheme == "https"), trust_env=False)
        return self._inner[scheme]

    async def aclose(self) -> None:
        """Close every connection."""
        for inner in self._inner.values():
            await inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that may not be longer than the limit; of a stream of events, each event."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, link: Remote) -> None:
        self._stream, self._limit, self._link = stream, limit, link

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size_now = 0
        async for chunk in self._stream:
            last = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n"))
            size_now = size_now + len(chunk) if last < 0 else len(chunk) - last
            if size_now > self._limit + 4096 or (last >= 0 and len(chunk) > 2 * self._limit + 8192):
                what = f"the server's answer is longer than max_response ({size.spell(self._limit)})"
                raise self._link.fail(StepError("limit", what, hint="set max_response to what is needed"))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _judged(response: httpx2.Response, place: str, now: float) -> StepError | None:
    """What a status means, if it means no answer."""
    status = response.status_code
    if status < 300:
        return None
    details: dict[str, Json] = {"status": status}
    text = f"POST {place} answered {status}"
    if status in (401, 403):
        hint = "give the credentials by headers, as in Authorization: Bearer ${{ secrets.NAME }}"
        return StepError("auth", text, hint=hint, details=details)
    if status == 429:
        wait = retry_after(response.headers.get("retry-after", ""), now)
        return StepError("rate_limited", text, retry_after=wait, details=details)
    if status >= 500:
        return StepError("network", text, details=details)
    if status < 400:
        to = guard.shown(response.headers.get("location", "")) or "nowhere"
        return StepError("refused", f"{text}: it points to {to}", hint="write that URL if it is meant", details=details)
    return StepError(f"http.{status}", text, details=details)
