"""The tools of an `ai` step while it runs: what the model is offered, and how a call of it is carried out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec

from .. import size
from ..expression import suggest
from ..provider import Tool
from ..running import Context
from ..step import Done, StepError, Usage
from ..target import Target
from ._ai_toolset import EVERY, Toolset, plain_name

if TYPE_CHECKING:
    from ._mcp_server import Server
    from ._mcp_session import Session

MOST_TOOLS = 128
"""More are taken by no service."""
LONGEST_MESSAGE = 4 << 20
"""Bytes of one message of a server."""
LONGEST_SCHEMA = 64 << 10
"""Characters of the schema of one tool."""
_TOLD = 4000
_FINAL = frozenset(("cancelled", "unknown_outcome"))
"""Ends of a called workflow that are none for the model to think about."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gave."""

    text: str
    failed: bool = False
    usage: Usage | None = None
    run_id: str | None = None


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may use. `source` and `label` say for people whose it is."""

    tool: Tool
    source: str
    label: str
    carry: Callable[[dict[str, Any]], Awaitable[Reply]]
    """Carry out a call. StepError only where the step cannot go on."""


async def offer(tools: Sequence[Toolset], ctx: Context, stack: AsyncExitStack) -> dict[str, Offered]:
    """Everything that the model is offered, by name; servers run until the stack is closed."""
    found: dict[str, Offered] = {}
    for one in tools:
        for offered in [_workflow(one, ctx)] if one.workflow is not None else await _served(one, ctx, stack):
            name = offered.tool.name
            if name in found:
                what = f"two tools would be called {name}: of {found[name].label} and of {offered.label}"
                raise StepError("refused", what, hint="give one of them a `prefix` or a `name`")
            found[name] = offered
    if len(found) > MOST_TOOLS:
        what = f"the model would be offered {len(found)} tools, more than {MOST_TOOLS}"
        raise StepError("limit", what, hint="name the tools that it needs")
    return found


# Workflows.


def _workflow(one: Toolset, ctx: Context) -> Offered:
    target = one.workflow
    assert target is not None
    tool = Tool(name=one.called_as(), description=one.told()[:_TOLD], schema=target.told["schema"])

    async def carry(arguments: dict[str, Any]) -> Reply:
        return await _called(target, arguments, ctx)

    return Offered(tool=tool, source="workflow", label=target.path, carry=carry)


async def _called(target: Target, arguments: dict[str, Any], ctx: Context) -> Reply:
    try:
        outcome = await ctx.call(target, arguments, {}, afresh=True)
    except StepError as error:
        if error.final or error.type in _FINAL:
            raise
        run_id = error.details.get("run_id")
        said, run_id = str(ctx.redacted(error.message)), run_id if isinstance(run_id, str) else None
        return Reply(text=said, failed=True, usage=_known(error.usage), run_id=run_id)
    assert isinstance(outcome, Done)
    result: Any = outcome.result
    outputs = json.dumps(ctx.redacted(result["outputs"]), ensure_ascii=False)
    return Reply(text=outputs, usage=_known(outcome.usage), run_id=str(result["run_id"]))


def _known(usage: Usage | None) -> Usage | None:
    """What a called run has used: it has counted its cost as far as that is known."""
    return msgspec.structs.replace(usage, cost_usd=usage.cost_usd or 0.0) if usage is not None else None


# Servers.


async def _served(one: Toolset, ctx: Context, stack: AsyncExitStack) -> list[Offered]:
    from ._mcp_link import link_to, named, need_library
    from ._mcp_session import Session

    need_library("tools of an MCP server need")
    assert one.mcp is not None
    name = one.mcp if isinstance(one.mcp, str) else None
    server = named(one.mcp, ctx) if isinstance(one.mcp, str) else one.mcp
    link = link_to(server, ctx, LONGEST_MESSAGE, name)
    session = await stack.enter_async_context(Session(link, ctx, lambda text: ctx.output("stderr", text)))
    label = name or _label(server)
    try:
        tools = {tool.name: tool for tool in await session.tools()}
    except StepError as error:
        raise _told(error) from None
    return [_of_server(tools[wanted], one, label, session, ctx) for wanted in _allowed(one, tools, label)]


def _allowed(one: Toolset, tools: Iterable[str], label: str) -> list[str]:
    names = list(tools)
    if EVERY in one.tools:
        return names
    for wanted in one.tools:
        if wanted not in names:
            near = suggest(wanted, names)
            hint = f"did you mean {near}?" if near else f"it has {', '.join(sorted(names)[:20]) or 'none'}"
            raise StepError("refused", f"the server {label} has no tool {wanted[:100]}", hint=hint)
    return list(dict.fromkeys(one.tools))


def _label(server: Server) -> str:
    if server.url is not None:
        from ._mcp_check import literal_host

        return literal_host(server.url.text) or "a URL"
    return server.command[0].text if server.command else ""


def _of_server(tool: Any, one: Toolset, label: str, session: Session, ctx: Context) -> Offered:
    schema = tool.input_schema
    if len(json.dumps(schema)) > LONGEST_SCHEMA:
        raise StepError(
            "limit", f"the arguments of the tool {tool.name} are described in more than {LONGEST_SCHEMA} bytes"
        )
    shown = Tool(
        name=plain_name((one.prefix or "") + tool.name), description=(tool.description or "")[:_TOLD], schema=schema
    )

    async def carry(arguments: dict[str, Any]) -> Reply:
        from ._mcp_session import ToolFailed

        try:
            found = await session.call(tool.name, arguments)
        except ToolFailed as failed:
            return Reply(text=str(ctx.redacted(str(failed))), failed=True)
        except StepError as error:
            raise _told(error) from None
        return Reply(text=_said(ctx.redacted(found)))

    return Offered(tool=shown, source="mcp", label=label, carry=carry)


def _said(found: Any) -> str:
    """What the model sees of a result: its texts, and what else there is by its kind."""
    pieces = [
        str(piece["text"]) if piece.get("type") == "text" else f"[{piece.get('type')}: it cannot be shown here]"
        for piece in found["content"]
    ]
    if not pieces and "value" in found:
        return json.dumps(found["value"], ensure_ascii=False)
    return "\n".join(pieces)


def _told(error: StepError) -> StepError:
    """The end of a session, for a step that has no `max_response`."""
    if error.type == "limit":
        what = f"a message of the MCP server is longer than {size.spell(LONGEST_MESSAGE)}"
        return StepError("limit", what, hint="let the model use tools that give less", details=error.details)
    return error
