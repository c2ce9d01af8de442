"""One `http` step on the wire: the request, its redirects, the answer, and what went wrong in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from .. import size
from ..permits import Permits
from ..step import StepError
from . import _http_body as bodies
from ._http_guard import Wire, parse, shown

if TYPE_CHECKING:
    import httpx

REDIRECTS = 5
_ERROR_BODY = 16384
_ERROR_TEXT = 2000
# What another origin may see of our headers; Authorization, Cookie and every key in a header of its own stay here.
_HARMLESS = re.compile(r"accept(-.*)?|user-agent|content-(type|language)|range|if-.*|cache-control")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request, rendered. `private_url`, `private_body`: a secret may stand in it."""

    method: str
    url: str
    headers: tuple[tuple[str, bytes], ...]
    content: bytes | None
    private_url: bool
    private_body: bool
    expected: tuple[int | str, ...]
    limit: int
    follow: bool
    allow_private: bool
    allow_hosts: tuple[str, ...] | None
    permits: tuple[Permits, ...]

    def shown(self) -> str:
        """The request for people: `GET https://host/path`."""
        return f"{self.method} {shown(self.url, secret=self.private_url)}"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An expected answer, its body inflated and not yet decoded."""

    method: str
    status: int
    headers: dict[str, str]
    content: bytes
    url: str


def expects(expected: tuple[int | str, ...], status: int) -> bool:
    """Whether a status is among `200` and `2xx`."""
    return status in expected or f"{status // 100}xx" in expected


async def exchange(call: Call, now: float) -> Reply:
    """Send, follow redirects where wanted, read. StepError for everything else than an expected answer.

    `now`: epoch seconds, to make seconds of a Retry-After date.
    """
    import httpx

    method, url, headers, content = call.method, parse(call.url), call.headers, call.content
    hops, private_url = 0, call.private_url
    async with Wire(allow_private=call.allow_private, allow_hosts=call.allow_hosts, permits=call.permits) as wire:
        while True:
            try:
                response = await wire.send(method, url, headers, content)
                try:
                    place = _location(response, url) if call.follow else None
                    if place is None:
                        return await _answer(response, method, url, call, now, private_url=private_url)
                finally:
                    await response.aclose()
            except httpx.TransportError as error:
                raise _broken(error, f"{method} {shown(url, secret=private_url)}") from None
            hops += 1
            if hops > REDIRECTS:
                raise StepError("limit", f"more than {REDIRECTS} redirects, the last one to {shown(place)}")
            if _origin(place) != _origin(url):
                headers = tuple(pair for pair in headers if _HARMLESS.fullmatch(pair[0].lower()))
                private_url = False
            if _becomes_get(response.status_code, method):
                method, content = "GET", None
                headers = tuple(pair for pair in headers if not pair[0].lower().startswith("content-"))
            elif content is not None and call.private_body and _origin(place) != _origin(parse(call.url)):
                raise StepError(
                    "refused",
                    f"a body that may hold a secret was redirected to another origin, {shown(place)}",
                    hint="send it to that address directly, if it is meant",
                )
            url = place


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


def _origin(url: httpx.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, url.port or (443 if url.scheme == "https" else 80)


async def _answer(
    response: httpx.Response, method: str, url: httpx.URL, call: Call, now: float, *, private_url: bool
) -> Reply:
    place = shown(url, secret=private_url)
    headers = _joined(response)
    if not expects(call.expected, response.status_code):
        raise await _unexpected(response, f"{method} {place}", headers, now)
    declared = headers.get("content-length", "")
    try:
        if method != "HEAD" and declared.isdecimal() and len(declared) < 20 and int(declared) > call.limit:
            raise bodies.TooBig(b"")
        encoding = "" if method == "HEAD" else headers.get("content-encoding", "")
        content = await bodies.read(response.aiter_raw(), encoding, call.limit)
    except bodies.TooBig:
        raise StepError(
            "limit",
            f"the body of {method} {place} is longer than max_response ({size.spell(call.limit)})",
            hint="set max_response to what is needed",
        ) from None
    return Reply(
        method=method,
        status=response.status_code,
        headers=headers,
        content=content,
        url=place if private_url else str(url),
    )


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


def _broken(error: httpx.TransportError, asked: str) -> StepError:
    import httpx

    if isinstance(error, httpx.LocalProtocolError):
        return StepError("refused", f"{asked} cannot be sent: {_words(error)}")
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return StepError("network", f"{asked}: no connection: {_words(error)}")
    return StepError("network", f"{asked}: the connection broke: {_words(error)}")


def _words(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
