"""`ai` with tools in whole runs: real clients of four services, a real MCP server, and a workflow."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tramai import engine, plan
from tramai.stores.memory import Memory

from .extras import loaded, needs
from .model_formats import IN, OUT
from .model_service import ModelService, led_there, one_authority, server
from .test_mcp import SERVER, alive
from .test_model_services import MODELS

__all__ = ["led_there", "loaded", "one_authority", "server"]

EXTRA = (*needs("ai", "pydantic_ai"), *needs("mcp", "httpx2"))
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

DOUBLE = """\
tramai: 1
name: double
description: Doubles a number.
inputs: {{n: {{type: integer, description: The number.}}}}
steps:
  - {{id: d, local: "${{{{ inputs.n * 2 }}}}"}}
outputs: {{n: "${{{{ steps.d.output }}}}"}}
"""
ASK = """\
tramai: 1
name: ask
steps:
  - id: ask
    ai:
      model: {model}
      prompt: '[[tool {tool} {arguments}]]'
      tools:
        - {{mcp: {{command: ["{python}", "{server}"]}}, tools: [echo, boom]}}
        - {{workflow: ./double.yaml}}
      {more}
    timeout: 60s
    output: ${{{{ result }}}}
outputs: {{all: "${{{{ steps.ask.output }}}}"}}
"""


ECHO = ("echo", '{"text": "Rain in Oslo."}', "Rain in Oslo.", False)


@pytest.mark.parametrize(
    ("kind", "tool", "arguments", "seen", "failed"),
    [
        *((kind, *ECHO) for kind in MODELS),
        ("openai", "double", '{"n": 21}', '{"n": 42}', False),
        ("anthropic", "boom", "{}", "the tool boom failed: boom", True),
        ("google", "double", '{"n": "x"}', "the arguments do not fit: /n", True),
    ],
)
def test_a_tool_is_used_and_the_model_goes_on(
    server: ModelService, tmp_path: Path, kind: str, tool: str, arguments: str, seen: str, failed: bool
) -> None:
    (tmp_path / "double.yaml").write_text(DOUBLE.format())
    file = tmp_path / "ask.yaml"
    names = {"python": sys.executable, "server": SERVER, "model": f"{kind}:{MODELS[kind]}", "more": "guard: true"}
    file.write_text(ASK.format(tool=tool, arguments=arguments, **names))
    options = engine.Options(cwd=str(tmp_path))
    result = engine.run(plan.load(str(file)), {}, store=Memory(), options=options)
    assert result.status == "completed", result.error
    found = result.outputs["all"]
    assert found["text"] == "echo of what was asked"
    assert (found["usage"]["input_tokens"], found["usage"]["output_tokens"]) == (2 * IN, 2 * OUT)
    assert [(call["tool"], call["failed"]) for call in found["calls"]] == [(tool, failed)]
    first, second = (body for _, body in server.asked)
    offered = json.dumps(first)
    assert all(name in offered for name in ("echo", "boom", "Doubles a number.", "The number."))
    assert seen in json.dumps(second).replace('\\\\"', '"').replace('\\"', '"')
    assert alive(result.run_id) == []
