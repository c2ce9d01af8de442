"""How an answer that comes word by word is shown while it grows."""

from __future__ import annotations

import io

import pytest

from tests.cli.conftest import write
from tests.cli.test_live import ESCAPES, on_terminal
from tests.model_service import model_service
from tramai.cli._live import Live
from tramai.cli._terminal import Terminal
from tramai.event import StepOutput


def test_an_answer_grows_on_its_line_and_its_end_is_shown() -> None:
    pytest.importorskip("pydantic_ai", reason="the extra `ai` is not installed")
    ask = "{model: 'openai:gpt-5', prompt: '[[drip]] [[say " + " ".join(f"word{number}" for number in range(9)) + "]]'}"
    path = write("asks.yaml", f"tramai: 1\nname: asks\nsteps:\n  - id: ask\n    ai: {ask}\n")
    with model_service() as server:
        status, _, seen = on_terminal("run", path, columns=70, **server.env)
    shown = ESCAPES.sub("", seen)
    assert status == 0, shown
    assert "word0 word1 word2" in shown
    assert "word5 word6 word7" in shown
    assert "1,000 in / 200 out tokens" in shown


def test_pieces_are_printed_as_whole_lines() -> None:
    out = io.StringIO()
    view = Live(Terminal(out, env={}), ("ask",), verbose=True)
    for piece in ("One ", "line", ".\nAnd ", "another"):
        view(StepOutput(path="ask", stream="model", text=piece))
    assert [line.rpartition(" ")[2] for line in out.getvalue().splitlines()] == ["line."]
