"""An MCP server of the standard library alone, which can be told to misbehave: `python mcp_server.py HOW…`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

HOW = set(sys.argv[1:])
TOOLS = (
    "echo",
    "env",
    "boom",
    "broken_boom",
    "invalid",
    "big",
    "picture",
    "json",
    "die",
    "killed",
    "sleep",
    "mute",
    "get_current_time",
)


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **more}


def tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    output = {"outputSchema": schema} if name.endswith("boom") or name == "unfit" else {}
    return {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}, **output}


def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
    if name == "env":
        return text(json.dumps(dict(os.environ)))
    if name == "boom":
        return text("boom", isError=True)
    if name == "broken_boom":
        return text("boom", isError=True, structuredContent={"wrong": 1})
    if name == "unfit":
        return text("x", structuredContent={"wrong": 1})
    if name == "big":
        return text("x" * given["size"])
    if name == "picture":
        picture = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
        linked = {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAE=", "mimeType": "a/b"}}
        return {"content": [{"type": "text", "text": "two"}, picture, linked]}
    if name == "json":
        return text('{"a": [1, 2]}')
    if name == "die":
        sys.stderr.write("one\ntwo\nlast words\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "sleep":
        time.sleep(600)
    if name == "mute":
        os.close(1)
        time.sleep(600)
    if name == "get_current_time":
        return text(json.dumps({**given, "datetime": "2026-03-29T03:00:00+02:00", "is_dst": True}))
    return text(json.dumps(given, ensure_ascii=False) if name != "echo" else given.get("text", ""))


def answer(request: dict[str, Any]) -> None:
    method, number = request["method"], request["id"]
    if "strange" in HOW and method == "tools/call":
        send({"id": 4711, "result": text("for whom?")})
    elif "no_rpc" in HOW and method == "tools/call":
        send({"id": number, "result": 1, "error": 2})
    elif method == "initialize":
        version = "1999-01-01" if "old" in HOW else "2025-06-18"
        info = {"name": "test", "version": "1"}
        send({"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": number, "result": {"tools": [tool(name) for name in (*TOOLS, "unfit")]}})
    elif method == "tools/call" and request["params"]["name"] == "invalid":
        send({"id": number, "error": {"code": -32602, "message": "no such argument"}})
    elif method == "tools/call":
        send({"id": number, "result": call(request["params"]["name"], request["params"].get("arguments") or {})})
    else:
        send({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


def noise() -> None:
    sys.stdout.write("Welcome to the server!\n\n{not json\n" + '{"level": "info", "jsonrpc_like": true}\n')
    sys.stdout.flush()
    sys.stderr.write("flood " * 350_000)
    sys.stderr.flush()


def main() -> None:
    if "stubborn" in HOW:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "parent" in HOW:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    if "exits" in HOW:
        sys.exit("cannot start: no configuration")
    if "silent" in HOW:
        time.sleep(600)
    for line in sys.stdin:
        if "noisy" in HOW:
            noise()
        request = json.loads(line)
        if "id" in request:
            answer(request)
    if "stubborn" in HOW:
        time.sleep(600)
    if "dies_late" in HOW:
        os._exit(9)


main()
