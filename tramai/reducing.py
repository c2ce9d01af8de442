"""How a saved value meets what is there: the `reduce` of a state key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .codec import Json
from .definition import StateSpec
from .step import StepError

KINDS: dict[str, type | tuple[type, ...]] = {"append": list, "merge": dict, "sum": (int, float)}
"""What the value of a key must be so that it can be reduced."""


def reducers(state: Mapping[str, StateSpec]) -> dict[str, str]:
    """The keys that are not simply replaced."""
    return {name: spec.reduce for name, spec in state.items() if spec.reduce is not None and spec.reduce != "last"}


def reduced(name: str, kind: str | None, old: Any, new: Json) -> Any:
    """The value after a save; StepError where the two do not go together.

    `append` adds one element to a list, `merge` the keys of a map to a map (not deeper), `sum` a number to a number.
    """
    agree(name, kind, old, new)
    if kind is None or kind == "last":
        return new
    if kind == "append":
        return [*old, new]
    return {**old, **new} if isinstance(new, dict) else old + new


def agree(name: str, kind: str | None, old: Any, new: Json) -> None:
    """StepError where a value cannot be saved to what is there."""
    if kind is None or kind == "last":
        return
    wanted = {"append": "a list", "merge": "a map", "sum": "a number"}[kind]
    if not fits(kind, old):
        raise StepError("invalid_output", f"state.{name} is not {wanted}, so nothing can be saved to it with `{kind}`")
    if kind != "append" and not fits(kind, new):
        raise StepError("invalid_output", f"what is saved to state.{name} is not {wanted}, which `{kind}` needs")


def fold(state: dict[str, Any], saves: Mapping[str, Json], kinds: Mapping[str, str]) -> None:
    """Take in what a record saved. Values are replaced, never changed: expressions may have handed them on."""
    for name, value in saves.items():
        state[name] = reduced(name, kinds.get(name), state.get(name), value)


def fits(kind: str, value: Any) -> bool:
    """Whether a value is of the kind that a `reduce` works on."""
    return isinstance(value, KINDS[kind]) and not (kind == "sum" and isinstance(value, bool))
