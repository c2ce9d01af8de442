"""`http`: send one request and take its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .. import duration, size
from ..codec import Json
from ..expression import Text, Value
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Replay, Step, StepError
from ._http_settings import LIST, SAVED, Auth, Certificate, Credentials, Paginate, Part, Status, Texts, record

if TYPE_CHECKING:
    from ._http_exchange import Call, Reply

METHODS = ("get", "post", "put", "patch", "delete", "head")
TOTAL = 60.0
"""Seconds for the whole exchange when the step has no `timeout`."""


class Http(Step, frozen=True, kw_only=True):
    """Send one HTTP request. A status outside `expect_status` fails the step; the answer's body is decoded."""

    straight: ClassVar[bool] = False
    sinks: ClassVar[frozenset[str]] = frozenset(
        {
            *METHODS,
            "query",
            "headers",
            "auth",
            "json",
            "form",
            "body",
            "multipart",
            "proxy_auth",
            "client_cert.password",
        }
    )
    sees: ClassVar[dict[str, dict[str, Any]]] = {"paginate": record({"page": {"type": "integer"}})}

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
    body_file: Annotated[
        Text | None,
        Meta(description="A file that is sent as the body, as it is.", examples=["report.pdf"]),
    ] = None
    multipart: Annotated[
        dict[str, Part] | None, Meta(description="A body of several parts: texts, and files with `{file: path}`.")
    ] = None
    idempotency_key: Annotated[
        Value | None,
        Meta(
            description="Send a header Idempotency-Key: `true` for a key of this step, the same on every attempt and "
            "resume, or a text. The step is then idempotent.",
            examples=[True, "order-${{ inputs.order }}"],
            extra_json_schema={"type": ["boolean", "string"]},
        ),
    ] = None
    expect_status: Annotated[
        Status | tuple[Status, ...],
        Meta(description="The statuses that are a success: numbers, or classes such as `2xx`.", examples=["2xx", 201]),
    ] = "2xx"
    max_response: Annotated[
        Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=size.PATTERN)],
        Meta(description="The longest body that is taken, inflated: `10MiB` or a number of bytes."),
    ] = "1MiB"
    save_to: Annotated[
        Text | None,
        Meta(
            description="The file into which the body of a 2xx answer is written, instead of being taken.",
            examples=["build/data.zip"],
        ),
    ] = None
    max_download: Annotated[
        Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=size.PATTERN)] | None,
        Meta(description="The longest body that `save_to` writes; `1GiB` if it is not said."),
    ] = None
    paginate: Annotated[
        Paginate | None, Meta(description="Take all pages of a list: `{next: …, items: …}`. The output is the list.")
    ] = None
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

    proxy: Annotated[
        str | None,
        Meta(
            description="The proxy through which the request goes, instead of the one of tramai.toml.",
            examples=["http://proxy.example.com:3128"],
        ),
    ] = None
    proxy_auth: Annotated[Credentials | None, Meta(description="User name and password for the `proxy`.")] = None
    ca_bundle: Annotated[
        Text | None,
        Meta(
            description="A PEM file with the authorities whose certificates count, instead of the usual ones.",
            examples=["certs/company-ca.pem"],
        ),
    ] = None
    client_cert: Annotated[
        Certificate | None, Meta(description="The certificate that we show: `{cert: file, key: file}`.")
    ] = None

    def replay(self) -> Replay:
        """By method (RFC 9110 §9.2), and by whether the server is given an Idempotency-Key."""
        method = self.target()[0]
        if method in ("get", "head"):
            return Replay.REPLAYABLE
        keyed = self.keyed() or any(name.lower() == "idempotency-key" for name in self.headers)
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
        given = {"json": self.json is not msgspec.UNSET}
        given |= {name: getattr(self, name) is not None for name in ("form", "body", "body_file", "multipart")}
        return tuple(name for name, there in given.items() if there)

    def keyed(self) -> bool:
        """Whether `idempotency_key` asks for a header."""
        return self.idempotency_key is not None and self.idempotency_key.data is not False

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """The host of the URL, those to which it may lead, the proxy, and the folder of a download."""
        from ._http_check import reaches

        return tuple(reaches(self))

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The joined list, the file, or the answer, whose body may be anything."""
        if self.paginate is not None:
            return LIST
        made = self.record(known)
        return {**made, "properties": {name: of for name, of in made["properties"].items() if name != "links"}}

    def record(self, known: Known) -> dict[str, Any]:
        """Everything that is known of the answer."""
        if self.paginate is not None:
            return record({"body": LIST, "pages": {"type": "integer"}})
        return record(SAVED if self.save_to is not None else {})

    def output(self, result: Any) -> Json:
        """The joined list, else the answer without its links."""
        if self.paginate is not None:
            return result["body"]  # type: ignore[no-any-return]
        return {name: value for name, value in result.items() if name != "links"}

    def note(self, result: Any) -> str | None:
        """The status of the answer, and how much there was of it."""
        if "pages" in result:
            return f"{result['status']}, {len(result['body'])} items on {result['pages']} pages"
        if result.get("path") is not None:
            return f"{result['status']}, {result['bytes']} bytes"
        return str(result["status"])

    async def run(self, ctx: Context) -> Outcome:
        """Render, send within the time there is, decode."""
        from contextlib import ExitStack

        from ._http_files import FileTrouble
        from ._http_render import render

        with ExitStack() as opened:
            call = render(self, ctx, opened)
            ctx.signal("http.started", method=call.method)
            try:
                reply, result, taken = await self._within(call, ctx)
            except StepError as error:
                ctx.signal("http.failed", method=call.method, error_type=error.type)
                if error.type == "refused" and not isinstance(error, FileTrouble):
                    ctx.signal("security.request_denied", method=call.method)
                raise
        ctx.signal("http.completed", method=reply.method, status=reply.status, response_bytes=taken)
        return Done(result)

    async def _answered(self, call: Call, ctx: Context) -> tuple[Reply, dict[str, Any], int]:
        """The answer, of pages the last one; the full record; and the bytes of all bodies."""
        if self.paginate is not None:
            from ._http_pages import pages

            reply, items, count, taken = await pages(call, self.paginate, ctx)
            return reply, {**reply.record(), "body": items, "pages": count}, taken
        from ._http_exchange import exchange

        reply = await exchange(call, ctx.now())
        body = {"body": None if reply.saved is not None else reply.body()}
        if self.save_to is None:
            return reply, {**reply.record(), **body}, len(reply.content)
        saved = reply.saved
        told = {name: getattr(saved, name) if saved is not None else None for name in SAVED}
        return reply, {**reply.record(), **body, **told}, saved.bytes if saved is not None else len(reply.content)

    async def _within(self, call: Call, ctx: Context) -> tuple[Reply, dict[str, Any], int]:
        import asyncio
        import time

        seconds = TOTAL if ctx.deadline is None else max(0.0, ctx.deadline - time.monotonic())
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._answered(call, ctx)
        except TimeoutError:
            if not limit.expired():
                raise
            text = f"{call.shown()} did not answer completely within {duration.spell(seconds)}"
            hint = "a step without `timeout` has so long: give it one" if ctx.deadline is None else None
            raise StepError("timeout", text, hint=hint) from None
