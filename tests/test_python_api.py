"""The Python API as others see it: the names at the top, and their types, checked from outside of the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tramai
from tramai.errors import InvalidInput

ROOT = Path(__file__).resolve().parent.parent
HELLO = ROOT / "workflows" / "hello.yaml"
CLIENT = """\
from collections.abc import Mapping

import tramai
from tramai import engine
from tramai.event import Event, StepFinished
from tramai.interrupt import Interrupt


def watch(event: Event) -> None:
    if isinstance(event, StepFinished):
        print(event.path, event.status)


def carry(file: str, given: Mapping[str, str | int]) -> str:
    plan = tramai.load(file)
    store = tramai.open_store("sqlite:runs.db")
    stop = Interrupt()
    options = engine.Options(labels=("nightly",), interrupt=stop)
    result = tramai.run(plan, {**given}, store=store, observers=[watch], options=options)
    if result.status == "interrupted":
        result = tramai.resume(result.run_id, store=store)
    reveal_type(result.exit_status)
    store.close()
    return plan.digest


tramai.run("hello.yaml", store=None)
tramai.nothing
"""


def test_the_names_at_the_top_are_what_they_say() -> None:
    assert set(tramai.__all__) == {"__version__", "load", "run", "resume", "open_store"}
    for name in tramai.__all__:
        assert getattr(tramai, name)
    assert re.fullmatch(r"\d+\.\d+\.\d+", tramai.__version__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tramai.nothing  # type: ignore[attr-defined]


def test_inputs_are_checked_and_completed(tmp_path: Path) -> None:
    plan = tramai.load(str(HELLO))
    store = tramai.open_store("memory:")
    assert tramai.run(plan, store=store).outputs == {"greeting": "HELLO, WORLD!"}
    with pytest.raises(InvalidInput, match="nme"):
        tramai.run(plan, {"nme": "you"}, store=store)
    assert len(store.page(limit=10)[0]) == 1, "nothing was started for inputs that do not fit"


@pytest.mark.sweep
def test_a_client_is_checked_by_its_types(tmp_path: Path) -> None:
    """Strictly, from another folder, with the package as it is installed: `py.typed` is what makes it count."""
    pytest.importorskip("mypy")
    (tmp_path / "client.py").write_text(CLIENT, encoding="utf-8")
    line = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*line, "client.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    said = re.findall(r"^client\.py:(\d+): (\w+): .*\[?([\w-]*)\]?$", done.stdout, re.MULTILINE)
    lines = CLIENT.splitlines()
    told = {lines[int(number) - 1].strip() for number, kind, _ in said if kind == "error"}
    assert told == {'tramai.run("hello.yaml", store=None)', "tramai.nothing"}, done.stdout + done.stderr
    assert 'Revealed type is "int"' in done.stdout or 'Revealed type is "builtins.int"' in done.stdout
