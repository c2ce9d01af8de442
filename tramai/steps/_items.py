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
    found: Any = await walk.once(lambda: _listed(walk, items, name, key))
    keys: list[str] | None = None
    if isinstance(found, dict):
        found, keys = found["items"], found["keys"]
    elif key is not None:
        keys = _keys(walk, found, name, key)
    every = [str(index) for index in range(len(found))] if keys is None else keys
    return [Job(text, block, _names(name, found, index)) for index, text in enumerate(every)]


def _listed(walk: Walk, items: Value, name: str, key: Expression | None) -> Json:
    """The list, and with it the keys that it may not have later: those that are made of the state."""
    found = _list(walk.value(items))
    if key is None or not any(
        use.path[0] == "state" for site in key.sites() for one in site.expressions for use in one.names
    ):
        return found
    return {"items": found, "keys": list[Json](_keys(walk, found, name, key))}


def _keys(walk: Walk, found: list[Json], name: str, key: Expression) -> list[str]:
    made: dict[str, None] = {}
    for index in range(len(found)):
        text = _key(walk, key, _names(name, found, index), index)
        if text in made:
            raise StepError("expression", f"two items have the key '{text}'", hint="make `key` different for each item")
        made[text] = None
    return list(made)


def _names(name: str, found: list[Json], index: int) -> dict[str, Any]:
    """What an item sees."""
    return {name: found[index], "loop": {"index": index + 1, "index0": index, "length": len(found)}}


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
