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
        else:
            meet(reduced(name, spec.reduce, old, value), spec.schema, f"state.{name}")
    return output, saves


def meet(value: Json, schema: dict[str, Any], what: str) -> None:
    """Fail the step when a value does not meet the schema declared for it."""
    from .schema import schema_problems

    problems = schema_problems(value, schema)
    if problems:
        where, why = problems[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        raise StepError("invalid_output", f"{what} does not meet its schema: {what}{place} {why}")
