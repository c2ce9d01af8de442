"""The published schema of workflow files: for editors of every kind, and complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tramai import document, schema, workflow

ROOT = Path(__file__).resolve().parent.parent
SCHEMA: dict[str, Any] = json.loads((ROOT / "schemas" / "workflow.schema.json").read_text(encoding="utf-8"))
FILES = sorted(
    path
    for path in (ROOT / "workflows").rglob("*")
    if path.suffix in {".yaml", ".yml", ".toml"} and ".tramai-test." not in path.name
)
MISTAKES = sorted((ROOT / "tests" / "mistakes").iterdir())
DIALECTS = [jsonschema.Draft7Validator, jsonschema.Draft202012Validator]

SHARED = {
    "$schema", "$ref", "title", "description", "examples", "default", "type", "enum", "const", "properties",
    "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties", "maxProperties", "items",
    "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
    "definitions", "format",
}  # fmt: skip
"""Words that mean the same in draft-07 and in 2020-12."""


def schemas(found: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, and where it stands."""
    if not isinstance(found, dict):
        return
    yield at, found
    for word in ("properties", "patternProperties", "definitions"):
        for name, below in found.get(word, {}).items():
            yield from schemas(below, f"{at}/{word}/{name}")
    for word in ("additionalProperties", "propertyNames", "items", "not", "if", "then", "else"):
        yield from schemas(found.get(word), f"{at}/{word}")
    for word in ("allOf", "anyOf", "oneOf"):
        for number, below in enumerate(found.get(word, [])):
            yield from schemas(below, f"{at}/{word}/{number}")


def keys() -> list[tuple[str, dict[str, Any]]]:
    """Every key that a file may have: where it stands, and its schema."""
    return [
        (f"{at.removeprefix('#')}.{name}", below)
        for at, found in schemas(SCHEMA)
        if "/if" not in at and "/then" not in at
        for name, below in found.get("properties", {}).items()
    ]


def test_it_uses_only_words_that_mean_the_same_in_both_dialects() -> None:
    used = {word for _, found in schemas(SCHEMA) for word in found}
    assert sorted(word for word in used - SHARED if not word.startswith("x-")) == []
    beside = [at for at, found in schemas(SCHEMA) if "$ref" in found and len(found) > 1]
    assert beside == [], "draft-07 ignores what stands beside $ref"
    lists = [at for at, found in schemas(SCHEMA) if isinstance(found.get("items"), list)]
    assert lists == [], "a list of schemas under `items` is draft-07 only"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_a_schema_in_both_dialects(dialect: Any) -> None:
    dialect.check_schema(SCHEMA)


def test_every_key_has_a_title_a_description_and_an_example() -> None:
    wanted = ("title", "description", "examples")
    assert [(name, word) for name, found in keys() for word in wanted if not found.get(word)] == []
    assert len(keys()) > 400


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_example_is_one(dialect: Any) -> None:
    for name, found in keys():
        validator = dialect({**found, "definitions": SCHEMA["definitions"]})
        for example in found["examples"]:
            assert [error.message for error in validator.iter_errors(example)] == [], (name, example)


def test_whole_definitions_are_described() -> None:
    bare = [name for name, found in SCHEMA["definitions"].items() if not (found.get("title") and found.get("type"))]
    assert bare == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_example_file_is_valid_in_both_dialects(path: Path, dialect: Any) -> None:
    source = document.read(str(path))
    data = schema.resolve(source, schema.workflow_schema()).data
    assert [error.message for error in dialect(SCHEMA).iter_errors(data)] == []


@pytest.mark.parametrize("path", [*FILES, *MISTAKES], ids=lambda path: path.name)
def test_both_dialects_say_the_same_of_every_file(path: Path) -> None:
    source = document.parse(path.read_bytes(), file=path.name)
    if source.root is None:
        return  # no schema ever sees it
    data = schema.resolve(source, schema.workflow_schema()).data
    seven, twenty = (
        sorted(
            (list(map(str, error.absolute_path)), str(error.validator), error.message)
            for error in dialect(SCHEMA).iter_errors(data)
        )
        for dialect in DIALECTS
    )
    assert seven == twenty


def test_the_mistakes_are_such_that_the_dialects_could_differ() -> None:
    sources = [document.parse(path.read_bytes(), file=path.name) for path in MISTAKES]
    read = [schema.resolve(source, schema.workflow_schema()).data for source in sources if source.root is not None]
    assert sum(not jsonschema.Draft7Validator(SCHEMA).is_valid(data) for data in read) > 20


def test_what_is_added_for_editors_is_quoted_by_no_error() -> None:
    _, problems = workflow.examine(document.parse("tramai: 1\nname: ''\nsteps: [{id: a, local: 1}]\n", file="x.yaml"))
    assert problems[0].hint is not None
    assert "for example" not in problems[0].hint
