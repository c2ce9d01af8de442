"""What an MCP server gave, as plain data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from .. import codec
from ..step import StepError

if TYPE_CHECKING:
    from mcp_types import CallToolResult, Tool

_SHOWN = 500
_KEPT = 2000


def result_of(tool: str, found: CallToolResult) -> dict[str, Any]:
    """The full record of a call; StepError for a result that says it is an error."""
    content = [_plain(piece) for piece in found.content]
    text = "\n".join(piece["text"] for piece in content if piece.get("type") == "text")
    if found.is_error:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        details = {"tool": tool, "body": text[:_KEPT]}
        raise StepError("exit", f"the tool {tool} failed: {shown or 'it did not say why'}", details=details)
    record: dict[str, Any] = {"text": text, "content": content}
    if found.structured_content is not None:
        record["value"] = found.structured_content
    elif content and all(piece.get("type") == "text" for piece in content):
        try:
            record["value"] = _parsed(text)
        except (ValueError, RecursionError):
            pass  # it is text, and that is all
    try:
        codec.check(record)
    except (ValueError, RecursionError) as error:
        raise StepError("invalid_output", f"the result of {tool} is no JSON: {str(error)[:200]}") from None
    return record


def tools_of(tools: list[Tool]) -> dict[str, Any]:
    """The full record of a list of tools."""
    names = "\n".join(tool.name for tool in tools)
    return {"value": [_plain(tool) for tool in tools], "text": names, "content": []}


def _plain(thing: Any) -> dict[str, Any]:
    """As it stands in the protocol: images and sounds are base64 there, and stay so."""
    return thing.model_dump(mode="json", by_alias=True, exclude_none=True)  # type: ignore[no-any-return]


def _parsed(text: str) -> Any:
    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    return json.loads(text, parse_constant=constant)
