"""One `http` step on the wire: the request, its redirects, the answer, and what went wrong in words."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from .. import size
from ..permits import Permits
from ..step import StepError
from . import _http_body as bodies
from ._http_guard import parse, shown
from ._http_links import links
from ._http_route import Route, unused_variable
from ._http_save import Saved, Target
from ._http_send import Content
from ._http_wire import Wire, origin

if TYPE_CHECKING:
    import httpx

REDIRECTS = 5
_ERROR_BODY = 16384
_ERROR_TEXT = 2000
# What another origin may see of our headers; Authorization, Cookie and every key in a header of its own stay here.
_HARMLESS = re.compile(r"accept(-.*)?|user-agent|content-(type|language|length)|range|if-.*|cache-control")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request, rendered. `private_url`, `private_body`: a secret may stand in it."""

    method: str
    url: str
    headers: tuple[tuple[str, bytes], ...]
    content: bytes | Content | None
    private_url: bool
    private_body: bool
    expected: tuple[int | str, ...]
    limit: int
    follow: bool
    allow_private: bool
    allow_hosts: tuple[str, ...] | None
    permits: tuple[Permits, ...]
    route: Route
    save: Target | None = None

    def shown(self) -> str:
        """The request for people: `GET https://host/path`."""
        return f"{self.method} {shown(self.url, secret=self.private_url)}"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An expected answer, its body inflated and not yet decoded, or `saved`."""

    method: str
    status: int
    headers: dict[str, str]
    content: bytes
    url: str
    links: dict[str, str | None]
    saved: Saved | None = None

    def record(self) -> dict[str, Any]:
        """What is known of it but its body."""
        return {"status": self.status, "headers": self.headers, "url": self.url, "links": self.links}

    def body(self) -> Any:
        """The decoded body; None where there is none."""
        if _bodiless(self.method, self.status):
            return None
        return bodies.decode(self.content, self.headers.get("content-type", ""))


def expects(expected: tuple[int | str, ...], status: int) -> bool:
    """Whether a status is among `200` and `2xx`."""
    return status in expected or f"{status // 100}xx" in expected


def _bodiless(method: str, status: int) -> bool:
    return method == "HEAD" or status in (204, 205, 304)


class Asked:
    """What is asked next on the way through redirects and pages.

    Once another origin was asked, nothing but harmless headers is left, even if the way leads back.
    """

    def __init__(self, call: Call) -> None:
        self.method, self.url = call.method, parse(call.url)
        self.headers, self.content = call.headers, call.content
        self.private_url = call.private_url
        self.home = origin(self.url)
        self._private_body = call.private_body

    def place(self) -> str:
        """The URL for people."""
        return shown(self.url, secret=self.private_url)

    def turn(self, place: httpx.URL) -> None:
        """Ask there next, with the same method."""
        if origin(place) != origin(self.url):
            self.headers = tuple(pair for pair in self.headers if _HARMLESS.fullmatch(pair[0].lower()))
            self.private_url = False
        self.url = place

    def redirect(self, place: httpx.URL, status: int) -> None:
        """Ask there next, as a redirect of this status means it."""
        if _becomes_get(status, self.method):
            self.method, self.content = "GET", None
            self.headers = tuple(pair for pair in self.headers if not pair[0].lower().startswith("content-"))
        elif self.content is not None and self._private_body and origin(place) != self.home:
            raise StepError(
                "refused",
                f"a body that may hold a secret was redirected to another origin, {shown(place)}",
                hint="send it to that address directly, if it is meant",
            )
        self.turn(place)


def wire_of(call: Call, asked: Asked) -> Wire:
    """The transport for a request and everything that it leads to."""
    return Wire(
        allow_private=call.allow_private,
        allow_hosts=call.allow_hosts,
        permits=call.permits,
        route=call.route,
        home=asked.home,
    )


async def exchange(call: Call, now: float) -> Reply:
    """Send, follow redirects where wanted, read. StepError for everything else than an expected answer.

    `now`: epoch seconds, to make seconds of a Retry-After date.
    """
    asked = Asked(call)
    async with wire_of(call, asked) as wire:
        return await one(asked, call, wire, now, left=call.limit)


async def one(asked: Asked, call: Call, wire: Wire, now: float, *, left: int) -> Reply:
    """One answer, with the redirects before it; `left`: bytes that its body may have."""
    import httpx

    hops = 0
    while True:
        try:
            response = await wire.send(asked.method, asked.url, asked.headers, asked.content)
            try:
                place = _location(response, asked.url) if call.follow else None
                if place is None:
                    return await _answer(response, asked, call, now, left)
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise _broken(error, f"{asked.method} {asked.place()}", call.route) from None
        hops += 1
        if hops > REDIRECTS:
            raise StepError("limit", f"more than {REDIRECTS} redirects, the last one to {shown(place)}")
        asked.redirect(place, response.status_code)


def _location(response: httpx.Response, url: httpx.URL) -> httpx.URL | None:
    """Where a redirect leads, checked like the first URL; None when this is no redirect."""
    import httpx

    if response.status_code not in (301, 302, 303, 307, 308) or "location" not in response.headers:
        return None
    text = response.headers["location"]
    try:
        joined = str(url.join(text))
    except (httpx.InvalidURL, ValueError):
        raise StepError("refused", f"the redirect to {shown(text)} is no URL") from None
    return parse(joined)


def _becomes_get(status: int, method: str) -> bool:
    """The Fetch standard: 303 always, 301 and 302 for POST; other methods are repeated as they are."""
    return method not in ("GET", "HEAD") and (status == 303 or (status in (301, 302) and method == "POST"))


async def _answer(response: httpx.Response, asked: Asked, call: Call, now: float, left: int) -> Reply:
    headers = _joined(response)
    status = response.status_code
    if not expects(call.expected, status):
        raise await _unexpected(response, f"{asked.method} {asked.place()}", headers, now)
    saving = call.save if 200 <= status < 300 and not _bodiless(asked.method, status) else None
    limit, name, key = (left, "max_response", call.limit)
    if saving is not None:
        limit, name, key = saving.limit, "max_download", saving.limit
    declared = headers.get("content-length", "")
    content, saved = b"", None
    try:
        if asked.method != "HEAD" and declared.isdecimal() and len(declared) < 20 and int(declared) > limit:
            raise bodies.TooBig(b"")
        encoding = "" if asked.method == "HEAD" else headers.get("content-encoding", "")
        if saving is not None:
            saved = await _save(response, encoding, saving)
        else:
            content = await bodies.read(response.aiter_raw(), encoding, limit)
    except bodies.TooBig:
        what = f"the body of {asked.method} {asked.place()} is"
        if limit < key:
            what = f"the pages up to {asked.method} {asked.place()} are together"
        raise StepError(
            "limit",
            f"{what} longer than {name} ({size.spell(key)})",
            hint=f"set {name} to what is needed",
        ) from None
    return Reply(
        method=asked.method,
        status=status,
        headers=headers,
        content=content,
        url=asked.place() if asked.private_url else str(asked.url),
        links=links(headers.get("link", ""), None if asked.private_url else asked.url),
        saved=saved,
    )


async def _save(response: httpx.Response, encoding: str, target: Target) -> Saved:
    from ._http_save import Download

    with Download(target) as download:
        async with contextlib.aclosing(bodies.inflated(response.aiter_raw(), encoding)) as pieces:
            async for piece in pieces:
                if not download.write(piece):
                    raise bodies.TooBig(b"")
        return await download.finish()


def _joined(response: httpx.Response) -> dict[str, str]:
    """Header names in lower case; the values of a repeated one joined by a comma."""
    headers: dict[str, str] = {}
    for name, value in response.headers.multi_items():
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _unexpected(response: httpx.Response, asked: str, headers: dict[str, str], now: float) -> StepError:
    import http

    import httpx

    status = response.status_code
    try:
        content = await bodies.read(response.aiter_raw(), headers.get("content-encoding", ""), _ERROR_BODY)
    except bodies.TooBig as error:
        content = error.start
    except (StepError, httpx.TransportError):  # the status says more than a body that breaks off
        content = b""
    try:
        phrase = f" {http.HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    hint = None
    if 300 <= status < 400 and "location" in headers:
        hint = f"it points to {shown(headers['location'])}: set follow_redirects: true, or ask there"
    return StepError(
        f"http.{status}",
        f"{asked} answered {status}{phrase}",
        hint=hint,
        retry_after=retry_after(headers.get("retry-after", ""), now),
        details={"status": status, "body": bodies.text(content, headers.get("content-type", ""))[:_ERROR_TEXT]},
    )


def retry_after(value: str, now: float) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110 §10.2.3): a number or a date. None for anything else."""
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    if not re.match(r"[A-Za-z]{3,9},? ", value):
        return None
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _broken(error: httpx.TransportError, asked: str, route: Route) -> StepError:
    import httpx

    if isinstance(error, httpx.LocalProtocolError):
        return StepError("refused", f"{asked} cannot be sent: {_words(error)}")
    if isinstance(error, httpx.ProxyError):
        return StepError("network", f"{asked}: the proxy {route.proxy} answered: {_words(error)}")
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        unused = unused_variable(route)
        hint = f"{unused} is set, but proxies are named by `proxy`, in the step or in tramai.toml" if unused else None
        return StepError("network", f"{asked}: no connection: {_words(error)}", hint=hint)
    return StepError("network", f"{asked}: the connection broke: {_words(error)}")


def _words(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
