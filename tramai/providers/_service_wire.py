"""Between our questions and answers and the messages of pydantic-ai."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from ..provider import Answer, Call, Question, Turn
from ..step import Usage

Said = dict[str, list[ModelResponse]]
"""Answers by the calls in them, in order: ids alone do not tell them apart, as some servers count anew each time."""
_ANSWER = "answer"
"""The tool by which a model answers that can give data in no other way, and the name of the schema elsewhere."""
_TOLD = "Answer with JSON only, no text around it and no code fence. It must fit this JSON Schema:\n"
_ENDED = {"stop": "stop", "length": "length", "content_filter": "refused", "error": "error", "tool_call": "stop"}
_PLAIN = {"type", "properties", "required", "items", "enum", "const", "description", "title", "additionalProperties"}
_PLAIN |= {"anyOf", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format"}
_PLAIN |= {"default", "examples"}
"""Keywords that services take in the schema of an answer, or leave out where they do not know them."""


def request(
    question: Question, model: Model, said: Said
) -> tuple[list[ModelMessage], ModelSettings, ModelRequestParameters]:
    """What is sent. The library's own retries are off: ours are the only ones."""
    way = _way(question, model)
    system = question.system or ""
    if way == "told":
        system = f"{system}\n\n{_TOLD}{json.dumps(question.schema, ensure_ascii=False)}".strip()
    turns = question.history if not question.prompt else (*question.history, Turn(role="user", text=question.prompt))
    settings = ModelSettings(max_retries=0)
    if question.temperature is not None:
        settings["temperature"] = question.temperature
    if question.max_output_tokens is not None:
        settings["max_tokens"] = question.max_output_tokens
    return list(_messages(system, turns, said)), settings, _parameters(question, way)


def _way(question: Question, model: Model) -> str:
    """How data is asked for: `native` to the service, as the arguments of a `tool`, `told` in words, or not (`text`).

    Words are for schemas that services refuse: recursive ones, with conditions, or of something else than an object.
    """
    if question.schema is None:
        return "text"
    if not plain(question.schema):
        return "told"
    if model.profile.get("supports_json_schema_output", False) and not (question.tools and model.system == "google"):
        return "native"
    return "tool" if model.profile.get("supports_tools", True) and not question.tools else "told"


def plain(schema: dict[str, Any]) -> bool:
    """Whether every service can be asked for data of this shape: an object, of plain parts."""
    return schema.get("type") == "object" and _plain(schema)


def _plain(schema: Any) -> bool:
    if not isinstance(schema, dict) or not set(schema) <= _PLAIN or not isinstance(schema.get("type", ""), str):
        return False
    extra = schema.get("additionalProperties", False)
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema["items"]] if "items" in schema else []
    return isinstance(extra, bool) and all(map(_plain, inner))


def _parameters(question: Question, way: str) -> ModelRequestParameters:
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
        for tool in question.tools
    ]
    if way == "native":
        wanted = OutputObjectDefinition(json_schema=question.schema or {}, name=_ANSWER)
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=wanted)
    if way == "tool":
        only = ToolDefinition(
            name=_ANSWER,
            description="Give the answer.",
            parameters_json_schema=question.schema or {},
            kind="output",
        )
        return ModelRequestParameters(output_mode="tool", output_tools=[only], allow_text_output=False)
    return ModelRequestParameters(function_tools=tools)


def _messages(system: str, turns: Iterable[Turn], said: Said) -> Iterable[ModelMessage]:
    """The conversation. What the user and the tools say in a row goes in one message."""
    parts: list[ModelRequestPart] = [SystemPromptPart(content=system)] if system.strip() else []
    told: dict[str, int] = {}
    for turn in turns:
        if turn.role == "assistant":
            if parts:
                yield ModelRequest(parts=parts)
                parts = []
            key = _key(turn.calls)
            kept, nth = said.get(key, ()), told.get(key, 0)
            told[key] = nth + 1
            yield kept[nth] if nth < len(kept) else ModelResponse(parts=list(_said(turn)))
        elif turn.role == "tool":
            outcome = "failed" if turn.failed else "success"
            parts.append(
                ToolReturnPart(tool_name=turn.name, content=turn.text, tool_call_id=turn.id, outcome=outcome)  # type: ignore[arg-type]
            )
        else:
            parts.append(UserPromptPart(content=turn.text))
    if parts:
        yield ModelRequest(parts=parts)


def _said(turn: Turn) -> Iterable[ModelResponsePart]:
    if turn.text or not turn.calls:
        yield TextPart(content=turn.text)
    for call in turn.calls:
        args = call.arguments if isinstance(call.arguments, dict) else json.dumps(call.arguments)
        yield ToolCallPart(tool_name=call.name, args=args, tool_call_id=call.id)


def _key(calls: Iterable[Call]) -> str:
    return json.dumps([[call.id, call.name, call.arguments] for call in calls], sort_keys=True)


def piece(event: Any) -> str:
    """The text that an event of a stream brings."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def answer(response: ModelResponse, model: str, said: Said, *, offered: bool = False) -> Answer:
    """What came back; an answer with calls is kept in `said`. `offered`: tools were, and data is never given by one."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    made = [part for part in response.parts if isinstance(part, ToolCallPart)]
    value: Any = None
    given = None if offered else next((part for part in made if part.tool_name == _ANSWER), None)
    if given is not None:
        made.remove(given)
        value = _arguments(given)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        value = None if isinstance(value, str) else value
    calls = tuple(Call(id=part.tool_call_id, name=part.tool_name, arguments=_arguments(part)) for part in made)
    reason = _ENDED.get(response.finish_reason or "stop", "stop")
    if calls and reason == "stop":
        reason = "tools"
        said.setdefault(_key(calls), []).append(response)
    used = response.usage
    usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
    return Answer(text=text, finish_reason=reason, value=value, usage=usage, model=model, calls=calls)


def _arguments(part: ToolCallPart) -> Any:
    """What a tool is called with; the text itself where that is no JSON."""
    if not isinstance(part.args, str):
        return part.args or {}
    try:
        return json.loads(part.args) if part.args.strip() else {}
    except (ValueError, RecursionError):
        return part.args
