"""No expression takes long, makes something huge or fails in any other way than by an ExpressionError."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tramai.expression import Condition, ExpressionError, Missing, Prompt, Template, Text, Value, evaluate
from tramai.expression.filters import FILTERS, TESTS, signature


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


SCOPE: dict[str, Any] = {
    "text": "some text, and more",
    "big": "x " * 4_000_000,
    "many": list(range(60_000)),
    "rows": [{"k": i % 7, "s": str(i), "on": i % 2 == 0} for i in range(50)],
    "map": {"k": 1, "rows": [{"k": "v"}, {"k": None}]},
    "huge": 10**4299,
    "deep": nested(190),
    "deeper": nested(5000),
    "number": 3,
    "null": None,
    "yes": True,
    "gone": Missing("it was skipped"),
}

HUGE = [
    "'a' * 10**9",
    "[1] * 10**9",
    "9**(9**9)",
    "10**4300",
    "2**-(10**9)",
    "huge * huge",
    "huge + huge * 9",
    "1.0 * huge",
    "10.0**400",
    "big | replace('', big)",
    "big | replace(' ', big)",
    "big | indent(1000)",
    "many | join(big)",
    "many | map('string') | map('replace', '', big) | list",
    "many | map('indent', big) | list",
    "big ~ big ~ big",
    "[big, big, big] | string",
    "big | list | unique | list | length if (big | list | sort | length) > 1 else 0",
    "big | urlencode | urlencode",
    "'%9999d' | format(1) | replace(' ', big)",
    "many | batch(1000000, big)",
    "many | slice(1000000000)",
    "many | batch(1000000000, 1)",
    "big | like('*a*b*c*d*e')",
    "big is like('*a*b*c*d*e')",
    "many | select('in', many) | list",
    "many | reject('in', many + [true]) | list",
    "many | map('string') | select('in', many) | list",
    "deeper == deeper",
    "deeper | tojson",
    "deeper ~ ''",
    "[deeper] | unique",
    "big | fromjson",
    "1 | round(10**9)",
    "1 | round(-(10**9))",
    "big | truncate(10**12)",
    "big | trim(big)",
    "'x' | indent(10**9)",
    "big | date",
    "many | map('tojson', indent=16) | map('int') | map('format', big) | list",
    "many | map('batch', 2)",
]


@pytest.mark.parametrize("text", HUGE)
def test_what_would_be_huge_ends_soon(text: str) -> None:
    start = time.process_time()
    with contextlib.suppress(ExpressionError):
        evaluate(Template("${{ " + text + " }}"), SCOPE)
    assert time.process_time() - start < 5  # about one second at most on an idle machine


@pytest.mark.parametrize(
    "text",
    [
        "'a' * 10**9",
        "9**(9**9)",
        "10**4300",
        "huge * huge",
        "big | replace('', big)",
        "many | join(big)",
        "big ~ big ~ big",
        "big is like('*a*b*c*d*e')",
        "many | select('in', many) | list",
        "big | trim(big)",
        "deeper == deeper",
    ],
)
def test_what_is_too_much_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(Template("${{ " + text + " }}"), SCOPE)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in many %}{% for b in many %}{% endfor %}{% endfor %}",
        "{% for a in many %}${{ big }}{% endfor %}",
        "{% for a in many %}${{ many == many }}{% endfor %}",
        "{% set a = [1, 2] %}" + "{% set a = [a, a] %}" * 60 + "${{ a }}",
        "{% set a = [1, 2] %}"
        + "{% set a = [a, a] %}" * 60
        + "{% set b = [1, 2] %}"
        + "{% set b = [b, b] %}" * 60
        + "${{ a == b }}",
        "{% set a = 'ab' %}" + "{% set a = a ~ a %}" * 60,
        "{% set a = 9 %}" + "{% set a = a * a %}" * 60,
        "{% set a = many %}" + "{% set a = a + a %}" * 60,
        "{% if yes %}" * 200 + "{% endif %}" * 200,
    ],
    ids=lambda text: text[:60],
)
def test_prompts_are_bounded(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ExpressionError):
        evaluate(Prompt(text), SCOPE)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text",
    [
        "(" * 500 + "1" + ")" * 500,
        "[" * 90 + "]" * 90,
        "not " * 5000 + "true",
        "-" * 5000 + "1",
        "1" + " + 1" * 5000,
        "a" + ".a" * 5000,
        "a" + "[0]" * 5000,
        "a" + " | d" * 5000,
        "1 if true else " * 5000 + "1",
        "'" + "x" * 10**6,
        "1" * 5000,
    ],
    ids=lambda text: text[:20],
)
def test_deep_and_long_expressions_are_refused(text: str) -> None:
    for thing in (Template("${{ " + text + " }}"), Prompt("{% if " + text + " %}{% endif %}")):
        assert [problem.code for problem in thing.problems()] == ["TRM201"]


def test_long_but_flat_expressions_are_fine() -> None:
    assert evaluate(Template("${{ [" + "1, " * 3000 + "] | sum }}"), {}) == 3000
    assert evaluate(Template("${{ 'a'" + " ~ 'b'" * 2000 + " }}"), {}) == "a" + "b" * 2000


def test_data_as_deep_as_a_checkpoint_keeps_it_works() -> None:
    assert evaluate(Template("${{ [deep == deep, deep | tojson | fromjson == deep] }}"), SCOPE) == [True, True]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="${}%#-+ \n'\"\\|.,()[]:=<>!~*/abn019é_", max_size=60))
def test_any_text_can_be_scanned(text: str) -> None:
    for thing in (Template(text), Prompt(text), Condition(text), Value([text])):
        list(thing.sites())
        problems = list(thing.problems())
        assert all(0 <= problem.start <= problem.end <= len(text) for problem in problems)
        try:
            evaluate(thing, {"a": 1, "b": [1], "n": None})
        except ExpressionError:
            continue
        assert not problems or isinstance(thing, Condition)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab10 .,|+-*/%~<>=![]{}()'\":\\né", max_size=30))
def test_anything_between_the_braces_can_be_read_or_is_refused(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        evaluate(Template("${{ " + text + " }}"), {"a": 1, "b": ["x"]})


ATOMS = [
    *SCOPE,
    "1",
    "0",
    "-1",
    "2.5",
    '"x"',
    '""',
    "true",
    "none",
    "[1, 2]",
    "[]",
    '{"k": number}',
    "map.rows",
    "rows[0].s",
]
ATOMS += ["nope", "many[-9]", "10**300", '"%s %d %5.1f"', '"k"', "text[::-1]", '"2026-01-31T00:00:00Z"', '"[1, {}]"']
SIGNS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]


def expression(chance: random.Random, depth: int) -> str:
    if depth <= 0 or chance.random() < 0.15:
        return chance.choice(ATOMS)
    part = [expression(chance, depth - 1 - chance.randrange(2)) for _ in range(3)]
    shape = chance.randrange(12)
    if shape < 3:
        return f"{part[0]} {chance.choice(SIGNS)} {part[1]}"
    if shape < 8:
        name = chance.choice(list(FILTERS))
        return f"({part[0]}) | {name}{arguments(chance, depth, FILTERS[name])}"
    if shape == 8:
        name = chance.choice([name for name in TESTS if name.isidentifier()])
        return f"({part[0]}) is {name}{arguments(chance, depth, TESTS[name])}"
    return [f"({part[0]} if {part[1]} else {part[2]})", f"[{part[0]}, {part[1]}]", f"({part[0]})[{part[1]}]"][shape - 9]


def refusal(thing: Template) -> ExpressionError | None:
    try:
        evaluate(thing, SCOPE)
    except ExpressionError as error:
        return error
    return None


def arguments(chance: random.Random, depth: int, function: Any) -> str:
    names, required, rest, _ = signature(function)
    if rest:
        return chance.choice(['("upper")', '(attribute="k")', '("k", "eq", 1)', '("gt", 1)', '("k")', "(number)", ""])
    count = chance.randint(required, len(names))
    return "(" + ", ".join(expression(chance, min(depth - 1, 1)) for _ in range(count)) + ")" if count else ""


@pytest.mark.parametrize("seed", range(4))
def test_no_expression_breaks_the_evaluator(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        text = "${{ " + expression(chance, 4) + " }}"
        for thing in (Template(text), Text(text)):
            start = time.process_time()
            found = refusal(thing)
            assert found is None or (found.message and 0 <= found.start <= found.end <= len(text)), text
            assert time.process_time() - start < 5, text
