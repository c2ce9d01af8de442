"""`mcp`: call one tool of an MCP server and take what it gives."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .. import size
from ..codec import Json, sha256
from ..expression import Text, Value
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Step, StepError
from ._mcp_server import Server, reach


class Mcp(Step, frozen=True, kw_only=True):
    """Call one tool of an MCP server. A result that says it is an error fails the step. The server is started for the
    call and ended after it; the step is over when all its processes are gone."""

    spawns: ClassVar[bool] = True
    sinks: ClassVar[frozenset[str]] = frozenset({"server.env", "server.headers"})

    server: Annotated[
        Server | str,
        Meta(description="The server: `{command, env}`, `{url, headers}`, or a name of the configuration."),
    ]
    tool: Annotated[Text | None, Meta(description="The tool that is called.", examples=["get_current_time"])] = None
    arguments: Annotated[
        Value | None,
        Meta(
            description="What the tool is given, by name.",
            examples=[{"timezone": "Europe/Berlin"}],
            extra_json_schema={"type": ["object", "string"]},
        ),
    ] = None
    list_: Annotated[bool, Meta(description="List the tools instead of calling one.")] = msgspec.field(
        name="list", default=False
    )
    max_response: Annotated[
        Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=size.PATTERN)],
        Meta(description="The longest answer that is taken: `10MiB` or a number of bytes."),
    ] = "1MiB"

    def check(self) -> tuple[Finding, ...]:
        """One kind of server, one thing to ask it, names that can be sent."""
        from ._mcp_check import findings

        return tuple(findings(self))

    def reaches(self) -> tuple[tuple[Any, ...], ...]:
        """The program, or the host."""
        kind, at, name = reach(self.server)
        return ((kind, ("server", *at), name),)

    def output(self, result: Any) -> Json:
        """The data, or the text where there is none."""
        return result["value"] if "value" in result else result["text"]  # type: ignore[no-any-return]

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The tools with `list`; nothing is known of what a tool gives."""
        return _TOOLS if self.list_ else {}

    def record(self, known: Known) -> dict[str, Any] | None:
        """The data, the text, and everything as it came."""
        content = {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"}}}}
        properties = {"value": self.shape(known), "text": {"type": "string"}, "content": content}
        return {"type": "object", "properties": properties}

    def note(self, result: Any) -> str | None:
        """How much there is."""
        if self.list_:
            return f"{len(result['value'])} tools"
        return f"{len(result['content'])} pieces" if len(result["content"]) > 1 else None

    async def run(self, ctx: Context) -> Outcome:
        """Render the settings, reach the server, ask, and see to its end."""
        from ._mcp_link import link_to, named, need_library
        from ._mcp_talk import Ask, carry

        need_library()
        ask = Ask(
            tool=None if self.list_ else ctx.text(self.tool or Text("")).strip(),
            arguments=self._arguments(ctx),
            show=lambda text: ctx.output("stderr", text),
        )
        name = self.server if isinstance(self.server, str) else None
        server = named(self.server, ctx) if isinstance(self.server, str) else self.server
        link = link_to(server, ctx, size.parse(self.max_response), name)
        ctx.signal("mcp.started", transport=link.transport_name, tool_digest=sha256(ask.tool or "")[:16])
        try:
            result = await carry(link, ask, ctx)
        except StepError as error:
            ctx.signal("mcp.failed", error_type=error.type)
            raise
        ctx.signal("mcp.completed", pieces=len(result["content"]), text_bytes=len(result["text"].encode()))
        return Done(result)

    def _arguments(self, ctx: Context) -> dict[str, Any]:
        value = {} if self.arguments is None else ctx.value(self.arguments)
        if not isinstance(value, dict):
            raise StepError("expression", "`arguments` must be a map of names to values")
        return value


_TEXT = {"type": "string"}
_TOOL = {"name": _TEXT, "title": _TEXT, "description": _TEXT, "inputSchema": {"type": "object"}}
_TOOLS: dict[str, Any] = {"type": "array", "items": {"type": "object", "properties": _TOOL}}
