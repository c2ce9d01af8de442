"""Which names a field uses, where, and whether what is missing would be an error there."""

from __future__ import annotations

import pytest

from tramai.expression import Prompt, Template, Use, Value


def uses(text: str, of: type[Template] = Template) -> list[Use]:
    return [use for site in of(text).sites() for found in site.expressions for use in found.names]


def test_a_path_is_reported_with_its_place() -> None:
    text = 'see ${{ steps.fetch.output["x"].items[0] | default("") }}'
    (use,) = uses(text)
    assert use.path == ("steps", "fetch", "output", "x", "items", 0)
    assert text[use.start : use.end] == 'steps.fetch.output["x"].items[0]'
    assert use.guarded


def test_a_path_stops_at_a_subscript_that_is_not_known() -> None:
    found = uses("${{ state.a[inputs.k].z[-1][1:loop.index] }}")
    assert [use.path for use in found] == [("state", "a"), ("inputs", "k"), ("loop", "index")]


def test_sites_of_a_value_have_pointers() -> None:
    (site, other) = Value({"a": ["x", "${{ inputs.n }} ${{ state.m }}"], "b": {"c": "${{ 1 }}"}}).sites()
    assert site.pointer == ("a", 1)
    assert [(found.text, found.start, found.end) for found in site.expressions] == (
        [("${{ inputs.n }}", 0, 15), ("${{ state.m }}", 16, 30)]
    )
    assert other.pointer == ("b", "c")


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("a.b", False),
        ("a.b | default(1)", True),
        ("a.b[c] | d(1)", True),
        ("(a.b) | default(1) | upper", True),
        ("a.b | upper | default(1)", False),
        ("(a.b if c else 1) | default(1)", True),
        ("x | default(a.b)", False),
        ("x | default(a.b) | default(1)", True),
        ("a.b is defined", True),
        ("a.b is not defined", True),
        ("a.b is undefined", True),
        ("a.b is none", False),
        ("a.b.c if a.b is defined else 1", True),
        ("1 if a.b is undefined else a.b", True),
        ("a.b if a.b is undefined else 1", False),
        ("a.b is defined and a.b == 1", True),
        ("a.b is undefined or a.b == 1", True),
        ("a.b is defined or a.b == 1", False),
        ("not (a.b is defined) or a.b == 1", True),
        ("a.x is defined and a.b == 1", False),
        ("[a.b, 1] | default(1)", False),
    ],
)
def test_a_use_is_guarded_where_missing_is_no_error(text: str, guarded: bool) -> None:
    found = [use.guarded for use in uses("${{ " + text + " }}") if use.path[:2] == ("a", "b")]
    assert all(found) is guarded


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ('steps.s.output.x if steps.s.status == "succeeded" else 1', True),
        ('"succeeded" == steps.s.status and steps.s.output == 1', True),
        ('steps.s.status != "succeeded" or steps.s.output == 1', True),
        ('steps.s.status == "skipped" and steps.s.output == 1', False),
        ('steps.t.status == "succeeded" and steps.s.output == 1', False),
    ],
)
def test_a_test_of_the_status_guards_the_output(text: str, guarded: bool) -> None:
    assert [use.guarded for use in uses("${{ " + text + " }}") if use.path[:3] == ("steps", "s", "output")] == [guarded]


def test_a_name_with_a_dash_is_told_from_a_subtraction() -> None:
    found = uses("${{ steps.fetch-data.output }}")
    assert [use.path for use in found] == [("steps", "fetch"), ("data", "output")]
    assert found[1].hint == 'this subtracts; for the key with a dash write steps["fetch-data"]'
    assert [use.hint for use in uses("${{ inputs.a - inputs.b }}")] == [None, None]


def test_names_that_a_prompt_binds_are_no_uses() -> None:
    text = (
        "{% set a = inputs.x %}${{ a }}"
        "{% for k, v in state.m | items if v != inputs.y %}${{ k }} ${{ loop.index }} ${{ z }}"
        "{% else %}${{ k }}{% endfor %}"
        "${{ v }} {% if inputs.q is defined %}${{ inputs.q }}{% else %}${{ inputs.q }}{% endif %}"
    )
    found = [(".".join(map(str, use.path)), use.guarded) for use in uses(text, Prompt)]
    assert found == [
        ("inputs.x", False),
        ("state.m", False),
        ("inputs.y", False),
        ("z", False),
        ("k", False),
        ("v", False),
        ("inputs.q", True),
        ("inputs.q", True),
        ("inputs.q", False),
    ]
    assert all(text[use.start : use.end] == ".".join(map(str, use.path)) for use in uses(text, Prompt))
