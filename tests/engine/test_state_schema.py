"""The `schema` of a state key to which many steps add: what is new is looked at, not all that is there each time."""

from __future__ import annotations

from typing import Any

import pytest

from tramai import schema

from ..written import ran

LIST = "{initial: [], reduce: append, schema: {type: array, items: {type: integer, minimum: 0}%s}}"
MAP = (
    "{initial: {k0: 0}, reduce: merge, schema: {type: object, required: [k0], additionalProperties: {type: integer}%s}}"
)
STEPS = """\
- id: all
  foreach:
    items: ${{ inputs.items }}
    do:
      - id: one
        local: ${{ item }}
        save: {kept: "${{ result }}"}
"""
TOP = "inputs: {items: {type: array}}\nstate: {kept: %s}\noutputs: {kept: '${{ state.kept }}'}"


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the values that are held against a schema from now on."""
    sizes: list[int] = []
    whole = schema.schema_problems

    def noted(instance: Any, wanted: Any, **more: Any) -> Any:
        sizes.append(len(instance))
        return whole(instance, wanted, **more)

    monkeypatch.setattr(schema, "schema_problems", noted)
    return sizes


@pytest.mark.parametrize(
    ("key", "items"), [(LIST, list(range(50))), (MAP, [{f"k{number}": number} for number in range(1, 51)])]
)
def test_no_look_is_longer_than_what_is_added(key: str, items: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = looked_at(monkeypatch)
    ended = ran(STEPS, TOP % (key % ""), given={"items": items})
    assert ended.status == "completed"
    assert sizes[0] <= 2
    assert sizes[1:] == [1] * 49


@pytest.mark.parametrize(
    ("key", "items", "said"),
    [
        (LIST % "", [0, 1, -2], "state.kept[2] "),
        (LIST % "", [-1], "state.kept[0] "),
        (LIST % ", maxItems: 2", [0, 1, 2], "state.kept "),
        (LIST % ", uniqueItems: true", [0, 1, 1], "state.kept "),
        (MAP % "", [{"k0": 1}, {"k1": 2}, {"k2": "x"}], "state.kept.k2 "),
        (MAP % ", maxProperties: 2", [{"k1": 1}, {"k2": 1}], "state.kept "),
    ],
)
def test_what_does_not_fit_is_told_with_its_place_in_the_whole(key: str, items: list[Any], said: str) -> None:
    ended = ran(STEPS, TOP % key, given={"items": items})
    assert ended.error is not None
    assert ended.error["type"] == "invalid_output"
    assert f"state.kept does not meet its schema: {said}" in ended.error["message"]
