"""Filters and tests: the same as Jinja2's where Jinja2 has them, strict where it guesses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jinja2
import pytest

import tramai
from tramai.expression import ExpressionError, Template, evaluate
from tramai.expression.filters import FILTERS, TESTS, signature

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "expressions.md"
SAME = Path(__file__).resolve().parent / "expressions" / "same_as_jinja.txt"
"""Expressions that Jinja2 gives the same value for; its tuples and generators count as lists."""
EXAMPLE = re.compile(r"`(\$\{\{ .+? \}\})` → `(.+?)`")

SCOPE: dict[str, Any] = {
    "s": "hello big-world (of) words",
    "t": "  Some text,\nwith lines\n\nand more  ",
    "xs": [3, 1, 2, 2],
    "fs": [1.5, -2, 0],
    "names": ["bob", "Alice", "Bob", "carl"],
    "people": [
        {"name": "Bob", "age": 3, "at": {"x": 1}},
        {"name": "al", "age": 9, "at": {"x": 0}},
        {"name": "Cy", "age": 3, "at": {"x": 1}},
    ],
    "m": {"b": 2, "A": 1, "c": 3},
    "n": 7,
    "f": 42.55,
    "neg": -3,
    "yes": True,
    "nothing": None,
}


def jinja_value(text: str) -> Any:
    environment = jinja2.Environment(undefined=jinja2.ChainableUndefined)
    found = environment.compile_expression(text, undefined_to_none=False)(**SCOPE)
    return json.loads(json.dumps(found, default=str if isinstance(found, str) else list))


@pytest.mark.parametrize("text", SAME.read_text(encoding="utf-8").splitlines())
def test_a_value_is_the_same_as_in_jinja(text: str) -> None:
    found = evaluate(Template("${{ " + text + " }}"), SCOPE)
    expected = jinja_value(text)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[1, true, 1.0, '1'] | unique", [1, True, "1"]),
        ("[{'a': 1}, {'a': 1}] | unique", [{"a": 1}]),
        ("true is number", False),
        ("true | string", "true"),
        ("[none] | string", "[null]"),
        ("{'b': 1, 'a': '<é>'} | tojson", '{"a": "<é>", "b": 1}'),
        ("[] | first is defined", False),
        ("people | groupby('age') | map('first') | list", [3, 9]),
    ],
)
def test_a_value_is_stricter_than_in_jinja(text: str, result: Any) -> None:
    found = evaluate(Template("${{ " + text + " }}"), SCOPE)
    assert (type(found), found) == (type(result), result)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n | upper", "upper needs text, not a number"),
        ("nothing | length", "null has no length"),
        ("s | sum", "this filter needs a list, not text"),
        ("'x' | int", "this text is not a whole number"),
        ("'nan' | float", "this text is not a number"),
        ("nothing | int", "int needs a number, not null"),
        ("yes | int", "int needs a number, not a boolean"),
        ("'yes' | bool", "text is no boolean"),
        ("1 | bool", "a number is no boolean"),
        ("nothing | string", "null has no text"),
        ("[1, none] | join", "null has no text"),
        ("[1, 'a'] | sort", "these items have no order: a number and text"),
        ("people | sort", "these items have no order: a mapping"),
        ("[1, true] | max", "these items have no order: a boolean and a number"),
        ("people | map(attribute='zip') | list", "no key 'zip' in item 0"),
        ("people | selectattr('zip', 'eq', 1) | list", "no key 'zip' in item 0"),
        ("xs | select | list", "without a test the items must be booleans, not a number"),
        ("xs | map | list", "name a filter"),
        ("xs | map(s) | list", "there is no filter 'hello big-world (of) words'"),
        ("xs | map('round', 1, 2, 3) | list", "'round' takes 2 arguments, not 3"),
        ("'%d' | format('x')", "%d needs a number, not text"),
        ("'%s %s' | format(1)", "format is given fewer values than the text has places"),
        ("'x' | format(1)", "format is given more values than the text has places"),
        ("'%z' | format(1)", "format knows %s %d %f %e %g %x %o and %%"),
        (
            "'{' | fromjson",
            "the text is no JSON: Expecting property name enclosed in double quotes at line 1, column 2",
        ),
        ("'[NaN]' | fromjson", "the text holds a number or a depth that is out of bounds"),
        ("'1e999' | fromjson", "the text holds a number or a depth that is out of bounds"),
        ("'x' | b64decode", "the text is no Base64 of UTF-8 text"),
        ("'x' | date", "the value is no time"),
        ("0 | date('%A')", "the format of date has no %A"),
        ("xs | batch(0)", "the size of batch must be between 1 and 1,000,000"),
        ("s | split('')", "the separator of split cannot be empty"),
        ("m | combine(1)", "this filter needs a mapping, not a number"),
        ("xs | fromitems", "fromitems needs pairs of a text and a value, not a number"),
        ("n is divisibleby 0", "division by zero"),
        ("s is odd", "odd needs a number, not text"),
        ("n is startswith('x')", "startswith needs text, not a number"),
        ("s | truncate(2)", "the length of truncate must be between 3 and 1,073,741,824"),
        ("s | default(1, 'x')", "the second argument of default must be true or false, not text"),
    ],
)
def test_a_filter_refuses_what_it_cannot_do(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(Template("${{ " + text + " }}"), SCOPE)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("release/*", "release/1", True),
        ("release/*", "a-release/1", False),
        ("*", "", True),
        ("?", "", False),
        ("a*b*c", "axxbxc", True),
        ("a*b*c", "axxbx", False),
        ("v?.?", "v1.2", True),
        ("", "", True),
        ("**x", "aax", True),
        ("[a]", "a", False),
    ],
)
def test_like_matches_whole_texts(pattern: str, text: str, matches: bool) -> None:
    assert evaluate(Template("${{ text is like(pattern) }}"), {"text": text, "pattern": pattern}) is matches


def test_quote_is_undone_by_a_shell() -> None:
    import shlex

    hostile = 'it\'s "x" $(touch pwned) `id` ; \\ %s\nü'
    assert shlex.split(evaluate(Template("${{ x | quote }}"), {"x": hostile}) + " y") == [hostile, "y"]


def examples() -> list[tuple[str, str]]:
    return EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


def example_scope() -> dict[str, Any]:
    block = re.search(r"```json\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    scope: dict[str, Any] = json.loads(block[1])
    return scope


@pytest.mark.parametrize(("text", "result"), examples())
def test_the_examples_of_the_reference_are_true(text: str, result: str) -> None:
    expected = json.loads(result)
    assert not list(Template(text).problems())
    found = evaluate(Template(text), example_scope())
    assert (type(found), found) == (type(expected), expected)


def test_the_reference_has_every_filter_and_test_with_an_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    filters, tests = text.split("## Filters", 1)[1].split("## Tests", 1)
    for known, part in ((FILTERS, filters), (TESTS, tests)):
        entries = re.findall(r"^- ((?:`[^`]+`(?:, )?)+): (.+)$", part, re.MULTILINE)
        named = [name.partition("(")[0] for names, _ in entries for name in re.findall(r"`([^`]+)`", names)]
        assert sorted(named) == sorted(known)
        for names, described in entries:
            found = EXAMPLE.findall(described)
            assert found, f"{names} needs an example"
            assert any(f"{name.partition('(')[0]}" in found[0][0] for name in re.findall(r"`([^`]+)`", names))


def test_the_reference_names_every_argument() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Filters", 1)[1]
    for name, function in {**TESTS, **FILTERS}.items():
        if name.isidentifier() and name not in {"count", "d", "e"}:
            entry = re.search(rf"`{name}(\(.*?\))?`.*:", text)
            assert entry is not None, name
            for argument in signature(function).names:
                if name in FILTERS:
                    assert argument in (entry[1] or ""), f"{name} does not name {argument}"


def test_every_filter_and_test_is_described() -> None:
    for name, function in {**FILTERS, **TESTS}.items():
        assert function.__doc__, name


def test_the_page_of_an_unknown_filter_lists_them_all() -> None:
    page = (Path(tramai.__file__).parent / "explain" / "TRM206.md").read_text(encoding="utf-8")
    for heading, known in (("Filters", FILTERS), ("Tests", TESTS)):
        (line,) = (line for line in page.splitlines() if line.startswith(f"{heading}: "))
        names = {name for name in known if name.isidentifier()} - {
            "count",
            "d",
            "e",
            "equalto",
            "lessthan",
            "greaterthan",
        }
        assert re.findall(r"`(\w+)`", line) == sorted(names)
