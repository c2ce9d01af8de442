"""A small HTTP server on a thread of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

Route = Callable[[str, str, dict[str, str], bytes], Any]
"""Method, path, headers and body -> the whole answer, or pieces of one."""


class Server:
    """Answers each request by a function of method, path, headers and body; keeps what it was asked."""

    def __init__(self, route: Route) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self._route = route
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
        while len(body) < int(headers.get("content-length", "0")):
            body += connection.recv(65536)
        method, path, _ = first.split(" ")
        self.asked.append((method, path, headers, body))
        answer = self._route(method, path, headers, body)
        for piece in [answer] if isinstance(answer, bytes) else answer:
            connection.sendall(piece)


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """A whole answer; header names are written with underscores."""
    named = {"content_length": str(len(body)), "connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
