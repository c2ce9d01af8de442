"""The reference of verbs and keys for people, out of the published schema: `schema step VERB`, `explain KEY`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import schema

if TYPE_CHECKING:
    from ._file_documents import KeyHelp, Reference
    from ._terminal import Terminal

Schema = dict[str, Any]
_WORDS = {"string": "text", "boolean": "true or false", "array": "list", "object": "mapping", "null": "null"}
_MOST = 8
"""Other places of a key that are named."""


def step(verb: str) -> Reference | None:
    """The reference of a verb, None when there is none of that name."""
    from .. import build

    return _help(f"steps[].{verb}", verb, _step()[verb]) if verb in build.verbs() else None


def plugin(name: str) -> Reference | None:
    """The reference of a step type that an installed package brings; PluginUnusable when it cannot be used."""
    from .. import guests
    from ..steps import _plugin_kind
    from . import _file_documents

    try:
        kind = _plugin_kind.load(name)
    except KeyError:
        return None
    top, definitions = guests.settings_schema(name, kind)
    settings = definitions[top]
    return _file_documents.Reference(
        name=name,
        path=f"steps[].plugin (use: {name})",
        description=settings.get("description"),
        type="mapping",
        keys=keys_of(settings),
        replay=str(kind.default_replay),
    )


def verbs() -> dict[str, str]:
    """Every verb and what it does."""
    from .. import build

    return {name: found.get("description", "") for name, found in _step().items() if name in build.verbs()}


def common() -> Reference:
    """The keys that any step may have."""
    from .. import build
    from . import _file_documents

    keys = [_key(name, found, name == "id") for name, found in _step().items() if name not in build.verbs()]
    return _file_documents.Reference(
        name="step",
        path="steps[]",
        description="One verb, and these keys around it. `tramai schema step VERB` shows the settings of a verb.",
        keys=keys,
    )


def key(asked: str) -> Reference | None:
    """The reference of a key: its name alone, or with what it stands in (`shell.parse`); None when there is none."""
    from msgspec.structs import replace

    names = [part.removesuffix("[]") for part in asked.strip().strip("`").split(".")]
    found = [(path, written) for path, written in _places() if path[-len(names) :] == names]
    found.sort(key=lambda one: len(one[0]))
    if not found:
        return None
    path, written = found[0]
    also = [_shown(other) for other, _ in found[1:]]
    return replace(_help(_shown(path), names[-1], written), also=also[:_MOST])


def names() -> list[str]:
    """Every key that can be asked for."""
    return sorted({path[-1] for path, _ in _places()})


def _root() -> Schema:
    return schema.workflow_schema()


def _step() -> Schema:
    found = _root()["definitions"]["step"]["properties"]
    assert isinstance(found, dict)
    return found


def _places() -> Iterator[tuple[list[str], Schema]]:
    """Every key of the language once, the shortest way to it; JSON Schema and `verify` have their own rules."""
    seen = {"JsonSchema", "verification"}
    waiting: list[tuple[list[str], Schema]] = [([], _root()), (["steps"], _root()["definitions"]["step"])]
    seen.add("step")
    while waiting:
        at, found = waiting.pop(0)
        for name, written in found.get("properties", {}).items():
            if name.startswith("$"):
                continue
            yield [*at, name], written
            for definition in _definitions(written):
                if definition not in seen:
                    seen.add(definition)
                    waiting.append(([*at, name], _root()["definitions"][definition]))


def _definitions(written: Any) -> Iterator[str]:
    """The definitions that a key's value, or what it holds, may have the form of."""
    if not isinstance(written, dict):
        return
    if "$ref" in written:
        yield written["$ref"].rpartition("/")[2]
    for part in (*written.get("allOf", ()), *written.get("anyOf", ())):
        yield from _definitions(part)
    yield from _definitions(written.get("additionalProperties"))
    yield from _definitions(written.get("items"))


def _shown(path: list[str]) -> str:
    return ".".join(f"{part}[]" if part == "steps" and number == 0 and len(path) > 1 else part
                    for number, part in enumerate(path))  # fmt: skip


def _help(path: str, name: str, written: Schema) -> Reference:
    from .. import build
    from . import _file_documents

    verb = build.verb_class(name) if name in build.verbs() and path == f"steps[].{name}" else None
    keys: list[KeyHelp] = []
    definitions = [one for one in _definitions(written) if one not in ("step", "JsonSchema", "verification")]
    for definition in definitions[:1]:
        keys = keys_of(_root()["definitions"][definition])
    return _file_documents.Reference(
        name=name,
        path=path,
        description=written.get("description"),
        short=verb.scalar if verb is not None else None,
        type=type_text(written),
        default=written.get("default"),
        examples=written.get("examples", []),
        keys=keys,
        replay=str(verb.default_replay) if verb is not None else None,
    )


def keys_of(settings: Schema) -> list[KeyHelp]:
    """The keys of a mapping that a schema describes."""
    needed = settings.get("required", ())
    return [_key(one, found, one in needed) for one, found in settings.get("properties", {}).items()]


def _key(name: str, written: Schema, required: bool) -> KeyHelp:
    from . import _file_documents

    return _file_documents.KeyHelp(
        key=name,
        type=type_text(written),
        required=required,
        default=written.get("default"),
        description=written.get("description"),
        examples=written.get("examples", []),
    )


def type_text(written: Any) -> str:
    """What a value may be, in words."""
    if not isinstance(written, dict):
        return "anything"
    if written.get("title") == "duration":
        return "duration"
    if "enum" in written:
        return "one of " + ", ".join(str(value) for value in written["enum"])
    if "$ref" in written:
        name = written["$ref"].rpartition("/")[2]
        return {"step": "step", "JsonSchema": "JSON Schema"}.get(str(name), "mapping")
    if "allOf" in written:
        return type_text(written["allOf"][0])
    if "anyOf" in written:
        return " or ".join(dict.fromkeys(map(type_text, written["anyOf"])))
    kinds = written.get("type", "anything")
    if kinds == "array":
        inner = type_text(written.get("items", {}))
        return "list" if inner == "anything" else f"list of {inner}"
    if isinstance(kinds, list):
        return "any data" if len(kinds) > 4 else " or ".join(_WORDS.get(str(kind), str(kind)) for kind in kinds)
    return _WORDS.get(str(kinds), str(kinds))


def lines(found: Reference, terminal: Terminal) -> Iterator[str]:
    """The reference as people read it."""
    yield f"{terminal.paint(found.path, 'bold')}  {found.description or ''}".rstrip()
    if found.type and not found.keys:
        yield f"  type: {found.type}"
    if found.default is not None:
        yield f"  default: {_value(found.default)}"
    if found.short:
        yield f"  short form: `{found.name}: …` sets `{found.short}`"
    if found.replay:
        yield f"  replay: {found.replay}, unless its settings or the step say otherwise"
    for example in found.examples:
        yield from _example(found.name, example)
    for one in found.keys:
        yield ""
        yield from _key_lines(one, terminal)
    if found.also:
        yield ""
        yield f"also: {', '.join(found.also)}"


def _key_lines(one: KeyHelp, terminal: Terminal) -> Iterator[str]:
    facts = [one.type, *(["required"] if one.required else [])]
    facts += [f"default {_value(one.default)}"] if one.default is not None else []
    yield f"{terminal.paint(one.key, 'bold')}  ({', '.join(facts)})"
    if one.description:
        yield f"  {one.description}"
    for example in one.examples[:1]:
        yield from _example(one.key, example)


def _example(name: str, value: Any) -> Iterator[str]:
    from ..formatting import pair

    for line in pair(name, value):
        yield f"    {line}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
