"""A client of yaml-language-server: opens texts as an editor does, and takes what the server says about them."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
PATIENCE = 60.0


class Server:
    """One server over its standard streams. Every text is judged by the given schema, unless its modeline names one."""

    def __init__(self, node: str, root: Path, schema: Path) -> None:
        self._process = subprocess.Popen(
            [node, str(PROGRAM), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._settings = {
            "yaml": {
                "schemas": {schema.as_uri(): "*"},
                "validate": True,
                "completion": True,
                "hover": True,
                "schemaStore": {"enable": False},
            }
        }
        self._root = root
        self._next = 0
        self._answers: dict[int, Any] = {}
        self._diagnostics: dict[str, list[dict[str, Any]]] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        capabilities = {"workspace": {"configuration": True, "didChangeConfiguration": {}}, "textDocument": {}}
        self._ask("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": capabilities})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": self._settings})

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def open(self, name: str, text: str) -> list[dict[str, Any]]:
        """What the server finds wrong with a text that has a place in the root folder."""
        uri = (self._root / name).as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        with self._changed:
            assert self._changed.wait_for(lambda: uri in self._diagnostics, PATIENCE), f"nothing was said about {name}"
            return self._diagnostics.pop(uri)

    def complete(self, name: str, line: int, character: int) -> set[str]:
        """The words that the server offers at a place of an open text, counted from 0."""
        at = {"textDocument": {"uri": (self._root / name).as_uri()}, "position": {"line": line, "character": character}}
        found = self._ask("textDocument/completion", at)
        items = found if isinstance(found, list) else (found or {}).get("items", [])
        return {item["label"] for item in items}

    def hover(self, name: str, line: int, character: int) -> str:
        """What the server shows about a place of an open text."""
        at = {"textDocument": {"uri": (self._root / name).as_uri()}, "position": {"line": line, "character": character}}
        found = self._ask("textDocument/hover", at) or {"contents": ""}
        contents = found["contents"]
        return contents["value"] if isinstance(contents, dict) else str(contents)

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._next += 1
        number = self._next
        self._send({"id": number, "method": method, "params": params})
        with self._changed:
            assert self._changed.wait_for(lambda: number in self._answers, PATIENCE), f"no answer to {method}"
            return self._answers.pop(number)

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while line := stream.readline():
            if not line.lower().startswith(b"content-length:"):
                continue
            length = int(line.split(b":")[1])
            while stream.readline().strip():
                pass
            self._take(json.loads(stream.read(length)))

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "workspace/configuration":
            wanted = [self._settings.get(item.get("section"), {}) for item in message["params"]["items"]]
            self._send({"id": message["id"], "result": wanted})
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "result": None})
        with self._changed:
            if message.get("method") == "textDocument/publishDiagnostics":
                self._diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
            elif "method" not in message and "id" in message:
                self._answers[message["id"]] = message.get("result")
            self._changed.notify_all()
