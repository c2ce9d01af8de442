"""`local`: values, data with expressions in it, and Python functions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tramai import engine, plan, workflow
from tramai.step import Replay
from tramai.steps.local import Local
from tramai.stores.memory import Memory

from .step_context import made
from .written import codes, planned, ran

OUTPUT = "outputs: {it: '${{ steps.it.output }}'}"


def output(settings: str, **given: Any) -> Any:
    top = OUTPUT + "\ninputs: {x: {optional: true}}"
    result = ran(f"- id: it\n  local: {settings}", top, given=given)
    assert result.status == "completed", result.error
    return result.outputs["it"]


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ("${{ 1 + 1 }}", 2),
        ("${{ [1, 2] }}", [1, 2]),
        ("'${{ {\"a\": none} }}'", {"a": None}),
        ("is ${{ 1 + 1 }}", "is 2"),
        ("plain", "plain"),
        (
            "{value: {a: ['${{ 1 }}', 'b${{ 2 }}', 3, null, true], '${{ no }}': 1}}",
            {"a": [1, "b2", 3, None, True], "${{ no }}": 1},
        ),
        ("{value: [1.5, '1.5']}", [1.5, "1.5"]),
        ("${{ '007' }}", "007"),
    ],
)
def test_a_value_keeps_its_type(settings: str, value: object) -> None:
    got = output(settings)
    assert got == value
    assert type(got) is type(value)


def test_an_expression_is_pure_and_a_function_is_not() -> None:
    assert made(Local, value="x").pure()
    assert not made(Local, call="a:b").pure()
    assert made(Local, call="a:b").replay() is Replay.REPLAYABLE


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("{value: 1, call: 'a:b'}", "TRM340"),
        ("{}", "TRM340"),
        ("{value: 1, with: {a: 1}}", "TRM340"),
        ("{call: nothing}", "TRM341"),
        ("{call: 'a:b()'}", "TRM341"),
        ("{call: 'a b:c'}", "TRM341"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: str, code: str) -> None:
    assert codes(f"- id: it\n  local: {settings}") == [code]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of functions beside a workflow file."""
    name = f"beside_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "def add(a, b=1):\n    return a + b\n"
        "async def later(a):\n    return [a]\n"
        "def fail():\n    raise KeyError('gone')\n"
        "class Inner:\n    @staticmethod\n    def twice(a):\n        return 2 * a\n"
        "number = 3\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


def called(folder: Path, function: str, arguments: str = "{}") -> engine.Result:
    file = folder / "flow.yaml"
    file.write_text(
        f"tramai: 1\nname: test\nsteps:\n  - id: it\n    local: {{call: '{function}', with: {arguments}}}\n{OUTPUT}\n"
    )
    return engine.run(plan.of(workflow.load(str(file))), {}, store=Memory())


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        ("add", "{a: 2}", 3),
        ("add", "{a: '${{ 40 }}', b: 2}", 42),
        ("later", "{a: x}", ["x"]),
        ("Inner.twice", "{a: ab}", "abab"),
    ],
)
def test_a_function_beside_the_file_is_called_with_names(
    tmp_path: Path, module: str, function: str, arguments: str, value: object
) -> None:
    assert called(tmp_path, f"{module}:{function}", arguments).outputs == {"it": value}


@pytest.mark.parametrize(
    ("function", "arguments", "type", "words"),
    [
        ("fail", "{}", "plugin.KeyError", "raised KeyError: 'gone'"),
        ("add", "{c: 1}", "plugin.TypeError", "unexpected keyword argument"),
        ("nothing", "{}", "plugin.ImportError", "has no function nothing"),
        ("number", "{}", "plugin.ImportError", "cannot be called"),
    ],
)
def test_what_a_function_raises_is_the_failure_of_the_step(
    tmp_path: Path, module: str, function: str, arguments: str, type: str, words: str
) -> None:
    result = called(tmp_path, f"{module}:{function}", arguments)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["type"] == type
    assert words in result.error["message"]


def test_a_module_that_is_not_there_fails_the_step_with_a_hint(tmp_path: Path, module: str) -> None:
    result = called(tmp_path, "no_such_module_anywhere:f")
    assert result.error is not None
    assert result.error["type"] == "plugin.ImportError"
    assert "beside the workflow file" in result.error["hint"]


def test_a_number_or_a_list_goes_under_value() -> None:
    assert codes("- id: it\n  local: [1, 2]") != []
    assert planned("- id: it\n  local: {value: [1, 2]}").nodes["it"].verb == "local"
