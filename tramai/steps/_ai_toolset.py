"""`ai.tools`: what a model may use, as a workflow file gives it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..errors import Pointer
from ..step import Finding, Replay
from ..target import Described
from ._mcp_server import Server, reach

EVERY = "*"
"""Written alone in an allow-list: every tool that the server has."""
NAME = r"^[A-Za-z0-9_-]{1,64}$"
"""What all model services take as the name of a tool."""
MOST = 10
"""Calls in an attempt, where the step does not say."""
_TEXT, _COUNT = {"type": "string"}, {"type": "integer"}
_CALL = {"tool": _TEXT, "failed": {"type": "boolean"}, "seconds": {"type": "number"}, "mcp": _TEXT, "workflow": _TEXT}
_MORE = {"arguments": {}, "argument_bytes": _COUNT, "answer_bytes": _COUNT, "run_id": _TEXT}
CALLS = {"type": "array", "items": {"type": "object", "properties": {**_CALL, **_MORE}}}
"""The shape of the record of all calls."""


class Toolset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tools of an MCP server (`mcp` and the `tools` that are allowed), or a workflow that is one (`workflow`)."""

    mcp: Annotated[
        Server | str | None,
        Meta(description="A server: `{command, env}`, `{url, headers}`, or a name of the configuration."),
    ] = None
    tools: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description='The tools of the server that the model may use; `["*"]` for all of them.',
            examples=[["get_current_time"]],
        ),
    ] = ()
    prefix: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,32}$")] | None,
        Meta(
            description="Stands before the names of the server's tools, where two servers have the same.",
            examples=["git_"],
        ),
    ] = None
    workflow: Annotated[
        Described | None,
        Meta(
            description="A workflow file, from the folder of this one. Inputs are the arguments, outputs the answer.",
            examples=["./look_up.yaml"],
        ),
    ] = None
    name: Annotated[
        Annotated[str, Meta(pattern=NAME)] | None,
        Meta(description="The name of the workflow as a tool; its own name otherwise.", examples=["look_up"]),
    ] = None
    description: Annotated[
        str | None,
        Meta(
            description="What the model is told that the workflow does; the description in its file otherwise.",
            examples=["Finds an order by its number."],
        ),
    ] = None

    def called_as(self) -> str:
        """The name of a workflow as a tool."""
        found = self.workflow.workflow if self.workflow is not None else None
        return self.name or (plain_name(found.name) if found is not None else "")

    def told(self) -> str:
        """What the model is told that a workflow does."""
        return self.description or (str(self.workflow.told["description"] or "") if self.workflow is not None else "")


def plain_name(name: str) -> str:
    """A name as services take it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def reaches(tools: Sequence[Toolset]) -> Iterator[tuple[Any, ...]]:
    """The servers, and all that the workflows reach for."""
    for index, one in enumerate(tools):
        if one.mcp is not None:
            kind, at, name = reach(one.mcp)
            yield kind, ("tools", index, "mcp", *at), name
        if one.workflow is not None:
            yield from one.workflow.reaches(("tools", index, "workflow"))


def called(tools: Sequence[Toolset]) -> tuple[tuple[Pointer, Described], ...]:
    """The workflows."""
    found = enumerate(tools)
    return tuple((("tools", index, "workflow"), one.workflow) for index, one in found if one.workflow is not None)


def replay(tools: Sequence[Toolset]) -> Replay:
    """What may be done again is what all of them allow; nothing is known of the tools of a server."""
    for one in tools:
        inside = one.workflow.workflow if one.workflow is not None else None
        if inside is None or any(node.replay is not Replay.REPLAYABLE for node in inside.walk()):
            return Replay.NON_REPLAYABLE
    return Replay.REPLAYABLE


def findings(tools: Sequence[Toolset], most: int | None) -> Iterator[Finding]:
    """What is wrong with them, before anything is rendered."""
    if most is not None and not tools:
        yield Finding(("max_tool_calls",), "TRM250", "`max_tool_calls` means nothing without `tools`", "remove it")
    seen: dict[str, int] = {}
    for index, one in enumerate(tools):
        at: Pointer = ("tools", index)
        yield from _kind(one, at)
        if one.mcp is not None:
            yield from _server(one, at)
        elif one.workflow is not None:
            yield from _workflow(one, at)
        for name, place in _names(one, at):
            if name in seen:
                hint = "give the workflow another `name`" if one.mcp is None else "give one of the servers a `prefix`"
                text = f"the model would see two tools `{name}` (the other is of entry {seen[name] + 1})"
                yield Finding(place, "TRM251", text, hint)
            seen.setdefault(name, index)


def _names(one: Toolset, at: Pointer) -> Iterator[tuple[str, Pointer]]:
    if one.mcp is not None:
        for index, tool in enumerate(one.tools):
            if tool != EVERY:
                yield plain_name((one.prefix or "") + tool), (*at, "tools", index)
    elif one.workflow is not None and one.called_as():
        yield one.called_as(), (*at, "name") if one.name else (*at, "workflow")


def _kind(one: Toolset, at: Pointer) -> Iterator[Finding]:
    if (one.mcp is None) == (one.workflow is None):
        what = "has both" if one.mcp is not None else "has neither"
        hint = "write {mcp: server, tools: [names]} or {workflow: path}"
        yield Finding(at, "TRM250", f"an entry of `tools` has either `mcp` or `workflow`; this one {what}", hint)
        return
    strays = ("name", "description") if one.mcp is not None else ("tools", "prefix")
    kind = "an MCP server" if one.mcp is not None else "a workflow"
    for key in strays:
        if getattr(one, key):
            yield Finding((*at, key), "TRM250", f"`{key}` means nothing to {kind}", "remove it")


def _server(one: Toolset, at: Pointer) -> Iterator[Finding]:
    from ._mcp_check import named_wrong, of_server

    if isinstance(one.mcp, str):
        if (wrong := named_wrong(one.mcp)) is not None:
            yield Finding((*at, "mcp"), "TRM336", *wrong)
    elif one.mcp is not None:
        for finding in of_server(one.mcp):
            yield msgspec.structs.replace(finding, pointer=(*at, "mcp", *finding.pointer[1:]))
    if not one.tools:
        hint = 'name them: tools: [search]; tools: ["*"] lets the model use all that the server has'
        yield Finding(at, "TRM252", "it is not said which tools of the server the model may use", hint)
    elif EVERY in one.tools and len(one.tools) > 1:
        text = '`"*"` stands for every tool, and others are named beside it'
        yield Finding((*at, "tools"), "TRM252", text, 'keep the names, or `"*"` alone')


def _workflow(one: Toolset, at: Pointer) -> Iterator[Finding]:
    target = one.workflow
    assert target is not None
    if target.workflow is None:
        return  # it could not be read, which has been said
    if not one.told().strip():
        hint = "give it a `description` here, or one in its file"
        yield Finding((*at, "workflow"), "TRM253", f"nothing tells the model what {target.path} does", hint)
    for node in target.workflow.walk():
        if node.verb == "gate" and getattr(node.step, "ask", None) is not None:
            text = f"{target.path} asks people (step `{node.id}`), and a tool has to answer at once"
            yield Finding((*at, "workflow"), "TRM254", text, "call it by a step of its own, before or after this one")
            return
