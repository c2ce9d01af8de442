"""A model service on loopback for agents: it answers with what the prompt says between `[[` and `]]`.

`[[status 429]]`, `[[say TEXT]]`, `[[empty]]`, `[[cut]]` and `[[tool NAME {…}]]`; anything else is answered with `echo`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Said = tuple[str, tuple[str, str] | None]
"""A text, or the name of a tool and its arguments in JSON."""


@contextmanager
def model_server() -> Iterator[str]:
    """The server's URL, without a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else part.get("text") or "" for part in content or ()]
    return "\n".join(parts)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": "fake-model", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        for end, answer in (
            ("/responses", self._responses),
            ("/completions", self._chat),
            ("/messages", self._message),
        ):
            if path.endswith(end):
                return answer(body)
        return self._json(404, {"error": {"message": f"no route {path}"}})

    def _json(self, status: int, data: Any) -> None:
        content = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: list[dict[str, Any]], *, named: bool, cut: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events[: 2 if cut else None]:
            head = f"event: {event['type']}\n" if named else ""
            self.wfile.write(f"{head}data: {json.dumps(event)}\n\n".encode())
        if not named and not cut:
            self.wfile.write(b"data: [DONE]\n\n")

    def _said(self, prompt: str, answered: bool, schema: Any) -> Said | None:
        """What to answer; None where the answer has been an error."""
        if found := re.search(r"\[\[status (\d+)\]\]", prompt):
            self._json(int(found[1]), {"error": {"message": f"fake {found[1]}", "type": "fake"}})
            return None
        tool = re.search(r"\[\[tool (\S+) (\{.*?\})\]\]", prompt, re.S)
        if tool and not answered:
            return "", (tool[1], tool[2])
        if found := re.search(r"\[\[say (.*?)\]\]", prompt, re.S):
            return found[1], None
        if schema is not None:
            return '{"risk": "low"}', None
        return "" if "[[empty]]" in prompt else "echo", None

    def _responses(self, body: Any) -> None:
        given = [item for item in body["input"] if isinstance(item, dict)]
        prompt = [_texts(item.get("content")) for item in given if item.get("role") == "user"][-1]
        answered = str(given[-1].get("type")).endswith("_call_output")
        said = self._said(prompt, answered, ((body.get("text") or {}).get("format") or {}).get("schema"))
        if said is None:
            return
        text, tool = said
        item: dict[str, Any] = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
        item["content"] = [{"type": "output_text", "text": text, "annotations": []}]
        if tool is not None:
            item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": tool[0], "arguments": tool[1]}
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        start = {"type": "response.created", "response": {"id": "r1"}}
        done = {"type": "response.completed", "response": {"id": "r1", "usage": usage}}
        events = [start, {"type": "response.output_item.done", "output_index": 0, "item": item}, done]
        self._stream(events, named=True, cut="[[cut]]" in prompt)

    def _chat(self, body: Any) -> None:
        messages = body["messages"]
        prompt = [_texts(message.get("content")) for message in messages if message["role"] == "user"][-1]
        said = self._said(prompt, messages[-1]["role"] == "tool", None)
        if said is None:
            return
        text, tool = said
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        delta: dict[str, Any] = {"role": "assistant", "content": text}
        if tool is not None:
            call = {"index": 0, "id": "c1", "type": "function", "function": {"name": tool[0], "arguments": tool[1]}}
            delta = {"role": "assistant", "content": None, "tool_calls": [call]}
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
        end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"}
        if not body.get("stream"):
            whole = {"index": 0, "message": delta, "finish_reason": end["finish_reason"]}
            self._json(200, {**base, "object": "chat.completion", "choices": [whole], "usage": usage})
            return
        first = {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last = {**base, "choices": [], "usage": usage}
        self._stream([first, {**base, "choices": [end]}, last], named=False, cut="[[cut]]" in prompt)

    def _message(self, body: Any) -> None:
        messages = body["messages"]
        users = [_texts(message["content"]) for message in messages if message["role"] == "user"]
        prompt = next((text for text in reversed(users) if "[[" in text), users[-1])
        last = messages[-1]["content"]
        answered = isinstance(last, list) and any(part.get("type") == "tool_result" for part in last)
        said = self._said(prompt, answered, None)
        if said is None:
            return
        text, tool = said
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": text}
        if tool is not None:
            block = {"type": "tool_use", "id": "t1", "name": tool[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": tool[1]}
        usage = {"input_tokens": 11, "output_tokens": 7}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "fake", "content": [], "usage": usage}
        reason = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": reason, "usage": usage},
            {"type": "message_stop"},
        ]
        self._stream(events, named=True, cut="[[cut]]" in prompt)
