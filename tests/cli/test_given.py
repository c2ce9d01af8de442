"""Inputs as they are given on the command line."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests.cli.conftest import write
from tramai.cli._given import gather
from tramai.errors import InvalidInput, TramaiError, UsageError


def test_a_value_is_text_and_json_is_said_so() -> None:
    assert gather(["a=1", "b:=1", 'c:={"x": [null]}', "d=x=y", "e="], None) == {
        "a": "1",
        "b": 1,
        "c": {"x": [None]},
        "d": "x=y",
        "e": "",
    }


def test_an_at_sign_reads_a_file() -> None:
    write("notes.txt", "one\ntwo\n")
    assert gather(["notes=@notes.txt"], None) == {"notes": "one\ntwo\n"}


def test_a_pair_wins_over_the_file() -> None:
    write("in.json", '{"a": 1, "b": 2}')
    assert gather(["b=3"], "in.json") == {"a": 1, "b": "3"}


def test_inputs_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"a": [1]}')))
    assert gather([], "-") == {"a": [1]}


@pytest.mark.parametrize(
    ("pairs", "kind", "says"),
    [
        (["novalue"], UsageError, "'novalue' is not an input"),
        (["=x"], UsageError, "'=x' is not an input"),
        (["a=1", "a=2"], InvalidInput, "input 'a' is given twice"),
        (["a:={"], InvalidInput, "input 'a' is not JSON"),
        (["a:=NaN"], InvalidInput, "NaN is not JSON"),
        (["a=@missing.txt"], InvalidInput, "cannot be read from missing.txt: No such file"),
    ],
)
def test_a_wrong_pair_is_named(pairs: list[str], kind: type[TramaiError], says: str) -> None:
    with pytest.raises(kind) as caught:
        gather(pairs, None)
    assert says in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("in.json", "[1]", "the inputs in in.json must be a mapping"),
        ("in.json", "{", "the inputs in in.json are not JSON"),
        ("in.txt", "a: 1", "are not JSON"),
    ],
)
def test_a_wrong_inputs_file_is_named(name: str, text: str, says: str) -> None:
    write(name, text)
    with pytest.raises(UsageError) as caught:
        gather([], name)
    assert says in str(caught.value)


def test_a_missing_inputs_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"the inputs file none.json cannot be read: No such file"):
        gather([], "none.json")


@pytest.mark.parametrize(("name", "text"), [("in.yaml", "a: 1\nb: {c: no}\n"), ("in.toml", 'a = 1\nb = {c = "no"}\n')])
def test_inputs_may_be_yaml_or_toml(name: str, text: str) -> None:
    expected: dict[str, Any] = {"a": 1, "b": {"c": "no"}}
    assert gather([], write(name, text)) == expected
