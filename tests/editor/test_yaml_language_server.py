"""What yaml-language-server, the one that editors use, makes of the published schema.

`npm ci` in this folder installs it. Where it is not installed the tests are skipped.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editor.server import PROGRAM, Server
from tramai import build

ROOT = Path(__file__).resolve().parents[2]
NODE = shutil.which("node")
FILES = sorted(
    path
    for path in (ROOT / "workflows").rglob("*")
    if path.suffix in {".yaml", ".yml"} and ".tramai-test." not in path.name
)

pytestmark = pytest.mark.skipif(
    NODE is None or not PROGRAM.is_file(), reason="yaml-language-server is not installed: npm ci in tests/editor"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    assert NODE is not None
    made = Server(NODE, ROOT / "workflows", ROOT / "schemas" / "workflow.schema.json")
    yield made
    made.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT / "workflows").as_posix())
def test_every_example_is_fine(server: Server, path: Path) -> None:
    name = path.relative_to(ROOT / "workflows").as_posix()
    assert server.open(name, path.read_text(encoding="utf-8")) == []


def shown(text: str, server: Server, name: str) -> list[tuple[int, str]]:
    return [(found["range"]["start"]["line"] + 1, found["message"]) for found in server.open(name, text)]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("tramai: 1\nname: x\nsteps:\n  - id: one\n    shel: make\n", 5, "shel"),
        ("tramai: 1\nname: x\nstep: []\nsteps:\n  - {id: one, shell: make}\n", 3, "step"),
        ("tramai: 1\nname: x\nsteps:\n  - id: one\n    shell: {run: make, parse: jsn}\n", 5, "json"),
        ("tramai: 1\nname: x\nsteps:\n  - id: One\n    shell: make\n", 4, "pattern"),
        ("tramai: 1\nname: x\nsteps:\n  - id: one\n    shell: make\n    timeout: soon\n", 6, "pattern"),
        ("tramai: 2\nname: x\nsteps:\n  - {id: one, shell: make}\n", 1, "maximum"),
        ("tramai: 1\nname: x\nsteps: []\n", 3, "item"),
        ("tramai: 1\nname: x\n", 1, "steps"),
    ],
)
def test_what_is_wrong_is_underlined_in_its_place(server: Server, text: str, line: int, word: str) -> None:
    name = f"wrong-{line}-{word}-{len(text)}.yaml"
    found = shown(text, server, name)
    assert [message for at, message in found if at == line and re.search(word, message, re.I)], found


def test_the_keys_of_a_step_are_offered_and_verbs_among_them(server: Server) -> None:
    server.open("offer.yaml", "tramai: 1\nname: x\nsteps:\n  - id: one\n    \n")
    offered = server.complete("offer.yaml", 4, 4)
    assert build.verbs() <= offered
    assert {"when", "retry", "timeout", "output", "save"} <= offered


def test_the_keys_of_a_verb_are_offered(server: Server) -> None:
    server.open("verb.yaml", "tramai: 1\nname: x\nsteps:\n  - id: one\n    shell:\n      \n")
    assert {"run", "argv", "env", "parse", "stdin"} <= server.complete("verb.yaml", 5, 6)


def test_the_values_of_a_choice_are_offered(server: Server) -> None:
    server.open("choice.yaml", "tramai: 1\nname: x\nsteps:\n  - id: one\n    shell:\n      run: x\n      parse: \n")
    assert {"json", "jsonl", "lines", "text"} <= server.complete("choice.yaml", 6, 13)


def test_a_key_is_explained_with_an_example(server: Server) -> None:
    server.open("hover.yaml", "tramai: 1\nname: x\nsteps:\n  - id: one\n    shell: make\n    timeout: 90s\n")
    told = server.hover("hover.yaml", 5, 6)
    assert "How long one attempt may take" in told
    assert "20m" in told
