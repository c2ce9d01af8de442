"""A model service on loopback that speaks four languages and fails in the way that the prompt says.

`[[status 429]]`, `[[wait 7]]` (with Retry-After), `[[say TEXT]]`, `[[key]]` (says the key it was asked with),
`[[tool NAME {…}]]`, `[[empty]]`, `[[truncated]]`,
`[[refuse]]`, `[[malformed]]`, `[[sleep 2]]`, `[[drip]]`, `[[cut]]` (closes in the middle), `[[reset]]` (breaks off
within a chunk), `[[late]]` (closes after the answer without the last word); else: an echo, or data for a schema.
`[[first cut]]` and so on are for the first request alone.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .model_formats import FORMATS, Said


class ModelService:
    """Where it listens, and what it was asked: pairs of headers and body."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[tuple[dict[str, str], Any]] = []
        self.stop = threading.Event()
        self._seen: set[str] = set()

    def forget(self) -> None:
        """The next request is the first again."""
        self._seen.clear()

    def now(self, prompt: str) -> str:
        """The prompt as it counts this time."""
        new = prompt not in self._seen
        self._seen.add(prompt)
        return re.sub(r"\[\[first (.*?)\]\]", lambda found: f"[[{found[1]}]]" if new else "", prompt)

    @property
    def env(self) -> dict[str, str]:
        """Variables that lead every service here."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "ANTHROPIC_BASE_URL": self.url,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "NO_PROXY": "127.0.0.1",
            "OPENAI_API_KEY": "key-of-openai",
            "ANTHROPIC_API_KEY": "key-of-anthropic",
            "GOOGLE_API_KEY": "key-of-google",
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    service: ModelService

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the game."""


@contextmanager
def model_service() -> Iterator[ModelService]:
    """A service that ends with the block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.service = ModelService(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.service
    finally:
        server.service.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _said(prompt: str, schema: Any, tools: list[str]) -> Said:
    found = re.search(r"\[\[tool (\S+) (\{.*?\})\]\]", prompt, re.S)
    if found and found[1] in tools:
        return Said("", "tools", ((found[1], found[2]),))
    if tools == ["answer"]:
        return Said("", "tools", (("answer", '{"risk": "low"}'),))
    if "[[refuse]]" in prompt:
        return Said("", "refused")
    text = '{"risk": "low"}' if schema is not None else "echo of what was asked"
    if found := re.search(r"\[\[say (.*?)\]\]", prompt, re.S):
        text = found[1]
    if "[[empty]]" in prompt:
        text = ""
    return Said(text, "length" if "[[truncated]]" in prompt else "stop")


def _is_answer(body: Any) -> bool:
    """Whether the newest turn is what a tool gave."""
    last = json.dumps((body.get("messages") or body.get("input") or body.get("contents"))[-1])
    return any(mark in last for mark in ('"role": "tool"', "tool_result", "function_call_output", "functionResponse"))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Stay silent."""

    def _key(self) -> str:
        """The key that the request was made with."""
        named = (self.headers.get(name) for name in ("authorization", "x-api-key", "x-goog-api-key"))
        return next(value for value in named if value).removeprefix("Bearer ")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        self.server.service.asked.append(({name.lower(): value for name, value in self.headers.items()}, body))
        spoken = next(each for each in FORMATS if path.endswith(each.ends))
        prompt = self.server.service.now(spoken.prompt(body)).replace("[[key]]", f"[[say {self._key()}]]")
        if found := re.search(r"\[\[sleep ([\d.]+)\]\]", prompt):
            self.server.service.stop.wait(float(found[1]))
        if found := re.search(r"\[\[status (\d+)\]\]", prompt):
            return self._error(int(found[1]), re.search(r"\[\[wait (\d+)\]\]", prompt))
        if "[[malformed]]" in prompt:
            return self._send(200, b'{"choices": [{"mess')
        tools = [] if _is_answer(body) else spoken.tools(body)
        said = _said(prompt, spoken.schema(body), tools)
        model = body.get("model") or path.rpartition("/")[2].partition(":")[0]
        if not spoken.streams(path, body):
            return self._send(200, json.dumps(spoken.whole(said, model)).encode())
        return self._stream(spoken, said, model, prompt)

    def _error(self, status: int, wait: re.Match[str] | None) -> None:
        told = {"error": {"message": f"fake {status}", "type": "fake", "code": None, "status": "FAKE"}}
        self._send(status, json.dumps(told).encode(), {"retry-after": wait[1]} if wait else {})

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, spoken: Any, said: Said, model: str, prompt: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        events = spoken.events(said, model)
        cut = "[[cut]]" in prompt or "[[reset]]" in prompt
        for event in events[: len(events) // 2 if cut else None]:
            if "[[drip]]" in prompt and self.server.service.stop.wait(0.1):
                return
            named = f"event: {event['type']}\n" if "type" in event else ""
            self._chunk(f"{named}data: {json.dumps(event)}\n\n".encode())
        if "[[reset]]" in prompt:
            self.wfile.write(b"40\r\ndata: {")
            self.wfile.flush()
            time.sleep(0.02)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        if not cut and "[[late]]" not in prompt:
            self._chunk(spoken.done)
        self._chunk(b"", last=True)

    def _chunk(self, content: bytes, *, last: bool = False) -> None:
        if content or last:
            self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
            self.wfile.flush()


@pytest.fixture(scope="module")
def server() -> Iterator[ModelService]:
    """One service for all tests of a module; imported there, as is `led_there`."""
    with model_service() as found:
        yield found


@pytest.fixture(scope="session")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one of the certificates that clients trust: each of them reads all, and none is needed here."""
    import certifi

    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0] + end
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    file.write_text(first, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def led_there(server: ModelService, one_authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client is led to the service, which has not been asked anything yet."""
    for name, value in {**server.env, "SSL_CERT_FILE": str(one_authority)}.items():
        monkeypatch.setenv(name, value)
    server.asked.clear()
    server.forget()
