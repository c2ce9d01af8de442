"""The schema of a workflow file in which steps of other packages stand: ours, with what those say of their settings."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

from . import schema
from ._nodes import Mapping, Node, Scalar
from .document import Document
from .errors import PluginUnusable
from .schema import Schema
from .step import Step

VERB = "plugin"


def schema_of(source: Document) -> Schema:
    """The published schema where no plugin is used; else one that knows the settings of those that are installed."""
    names = _used(source)
    return _extended(names, tuple(sys.path)) if names else schema.workflow_schema()


def settings_schema(name: str, kind: type[Step]) -> tuple[str, dict[str, Schema]]:
    """The schema of the `with` of a plugin: the name of its definition, and all definitions that it needs."""
    from . import contract
    from ._strict import receive
    from .steps._plugin_kind import described

    found = described(kind)
    definitions = {key: dict(made) for key, made in found.definitions.items()}
    properties = definitions[found.top]["properties"] = dict(definitions[found.top]["properties"])
    contract.fill(kind, properties)
    definitions[found.top]["title"] = f"with of {name}"
    names = {old: f"{name}.{old}" for old in definitions}
    made = {names[old]: _renamed(definition, names) for old, definition in definitions.items()}
    receive({struct: names[old] for struct, old in found.structs.items()}, made)
    return names[found.top], made


def _used(source: Document) -> tuple[str, ...]:
    """The names after `use` in the file, wherever something looks like a plugin step."""
    if source.root is None or VERB not in source.text:
        return ()
    found: set[str] = set()
    seen: set[int] = set()
    waiting: list[Node] = [source.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar) or id(node) in seen:
            continue
        seen.add(id(node))
        if not isinstance(node, Mapping):
            waiting.extend(node.items)
            continue
        waiting.extend(node.values.values())
        settings = node.values.get(VERB)
        use = settings.values.get("use") if isinstance(settings, Mapping) else None
        if isinstance(use, Scalar):
            found.add(use.text if use.value is None else str(use.value))
    return tuple(sorted(found))


@lru_cache(maxsize=64)
def _extended(names: tuple[str, ...], path: tuple[str, ...]) -> Schema:
    """`path`: where packages are looked for; see `kinds.added`."""
    from .steps._plugin_kind import load

    whole = schema.workflow_schema()
    added: dict[str, Schema] = {}
    cases = []
    for name in names:
        try:
            top, made = settings_schema(name, load(name))
        except (KeyError, PluginUnusable):
            continue  # the step says so itself
        added.update(made)
        then: Schema = {"properties": {"with": {"$ref": f"#/definitions/{top}"}}}
        if made[top].get("required"):
            then["required"] = ["with"]
        cases.append({"if": {"properties": {"use": {"const": name}}, "required": ["use"]}, "then": then})
    if not cases:
        return whole
    ours = whole["definitions"]
    plugin = {**ours["Plugin"], "allOf": cases}
    return {**whole, "definitions": {**ours, "Plugin": plugin, **added}}


_REFERENCE = re.compile(r"#/definitions/(.+)")


def _renamed(made: Any, names: dict[str, str]) -> Any:
    """The same schema, with its references going to the new names of definitions."""
    if isinstance(made, dict):
        return {
            key: f"#/definitions/{names[found[1]]}"
            if key == "$ref" and isinstance(value, str) and (found := _REFERENCE.fullmatch(value)) and found[1] in names
            else _renamed(value, names)
            for key, value in made.items()
        }
    if isinstance(made, list):
        return [_renamed(item, names) for item in made]
    return made
