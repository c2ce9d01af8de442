"""The published schema and the Structs say the same."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tramai import build, check, document, duration, schema, workflow
from tramai._strict import Unbuildable
from tramai.duration import PATTERN

EVERYTHING = Path(__file__).parent / "data" / "everything.yaml"
VALUES = [
    None, 0, 1, -1, 2.0, 2.5, "x", "", "30", "3s", "${{ true }}", [], {}, True, False, [1], [None], {"a": 1}, ["x"],
    10**30, {"x": None}, "200", "2xx", 1000,
]  # fmt: skip


def test_the_file_with_everything_has_no_problem() -> None:
    found, problems = workflow.check_file(str(EVERYTHING))
    assert problems == ()
    assert found is not None
    assert {node.verb for node in found.steps.walk()} == build.verbs()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_both_refuse_the_same_data(seed: int) -> None:
    source = document.read(str(EVERYTHING))
    published = schema.workflow_schema()
    data = schema.resolve(source, published).data
    chance = random.Random(seed)
    places = [place for place in pointers(data) if place]
    for _ in range(100):
        mutant = mutate(copy.deepcopy(data), places, chance)
        built = try_build(mutant, source)
        refused = schema.validate(mutant, published, source)
        if built is None:
            assert refused or is_guests(mutant, source), mutant
        elif refused:
            # What is left to the rules is refused by them.
            assert any(problem.severity == "error" for problem in check.problems(built)), (refused, mutant)


def try_build(data: Any, source: document.Document) -> workflow.Workflow | None:
    try:
        return build.build(data, document=source)
    except Unbuildable:
        assert build.salvage(data, source) is not None
        return None


def is_guests(data: Any, source: document.Document) -> bool:
    """Whether it is the settings of a package's step that cannot be built: their schema is not the published one."""
    with pytest.raises(Unbuildable) as caught:
        build.build(data, document=source)
    return {"plugin", "with"} <= set(caught.value.pointer)


def pointers(data: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at]
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        found.extend(pointers(value, (*at, key)))
    return found


def mutate(data: Any, places: list[tuple[str | int, ...]], chance: random.Random) -> Any:
    *above, last = chance.choice(places)
    inner = data
    for key in above:
        inner = inner[key]
    what = chance.random()
    if what < 0.7:
        inner[last] = copy.deepcopy(chance.choice(VALUES))
    elif what < 0.85:
        del inner[last]
    elif isinstance(inner[last], dict):
        key = chance.choice(["zzz", "x-a", "run", "local", "id", "default", "type"])
        inner[last][key] = copy.deepcopy(chance.choice(VALUES))
    return data


DURATIONS = [
    "500ms", "90s", "5m", "1h30m", "2d", "1w2d3h4m5s6ms", "1.5h", "0s", "PT5M", "P1D", "P1W", "PT1.5S", "P1DT1H",
    "", "5", "5 m", "m", "5m1h", "1m1m", "-5s", "5M", "P", "PT", "P1DT", "P1M", "1,5h", "5minutes", "٥s", "1e3s",
]  # fmt: skip


@pytest.mark.parametrize("text", DURATIONS)
def test_the_pattern_of_durations_takes_what_is_read(text: str) -> None:
    import re

    def reads() -> bool:
        try:
            duration.parse(text)
        except ValueError:
            return False
        return True

    assert bool(re.search(PATTERN, text)) == reads()


def test_the_schema_is_plain_json_that_any_validator_takes() -> None:
    from jsonschema import Draft7Validator, Draft202012Validator

    made = json.loads(json.dumps(workflow.generate_schema()))
    Draft7Validator.check_schema(made)
    Draft202012Validator.check_schema(made)


def test_every_key_of_the_language_is_described_for_editors() -> None:
    made = workflow.generate_schema()
    step = made["definitions"]["step"]["properties"]
    parts = [part.get("properties", {}) for name, part in made["definitions"].items() if name != "JsonSchema"]
    for properties in (made["properties"], step, *parts):
        assert [key for key, value in properties.items() if not described(value, made)] == []


def described(value: Any, made: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    if "$ref" in value:
        return bool(made["definitions"][value["$ref"].rpartition("/")[2]].get("description"))
    return bool(value.get("description"))
