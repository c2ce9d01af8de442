"""Lines on the standard output of an MCP server: messages, and everything else that programs print there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ..step import StepError

_NOISE = 1 << 16
"""Bytes of a line that begins like no message, after which it is not collected any more."""


class Message(msgspec.Struct, frozen=True):
    """A line that means to be a message; `content` None when it is none that the protocol knows."""

    content: Any
    start: str

    def problem(self, sent: set[str]) -> StepError | None:
        """What is wrong with it, given the ids of the requests that were sent."""
        content = self.content
        if content is None:
            return StepError("invalid_output", f"the server sent what is no JSON-RPC message: {self.start}")
        if hasattr(content, "method") or (content.id is not None and str(content.id) in sent):
            return None
        error = getattr(content, "error", None)
        said = f", with the error: {error.message[:300]}" if error is not None else ""
        return StepError("invalid_output", f"the server answered a request that was never made (id {content.id}){said}")


class Lines:
    """Splits a stream. A message longer than `limit` sets `too_long`; noise may be as long as it likes."""

    def __init__(self, limit: int) -> None:
        self.too_long = False
        self._limit = limit
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Message | bytes]:
        """The messages and the noise that are complete now."""
        while data:
            line, end, data = data.partition(b"\n")
            if self._skipping:
                yield line + end
                self._skipping = not end
                continue
            self._rest += line + end
            if end:
                yield _judged(bytes(self._rest))
                self._rest.clear()
            elif len(self._rest) > _NOISE and not _promises(self._rest):
                yield bytes(self._rest)
                self._rest.clear()
                self._skipping = True
            self._bound()

    def _bound(self) -> None:
        if len(self._rest) > self._limit:
            self.too_long = True
            self._rest.clear()
            self._skipping = True


def _promises(line: bytes | bytearray) -> bool:
    return line[:256].lstrip().startswith(b"{")


def _judged(line: bytes) -> Message | bytes:
    if not _promises(line):
        return line
    from mcp_types import jsonrpc_message_adapter

    try:
        return Message(jsonrpc_message_adapter.validate_json(line, by_name=False), "")
    except ValueError:
        pass
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return Message(None, line[:200].decode("utf-8", "replace").strip()) if "jsonrpc" in found else line
