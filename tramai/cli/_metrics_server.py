"""A small server for those who watch a worker: `/metrics`, `/healthz`, `/readyz`, and nothing else."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..errors import TramaiError
from ._exposition import CONTENT_TYPE

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]*):)?(?P<port>[0-9]{1,5})")
_PATIENCE = 5.0
"""Seconds for a client to send its request, and to take the answer."""
_AT_ONCE = 16


class NoMetrics(TramaiError):
    """metrics cannot be served at {address}: {what}"""

    code = "TRM715"
    exit_status = 2


Answer = tuple[int, str, bytes]
"""Status, content type and body."""


def address(text: str) -> tuple[str, int]:
    """The host and port of `HOST:PORT`, `:PORT` or `PORT`; loopback where no host is named."""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"]) if found is not None else -1
    if found is None or not 0 <= port <= 65535:
        hint = "--metrics 9464 for this host alone, --metrics 10.0.0.7:9464 for others too"
        raise NoMetrics(address=repr(text), what="that is no HOST:PORT, :PORT or PORT", hint=hint)
    return (found["host"] or LOOPBACK).strip("[]"), port


class Server(socketserver.ThreadingTCPServer):
    """Listens from the moment it is made, so that an address in use is told before anything begins; see `start`."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, text: str, pages: Callable[[str], Answer | None]) -> None:
        """`pages`: the answer to a path, None where there is nothing."""
        host, port = address(text)
        self.pages = pages
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        try:
            family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            self.address_family = family
            super().__init__(where, _Handler)  # type: ignore[arg-type]
        except OSError as error:
            hint = "another worker may be there already: each needs a port of its own"
            raise NoMetrics(address=text, what=error.strerror or str(error), hint=hint) from None

    @property
    def url(self) -> str:
        """Where the metrics are."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/metrics"

    def start(self) -> None:
        """Answer, on a thread."""
        threading.Thread(target=self.serve_forever, args=(1.0,), name="metrics", daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own, as far as there is room."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Make room when it is over."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nobody's trouble."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Answer with a page."""
        found = self.server.pages(self.path.partition("?")[0])
        status, kind, body = found or (404, "text/plain; charset=utf-8", b"there is /metrics, /healthz and /readyz\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def version_string(self) -> str:
        """No version is told to whoever asks."""
        return "tramai"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is told of requests."""


def plain(status: int, text: str) -> Answer:
    """A short answer in words."""
    return status, "text/plain; charset=utf-8", f"{text}\n".encode()


def metrics(body: bytes) -> Answer:
    """The page of metrics."""
    return 200, CONTENT_TYPE, body
