"""`http`: send one request and take its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .. import duration, size
from ..expression import Text, Value
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Replay, Step, StepError

if TYPE_CHECKING:
    from ._http_exchange import Call, Reply

METHODS = ("get", "post", "put", "patch", "delete", "head")
TOTAL = 60.0
"""Seconds for the whole exchange when the step has no `timeout`."""


Texts = Annotated[Value, Meta(extra_json_schema={"type": ["string", "array"], "items": {"type": "string"}})]
"""A text, or a list of texts for a name that is repeated."""
Status = Annotated[int, Meta(ge=100, le=599)] | Annotated[str, Meta(pattern="^[1-5]xx$")]


class Auth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials for the Authorization header: `bearer`, or `basic` with a user name and a password."""

    bearer: Annotated[Text | None, Meta(description="A token, usually a secret.")] = None
    basic: Annotated[
        Annotated[tuple[Text, ...], Meta(min_length=2, max_length=2)] | None,
        Meta(description="User name and password."),
    ] = None


class Http(Step, frozen=True, kw_only=True):
    """Send one HTTP request. A status outside `expect_status` fails the step; the answer's body is decoded."""

    straight: ClassVar[bool] = False
    sinks: ClassVar[frozenset[str]] = frozenset({*METHODS, "query", "headers", "auth", "json", "form", "body"})

    get: Annotated[Text | None, Meta(description="The URL to GET.", examples=["https://api.example.com/v1"])] = None
    post: Annotated[Text | None, Meta(description="The URL to POST to.")] = None
    put: Annotated[Text | None, Meta(description="The URL to PUT to.")] = None
    patch: Annotated[Text | None, Meta(description="The URL to PATCH.")] = None
    delete: Annotated[Text | None, Meta(description="The URL to DELETE.")] = None
    head: Annotated[Text | None, Meta(description="The URL to ask for headers only.")] = None
    query: Annotated[
        dict[str, Texts], Meta(description="Parameters that are added to the URL; a list repeats the name.")
    ] = {}
    headers: Annotated[dict[str, Text], Meta(description="Request headers.")] = {}
    auth: Annotated[Auth | None, Meta(description="`{bearer: token}` or `{basic: [user, password]}`.")] = None
    json: Annotated[Value | msgspec.UnsetType, Meta(description="A body that is sent as JSON.")] = msgspec.UNSET
    form: Annotated[dict[str, Texts] | None, Meta(description="A body that is sent as a web form.")] = None
    body: Annotated[Text | None, Meta(description="A body that is sent as text, as it is.")] = None
    expect_status: Annotated[
        Status | tuple[Status, ...],
        Meta(description="The statuses that are a success: numbers, or classes such as `2xx`.", examples=["2xx", 201]),
    ] = "2xx"
    max_response: Annotated[
        Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=size.PATTERN)],
        Meta(description="The longest body that is taken, inflated: `10MiB` or a number of bytes."),
    ] = "1MiB"
    follow_redirects: Annotated[bool, Meta(description="Follow up to five redirects.")] = False
    allow_hosts: Annotated[
        tuple[str, ...] | None,
        Meta(description="The only hosts that may be asked, redirects included.", examples=[["*.example.com"]]),
    ] = None
    allow_private: Annotated[
        Value | None,
        Meta(
            description="Whether addresses that are not public (loopback, private, metadata) may be asked.",
            extra_json_schema={"type": ["boolean", "string"]},
        ),
    ] = None

    def replay(self) -> Replay:
        """By method (RFC 9110 §9.2), and by whether the server is given an Idempotency-Key."""
        method = self.target()[0]
        if method in ("get", "head"):
            return Replay.REPLAYABLE
        keyed = any(name.lower() == "idempotency-key" for name in self.headers)
        return Replay.IDEMPOTENT if keyed or method in ("put", "delete") else Replay.NON_REPLAYABLE

    def check(self) -> tuple[Finding, ...]:
        """One method, one body, a URL and headers that can be sent."""
        from ._http_check import findings

        return tuple(findings(self))

    def target(self) -> tuple[str, Text]:
        """The method and its URL."""
        for method in METHODS:
            url = getattr(self, method)
            if url is not None:
                return method, url
        return "get", Text("")  # refused by `check`

    def bodies(self) -> tuple[str, ...]:
        """The body fields that are given."""
        given = {"json": self.json is not msgspec.UNSET, "form": self.form is not None, "body": self.body is not None}
        return tuple(name for name, there in given.items() if there)

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """The host of the URL, and those to which a redirect may lead."""
        from ._http_check import literal_host

        method, url = self.target()
        hosts = tuple(("http", ("allow_hosts", index), host) for index, host in enumerate(self.allow_hosts or ()))
        return (("http", (method,), literal_host(url.text)), *(hosts if self.follow_redirects else ()))

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The answer; its body may be anything."""
        text = {"type": "string"}
        headers = {"type": "object", "additionalProperties": text}
        return {
            "type": "object",
            "properties": {"status": {"type": "integer"}, "headers": headers, "body": {}, "url": text},
        }

    def record(self, known: Known) -> dict[str, Any] | None:
        """The same."""
        return self.shape(known)

    def note(self, result: Any) -> str | None:
        """The status of the answer."""
        return str(result["status"])

    async def run(self, ctx: Context) -> Outcome:
        """Render, send within the time there is, decode."""
        from ._http_body import decode
        from ._http_render import render

        call = render(self, ctx)
        ctx.signal("http.started", method=call.method)
        try:
            reply = await self._exchange(call, ctx)
        except StepError as error:
            ctx.signal("http.failed", method=call.method, error_type=error.type)
            if error.type == "refused":
                ctx.signal("security.request_denied", method=call.method)
            raise
        size = len(reply.content)
        ctx.signal("http.completed", method=reply.method, status=reply.status, response_bytes=size)
        empty = reply.method == "HEAD" or reply.status in (204, 205, 304)
        body = None if empty else decode(reply.content, reply.headers.get("content-type", ""))
        return Done({"status": reply.status, "headers": reply.headers, "body": body, "url": reply.url})

    async def _exchange(self, call: Call, ctx: Context) -> Reply:
        import asyncio
        import time

        from ._http_exchange import exchange

        seconds = TOTAL if ctx.deadline is None else max(0.0, ctx.deadline - time.monotonic())
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await exchange(call, ctx.now())
        except TimeoutError:
            if not limit.expired():
                raise
            text = f"{call.shown()} did not answer completely within {duration.spell(seconds)}"
            raise StepError("timeout", text) from None
