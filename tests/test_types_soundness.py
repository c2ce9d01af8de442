"""No false alarm: what is called impossible in an expression fails for every value of the declared types."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tramai.expression import ExpressionError, Value, evaluate

from .reading import HEAD, examine

TYPES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "n": ("{type: integer}", st.integers(-3, 9)),
    "f": ("{type: number}", st.sampled_from([0, 1.5, -2.25, 7])),
    "t": ("{type: string}", st.sampled_from(["", "a", "2", "true", "x,y"])),
    "b": ("{type: boolean}", st.booleans()),
    "e": ("{enum: [low, high]}", st.sampled_from(["low", "high"])),
    "l": ("{type: array, items: {type: string}}", st.lists(st.sampled_from(["a", "2"]), max_size=3)),
    "k": ("{type: array, items: {type: integer}}", st.lists(st.integers(0, 3), max_size=3)),
    "m": ("{type: object, properties: {x: {type: integer}}}", st.fixed_dictionaries({"x": st.integers(0, 3)})),
    "u": ("{}", st.sampled_from([1, "a", True, [1], {"x": 1}])),
}
HAVE = HEAD + "inputs: {" + ", ".join(f"{name}: {kind}" for name, (kind, _) in TYPES.items()) + "}\n"
ATOMS = [f"inputs.{name}" for name in TYPES] + [
    "inputs.m.x",
    "1",
    "'a'",
    "'low'",
    "true",
    "none",
    "[1, 'a']",
    "{'x': 1}",
]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "<", "<=", ">", "==", "!=", "in", "not in"]
FILTERS = ["upper", "length", "first", "join(',')", "round", "abs", "sort", "list", "int", "float", "string", "keys"]
FILTERS += [
    "items",
    "lines",
    "sum",
    "max",
    "unique",
    "reverse",
    "tojson",
    "bool",
    "trim",
    "split(',')",
    "map('string')",
]
TESTS = ["odd", "startswith('a')", "string", "number", "defined", "upper", "mapping"]


def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Only what is always evaluated: a fault in a part that is not reached fails nothing."""
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(BINARY), inner),
        st.builds("({} | {})".format, inner, st.sampled_from(FILTERS)),
        st.builds("({} is {})".format, inner, st.sampled_from(TESTS)),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({}[0])".format, inner),
        st.builds("({}.x)".format, inner),
        st.builds("(-{})".format, inner),
    )


EXPRESSIONS = st.recursive(st.sampled_from(ATOMS), deeper, max_leaves=5)


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, st.fixed_dictionaries({name: values for name, (_, values) in TYPES.items()}))
def test_what_is_told_of_an_expression_is_so_for_every_value(use: str, given_: dict[str, Any]) -> None:
    found = examine(HAVE + f"steps:\n  - id: one\n    local: >-\n      ${{{{ {use} }}}}\n")[1]
    codes = {problem.code for problem in found}
    if not codes & {"TRM209", "TRM212", "TRM240", "TRM241", "TRM242"}:
        return
    try:
        value = evaluate(Value(f"${{{{ {use} }}}}"), {"inputs": given_})
    except ExpressionError:
        return
    # A comparison may be made all the same: what is said of it is how it comes out.
    assert codes <= {"TRM242"}, (use, given_, [problem.message for problem in found], value)
    if len(found) == 1 and use.count("==") + use.count("!=") == 1 and isinstance(value, bool):
        assert ("always true" in found[0].message) == value or "(" in use[1:-1]
