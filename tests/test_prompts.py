"""Block tags, which only prompts have."""

from __future__ import annotations

from typing import Any

import pytest

from tramai.expression import ExpressionError, Prompt, Template, evaluate

SCOPE = {"xs": [1, 2, 3], "m": {"a": 1, "b": None}, "yes": True, "no": False, "s": "text", "n": None}


def written(text: str, **names: Any) -> str:
    result = evaluate(Prompt(text), {**SCOPE, **names})
    assert isinstance(result, str)
    return result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{% if yes %}a{% endif %}", "a"),
        ("{% if no %}a{% elif yes %}b{% else %}c{% endif %}", "b"),
        ("{% if no %}a{% elif no %}b{% else %}c{% endif %}", "c"),
        ("{% for x in xs %}${{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "1, 2, 3"),
        ("{% for x in xs if x != 2 %}${{ loop.index }}/${{ loop.length }}:${{ x }} {% endfor %}", "1/2:1 2/2:3 "),
        ("{% for x in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for k in m %}${{ k }}{% endfor %}", "ab"),
        ("{% for k, v in m | items %}${{ k }}=${{ v | default('-', true) }};{% endfor %}", "a=1;b=-;"),
        (
            "{% for x in xs %}{% for y in xs %}${{ loop.index0 }}{% endfor %}${{ loop.revindex }};{% endfor %}",
            "0123;0122;0121;",
        ),
        ("{% set a = 5 %}{% set b, c = [1, a] %}${{ a + c }}", "10"),
        ("{% set a = 1 %}{% for x in xs %}{% set a = x %}{% endfor %}${{ a }}", "1"),
        ("{% if yes %}{% set a = 1 %}{% endif %}${{ a }}", "1"),
        ("{% for xs in xs %}${{ xs }}{% endfor %}${{ xs }}", "123[1, 2, 3]"),
        ("a {## ${{ nope ##} b", "a  b"),
        ("a {##- x -##} b", "ab"),
        ("bash ${##} {% raw %}${{ x }}{% y %}{% endraw %} {{.ID}} {#", "bash ${##} ${{ x }}{% y %} {{.ID}} {#"),
        ("a\n{%- if yes -%}\n b\n{%- endif %}\n", "ab\n"),
        ("${{ yes }}", "true"),
        ("$${{ {% if yes %}x{% endif %}", "${{ x"),
        ("{% print 1, 2 %}", "12"),
    ],
)
def test_blocks_are_written_as_in_jinja(text: str, result: str) -> None:
    assert not list(Prompt(text).problems())
    assert written(text) == result


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("{% macro f() %}{% endmacro %}", "macro", "the tag 'macro' is not part of prompts"),
        ("{% include 'x' %}", "include", "the tag 'include' is not part of prompts"),
        ("{% import 'x' as y %}", "import", "the tag 'import' is not part of prompts"),
        ("{% extends 'x' %}", "extends", "the tag 'extends' is not part of prompts"),
        ("{% set x %}a{% endset %}", "set", "the tag 'set … endset' is not part of prompts"),
        ("{% with a = 1 %}{% endwith %}", "with", "the tag 'with' is not part of prompts"),
        ("{% filter upper %}{% endfilter %}", "filter", "the tag 'filter' is not part of prompts"),
        ("{% call f() %}{% endcall %}", "call", "the tag 'call' is not part of prompts"),
        ("{% do x %}", "do", "unexpected tag 'do'"),
        ("x {% endfor %}", "endfor", "unexpected tag 'endfor'"),
        ("{% for x in xs %}{% if yes %}{% endif %}", "for", "the tag 'for' is never closed"),
        ("{% for x in xs recursive %}{% endfor %}", "for", "a loop cannot be recursive"),
        ("{% set a.b = 1 %}", "a", "only names can be bound here"),
        ("{% if %}{% endif %}", "%}", "expected an expression, found '%}'"),
        ("{% if yes", "{%", "{% is never closed"),
        ("{## x", "{##", "{## is never closed"),
        ("{% raw %} x", "{% raw %}", "{% raw %} is never closed"),
    ],
)
def test_other_tags_are_refused_with_their_place(text: str, at: str, message: str) -> None:
    (problem,) = Prompt("é " + text).problems()
    assert (problem.code, problem.text[problem.start : problem.end], problem.message) == ("TRM201", at, message)
    with pytest.raises(ExpressionError):
        written(text)


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("{% if s %}{% endif %}", "s", "what follows `if` must be true or false, not text"),
        ("{% for x in s %}{% endfor %}", "s", "a loop needs a list, not text"),
        ("{% for x in n %}{% endfor %}", "n", "a loop needs a list, not null"),
        ("{% for a, b in xs %}{% endfor %}", "xs", "a number cannot be given to 2 names"),
        ("{% for x in xs %}${{ y }}{% endfor %}", "y", "unknown name 'y'"),
        ("{% for x in xs %}{% endfor %}${{ x }}", "x", "unknown name 'x'"),
        ("{% for x in xs %}${{ loop.cycle }}{% endfor %}", "loop.cycle", "no key 'cycle' in loop"),
        ("a ${{ n }}", "n", "n is null, which has no text"),
    ],
)
def test_errors_while_writing_have_their_place(text: str, at: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        written(text)
    assert (caught.value.message, text[caught.value.start : caught.value.end]) == (message, at)


def test_other_fields_have_no_blocks() -> None:
    text = "{% if yes %}${{ s }}{% endif %} {## x ##}"
    assert evaluate(Template(text), SCOPE) == "{% if yes %}text{% endif %} {## x ##}"


def test_a_prompt_is_never_evaluated_twice() -> None:
    assert written("{% for x in xs %}${{ x }}{% endfor %}", xs=["{% if %}", "${{ y }}"]) == "{% if %}${{ y }}"
