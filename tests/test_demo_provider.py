"""The built-in models: always the same, and always valid."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tramai.provider import Answer, Question
from tramai.providers._pattern import matching
from tramai.providers._sample import NoSample, sample
from tramai.providers.demo import MODELS, Demo
from tramai.step import StepError, Usage
from tramai.steps.ai import Ai

from .step_context import made, run

PROMPT = "Review app.py: it adds a retry loop, with backoff, to the client."


def ask(model: str, **fields: Any) -> Answer:
    return asyncio.run(Demo().ask(Question(model=model, **{"prompt": PROMPT, **fields})))


def test_echo_gives_the_prompt_back_without_white_space_around_it() -> None:
    answer = ask("echo", prompt="\n  a  b \n", system="x y z")
    assert answer == Answer(text="a  b", usage=Usage(input_tokens=5, output_tokens=2, cost_usd=0.0), model="demo:echo")


def test_the_same_question_has_the_same_answer() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}}}}
    assert ask("echo", schema=schema) == ask("echo", schema=schema)


def test_a_limit_of_tokens_cuts_the_answer() -> None:
    answer = ask("echo", prompt="one two three", max_output_tokens=2)
    assert (answer.text, answer.finish_reason) == ("one two", "length")
    assert ask("echo", prompt="one two three", max_output_tokens=3).finish_reason == "stop"


@pytest.mark.parametrize(
    ("model", "error"),
    [("truncate", "truncated"), ("empty", "invalid_output"), ("refuse", "refused"), ("fail", "network")],
)
@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_some_models_fail_on_purpose(model: str, error: str, schema: Any) -> None:
    step = made(Ai, model=f"demo:{model}", prompt=PROMPT, **({"schema": schema} if schema else {}))
    with pytest.raises(StepError) as caught:
        run(step)
    assert caught.value.type == error


@pytest.mark.parametrize("schema", [{"type": "object", "required": ["a"]}, {"type": "string"}, {"type": "integer"}, {}])
def test_invalid_is_valid_when_asked_again(schema: dict[str, Any]) -> None:
    result = run(made(Ai, model="demo:invalid", prompt="hello there", schema=schema))
    jsonschema.validate(result["value"], schema)
    with pytest.raises(StepError) as caught:
        run(made(Ai, model="demo:invalid", prompt="hello there", schema=schema, reask=0))
    assert caught.value.type == "invalid_output"


def test_an_unknown_model_names_those_there_are() -> None:
    with pytest.raises(StepError) as caught:
        ask("gpt")
    assert caught.value.hint is not None
    assert all(f"demo:{name}" in caught.value.hint for name in MODELS)


def test_texts_are_words_of_the_prompt() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 20}, "why": {"type": "string"}}}
    value = json.loads(ask("echo", schema=schema).text)
    assert value["title"] == "Review app.py it"
    assert set(value["why"].split()) <= set(re.findall(r"[\w.]+", PROMPT))


def test_a_schema_out_of_reach_names_the_part() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^(?=b)b$(?!c)"}}}
    schema["properties"]["a"]["minLength"] = 5  # type: ignore[index]
    with pytest.raises(StepError) as caught:
        ask("echo", schema=schema)
    assert caught.value.type == "invalid_output"
    assert "the answer" in caught.value.message


SCHEMAS: list[dict[str, Any]] = [
    {},
    {"const": {"a": [1, None]}},
    {"enum": ["b", "a"]},
    {"type": "string", "enum": [1, "b"]},
    {"type": "integer", "default": 7},
    {"type": "integer", "default": "seven", "examples": ["x", 8]},
    {"type": ["null", "string"]},
    {"type": "boolean"},
    {"type": "string", "minLength": 300, "maxLength": 301},
    {"type": "string", "maxLength": 3},
    {"type": "string", "maxLength": 0},
    {"type": "string", "pattern": "^[A-Z]{3}-\\d{4}$"},
    {"type": "string", "pattern": "^(feat|fix)(\\([a-z]+\\))?: .+", "minLength": 20},
    {"type": "string", "pattern": "^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$"},
    {"type": "string", "pattern": "\\bapp\\b"},
    {"type": "string", "format": "date"},
    {"type": "integer", "minimum": 5},
    {"type": "integer", "maximum": -5},
    {"type": "integer", "exclusiveMinimum": 10**20, "multipleOf": 7},
    {"type": "integer", "multipleOf": 2.5},
    {"type": "number", "minimum": 0.1, "maximum": 0.3, "multipleOf": 0.1},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
    {"minimum": 3},
    {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "minItems": 2,
    },
    {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "items": False, "minItems": 2},
    {"type": "array", "items": False},
    {"type": "array", "maxItems": 0, "items": {"type": "string"}},
    {"type": "array", "contains": {"const": 5}, "minContains": 2, "items": {"type": "integer"}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"const": 1}], "minItems": 2},
    {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}}},
    {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": False}, "additionalProperties": False},
    {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
    {"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^x\\d+$"}},
    {"type": "object", "patternProperties": {"^n_": {"type": "integer"}}, "required": ["n_a"]},
    {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"], "maxProperties": 2},
    {"type": "object", "properties": {"a": {"type": "string"}}, "dependentRequired": {"a": ["b"]}},
    {"type": "object", "properties": {"a": {"type": "string"}}, "unevaluatedProperties": False},
    {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"a": {"maxLength": 3}}}]},
    {"anyOf": [{"type": "string", "maxLength": 2, "minLength": 3}, {"type": "integer", "minimum": 4}]},
    {"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "type": "integer", "minimum": 15},
    {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": ["a", "b"]}},
        "oneOf": [
            {"properties": {"kind": {"const": "b"}, "n": {"type": "integer"}}, "required": ["n"]},
            {"properties": {"kind": {"const": "a"}, "s": {"type": "string"}}, "required": ["s"]},
        ],
    },
    {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "type": "object", "required": ["a"]},
    {"not": {"type": "string"}},
    {"type": "string", "not": {"maxLength": 3}},
    {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "required": ["value", "children"],
                "properties": {
                    "value": {"type": "integer"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
            }
        },
    },
    {"type": "object", "properties": {"next": {"$ref": "#"}, "name": {"type": "string"}}, "required": ["name"]},
    {"definitions": {"a/b": {"const": 3}}, "$ref": "#/definitions/a~1b"},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_made_up_data_is_valid(schema: dict[str, Any]) -> None:
    value = json.loads(ask("echo", schema=schema).text)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind(schema).validate(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": []},
        {"type": "strin"},
        {"$ref": "http://127.0.0.1:1/x"},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]},
        {"type": "string", "minLength": 4, "maxLength": 3},
        {"type": "string", "pattern": "("},
        {"not": {}},
    ],
)
def test_without_valid_data_there_is_none(schema: dict[str, Any]) -> None:
    with pytest.raises(NoSample):
        sample(schema, PROMPT)


SCALARS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("integer")},
        optional={
            "minimum": st.integers(-50, 50),
            "multipleOf": st.integers(1, 9),
            "exclusiveMaximum": st.integers(60, 99),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("number")},
        optional={"exclusiveMinimum": st.integers(-5, 5), "maximum": st.floats(6, 9, allow_nan=False)},
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 40),
            "maxLength": st.integers(40, 60),
            "format": st.sampled_from(["date", "date-time", "other"]),
        },
    ),
    st.fixed_dictionaries({"enum": st.lists(st.none() | st.booleans() | st.integers() | st.text(), min_size=1)}),
    st.fixed_dictionaries({"type": st.sampled_from(["boolean", "null", ["null", "integer"]])}),
)


def _larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c", "d"])
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": parts}, optional={"minItems": st.integers(0, 4)})
    maps = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, parts)},
        optional={"required": st.lists(names, unique=True), "minProperties": st.integers(0, 5)},
    )
    either = st.fixed_dictionaries({"anyOf": st.lists(parts, min_size=1, max_size=3)})
    return lists | maps | either


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
@given(st.recursive(SCALARS, _larger, max_leaves=8), st.text())
def test_any_schema_of_ordinary_parts_has_valid_data(schema: dict[str, Any], text: str) -> None:
    jsonschema.Draft202012Validator(schema).validate(sample(schema, text))


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\d{3}-[a-f]+$",
        r"^(a|bc)*\s\w$",
        r"[^a-z\s]{4}",
        r"^.{5,7}$",
        r"^(\w)\1$",
        r"^\D\S\W$",
        r"x*?y+?",
        r"^\$[^\d]$",
    ],
)
def test_texts_for_a_pattern_match_it(pattern: str) -> None:
    texts = list(matching(pattern))
    assert texts
    assert any(re.search(pattern, text) for text in texts)


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", "[z-a]"])
def test_a_pattern_out_of_reach_gives_nothing(pattern: str) -> None:
    assert list(matching(pattern)) == []
