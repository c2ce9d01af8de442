"""Four ways in which model services write their answers, whole and as the events of a stream."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, NamedTuple

IN, OUT, CACHED = 1000, 200, 400


class Said(NamedTuple):
    """What a service answers. `reason`: stop, length, refused or tools; `calls`: names and arguments in JSON."""

    text: str
    reason: str = "stop"
    calls: tuple[tuple[str, str], ...] = ()

    @property
    def pieces(self) -> list[str]:
        return re.findall(r"\S+\s*", self.text)


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part if isinstance(part, str) else part.get("text") or "" for part in content or ())


class Chat:
    """OpenAI's chat completions, which most services speak."""

    service: ClassVar[str] = "openai"
    ends: ClassVar[str] = "/chat/completions"
    done: ClassVar[bytes] = b"data: [DONE]\n\n"
    reasons: ClassVar = {"stop": "stop", "length": "length", "refused": "content_filter", "tools": "tool_calls"}

    @staticmethod
    def prompt(body: Any) -> str:
        return [_texts(message.get("content")) for message in body["messages"] if message["role"] == "user"][-1]

    @staticmethod
    def schema(body: Any) -> Any:
        return ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")

    @staticmethod
    def tools(body: Any) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools") or ()]

    @staticmethod
    def streams(path: str, body: Any) -> bool:
        return bool(body.get("stream"))

    def usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": IN,
            "completion_tokens": OUT,
            "total_tokens": IN + OUT,
            "prompt_tokens_details": {"cached_tokens": CACHED},
        }

    def _calls(self, said: Said) -> list[dict[str, Any]]:
        return [
            {"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": given}}
            for at, (name, given) in enumerate(said.calls)
        ]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = self._calls(said)
        choice = {"index": 0, "message": message, "finish_reason": self.reasons[said.reason]}
        base = {"id": "c", "object": "chat.completion", "created": 1, "model": model}
        return {**base, "choices": [choice], "usage": self.usage()}

    def events(self, said: Said, model: str) -> list[dict[str, Any]]:
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}

        def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

        calls = [chunk({"tool_calls": [call]}) for call in self._calls(said)]
        texts = [chunk({"content": piece}) for piece in said.pieces]
        last = {**base, "choices": [], "usage": self.usage()}
        return [chunk({"role": "assistant"}), *texts, *calls, chunk({}, self.reasons[said.reason]), last]


class Responses:
    """OpenAI's responses."""

    service: ClassVar[str] = "openai-responses"
    ends: ClassVar[str] = "/responses"
    done: ClassVar[bytes] = b""

    @staticmethod
    def prompt(body: Any) -> str:
        given = body["input"]
        if isinstance(given, str):
            return given
        return [_texts(item.get("content")) for item in given if item.get("role") == "user"][-1]

    @staticmethod
    def schema(body: Any) -> Any:
        return ((body.get("text") or {}).get("format") or {}).get("schema")

    @staticmethod
    def tools(body: Any) -> list[str]:
        return [tool["name"] for tool in body.get("tools") or ()]

    streams = staticmethod(Chat.streams)

    def _items(self, said: Said) -> list[dict[str, Any]]:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        if said.reason == "refused":
            part = {"type": "refusal", "refusal": "no"}
        message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
        calls = [
            {"type": "function_call", "id": f"f{at}", "call_id": f"c{at}", "name": name, "arguments": given}
            for at, (name, given) in enumerate(said.calls)
        ]
        return [*([] if said.calls else [message]), *({**call, "status": "completed"} for call in calls)]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        usage = {
            "input_tokens": IN,
            "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens": OUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": IN + OUT,
        }
        cut = said.reason == "length"
        return {
            "id": "r1",
            "object": "response",
            "created_at": 1,
            "model": model,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": self._items(said),
            "usage": usage,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "instructions": None,
            "metadata": {},
        }

    def events(self, said: Said, model: str) -> list[dict[str, Any]]:
        whole = self.whole(said, model)
        start = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": start}]
        for index, item in enumerate(whole["output"]):
            at = {"output_index": index, "item_id": item["id"]}
            empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
            events.append(
                {"type": "response.output_item.added", **at, "item": {**item, **empty, "status": "in_progress"}}
            )
            events += self._inside(item, {**at, "content_index": 0}, said)
            events.append({"type": "response.output_item.done", **at, "item": item})
        events.append({"type": f"response.{whole['status']}", "response": whole})
        return [{**event, "sequence_number": number} for number, event in enumerate(events)]

    def _inside(self, item: dict[str, Any], at: dict[str, Any], said: Said) -> list[dict[str, Any]]:
        if item["type"] == "function_call":
            given = item["arguments"]
            return [
                {"type": "response.function_call_arguments.delta", **at, "delta": given},
                {"type": "response.function_call_arguments.done", **at, "arguments": given, "name": item["name"]},
            ]
        if said.reason == "refused":
            return [{"type": "response.refusal.done", **at, "refusal": "no"}]
        part = {"type": "output_text", "text": "", "annotations": []}
        deltas = [{"type": "response.output_text.delta", **at, "delta": each, "logprobs": []} for each in said.pieces]
        return [
            {"type": "response.content_part.added", **at, "part": part},
            *deltas,
            {"type": "response.output_text.done", **at, "text": said.text, "logprobs": []},
            {"type": "response.content_part.done", **at, "part": item["content"][0]},
        ]


class Messages:
    """Anthropic's messages."""

    service: ClassVar[str] = "anthropic"
    ends: ClassVar[str] = "/messages"
    done: ClassVar[bytes] = b""
    reasons: ClassVar = {"stop": "end_turn", "length": "max_tokens", "refused": "refusal", "tools": "tool_use"}

    @staticmethod
    def prompt(body: Any) -> str:
        users = [_texts(message["content"]) for message in body["messages"] if message["role"] == "user"]
        return [text for text in users if text][-1]

    @staticmethod
    def schema(body: Any) -> Any:
        return ((body.get("output_config") or {}).get("format") or body.get("output_format") or {}).get("schema")

    @staticmethod
    def tools(body: Any) -> list[str]:
        return [tool["name"] for tool in body.get("tools") or ()]

    streams = staticmethod(Chat.streams)

    def _usage(self) -> dict[str, int]:
        return {
            "input_tokens": IN - CACHED,
            "cache_read_input_tokens": CACHED,
            "cache_creation_input_tokens": 0,
            "output_tokens": OUT,
        }

    def _blocks(self, said: Said) -> list[dict[str, Any]]:
        calls = [
            {"type": "tool_use", "id": f"c{at}", "name": name, "input": json.loads(given)}
            for at, (name, given) in enumerate(said.calls)
        ]
        return [*([{"type": "text", "text": said.text}] if said.text else []), *calls]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        base = {"id": "m", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
        return {
            **base,
            "content": self._blocks(said),
            "stop_reason": self.reasons[said.reason],
            "usage": self._usage(),
        }

    def events(self, said: Said, model: str) -> list[dict[str, Any]]:
        whole = self.whole(said, model)
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
        ]
        for index, block in enumerate(whole["content"]):
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": each} for each in said.pieces]
            if block["type"] == "tool_use":
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": whole["usage"]})
        return [*events, {"type": "message_stop"}]


class Contents:
    """Google's contents."""

    service: ClassVar[str] = "google"
    ends: ClassVar[str] = "enerateContent"
    done: ClassVar[bytes] = b""
    reasons: ClassVar = {"stop": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY", "tools": "STOP"}

    @staticmethod
    def prompt(body: Any) -> str:
        users = [_texts(each.get("parts")) for each in body["contents"] if each.get("role", "user") == "user"]
        return [text for text in users if text][-1]

    @staticmethod
    def schema(body: Any) -> Any:
        given = body.get("generationConfig") or {}
        return given.get("responseJsonSchema") or given.get("responseSchema")

    @staticmethod
    def tools(body: Any) -> list[str]:
        return [each["name"] for tool in body.get("tools") or () for each in tool.get("functionDeclarations", ())]

    @staticmethod
    def streams(path: str, body: Any) -> bool:
        return "stream" in path

    def _one(self, parts: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason is not None:
            candidate["finishReason"] = reason
        usage = {
            "promptTokenCount": IN,
            "cachedContentTokenCount": CACHED,
            "candidatesTokenCount": OUT,
            "totalTokenCount": IN + OUT,
        }
        return {"candidates": [candidate], "usageMetadata": usage}

    def _calls(self, said: Said) -> list[dict[str, Any]]:
        return [
            {"functionCall": {"id": f"c{at}", "name": name, "args": json.loads(given)}}
            for at, (name, given) in enumerate(said.calls)
        ]

    def whole(self, said: Said, model: str) -> dict[str, Any]:
        texts = [{"text": said.text}] if said.text else []
        return {**self._one([*texts, *self._calls(said)], self.reasons[said.reason]), "modelVersion": model}

    def events(self, said: Said, model: str) -> list[dict[str, Any]]:
        parts = [*({"text": piece} for piece in said.pieces), *self._calls(said)]
        events = [self._one([part], None) for part in parts]
        return [{**each, "modelVersion": model} for each in (*events, self._one([], self.reasons[said.reason]))]


FORMATS = (Chat(), Responses(), Messages(), Contents())
