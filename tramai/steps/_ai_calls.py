"""Carries out what a model calls: only what it was offered, with arguments that fit, bounded, and on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .. import codec
from ..codec import Json, sha256
from ..expression import suggest
from ..provider import Call, Turn
from ..running import Context
from ..step import StepError, Usage
from . import _answer
from ._ai_tools import Offered, Reply

LONGEST_ARGUMENTS = 256 << 10
"""Bytes of the arguments of one call."""
LONGEST_RESULT = 64 << 10
"""Characters of a tool's answer that the model sees: three quarters of them are its beginning."""
_SHOWN = 5


class Desk:
    """Where the calls of one attempt arrive. `calls` is their record; `clean` is what a guard makes of answers."""

    def __init__(
        self, offered: Mapping[str, Offered], most: int, ctx: Context, clean: Callable[[str], str] | None = None
    ) -> None:
        self._offered = offered
        self._most = most
        self._ctx = ctx
        self._clean = clean
        self.calls: list[Json] = []

    def room(self, wanted: int) -> None:
        """Refuse more calls than are allowed, before one of them is carried out."""
        if len(self.calls) + wanted > self._most:
            what = f"the model wanted to use tools more than {self._most} times (max_tool_calls)"
            raise StepError("limit", what, hint="raise max_tool_calls, or say in the prompt when to stop")

    async def carry_out(self, call: Call) -> tuple[Turn, Usage | None]:
        """One call, answered."""
        ctx, began = self._ctx, self._ctx.now()
        offered = self._offered.get(call.name)
        arguments = {} if call.arguments is None else call.arguments
        wrong, told = self._judge(call.name, offered, arguments)
        if wrong is not None or offered is None:
            reply = Reply(text=wrong or "", failed=True)
        else:
            ctx.output("stdout", f"tool: {call.name}\n")
            reply = await offered.carry(arguments)
        text = _cut(reply.text)
        if self._clean is not None:
            text = self._clean(text)
        self._note(call.name, offered, arguments, told, reply, ctx.now() - began)
        return Turn(role="tool", text=text, id=call.id, name=call.name, failed=reply.failed), reply.usage

    def _judge(self, name: str, offered: Offered | None, arguments: Any) -> tuple[str | None, int]:
        """Why a call is not carried out, in words for the model; and how long its arguments are."""
        try:
            codec.check(arguments)
            told = len(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return "the arguments are not JSON", 0
        if offered is None:
            near = suggest(name, self._offered)
            more = f"did you mean {near}?" if near else f"there are: {', '.join(self._offered)}"
            return f"there is no tool {name[:100]}; {more}", told
        if told > LONGEST_ARGUMENTS:
            return f"the arguments are too long: {told} bytes, at most {LONGEST_ARGUMENTS}", told
        if not isinstance(arguments, dict):
            return "the arguments must be an object", told
        schema = offered.tool.schema
        problems = _answer.problems(arguments, schema if offered.source == "workflow" else without_patterns(schema))
        if problems:
            return "the arguments do not fit: " + "; ".join(problems[:_SHOWN]), told
        return None, told

    def _note(
        self, name: str, offered: Offered | None, arguments: Any, told: int, reply: Reply, seconds: float
    ) -> None:
        seen = len(reply.text.encode("utf-8", "surrogatepass"))
        entry: dict[str, Json] = {"tool": name[:200], "failed": reply.failed, "seconds": round(max(seconds, 0.0), 3)}
        if offered is not None:
            entry[offered.source] = offered.label
        if 0 < told <= LONGEST_ARGUMENTS:
            entry["arguments"] = arguments
        entry |= {"argument_bytes": told, "answer_bytes": seen}
        if reply.run_id is not None:
            entry["run_id"] = reply.run_id
        self.calls.append(self._ctx.redacted(entry))
        self._ctx.signal(
            "ai.tool_called",
            tool_digest=sha256(name)[:16],
            source=offered.source if offered is not None else None,
            failed=int(reply.failed),
            argument_bytes=told,
            answer_bytes=seen,
            duration=max(seconds, 0.0),
        )


def _cut(text: str) -> str:
    """What the model sees of a long answer: head, mark, tail."""
    if len(text) <= LONGEST_RESULT:
        return text
    head, tail = LONGEST_RESULT // 4 * 3, LONGEST_RESULT // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"


def without_patterns(schema: Any) -> Any:
    """A schema of a server without regular expressions: they are somebody else's, and are not run here."""
    if isinstance(schema, list):
        return [without_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, below in schema.items():
        if key in ("properties", "$defs", "definitions", "dependentSchemas") and isinstance(below, dict):
            made[key] = {name: without_patterns(part) for name, part in below.items()}
        elif key in ("enum", "const", "default", "examples"):
            made[key] = below
        elif key not in ("pattern", "patternProperties", "propertyNames"):
            made[key] = without_patterns(below)
    if "patternProperties" in schema:  # what they would let in cannot be told apart any more
        made.pop("additionalProperties", None)
        made.pop("unevaluatedProperties", None)
    return made
