"""Expressions: fields, types, names, conditions, and errors with their places."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from tramai.expression import (
    Condition,
    Expression,
    ExpressionError,
    Missing,
    Template,
    Text,
    Value,
    dec_hook,
    enc_hook,
    evaluate,
    known,
    remember,
    render_text,
    schema_hook,
    suggest,
)
from tramai.expression import test as holds

SCOPE = {
    "inputs": {"n": 3, "yes": True, "no": False, "nothing": None, "text": "abc", "list": [1, 2, 3], "dir": "/d"},
    "state": {"items": "an item", "keys": 1, "get": [2], "class": {"x": 1}, "a.b": "dotted", "naïve": "ï", "a": None},
    "item": 21,
}


def value(text: str, **names: Any) -> Any:
    return evaluate(Template(text), {**SCOPE, **names})


def error(text: str, **names: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        value(text, **names)
    assert 0 <= caught.value.start <= caught.value.end <= len(text)
    return caught.value


def place(problem: ExpressionError) -> str:
    return problem.text[problem.start : problem.end]


@pytest.mark.parametrize(
    "kept", ["2", "007", "None", "[1, 2]", "1e3", "true", "", " x ", 2, 2.0, True, None, [1, 2], {"a": []}], ids=repr
)
def test_a_sole_expression_keeps_type_and_value(kept: Any) -> None:
    scope = {"state": {"x": kept}}
    for thing in (Template("${{ state.x }}"), Expression("  ${{ state.x }}\n"), Value("${{ state.x }}")):
        found = evaluate(thing, scope)
        assert (type(found), found) == (type(kept), kept)
    assert evaluate(Value({"k": ["${{ state.x }}", 1]}), scope) == {"k": [kept, 1]}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("x", "x"),
        (1, "1"),
        (1.5, "1.5"),
        (1e22, "1e+22"),
        (True, "true"),
        (False, "false"),
        (10**30, "1" + "0" * 30),
        ([1, None], "[1, null]"),
        ({"b": 1, "a": "é"}, '{"a": "é", "b": 1}'),
    ],
    ids=repr,
)
def test_text_around_makes_text_of_json(given: Any, text: str) -> None:
    assert value("<${{ x }}>", x=given) == f"<{text}>"
    assert render_text(Template("${{ x }}"), {"x": given}) == text
    assert evaluate(Text("${{ x }}"), {"x": given}) == text


def test_null_has_no_text() -> None:
    problem = error("a ${{ inputs.nothing }}")
    assert problem.message == "inputs.nothing is null, which has no text"
    assert problem.hint == 'give another value with default("…", true)'
    assert place(problem) == "inputs.nothing"
    with pytest.raises(ExpressionError, match="null has no text"):
        render_text(Template("${{ none }}"), {})


@pytest.mark.parametrize(
    "text",
    [
        'docker ps --format "{{.ID}}"',
        '{"a": {"b": "${HOME}"}}',
        "${#a[@]} ${a:-x} $x $$ ${",
        "}} {{ x }} {% if %} {## x ##}",
        "",
        "$",
        "$ {{ x }}",
        "{# x #}",
    ],
)
def test_braces_that_are_no_expression_pass_unchanged(text: str) -> None:
    assert Template(text).constant
    assert value(text) == text


def test_a_literal_opening_is_written_with_two_dollars() -> None:
    assert value("$${{ x }}") == "${{ x }}"
    assert value("a $${{ x }} ${{ item }} $$${{") == "a ${{ x }} 21 $${{"
    assert evaluate(Value(["$${{"]), {}) == ["${{"]


def test_white_space_is_taken_away_beside_a_dash() -> None:
    assert value("a  ${{- item -}}  b") == "a21b"
    assert value("${{ -1 }}") == -1
    assert error("${{-1}}").message == "a sign at the very start of ${{ is ambiguous"


def test_an_expression_that_is_not_closed_is_an_error_with_its_place() -> None:
    (problem,) = Template("go ${{ inputs.n").problems()
    assert (problem.code, problem.start, problem.end) == ("TRM201", 3, 6)
    assert problem.hint == "close it with }}; for a literal ${{ write $${{"
    (problem,) = Template("go ${{ (inputs.n }}").problems()
    assert problem.hint == "a bracket or a text literal in it is not closed"


def test_delimiters_inside_literals_and_brackets_do_not_close() -> None:
    assert value("${{ '}}' ~ \"}}\" }}") == "}}}}"
    assert value("${{ {'a': {'b': 1}}.a.b }}") == 1


def test_mappings_have_keys_and_no_methods() -> None:
    assert value("${{ state.items }}") == "an item"
    assert value("${{ [state.keys, state.get, state.class.x] }}") == [1, [2], 1]
    assert value('${{ state["a.b"] ~ state["naïve"] ~ state.naïve }}') == "dottedïï"
    problem = error("${{ inputs.list.append }}")
    assert problem.message == "inputs.list is a list, so it has no 'append'"
    problem = error("${{ inputs.items }}")
    assert problem.hint == "data has no methods: write `… | items`"


@pytest.mark.parametrize(
    "attack", ["inputs.__class__", "inputs.text.__class__.__mro__", "inputs['__init__']", "().__len__"]
)
def test_data_has_no_attributes_of_python(attack: str) -> None:
    assert "no" in error(f"${{{{ {attack} }}}}").message
    assert value(f"${{{{ {attack} is defined }}}}") is False


def test_lists_and_texts_have_items_and_slices() -> None:
    assert value("${{ [inputs.list[0], inputs.list[-1], inputs.list.1, inputs.list[1:], inputs.list[::-1]] }}") == (
        [1, 3, 2, [2, 3], [3, 2, 1]]
    )
    assert value("${{ inputs.text[1] ~ inputs.text[:2] }}") == "bab"
    assert error("${{ inputs.list[3] }}").message == "no item 3 in inputs.list, which has 3"
    assert "keys are text" in (error("${{ state[1] }}").hint or "")


def test_what_is_missing_names_itself_and_its_neighbours() -> None:
    problem = error("rm -rf /tmp/x/${{ inputs.dirr }}/*")
    assert problem.message == "no key 'dirr' in inputs (did you mean 'dir'?)"
    assert place(problem) == "inputs.dirr"
    problem = error("${{ imputs.n }}")
    assert (problem.message, problem.hint) == ("unknown name 'imputs'", "did you mean 'inputs'?")


@pytest.mark.parametrize(
    "use",
    [
        "{} == 1",
        "{} + 1",
        "1 ~ {}",
        "not {}",
        "{} and true",
        "1 if {} else 2",
        "{} | upper",
        "-{}",
        "[{}]",
        "1 in {}",
        "inputs.list[{}]",
        '{{"a": {}}}',
        "{} | join",
        "inputs.list | join({})",
        "{} is none",
        "{} is odd",
        "{}",
        "{} < 2",
    ],
)
def test_what_is_missing_is_an_error_on_every_use(use: str) -> None:
    assert error("${{ " + use.format("state.q.r") + " }}").message == "no key 'q' in state"


def test_null_is_not_walked_through_in_silence() -> None:
    problem = error("${{ state.a.b.c }}")
    assert problem.message == "state.a is null, so it has no 'b'"
    assert value('${{ state.a.b.c | default("x") }}') == "x"


def test_default_and_is_defined_are_the_ways_around() -> None:
    assert value('${{ nope.at.all | default("x") }}') == "x"
    assert value("${{ nope.x | default(inputs.y) | default(inputs.n) }}") == 3
    assert value("${{ nope | d }}") == ""
    assert value('${{ inputs.nothing | default("x") }}') is None
    assert value('${{ inputs.nothing | default("x", true) }}') == "x"
    assert value("${{ [nope is defined, nope.x is undefined, inputs.nothing is defined] }}") == [False, True, True]
    assert value("${{ [] | first | default(7) }}") == 7


def test_a_mapping_may_say_why_a_value_is_missing() -> None:
    scope = {"steps": {"one": {"status": "skipped", "output": Missing("step 'one' was skipped", "give a default")}}}
    with pytest.raises(ExpressionError, match="step 'one' was skipped") as caught:
        evaluate(Template("${{ steps.one.output.x }}"), scope)
    assert caught.value.hint == "give a default"
    assert place(caught.value) == "steps.one.output.x"
    assert evaluate(Template("${{ steps.one.output.x | default(1) }}"), scope) == 1
    assert holds(Condition("${{ steps.one.output is defined }}"), scope) is False
    for whole in (scope, {"steps": Lazy(one=Lazy(**scope["steps"]["one"]))}):
        assert evaluate(Template("${{ steps }}"), whole) == {"one": {"status": "skipped"}}
        assert evaluate(Template('${{ [steps.one, steps["o" ~ "ne"]] }}'), whole) == [{"status": "skipped"}] * 2
        assert evaluate(Template("- ${{ steps.one }}"), whole) == '- {"status": "skipped"}'
    with pytest.raises(ExpressionError, match="unknown name 'steps'"):
        evaluate(Template("${{ steps.one }}"), {})


class Lazy(Mapping[str, Any]):
    def __init__(self, **data: Any) -> None:
        self.data = data
        self.read: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.read.append(key)
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


def test_lazy_mappings_are_read_only_where_they_are_used() -> None:
    state = Lazy(a={"b": 1}, c=2)
    assert evaluate(Template("${{ state.a.b }}"), Lazy(state=state)) == 1
    assert state.read == ["a"]
    assert evaluate(Template("${{ [state] }}"), {"state": state}) == [{"a": {"b": 1}, "c": 2}]
    assert type(evaluate(Template("${{ state }}"), {"state": state})) is dict
    assert evaluate(
        Template('${{ ["a" in state, state | length, state == {"a": {"b": 1}, "c": 2}] }}'), {"state": state}
    ) == ([True, 2, True])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 == true", False),
        ("0 == false", False),
        ("1 == 1.0", True),
        ("'1' == 1", False),
        ("none == false", False),
        ("[1, true] == [true, 1]", False),
        ("{'a': [1]} == {'a': [1.0]}", True),
        ("[] == {}", False),
        ("1 != true", True),
        ("true in [1]", False),
        ("1 in [true, 1]", True),
        ("'b' in 'abc'", True),
        ("'a' in {'a': 1}", True),
        ("1 in {'a': 1}", False),
        ("3 not in [1]", True),
        ("[1] in [[1]]", True),
        ("1 < 2 < 3", True),
        ("'a' < 'b'", True),
    ],
)
def test_values_of_different_types_are_never_equal(text: str, result: bool) -> None:
    assert value("${{ " + text + " }}") is result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("7 // 2", 3),
        ("7 / 2", 3.5),
        ("-7 % 3", 2),
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("1 + 2 * 3", 7),
        ("1.5 + 1", 2.5),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("1 ~ '-' ~ true", "1-true"),
        ("10 ** 30", 10**30),
        ("-(3)", -3),
        ("(1, 2)", [1, 2]),
        ("{'a': 1}.a", 1),
        ("'a' 'b'", "ab"),
        ("1 if true else 2", 1),
        ("0x10 + 0b1", 17),
    ],
)
def test_operators_work_on_json_values(text: str, result: Any) -> None:
    found = value("${{ " + text + " }}")
    assert (type(found), found) == (type(result), result)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'a' * 3", "* needs two numbers, not text and a number"),
        ("[1] * 3", "* needs two numbers, not a list and a number"),
        ("true + 1", "+ needs two numbers, two texts or two lists, not a boolean and a number"),
        ("'%s' % 1", "% needs numbers, not text"),
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("(-8) ** 0.5", "the result is no real number"),
        ("1e308 * 10", "the number is too large"),
        ("1 < 'a'", "a number and text have no order"),
        ("true < false", "a boolean and a boolean have no order"),
        ("none < 1", "null and a number have no order"),
        ("1 in 'a'", "text can only hold text, not a number"),
        ("1 in 5", "`in` needs a list, text or a mapping on its right, not a number"),
        ("-'a'", "only a number has a sign, not text"),
        ("{inputs.n: 1}", "the keys of a mapping are text, not a number"),
        ("inputs.list['a':]", "a slice needs whole numbers, not text"),
        ("inputs.n and true", "each side of `and` must be true or false, not a number"),
        ("inputs.no or inputs.text", "each side of `or` must be true or false, not text"),
        ("not inputs.list", "what follows `not` must be true or false, not a list"),
        ("1 if inputs.n else 2", "what follows `if` must be true or false, not a number"),
        ("1 if inputs.no", "there is no value: what follows `if` is false, and there is no `else`"),
    ],
)
def test_operators_refuse_what_makes_no_sense(text: str, message: str) -> None:
    assert error("${{ " + text + " }}").message == message


def test_logic_stops_at_the_first_answer() -> None:
    assert value("${{ inputs.no and nope }}") is False
    assert value("${{ inputs.yes or nope }}") is True
    assert value("${{ 1 if inputs.yes else nope }}") == 1
    assert value("${{ 3 < 2 < nope }}") is False


def test_errors_point_at_the_operand() -> None:
    assert place(error("${{ inputs.n + inputs.nn * 2 }}")) == "inputs.nn"
    assert place(error("x ${{ 1 + (inputs.n - inputs.text) }}")) == "inputs.n - inputs.text"
    assert place(error('${{ inputs.text | replace("a", 1) | upper }}')) == 'inputs.text | replace("a", 1)'
    assert place(error("${{ inputs['list'][ 9 ] ~ 1 }}")) == "inputs['list'][ 9 ]"
    assert place(error("${{ 1 if 5 is not odd else nope(1) }}")) == "nope(1)"


@pytest.mark.parametrize(
    ("text", "at", "message", "hint"),
    [
        ("${{ 1 2 }}", "2", "unexpected '2'", None),
        ("${{ a + }}", "}}", "the expression ends too early, before '}}'", None),
        ("${{ a = b }}", "=", "unexpected '='", "to compare, write =="),
        ("${{ a && b }}", "&", "unexpected '&'", "write `and`"),
        ("${{ a || b }}", "|", "expected a name, found '|'", "write `or`"),
        ("${{ !a }}", "!", "unexpected '!'", "write `not`"),
        ("${{ a ? b : c }}", "?", "unexpected '?'", "write `a if b else c`"),
        ("${{ 'abc }}", "'", "unexpected '''", "close the text literal"),
        ("${{ }}", "${{ }}", "there is no expression between the braces", None),
        ("${{ 1e999 }}", "1e999", "the number is too large", None),
        ("${{ {1: 2} }}", "1", "the keys of a mapping are text", 'write "1"'),
        ("${{ x | join(*y) }}", "join(*y)", "arguments cannot be unpacked with * or **", None),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text: str, at: str, message: str, hint: str | None) -> None:
    for before in ("", "héllo "):
        (problem,) = Template(before + text).problems()
        assert (problem.code, place(problem), problem.message, problem.hint) == ("TRM201", at, message, hint)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("x.upper()", "write `x | upper`"),
        ("x.strip()", "write `x | trim`"),
        ("len(x)", "write `x | length`"),
        ("x.get('a')", 'read a key with x.key or x["key"], and give another value with `| default(…)`'),
        ("x.startswith('a')", "write `x is startswith(…)`"),
        ("range(9)", "write the list itself, or let a step make it"),
    ],
)
def test_there_are_no_calls_and_the_hint_names_the_filter(text: str, hint: str) -> None:
    (problem,) = Template("${{ " + text + " }}").problems()
    assert (problem.code, place(problem), problem.hint) == ("TRM201", text, hint)


def test_filters_are_checked_before_anything_runs() -> None:
    text = "${{ a | uper | replace('x') | map('lowr') | select('od') | selectattr('k', 'ecual', 1) }} ${{ b is od }}"
    found = [(problem.code, place(problem), problem.hint) for problem in Template(text).problems()]
    assert found == [
        ("TRM206", "uper", "did you mean 'upper'?"),
        ("TRM201", "replace('x')", None),
        ("TRM206", "'lowr'", "did you mean 'lower'?"),
        ("TRM206", "'od'", "did you mean 'odd'?"),
        ("TRM206", "'ecual'", "did you mean 'equalto'?"),
        ("TRM206", "od", "did you mean 'odd'?"),
    ]


def test_all_expressions_of_a_field_are_checked() -> None:
    problems = list(Value({"a": ["${{ 1 2 }} ${{ x | nope }}", "${{ ok }}"], "b": "${{"}).problems())
    assert [(problem.pointer, problem.code) for problem in problems] == (
        [(("a", 0), "TRM201"), (("a", 0), "TRM206"), (("b",), "TRM201")]
    )


@pytest.mark.parametrize(
    "text", ["", "true", "false", "x", "a ${{ inputs.yes }}", "${{ inputs.yes }} && ${{ inputs.no }}", "{{ x }}"]
)
def test_a_condition_is_one_whole_expression(text: str) -> None:
    assert [problem.code for problem in Condition(text).problems()] == ["TRM207"]
    assert [problem.code for problem in Expression(text).problems()] == ["TRM207"]


def test_a_bare_word_as_condition_gets_the_fix() -> None:
    (problem,) = Condition("true").problems()
    assert problem.hint == "write ${{ true }}"


@pytest.mark.parametrize(
    ("text", "always"),
    [
        ("1", "a number"),
        ("'false'", "text"),
        ("none", "null"),
        ("[a]", "a list"),
        ("a ~ b", "text"),
        ("a - 1", "a number"),
        ("a | length", "a number"),
        ("a | trim", "text"),
        ("1 if a == 1 else 'x'", "a number or text"),
        ("{}", "a mapping"),
    ],
)
def test_a_condition_that_can_never_be_boolean_is_found(text: str, always: str) -> None:
    (problem,) = Condition("${{ " + text + " }}").problems()
    assert (problem.code, problem.message) == ("TRM212", f"a condition must be true or false; this is always {always}")


@pytest.mark.parametrize(
    "text", ["true", "a", "a == 1", "not a", "a | default(false)", "a | first", "true if a else b", "a is odd"]
)
def test_a_condition_that_may_be_boolean_is_let_through(text: str) -> None:
    assert not list(Condition("${{ " + text + " }}").problems())


def test_truthiness_is_found_inside_expressions_too() -> None:
    (problem,) = Template('${{ inputs.text or "x" }}').problems()
    assert (problem.code, place(problem)) == ("TRM212", '"x"')
    assert problem.hint == "there is no truthiness; for another value write `x | default(y, true)`"


@pytest.mark.parametrize("held", ["false", "0", "no", "", "true", 0, 1, None, [], [1], {}], ids=repr)
def test_a_condition_takes_nothing_but_booleans(held: Any) -> None:
    with pytest.raises(ExpressionError, match="a condition must be true or false"):
        holds(Condition("${{ x }}"), {"x": held})


def test_a_condition_in_a_block_scalar_holds_or_not() -> None:
    assert holds(Condition("  ${{ false }}\n"), {}) is False
    assert holds(Condition("${{ 1 < 2\n   and not false }}\n"), {}) is True


def test_fields_are_made_by_msgspec() -> None:
    class Step(msgspec.Struct, frozen=True):
        run: Template
        when: Condition
        data: Value

    step = msgspec.convert({"run": "${{", "when": "x", "data": {"a": 1}}, Step, dec_hook=dec_hook)
    assert step == Step(Template("${{"), Condition("x"), Value({"a": 1}))
    assert msgspec.to_builtins(step, enc_hook=enc_hook)["data"] == {"a": 1}
    with pytest.raises(msgspec.ValidationError, match=r"expected text, got a number - at `\$\.run`"):
        msgspec.convert({"run": 1, "when": "x", "data": 1}, Step, dec_hook=dec_hook)
    _, components = msgspec.json.schema_components([Step], schema_hook=schema_hook)
    properties = components["Step"]["properties"]
    assert properties["run"]["type"] == properties["when"]["type"] == "string"


def test_fields_compare_by_text() -> None:
    assert Template("a") == Template("a") != Template("b")
    assert len({Template("a"), Template("a"), Text("a")}) == 2
    assert Value([1]) == Value([1]) != Value([True])
    assert hash(Value({"a": 1})) == hash(Value({"a": 1}))


def test_what_was_parsed_can_be_kept_and_taken_over() -> None:
    text = "kept ${{ inputs.n + 1 | abs }} ${{ [1, none, 1.5, true, 'x'][inputs.n] | default({'a': 'b'}) }}"
    assert not list(Template(text).problems())
    kept = marshal.loads(marshal.dumps(known()))
    assert kept == known()
    code = (
        "import sys, marshal\nfrom tramai.expression import *\n"
        "remember(marshal.load(sys.stdin.buffer))\n"
        f"print(evaluate(Template({text!r}), {{'inputs': {{'n': 9}}}}))\n"
        "assert 'jinja2' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], input=marshal.dumps(kept), capture_output=True, check=False)
    assert (result.stdout.decode(), result.stderr.decode()) == ('kept 10 {"a": "b"}\n', "")
    remember(kept)
    assert value(text.replace("[inputs.n]", "[0]")) == "kept 4 1"


def test_a_dotted_path_needs_no_jinja() -> None:
    code = (
        "import sys\nfrom tramai.expression import *\n"
        "print(evaluate(Template('a ${{ x.y_1.Z }} ${{x}}'), {'x': {'y_1': {'Z': 5}}}))\n"
        "print([m for m in ('jinja2', 'difflib', 'tramai.expression.filters') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert result.stdout == 'a 5 {"y_1": {"Z": 5}}\n[]\n'


def test_outside_text_is_never_evaluated_again() -> None:
    assert value("${{ x }} ${{ [x] }}", x="${{ inputs.n }}") == '${{ inputs.n }} ["${{ inputs.n }}"]'


def test_literals_have_the_escapes_of_python() -> None:
    assert value(r"""${{ "a\n\t\x41\u00e9\"\\ \d" ~ '\'' }}""") == "a\n\tAé\"\\ \\d'"
    assert [problem.code for problem in Template(r'${{ "\xZZ" }}').problems()] == ["TRM201"]
    assert [problem.code for problem in Template(r'${{ "\ud800" }}').problems()] == ["TRM201"]


def test_offsets_hold_over_lines_and_carriage_returns() -> None:
    text = "a\r\nb ${{ inputs.n\r\n  + inputs.none }}"
    assert place(error(text)) == "inputs.none"


def test_suggestions_are_near_names_only() -> None:
    assert suggest("fetsh", ["fetch", "store"]) == "fetch"
    assert suggest("FETCH", ["fetch"]) == "fetch"
    assert suggest("zzz", ["fetch"]) is None


def test_values_without_expressions_are_given_as_they_are() -> None:
    data = {"a": [1, {"b": None}], "${{ key }}": "x"}
    assert evaluate(Value(data), {}) == json.loads(json.dumps(data))
    assert Value(data).constant
    assert not Value(["${{ x }}"]).constant


def test_a_call_is_one_problem_and_not_an_unknown_name_as_well() -> None:
    found = [
        use.path
        for site in Template("${{ len(inputs.a) + inputs.b.upper() }}").sites()
        for expression in site.expressions
        for use in expression.names
    ]
    assert found == [("inputs", "a"), ("inputs", "b")]
