"""Values and what is done with them: operations that cannot work, settings that cannot take what they are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..definition import declared
from ..errors import Pointer, Problem
from ..expression import Condition, Parsed, Template, Text, Value
from . import algebra, foreign, shapes
from .algebra import Schema
from .infer import Fault, is_path
from .scene import Field, Scene

_NATIVE: dict[tuple[str, str], tuple[frozenset[str], str]] = {
    ("foreach", "items"): (frozenset(("array",)), "a list"),
    ("parallel", "items"): (frozenset(("array",)), "a list"),
    ("branch", "select"): (frozenset(("string", "number", "boolean", "null")), "text, a whole number or a boolean"),
    ("foreach", "key"): (frozenset(("string", "number")), "text or a whole number"),
    ("parallel", "key"): (frozenset(("string", "number")), "text or a whole number"),
    ("delay", "for"): (frozenset(("string",)), "text such as 90s"),
    ("delay", "until"): (frozenset(("string",)), "text such as 2027-01-31T08:00:00Z"),
    ("gate", "ask"): (frozenset(("string", "number", "object", "array", "null")), "a question to people"),
    ("http", "allow_private"): (frozenset(("boolean",)), "true or false"),
}
"""The kinds that a setting takes, and these in words."""
_JUDGED = frozenset(("save", "output"))
"""Keys with a schema to meet."""


def fit(scene: Scene) -> Iterator[Problem]:
    """Every operation in an expression can work, and every setting can take what it is given."""
    known = shapes.known(scene)
    for field, site, at in scene.sites:
        for parsed in site.expressions:
            if _is_plain(parsed, field) or scene.is_blamed(at, parsed.start, parsed.end):
                continue
            shape, faults = known.expression(parsed, field)
            faults = faults or list(_used(scene, field, site.text, site.pointer, parsed, shape))
            if faults:
                yield from _told(scene, at, faults)


def _told(scene: Scene, at: Pointer, faults: list[Fault]) -> Iterator[Problem]:
    for fault in dict.fromkeys(faults):
        scene.blame(at, fault.start)
        yield scene.problem(fault.code, fault.message, at, hint=fault.hint, range=(fault.start, fault.end))


def _is_plain(parsed: Parsed, field: Field) -> bool:
    """Whether this is a path in a place that takes any value: there is nothing to judge."""
    if isinstance(field.thing, Condition) or not is_path(parsed.tree):
        return False
    return isinstance(field.thing, Text) or ((field.area, field.name) not in _NATIVE and field.area not in _JUDGED)


def _used(scene: Scene, field: Field, text: str, inside: Pointer, parsed: Parsed, shape: Schema) -> Iterator[Fault]:
    """What the field makes of the expression's value."""
    found = algebra.kinds(shape)
    start, end = parsed.tree[1], parsed.tree[2]
    whole = text[: parsed.start].strip() == "" and text[parsed.end :].strip() == ""
    if isinstance(field.thing, Condition):
        if "boolean" not in found:
            what = f"a condition must be true or false; this is always {algebra.spell(found)}"
            yield Fault("TRM212", what, start, end, "compare it with something")
        return
    if found == {"null"} and (isinstance(field.thing, Text) or not whole):
        yield Fault("TRM243", "null is no text", start, end, "give another value with default(…)")
        return
    if not whole or inside:
        return
    wanted = _NATIVE.get((field.area, field.name))
    if wanted is not None and not found & wanted[0]:
        what = f"`{field.name}` needs {wanted[1]}; this is always {algebra.spell(found)}"
        yield Fault("TRM243", what, start, end, _mended(field.name, found))
    elif field.area == "save" and (spec := declared(scene.workflow.state).get(str(field.pointer[-1]))) is not None:
        taken = _ADDED.get(spec.reduce or "last", spec.schema)
        yield from _declared(found, taken, f"state key `{field.pointer[-1]}`", start, end)
    elif field.area == "output" and field.entry is not None:
        yield from _declared(found, field.entry.node.schema, "the `schema` of the step", start, end)


_ADDED: dict[str, Schema | None] = {"append": None, "merge": algebra.MAP, "sum": algebra.NUMBER}
"""What `save` may give a key that puts values together; its schema is about what comes of that."""


def _declared(found: frozenset[str], schema: Any, what: str, start: int, end: int) -> Iterator[Fault]:
    wanted = algebra.kinds(schema)
    if schema is not None and wanted and not found & wanted:
        told = f"{what} takes {algebra.spell(wanted)}; this is always {algebra.spell(found)}"
        yield Fault("TRM243", told, start, end, "change the value or the schema")


def _mended(name: str, found: frozenset[str]) -> str | None:
    if name == "items":
        if found == {"string"}:
            return "make a list of text with `| split(…)`, `| lines` or `| fromjson`"
        return "go over a mapping by `| items`, `| keys` or `| values`" if found == {"object"} else None
    if name == "ask":
        return "a condition is `check`"
    if name == "for" and found == {"number"}:
        return "say the unit: ${{ … }}s"
    return None


def settings(scene: Scene) -> Iterator[Problem]:
    """Data that is written where a list is wanted is one; a pause with a number in it can be read."""
    for entry in scene.running:
        node = entry.node
        items = getattr(node.step, "items", None)
        if isinstance(items, Value) and items.constant and not isinstance(items.data, list):
            what = f"`items` needs a list, not {algebra.spell({algebra.kind(items.data)})}"
            at = (*node.at, node.verb, "items")
            bare = isinstance(items.data, str) and foreign.is_bare(scene, items.data)
            hint = f"write ${{{{ {items.data} }}}}" if bare else "write items: [a, b], or an expression for a list"
            yield scene.problem("TRM243", what, at, hint=hint)
        if node.schema is not None and node.output is None and not entry.opaque:
            yield from _own(scene, entry)
        pause = getattr(node.step, "for_", None)
        if node.verb == "delay" and isinstance(pause, Template):
            yield from _pause(scene, pause, scene.setting(node, ("for",)), entry)


def _own(scene: Scene, entry: Any) -> Iterator[Problem]:
    """The `schema` of a step takes what the verb gives by itself, as far as its type is known."""
    node = entry.node
    found = algebra.kinds(shapes.known(scene).own(entry))
    wanted = algebra.kinds(node.schema)
    if wanted and not found & wanted:
        what = f"the `schema` of `{node.id}` takes {algebra.spell(wanted)}; the output is always {algebra.spell(found)}"
        hint = "change the schema, or give the step an `output`"
        yield scene.problem("TRM243", what, (*node.at, "schema"), hint=hint)


def _pause(scene: Scene, pause: Template, at: Pointer, entry: Any) -> Iterator[Problem]:
    """`${{ inputs.n }} minutes`: with any whole number in it, it is no duration."""
    from .. import duration

    sites = list(pause.sites())
    if not sites or pause.sole:
        return
    text, shifted = sites[0].text, 0
    field = Field(pause, at, "delay", "for", entry)
    for parsed in sites[0].expressions:
        shape, faults = shapes.known(scene).expression(parsed, field)
        if faults or algebra.kinds(shape) != {"number"}:
            return
        text = text[: parsed.start + shifted] + "1" + text[parsed.end + shifted :]
        shifted += 1 - (parsed.end - parsed.start)
    try:
        duration.parse(text)
    except ValueError as error:
        shown = pause.text if len(pause.text) <= 60 else pause.text[:59] + "…"
        yield scene.problem("TRM124", f"`{shown}` is no duration", at, hint=str(error))
