"""From a step's full record to what is kept of it: its output, and the state it saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .codec import Json
from .definition import StateSpec
from .expression import evaluate
from .reducing import agree, reduced
from .step import Node, StepError


def finish(
    node: Node, result: Any, scope: Mapping[str, Any], state: Mapping[str, StateSpec]
) -> tuple[Json, dict[str, Json]]:
    """Reshape a step's full record: its output (`output`, checked by `schema`) and the state it saves."""
    if node.output is None:
        output = node.step.output(result)
    else:
        output = evaluate(node.output, {**scope, "result": result})
    if node.schema is not None:
        meet(output, node.schema, "output")
    if not node.save:
        return output, {}
    names = {**scope, "result": result}
    saves = {name: evaluate(value, names) for name, value in node.save.items()}
    for name, value in saves.items():
        spec = state.get(name)
        if spec is None:
            continue
        old = scope["state"].get(name)
        if spec.schema is None:
            agree(name, spec.reduce, old, value)
        elif not _grows(name, spec, old, value):
            meet(reduced(name, spec.reduce, old, value), spec.schema, f"state.{name}")
    return output, saves


_OF_ITEMS = frozenset(("type", "items", "title", "description", "default", "examples", "$comment"))
_OF_KEYS = (_OF_ITEMS - {"items"}) | {"properties", "patternProperties", "additionalProperties", "required"}
"""Keywords that say something of each item, or of each key, by itself; and that none may be missing."""


def _grows(name: str, spec: StateSpec, old: Any, new: Json) -> bool:
    """Whether something is added to what met the schema when it was saved, and meets it too.

    Then nothing but that is looked at: else ten thousand items cost fifty million looks.
    """
    schema, known = spec.schema or {}, {"append": _OF_ITEMS, "merge": _OF_KEYS}.get(spec.reduce or "", frozenset())
    if not schema.keys() <= known or not isinstance(spec.initial, list | dict):
        return False
    agree(name, spec.reduce, old, new)
    if len(old) <= len(spec.initial):
        return False  # nothing was added yet: what it began with is looked at once
    from .schema import schema_problems

    part = {key: value for key, value in schema.items() if key != "required"}
    return not schema_problems([new] if spec.reduce == "append" else new, part)


def meet(value: Json, schema: dict[str, Any], what: str) -> None:
    """Fail the step when a value does not meet the schema declared for it."""
    from .schema import schema_problems

    problems = schema_problems(value, schema)
    if problems:
        where, why = problems[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        raise StepError("invalid_output", f"{what} does not meet its schema: {what}{place} {why}")
