"""A secret that can be told anywhere, programs that tell it, and a search for every way to write it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

from .agents import Folder
from .cases.servers import answer

VALUE = "C4nary+V4l/u3=\"q'$&<z>"
DIGEST = hashlib.sha256(VALUE.encode()).hexdigest()
MCP_SERVER = str(Path(__file__).parent / "mcp_server.py")

CHILD = r"""
import base64, json, os, shlex, sys, time, urllib.parse
value, how = os.environ["CANARY"], sys.argv[1:]
def say(number, data):
    os.write(number, data if isinstance(data, bytes) else data.encode())
if how == ["json"]:
    print(json.dumps({"value": value, value: [value, {"deep": json.dumps({"again": value})}]}))
elif how == ["flood"]:
    say(1, ("." * 29 + value) * 3000)
else:
    assert sys.stdin.read() == "in: " + value
    encoded = value.encode()
    shelled = (value, json.dumps(value), urllib.parse.quote_plus(value), shlex.quote(value), repr(value))
    bare = (encoded.hex(), base64.b64encode(encoded).decode(), base64.urlsafe_b64encode(b"a" + encoded).decode())
    inside = base64.b64encode(b"ab" + encoded + b"c").decode()
    for spelled in (*shelled, *bare, inside, "***", value[:9] + "***"):
        say(1, spelled + "\n")
        say(2, spelled.upper() if spelled == encoded.hex() else "<" + spelled + ">\n")
    for piece in range(0, len(encoded), 7):
        say(1, encoded[piece:piece + 7])
        say(2, encoded[piece:piece + 7])
        time.sleep(0.01)
    say(1, "\nend")
    if how == ["fail"] and not os.path.exists("ready"):
        say(2, "\ncannot use " + value)
        sys.exit(3)
"""
FUNCTIONS = """
import hashlib, os
value = os.environ.get("TRAMAI_CANARY", "")
def fail():
    try:
        raise KeyError(value)
    except KeyError as error:
        raise ValueError(f"no good: {value!r}") from error
def give():
    return {"value": value, value: 1, "digest": hashlib.sha256(os.environ["TRAMAI_CANARY"].encode()).hexdigest()}
"""
AGENT = """
value = os.environ["CANARY"]
say(type="thread.started", thread_id="t-1")
sys.stderr.write("debug: " + value)
say(type="turn.started", note=value)
if os.path.exists("bad"):
    say(type="turn.failed", error={"message": "refused: " + value})
    sys.exit(1)
say(type="item.completed", item={"id": "0", "type": "agent_message", "text": "the key is " + value})
say(type="turn.completed", usage={"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1})
"""
SECRET = '"${{ secrets.CANARY }}"'
STEPS = f"""
- id: child
  shell: {{argv: [PYTHON, child.py], env: {{CANARY: {SECRET}}}, stdin: "in: ${{{{ secrets.CANARY }}}}"}}
  output: {{out: "${{{{ result.stdout }}}}", err: "${{{{ result.stderr }}}}"}}
  save: {{kept: "${{{{ result.stdout }}}}"}}
- id: parsed
  shell: {{argv: [PYTHON, child.py, json], env: {{CANARY: {SECRET}}}, parse: json}}
- id: flood
  shell: {{argv: [PYTHON, child.py, flood], env: {{CANARY: {SECRET}}}, max_output: 1000}}
- id: asked
  http:
    post: URL/asked
    query: {{key: {SECRET}}}
    headers: {{X-Key: {SECRET}}}
    auth: {{basic: [me, {SECRET}]}}
    json: {{key: {SECRET}}}
    allow_private: true
- id: moved
  http: {{get: URL/moved, query: {{key: {SECRET}}}, expect_status: [302], allow_private: true}}
- id: refused
  http: {{get: "URL/refused/${{{{ secrets.CANARY | urlencode(safe='') }}}}", allow_private: true}}
  catch: [{{output: "${{{{ error }}}}"}}]
- id: unreached
  http: {{get: "http://127.0.0.1:1/?key=${{{{ secrets.CANARY | urlencode }}}}", allow_private: true}}
  catch: [{{output: "${{{{ error }}}}"}}]
- id: function
  local: {{call: "leaky:fail"}}
  retry: {{max_attempts: 2}}
  catch: [{{output: "${{{{ error }}}}"}}]
- id: given
  local: {{call: "leaky:give"}}
- id: agent
  codex: {{prompt: hi, env: {{CANARY: {SECRET}}}}}
- id: bad_agent
  codex: {{prompt: hi, cwd: bad_place, env: {{CANARY: {SECRET}}}}}
  catch: [{{output: "${{{{ error }}}}"}}]
- id: model
  ai: {{model: "demo:echo", prompt: "${{{{ steps.child.output.out }}}} ${{{{ steps.agent.output }}}}"}}
"""
TOOL = f"""
- id: tool
  mcp: {{server: {{command: [PYTHON, SERVER], env: {{CANARY: {SECRET}}}}}, tool: env}}
- id: dead_tool
  mcp: {{server: {{command: [PYTHON, SERVER, exits], env: {{CANARY: {SECRET}}}}}, tool: env}}
  catch: [{{output: "${{{{ error }}}}"}}]
"""
LAST = f"""
- id: last
  shell: {{argv: [PYTHON, child.py, fail], env: {{CANARY: {SECRET}}}, stdin: "in: ${{{{ secrets.CANARY }}}}"}}
"""
TOP = f"""
tramai: 1
name: canary
secrets: {{CANARY: {{env: TRAMAI_CANARY}}}}
env: {{SHARED: {SECRET}}}
state: {{kept: {{initial: null}}}}
outputs: {{all: "${{{{ [steps.child.output, steps.parsed.output, steps.given.output, state] }}}}"}}
steps:
"""


def write(folder: Path, url: str, *, tool: bool) -> None:
    """The workflow and its programs, in the working folder; `folder` is for what keeps the value of purpose."""
    programs = Folder(folder)
    programs.program("codex", AGENT)
    os.environ["PATH"] = f"{programs.bin}:{os.environ['PATH']}"
    steps = STEPS + (TOOL if tool else "") + LAST
    named = {"PYTHON": json.dumps(sys.executable), "SERVER": json.dumps(MCP_SERVER), "URL": url}
    steps = re.sub("PYTHON|SERVER|URL", lambda found: named[found[0]], steps)
    Path("canary.yaml").write_text(TOP + steps, encoding="utf-8")
    Path("child.py").write_text(CHILD, encoding="utf-8")
    Path("leaky.py").write_text(FUNCTIONS, encoding="utf-8")
    Path("bad_place").mkdir()
    Path("bad_place/bad").touch()


def route(method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    """Tell back all that was asked, in every part of an answer."""
    key = unquote(path.partition("key=")[2].replace("+", "%20"))
    told = json.dumps({"path": path, "headers": headers, "body": body.decode(), "key": key}).encode()
    if path.startswith("/moved"):
        return answer(302, told, location=f"/elsewhere?key={quote(key)}", x_key=key)
    return answer(
        500 if path.startswith("/refused") else 200, told, x_key=key or "none", content_type="application/json"
    )


def spellings() -> dict[str, str]:
    """Every way to write the value that is searched for."""
    data = VALUE.encode()
    found = {
        "plain": VALUE,
        "json": json.dumps(VALUE)[1:-1],
        "json in json": json.dumps(json.dumps(VALUE)[1:-1])[1:-1],
        "quote": quote(VALUE),
        "quote all": quote(VALUE, safe=""),
        "quote plus": quote_plus(VALUE),
        "quote lower": re.sub("%..", lambda found: found[0].lower(), quote(VALUE, safe="")),
        "shell": shlex.quote(VALUE)[1:-1],
        "hex": data.hex(),
        "HEX": data.hex().upper(),
    }
    for before in range(3):
        core = base64.b64encode(b"\0" * before + data)[4:-4].decode()
        found[f"base64 after {before}"] = core
        found[f"base64 for urls after {before}"] = core.translate(str.maketrans("+/", "-_"))
    return found


def hits(text: str) -> list[str]:
    """The spellings that stand in a text; in base64 and hex pieces of it are enough."""
    return [name for name, spelled in spellings().items() if spelled in text]


def files(folder: Path) -> dict[str, str]:
    """The text of every file below a folder, with its name; those of the scenario itself are left out."""
    own = {"canary.yaml", "child.py", "leaky.py"}
    found = [path for path in folder.rglob("*") if path.is_file() and path.name not in own and path.suffix != ".pyc"]
    return {str(path): f"{path}\n{path.read_bytes().decode('latin-1')}" for path in found}
