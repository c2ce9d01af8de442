"""What `parallel` and `foreach` share: the list, its keys and the names an item sees."""

from __future__ import annotations

from typing import Any

from ..codec import Json
from ..expression import Expression, Value
from ..running import Job, Walk
from ..step import Block, Control, Finding, StepError

LONGEST_KEY = 500
"""Characters. It stands in the path of all that is recorded of an item, and no store takes paths of any length."""


def empty(verb: Control) -> tuple[Finding, ...]:
    """A finding for each block without steps."""
    return tuple(
        Finding(at, "TRM346", f"`{label}` has no steps", "add a step, or remove it")
        for at, label, block in verb.blocks()
        if not block.nodes
    )


def outcome(block: dict[str, Any], collect: bool) -> dict[str, Any]:
    """The shape of one result: the outputs of the block, or with `collect` an error in their place."""
    return {**block, "properties": {**block["properties"], "error": {}}} if collect else block


async def jobs(walk: Walk, items: Value, name: str, key: Expression | None, block: Block) -> list[Job]:
    """Evaluate the list once (journaled) and give every item its identity: `key`, or its index."""
    found: list[Json] = await walk.once(lambda: _list(walk.value(items)))
    made, seen = [], set()
    for index, item in enumerate(found):
        names = {name: item, "loop": {"index": index + 1, "index0": index, "length": len(found)}}
        text = str(index) if key is None else _key(walk, key, names, index)
        if text in seen:
            raise StepError("expression", f"two items have the key '{text}'", hint="make `key` different for each item")
        seen.add(text)
        made.append(Job(text, block, names))
    return made


def _list(value: Any) -> list[Json]:
    if not isinstance(value, list):
        raise StepError("expression", f"`items` expected a list, got {kind(value)}")
    return value


def _key(walk: Walk, key: Expression, names: dict[str, Any], index: int) -> str:
    value = walk.value_with(key, names)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise StepError("expression", f"the key of item {index} must be text or a whole number, got {kind(value)}")
    if len(text := str(value)) > LONGEST_KEY:
        hint = "a name is enough; of a long text take `| sha256`"
        raise StepError("expression", f"the key of item {index} has more than {LONGEST_KEY} characters", hint=hint)
    return text


def kind(value: object) -> str:
    """The JSON name of a value's type, with an article."""
    if isinstance(value, bool):
        return "a boolean"
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), type(value).__name__)
