"""What is known of values before the run: from declared schemas, from verbs, and from expressions that make them."""

from __future__ import annotations

from typing import Any

import msgspec

from ..expression import Parsed, Template, Text, Use, Value
from ..step import Block, Catch, Control, Node
from . import algebra
from .algebra import ANY, LIST, NUMBER, TEXT, WHOLE, Schema
from .infer import Fault, Inference, Tree
from .scene import PER_ITEM, Entry, Field, Scene

_NO_FIELDS = {"string": "text", "number": "a number", "boolean": "a boolean", "null": "null"}
STATUS: Schema = {"type": "string", "enum": ["succeeded", "failed", "skipped", "recovered", "cancelled"]}
_RUN: Schema = {
    "type": "object",
    "properties": {**dict.fromkeys(("id", "workflow", "version"), TEXT), "attempt": WHOLE},
}
_LOOP: Schema = {"type": "object", "properties": dict.fromkeys(("index", "index0", "length"), WHOLE)}
_CLAIM: Schema = {"type": "object", "properties": {"number": WHOLE, "started": ANY}}


_ERROR: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("type", "message", "step", "path"), TEXT),
        **dict.fromkeys(("attempt", "exit_code", "status"), WHOLE),
    },
    "additionalProperties": True,
}
_OF_ERROR = ("type", "message", "step", "path", "attempt", "exit_code", "status", "body", "output", "signal", "hint")
_ERROR_HABITS = dict.fromkeys(("msg", "text", "reason", "description", "detail", "details"), "message")
_ERROR_HABITS |= dict.fromkeys(("kind", "name", "class", "exception"), "type") | {"code": "exit_code"}
_ERROR_HABITS |= {"status_code": "status", "statusCode": "status", "stderr": "output", "stdout": "output"}


class Shapes:
    """Schemas of what names, settings and steps give."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._entries = {id(entry.node): entry for entry in scene.running}
        self._outputs: dict[int, Schema] = {}
        self._items: dict[int, Schema] = {}
        self._inputs: Schema | None = None
        self._state: Schema | None = None

    # What verbs ask while they say their own shape.

    def value(self, source: Value | Template, field: Field | None = None) -> Schema:
        """The shape of what a setting is evaluated to."""
        if isinstance(source, Text):
            return TEXT
        sites = {site.pointer: site for site in source.sites()}
        if isinstance(source, Template):
            site = sites.get(())
            return self.expression(site.expressions[0], field)[0] if site is not None and source.sole else TEXT
        if not sites:
            return algebra.of_data(source.data)

        def walk(data: Any, at: tuple[str | int, ...]) -> Schema:
            if isinstance(data, dict):
                return {"type": "object", "properties": {key: walk(item, (*at, key)) for key, item in data.items()}}
            if isinstance(data, list):
                parts = [walk(item, (*at, index)) for index, item in enumerate(data)]
                return {"type": "array", "items": algebra.union(*parts)} if parts else LIST
            site = sites.get(at)
            if site is None:
                return algebra.of_data(data)
            first = site.expressions[0]
            whole = first.start == 0 and first.end == len(site.text)
            return self.expression(first, field)[0] if whole else TEXT

        return walk(source.data, ())

    def block(self, block: Block) -> Schema:
        """`{id: output}` of a block."""
        return {"type": "object", "properties": {node.id: self.output(node) for node in block if node.id}}

    # Steps.

    def output(self, node: Node) -> Schema:
        """The shape of a step's output."""
        found = self._outputs.get(id(node))
        if found is None:
            self._outputs[id(node)] = ANY  # a step that leads to itself is refused elsewhere
            found = self._outputs[id(node)] = self._output(node)
        return found

    def _output(self, node: Node) -> Schema:
        entry = self._entries.get(id(node))
        if node.schema is not None:
            return node.schema
        if entry is None or entry.opaque:
            return ANY
        if node.output is not None:
            own = self.value(node.output, Field(node.output, (), "output", "", entry))
        else:
            own = self.own(entry)
        return algebra.union(own, *(self._caught(clause, entry) for clause in node.catch)) if node.catch else own

    def own(self, entry: Entry) -> Schema:
        """The shape of what a verb gives by itself."""
        return self._called(entry.node, entry.node.step.shape(_Known(self, entry)) or ANY)

    def _called(self, node: Node, own: Schema) -> Schema:
        """With what is known of the outputs of a called workflow."""
        workflow = next((target.workflow for _, target in node.step.called()), None)
        if node.verb != "call" or workflow is None or "properties" not in own:
            return own
        inner = Shapes(Scene(workflow))
        given = {name: value for name, value in workflow.outputs.items() if value is not None}
        found = {name: inner.value(value, Field(value, (), "outputs", "", None)) for name, value in given.items()}
        return {**own, "properties": {**own["properties"], **found}}

    def _caught(self, clause: Catch, entry: Entry) -> Schema:
        """What a clause gives in place of the output of a failed step."""
        if clause.output is not None:
            return self.value(clause.output, Field(clause.output, (), "catch", "output", entry))
        return self.block(clause.do) if clause.do is not None else {"type": "null"}

    def record(self, node: Node) -> Schema:
        """The shape of a step's `result`."""
        entry = self._entries.get(id(node))
        return ANY if entry is None or entry.opaque else node.step.record(_Known(self, entry)) or ANY

    # Names.

    def expression(self, parsed: Parsed, field: Field | None) -> tuple[Schema, list[Fault]]:
        """The shape of an expression's value, and what in it cannot work."""
        starts = {use.start for use in parsed.names}

        def name(tree: Tree) -> Schema:
            return self._name(tree, field) if tree[1] in starts else ANY

        found = Inference(name, self.scene.did_you_mean)
        return found.of(parsed.tree), found.faults

    def _name(self, tree: Tree, field: Field | None) -> Schema:
        if tree[0] == "get":
            entry = self.scene.steps.get(str(tree[4]))
            return self._step(entry) if entry is not None else ANY
        return self.root(tree[3], field)

    def _step(self, entry: Entry) -> Schema:
        parts = {"output": self.output(entry.node), "status": STATUS, "attempts": WHOLE, "duration": NUMBER}
        return {"type": "object", "properties": {**parts, "error": {"anyOf": [_ERROR, {"type": "null"}]}}}

    def root(self, name: str, field: Field | None) -> Schema:
        """The shape of a name that is no path yet."""
        entry = field.entry if field is not None else None
        item = self._item(name, field) if field is not None and entry is not None else None
        if item is not None:
            return item
        if name == "inputs":
            return self._declared_inputs()
        if name == "state":
            return self._declared_state()
        if name in ("env", "secrets"):
            return {"type": "object", "additionalProperties": TEXT}
        if name == "run":
            return _RUN
        if name == "attempt" and entry is not None:
            return _CLAIM
        if name == "error":
            return _ERROR
        if name == "result" and entry is not None and field is not None and field.area in ("output", "save"):
            return self.record(entry.node)
        if name == "result" and field is not None:
            return early(field) or ANY
        return ANY

    def _item(self, name: str, field: Field) -> Schema | None:
        """The shape of a loop's own name."""
        entry = field.entry
        assert entry is not None
        around = [link.container for link in entry.chain if not link.caught]
        if field.area == entry.node.verb and field.name in PER_ITEM:
            around.append(entry.node)
        for node in reversed(around):
            binds = node.step.binds() if isinstance(node.step, Control) else ()
            if name not in binds:
                continue
            if name == "loop":
                return _LOOP
            items, owner = getattr(node.step, "items", None), self._entries.get(id(node))
            if isinstance(items, Value) and name == binds[0] and owner is not None:
                return self._one_of(node, items, owner)
            return ANY
        return None

    def _one_of(self, node: Node, items: Value, owner: Entry) -> Schema:
        """The shape of an item of a list, found once for all who read it."""
        found = self._items.get(id(node))
        if found is None:
            self._items[id(node)] = ANY
            listed = self.value(items, Field(items, (*node.at, node.verb, "items"), node.verb, "items", owner))
            found = algebra.item(listed) if algebra.kinds(listed) == {"array"} else ANY
            self._items[id(node)] = found
        return found

    def _declared_inputs(self) -> Schema:
        if self._inputs is None:
            specs = self.scene.workflow.inputs
            found = {name: msgspec.to_builtins(spec) if spec is not None else ANY for name, spec in specs.items()}
            self._inputs = {"type": "object", "properties": found}
        return self._inputs

    def _declared_state(self) -> Schema:
        if self._state is None:
            specs = self.scene.workflow.state
            found = {name: (spec.schema if spec is not None else None) or ANY for name, spec in specs.items()}
            self._state = {"type": "object", "properties": found}
        return self._state

    # Fields along a path.

    def undeclared(self, use: Use, field: Field) -> tuple[str, str | None] | None:
        """Message and hint when a use reads what its schema does not have."""
        root, path = str(use.path[0]), use.path
        if root in ("env", "secrets", "run"):
            return None
        if field.entry is not None and self._item(root, field) is not None:
            return None if root == "loop" else self._walk(self.root(root, field), path[1:], f"`{root}`")
        if root == "steps" and len(path) > 3 and path[2] == "output":
            entry = self.scene.steps.get(str(path[1]))
            subject = f"the output of step `{path[1]}`"
            return self._walk(self.output(entry.node), path[3:], subject) if entry is not None else None
        if root in ("inputs", "state") and len(path) > 2:
            schema = algebra.member(self.root(root, field), path[1])
            subject = f"input `{path[1]}`" if root == "inputs" else f"state `{path[1]}`"
            return self._walk(schema, path[2:], subject)
        if root == "error" or (root == "steps" and path[2:3] == ("error",)):
            return self._of_error(path[1:] if root == "error" else path[3:], field)
        if root == "result":
            return self._walk(self.root(root, field), path[1:], "`result`")
        return None

    def _of_error(self, rest: tuple[str | int, ...], field: Field) -> tuple[str, str | None] | None:
        """A part of an `error` that there hardly is: what other languages call it, or a misspelling."""
        name = str(rest[0]) if rest else "type"
        if name in _OF_ERROR or any(getattr(entry.node.step, "call", None) for entry in self.scene.entries):
            return None  # a function may put anything into its error
        meant = _ERROR_HABITS.get(name)
        hint = f"did you mean `{meant}`?" if meant else self.scene.did_you_mean(name, _OF_ERROR)
        return (f"an error has no `{name}`", hint) if hint is not None else None

    def _walk(self, schema: Schema, rest: tuple[str | int, ...], subject: str) -> tuple[str, str | None] | None:
        for part in rest:
            found = algebra.kinds(schema)
            if isinstance(part, str) and found == {"array"}:
                hint = _filtered(part) or "take one item, such as [0], or use map(…)"
                return f"{subject} is a list here: it has no `{part}`", hint
            simple = len(found) == 1 and next(iter(found)) in _NO_FIELDS
            if simple and not (isinstance(part, int) and found == {"string"}):
                itself = f"it is the {algebra.spell(found).split()[-1]} itself" if part in _ITSELF else None
                return f"{subject} is {algebra.spell(found)} here: it has no `{part}`", itself or _filtered(part)
            mapping = "object" in found and found <= {"object", "null"}
            known = algebra.keys(schema) if isinstance(part, str) and mapping else None
            if known is not None and part not in known:
                hint = self.scene.did_you_mean(str(part), known) or f"declared: {', '.join(known) or 'nothing'}"
                return f"{subject} declares no `{part}`", hint
            schema = algebra.member(schema, part)
        return None


_ITSELF = frozenset(("text", "content", "value", "output", "result", "data", "answer", "response"))


def _filtered(part: str | int) -> str | None:
    """The filter that is meant by what looks like a field."""
    from ..expression.filters import FILTERS

    name = {"size": "length", "len": "length"}.get(str(part), str(part))
    return f"data has no methods: write `… | {name}`" if name in FILTERS else None


def early(field: Field) -> Schema | None:
    """The shape of the `result` that a field of a verb sees before the step is over; None where it sees none."""
    if field.entry is None or field.area != field.entry.node.verb:
        return None
    return field.entry.node.step.sees.get(field.name)


class _Known:
    """What a verb may ask while it says its shape: the values of its own settings, and its blocks."""

    def __init__(self, shapes: Shapes, entry: Entry) -> None:
        self._shapes = shapes
        self._entry = entry
        self.block = shapes.block

    def value(self, source: Value | Template) -> Schema:
        """The shape of what a setting is evaluated to."""
        return self._shapes.value(source, Field(source, (), self._entry.node.verb, "", self._entry))


def known(scene: Scene) -> Shapes:
    """The shapes of a scene, found once."""
    if scene.shapes is None:
        scene.shapes = Shapes(scene)
    found: Shapes = scene.shapes
    return found
