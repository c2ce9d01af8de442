"""What models and MCP servers say is data: it arrives as it is, is not evaluated, and does nothing to a screen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .cases.support import call, save, text_of
from .cli.conftest import place
from .test_http_hostile import HOSTILE

__all__ = ["place"]

SERVER = Path(__file__).parent / "mcp_server.py"
SPOKEN = HOSTILE.replace("\r\n", "\n").replace("\x00", "").strip()
"""A model's answer is asked for in a prompt, which is text: no NUL, one kind of line break, no blanks around."""


def test_the_answer_of_a_model_is_data(place: Path) -> None:
    save(
        """
        - {id: ask, ai: {model: "demo:echo", prompt: "${{ inputs.text }}"}}
        - {id: again, local: "${{ steps.ask.output }}"}
        - {id: child, shell: {argv: [printf, "%s", "${{ steps.ask.output }}"], parse: text}}
        """,
        "inputs: {text: {type: string}}\noutputs: {ask: '${{ steps.ask.output }}', again: '${{ steps.again.output }}',"
        " child: '${{ steps.child.output }}'}",
    )
    Path("in.json").write_text(json.dumps({"text": SPOKEN}), encoding="utf-8")
    outputs = call("run", "case.yaml", "--inputs", "in.json").outputs
    assert outputs == {"ask": SPOKEN, "again": SPOKEN, "child": SPOKEN}
    assert not Path("pwned").exists()


def test_the_answer_of_an_mcp_server_is_data_and_so_is_a_model_s_tool(place: Path) -> None:
    pytest.importorskip("httpx2", reason="the extra is not installed: pip install 'tramai[mcp]'")
    server = json.dumps({"command": [sys.executable, str(SERVER)]})
    save(
        f"""
        - {{id: tool, mcp: {{server: {server}, tool: echo, arguments: {{text: "${{{{ inputs.text }}}}"}}}}}}
        - id: ask
          ai:
            model: demo:tools
            prompt: "use echo ${{{{ {{'text': inputs.text}} | tojson }}}}"
            tools: [{{mcp: {server}, tools: [echo]}}]
        """,
        "inputs: {text: {type: string}}\noutputs: {tool: '${{ steps.tool.output }}', ask: '${{ steps.ask.output }}'}",
    )
    Path("in.json").write_text(json.dumps({"text": SPOKEN}), encoding="utf-8")
    outputs = call("run", "case.yaml", "--inputs", "in.json").outputs
    assert outputs["tool"] == SPOKEN
    assert SPOKEN in outputs["ask"]
    assert not Path("pwned").exists()


def test_a_screen_shows_it_and_does_not_obey_it(place: Path) -> None:
    save(
        '- {id: ask, ai: {model: "demo:echo", prompt: "${{ inputs.text }}"}}',
        "inputs: {text: {type: string}}\noutputs: {said: '${{ steps.ask.output }}'}",
    )
    Path("in.json").write_text(json.dumps({"text": SPOKEN}), encoding="utf-8")
    shown = text_of("run", "case.yaml", "--inputs", "in.json", "-v")
    assert "loud" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[31m" not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())
