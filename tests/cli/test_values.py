"""Values as people read them, which YAML reads back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tramai.cli._values import lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_a_mapping_is_one_key_a_line() -> None:
    assert lines({"said": "hello world", "n": 3, "ok": True, "none": None}) == [
        "said: hello world",
        "n: 3",
        "ok: true",
        "none: null",
    ]


def test_text_that_looks_like_something_else_is_quoted() -> None:
    assert lines(["true", "1.10", "", "- x", "a: b", "x ", "null"]) == [
        '- "true"',
        '- "1.10"',
        '- ""',
        '- "- x"',
        '- "a: b"',
        '- "x "',
        '- "null"',
    ]


def test_several_lines_are_a_block() -> None:
    assert lines({"report": "# Title\n\ntext\n"}) == ["report: |", "  # Title", "", "  text"]
    assert lines({"report": "a\nb"}) == ["report: |-", "  a", "  b"]


def test_control_characters_are_spelled_out() -> None:
    assert lines({"x": "\x1b[31mred"}) == ['x: "\\u001b[31mred"']


def test_nested_lists_and_maps_are_indented() -> None:
    assert lines({"a": [1, {"b": [], "c": {"d": "e"}}]}) == [
        "a:",
        "  - 1",
        "  - b: []",
        "    c:",
        "      d: e",
    ]


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_yaml_reads_back_what_is_shown(value: dict[str, Any]) -> None:
    text = "\n".join(lines(value)) + "\n"
    assert YAML(typ="safe", pure=True).load(text) == value


@pytest.mark.parametrize("text", ["::error::x", "##[group]"])
def test_no_value_is_a_workflow_command(text: str) -> None:
    assert not any(line.lstrip().startswith("::") for line in lines({"x": f"a\n{text}\n"}))
