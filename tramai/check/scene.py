"""What every rule sees: the workflow, its steps by id, its fields with expressions, and places in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Any

import msgspec

from .._nodes import Lines
from ..attached import PromptFile
from ..definition import Opaque, Workflow
from ..document import Scalar
from ..errors import Pointer, Position, Problem, Related
from ..expression import Site, Template, Use, Value, suggest
from ..step import Block, Control, Finding, Node

PER_ITEM = frozenset({"key"})
"""Fields of a loop that are evaluated once per item, and so see the loop's own names."""
_MOST_SUGGESTIONS = 200


class Link(msgspec.Struct, frozen=True):
    """One level of nesting: the container, and which of its blocks."""

    container: Node
    block: Pointer
    """Where the block stands in the container: `("branch", "cases", "red")`, `("catch", 0, "do")`."""

    @property
    def caught(self) -> bool:
        """Whether it is the block of a `catch`: it runs after the container has failed."""
        return self.block[0] == "catch"


class Entry(msgspec.Struct, frozen=True):
    """A step with its place among the others: `order` counts in order of the file, `chain` starts outside.

    `area` is the part of the workflow it stands in: `("steps",)`, `("catch", 0)`, `("finally",)`. What reads at the
    beginning or the end of a block has an order between those of the steps.
    """

    node: Node
    order: float
    chain: tuple[Link, ...]
    area: Pointer = ("steps",)
    asks: bool = False
    """It is what the `verify` of a step asks, in the place of that step."""

    @property
    def opaque(self) -> bool:
        """Whether nothing is known of it but its id."""
        return isinstance(self.node.step, Opaque)


class Field(msgspec.Struct, frozen=True):
    """A field that holds expressions.

    `area` is the workflow's or the step's key it belongs to (`env`, `when`, `save`, the verb); `name` the field of
    the verb's settings, empty elsewhere. `entry` is the step, None for the workflow's own keys.
    """

    thing: Template | Value
    pointer: Pointer
    area: str
    name: str
    entry: Entry | None
    part: Pointer = ()
    """For the workflow's own keys: the part of the workflow whose end it is, as in `Entry.area`."""


class Read(msgspec.Struct, frozen=True):
    """One name that an expression reads; `at` leads to the text it stands in."""

    use: Use
    field: Field
    at: Pointer


class Scene:
    """A workflow laid out for the rules."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.document = workflow.document
        self.entries: list[Entry] = []
        self.asked: list[Entry] = []
        self.steps: dict[str, Entry] = {}
        self.hidden: set[str] = set()
        self.shapes: Any = None
        self._suggested: dict[str, str | None] = {}
        self._blamed: dict[Pointer, list[int]] = {}
        self._attached: dict[Pointer, PromptFile] = {}
        self._edges: dict[tuple[int, Pointer, bool], Entry] = {}
        for at, _, block in workflow.blocks():
            self._lay_out(block, (), at[:2])

    def _lay_out(self, block: Block, chain: tuple[Link, ...], area: Pointer) -> None:
        for node in block:
            entry = Entry(node, len(self.entries), chain, area)
            self.entries.append(entry)
            self.steps.setdefault(node.id, entry)
            if isinstance(node.verify, Node):
                self.asked.append(Entry(node.verify, entry.order, chain, area, asks=True))
            if isinstance(node.step, Opaque):
                self.hidden.update(node.step.ids)
            for at, _, inner in node.blocks():
                within = (*chain, Link(node, at))
                for after in (False, True):
                    self._edges[id(node), at, after] = Entry(node, len(self.entries) - 0.5, within, area)
                    if not after:
                        self._lay_out(inner, within, area)

    def edge(self, entry: Entry, block: Pointer, *, after: bool) -> Entry:
        """What reads at the beginning or at the end of a block of a step."""
        found = self._edges.get((id(entry.node), block, after))
        return found or Entry(entry.node, entry.order + 0.5, (*entry.chain, Link(entry.node, block)), entry.area)

    @cached_property
    def findings(self) -> tuple[tuple[Node, Finding], ...]:
        """What the verbs find wrong with their own settings."""
        return tuple((entry.node, finding) for entry in self.running for finding in entry.node.step.check())

    @cached_property
    def _places(self) -> dict[Pointer, Entry]:
        return {entry.node.at: entry for entry in self.entries}

    @cached_property
    def running(self) -> tuple[Entry, ...]:
        """Everything with settings of a verb: the steps, and what their `verify` asks."""
        return (*self.entries, *self.asked)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Every field with expressions, in order of the file."""
        return tuple(self._fields())

    @cached_property
    def sites(self) -> tuple[tuple[Field, Site, Pointer], ...]:
        """Every text with expressions, and where it stands in the file."""
        return tuple(
            (field, site, (*field.pointer, *site.pointer)) for field in self.fields for site in field.thing.sites()
        )

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every name that an expression reads."""
        return tuple(
            Read(use, field, at)
            for field, site, at in self.sites
            for expression in site.expressions
            for use in expression.names
        )

    def _fields(self) -> Iterator[Field]:
        for area in ("env", "outputs"):
            for name, thing in getattr(self.workflow, area).items():
                if thing is not None:
                    yield Field(thing, (area, name), area, "", None, ("steps",))
        if self.workflow.concurrency is not None:
            yield Field(self.workflow.concurrency.group, ("concurrency", "group"), "concurrency", "", None, ("steps",))
        for index, clause in enumerate(self.workflow.catch):
            for name, handler in (("when", clause.when), ("output", clause.output)):
                if handler is not None:
                    yield Field(handler, ("catch", index, name), "catch", name, None, ("catch", index))
        for entry in self.running:
            if not entry.opaque:
                yield from self._of_step(entry)

    def _of_step(self, entry: Entry) -> Iterator[Field]:
        node = entry.node
        if node.when is not None:
            yield Field(node.when, (*node.at, "when"), "when", "", entry)
        if node.output is not None:
            yield Field(node.output, (*node.at, "output"), "output", "", entry)
        for name, value in node.save.items():
            yield Field(value, (*node.at, "save", name), "save", "", entry)
        if isinstance(node.verify, Template):
            yield Field(node.verify, (*node.at, "verify"), "verify", "", entry)
        if node.retry is not None and node.retry.when is not None:
            yield Field(node.retry.when, (*node.at, "retry", "when"), "retry", "when", entry)
        for index, clause in enumerate(node.catch):
            for name, handler in (("when", clause.when), ("output", clause.output)):
                if handler is not None:
                    reader = self.edge(entry, ("catch", index, "do"), after=name == "output")
                    yield Field(handler, (*node.at, "catch", index, name), "catch", name, reader)
        at = (*node.at, node.verb)
        scalar = node.step.scalar if self._is_scalar(at) else None
        for pointer, file in node.step.attached():
            self._attached[*at, *pointer] = file
        closing = node.step.closing() if isinstance(node.step, Control) else {}
        for name, shown in fields_of(type(node.step), "tramai."):
            place = at if shown == scalar else (*at, shown)
            if shown in closing:
                entry = self.edge(entry, (node.verb, *closing[shown]), after=True)
            for pointer, thing in _things(getattr(node.step, name), place):
                yield Field(thing, pointer, node.verb, shown, entry)

    def _is_scalar(self, at: Pointer) -> bool:
        return self.document is not None and isinstance(self.document.node(at), Scalar)

    def setting(self, node: Node, pointer: Pointer) -> Pointer:
        """Where a setting of a verb stands in the file, whichever form was written."""
        at = (*node.at, node.verb)
        if pointer and pointer[0] == node.step.scalar and self._is_scalar(at):
            return at
        return (*at, *pointer)

    def place(self, pointer: Pointer, *, key: bool = False) -> Position | None:
        """The place of a value or of its key; None without a file."""
        if self.document is None:
            return None
        return self.document.position(self.origin(pointer), key=key)  # type: ignore[no-any-return]

    def _inside(self, pointer: Pointer, start: int, end: int) -> Position:
        """The place of some characters of a text, which may stand in a file of its own."""
        file = self._attached.get(pointer)
        if file is not None and file.prompt is not None:
            return Lines(file.where, file.prompt.text).position(start, end)
        assert self.document is not None
        found: Position = self.document.inside(pointer, start, end)
        return found

    def origin(self, pointer: Pointer) -> Pointer:
        """Where a setting is written: in the step, or among the `defaults` of its verb."""
        presets = self.workflow.defaults
        if not presets or self.document is None or self.document.node(pointer) is not None:
            return pointer
        for length in range(len(pointer) - 1, 0, -1):
            entry, rest = self._places.get(pointer[:length]), pointer[length:]
            if entry is None:
                continue
            preset = presets.get(entry.node.verb, {})
            if rest[0] == entry.node.verb and rest[1:2] and rest[1] in preset:
                return ("defaults", *rest)
            return ("defaults", entry.node.verb, *rest) if rest[0] in preset else pointer
        return pointer

    def problem(
        self,
        code: str,
        message: str,
        pointer: Pointer,
        *,
        hint: str | None = None,
        key: bool = False,
        range: tuple[int, int] | None = None,
        related: Iterable[tuple[Pointer, str]] = (),
        severity: str = "error",
        fix: tuple[dict[str, object], ...] | None = None,
    ) -> Problem:
        """A problem at a value, at its key, or at a `range` of characters inside it."""
        pointer = self.origin(pointer)
        position = self.place(pointer, key=key)
        if range is not None and self.document is not None:
            position = self._inside(pointer, *range)
        others = ((self.place(at), text) for at, text in related)
        return Problem(
            code=code,
            message=message,
            hint=hint,
            severity=severity,
            position=position,
            pointer=pointer,
            related=tuple(Related(at, text) for at, text in others if at is not None),
            fix=fix,
        )

    def blame(self, at: Pointer, start: int) -> None:
        """Remember that an expression has a problem already: what follows from it is not said as well."""
        self._blamed.setdefault(at, []).append(start)

    def is_blamed(self, at: Pointer, start: int, end: int) -> bool:
        """Whether a problem was found in a piece of a text."""
        found = self._blamed.get(at)
        return found is not None and any(start <= place < end for place in found)

    def suggest(self, name: str, names: Iterable[object]) -> str | None:
        """The nearest name, for a bounded number of questions: a file full of faults is answered as fast as another."""
        if name not in self._suggested and len(self._suggested) < _MOST_SUGGESTIONS:
            self._suggested[name] = suggest(name, names)
        return self._suggested.get(name)

    def did_you_mean(self, name: str, names: Iterable[object], *, prefix: str = "") -> str | None:
        """The hint for an unknown name."""
        near = self.suggest(name, names)
        return f"did you mean `{prefix}{near}`?" if near is not None else None


@cache
def fields_of(kind: type[msgspec.Struct], word: str) -> tuple[tuple[str, str], ...]:
    """Name, and name in a file, of the fields with a word in the spelling of their type: most fields need no look."""
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(kind) if word in repr(field.type))


def _things(value: Any, at: Pointer) -> Iterator[tuple[Pointer, Template | Value]]:
    """The expressions inside a setting; not those of the steps in its blocks."""
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return
    if isinstance(value, (Template, Value)):
        yield at, value
    elif isinstance(value, PromptFile):
        if value.prompt is not None:
            yield at, value.prompt
    elif kind is dict:
        for name, item in value.items():
            yield from _things(item, (*at, name))
    elif kind is tuple or kind is list:
        for index, item in enumerate(value):
            yield from _things(item, (*at, index))
    elif isinstance(value, msgspec.Struct):
        for name, shown in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            yield from _things(getattr(value, name), (*at, shown))
