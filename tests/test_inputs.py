"""What a run is given, against what the workflow declares."""

from typing import Any

import msgspec
import pytest

from tramai.errors import InvalidInput
from tramai.inputs import InputSpec, bind
from tramai.shape import Mismatch, Shape, conform


def specs(**declared: dict[str, Any]) -> dict[str, InputSpec]:
    return {name: msgspec.convert(spec, InputSpec) for name, spec in declared.items()}


def refused(declared: dict[str, Any], value: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        bind(specs(x=declared), {"x": value})
    return caught.value.message + (f" ({caught.value.hint})" if caught.value.hint else "")


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ({"type": "string"}, "007", "007"),
        ({"type": "string"}, "true", "true"),
        ({}, "42", "42"),
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, "-7", -7),
        ({"type": "integer"}, "738529527931269425", 738529527931269425),
        ({"type": "number"}, "42", 42),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
    ],
)
def test_a_text_is_read_as_the_declared_type(declared: dict[str, Any], text: str, value: Any) -> None:
    bound = bind(specs(x=declared), {"x": text})["x"]
    assert bound == value
    assert type(bound) is type(value)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"type": "integer"}, text)
        for text in ("", "4.0", "1e3", "+4", " 4", "4 ", "0x10", "1_000", "٤", "true", "9" * 5000)
    ]
    + [({"type": "number"}, text) for text in ("", "nan", "inf", "1e400", ".5", "1,5", "true")]
    + [({"type": "boolean"}, text) for text in ("", "yes", "no", "True", "FALSE", "1", "0", "maybe", " true")]
    + [({"type": "array"}, text) for text in ("", "a,b", "{}", "[1", "[NaN]", "[" * 100_000)]
    + [({"type": "object"}, text) for text in ("", "[]", "a=b", '{"a": Infinity}')],
)
def test_a_text_that_is_not_of_the_type_is_refused(declared: dict[str, Any], text: str) -> None:
    assert refused(declared, text).startswith("input 'x' must be ")


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "integer"}, 3.5),
        ({"type": "integer"}, None),
        ({"type": "number"}, False),
        ({"type": "string"}, 5),
        ({"type": "boolean"}, 1),
        ({"type": "array"}, {}),
        ({"type": "object"}, []),
    ],
)
def test_a_value_of_another_type_is_refused(declared: dict[str, Any], value: Any) -> None:
    assert refused(declared, value).startswith("input 'x' must be ")


def test_a_whole_number_is_an_integer() -> None:
    bound = bind(specs(x={"type": "integer"}), {"x": 3.0})
    assert type(bound["x"]) is int


@pytest.mark.parametrize(
    ("declared", "value", "message"),
    [
        ({"enum": ["fast", "slow"]}, "fats", "must be one of 'fast', 'slow', not 'fats' (did you mean 'fast'?)"),
        ({"enum": [1, 2]}, True, "must be one of 1, 2, not true"),
        ({"pattern": "^[a-z]+/[a-z]+$"}, "acme", "must match ^[a-z]+/[a-z]+$, and 'acme' does not"),
        ({"type": "integer", "minimum": 1}, "0", "must be at least 1, not 0"),
        ({"type": "integer", "maximum": 5}, "6", "must be at most 5, not 6"),
        ({"minLength": 2}, "a", "must have at least 2 characters, not 1"),
        ({"maxLength": 2}, "abc", "must have at most 2 characters, not 3"),
        ({"format": "date"}, "2024-13-45", "must be a valid date, and '2024-13-45' is not"),
        ({"type": "array", "items": {"type": "integer"}}, [1, "b"], "at [1] must be an integer, not text 'b'"),
        ({"type": "object", "required": ["a"]}, {}, "lacks the key 'a'"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": 1}, "at a must be text, not an integer"),
    ],
)
def test_a_value_outside_its_bounds_is_refused(declared: dict[str, Any], value: Any, message: str) -> None:
    assert refused(declared, value) == f"input 'x' {message}"


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-01-15T10:00:00Z", "2024-01-15 10:00"),
        ("email", "a@example.com", "a.example.com"),
        ("uri", "https://example.com/a", "example.com"),
        ("uuid", "018f4e6e-0000-7000-8000-000000000000", "018f4e6e"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "::g"),
        ("hostname", "api.example.com", "-a.example.com"),
    ],
)
def test_a_format_is_checked(format: str, good: str, bad: str) -> None:
    shape = msgspec.convert({"format": format}, Shape)
    assert conform(shape, good) == good
    with pytest.raises(Mismatch):
        conform(shape, bad)


def test_defaults_fill_in_what_is_not_given_also_inside_objects() -> None:
    declared = specs(
        limit={"type": "integer", "default": 20},
        nothing={"default": None},
        options={"type": "object", "properties": {"deep": {"type": "boolean", "default": False}}},
    )
    assert bind(declared, {"options": {}}) == {"limit": 20, "nothing": None, "options": {"deep": False}}


def test_an_optional_input_that_is_not_given_is_not_there() -> None:
    assert bind(specs(note={"type": "string", "optional": True}), {}) == {}


def test_a_missing_input_is_named() -> None:
    with pytest.raises(InvalidInput, match="input 'repo' is required"):
        bind(specs(repo={"type": "string"}), {})


def test_an_unknown_input_is_named_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="input 'rpeo' is not declared") as caught:
        bind(specs(repo={"type": "string"}), {"rpeo": "x"})
    assert caught.value.hint == "did you mean 'repo'?"
    with pytest.raises(InvalidInput) as caught:
        bind({}, {"zzz": "x"})
    assert caught.value.hint == "this workflow takes no inputs"
