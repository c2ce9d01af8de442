"""A workflow as Structs, and the way there from plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec

from . import duration, expression, kinds
from .duration import Duration
from .errors import Pointer
from .expression import Condition, Template, Value
from .inputs import InputSpec
from .step import Block, Control, Node, Replay, Retry, Step

if TYPE_CHECKING:
    from .document import Document

T = TypeVar("T")
Meta = msgspec.Meta

ID = r"^[a-z][a-z0-9_]*$"
NAME = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+$"


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run is stopped, counted over all its attempts and resumes."""

    max_step_executions: Annotated[int, Meta(ge=1, description="How many steps may start, retries included.")] = 1000
    max_parallel_branches: Annotated[int, Meta(ge=1, description="How many branches or items run at once.")] = 16
    timeout: Annotated[
        Duration | None, Meta(description="Running time of the whole run; sleeping and waiting do not count.")
    ] = None


class SecretSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a secret's value comes from: exactly one place."""

    env: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description="An environment variable.")] = None
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="A file; its last line break is not part of it.")
    ] = None


class StateSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value that steps may replace with `save`."""

    initial: Annotated[Any, Meta(description="The value before any step has saved one.")]
    schema: Annotated[dict[str, Any] | None, Meta(description="A JSON Schema that every value must meet.")] = None


class Common(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that any step may have beside its verb."""

    id: Annotated[
        str,
        Meta(
            pattern=ID,
            max_length=100,
            description="The step's name, unique in the file: lower-case letters, digits, `_`.",
        ),
    ]
    description: Annotated[str | None, Meta(description="For people.")] = None
    when: Annotated[Condition | None, Meta(description="The step is skipped unless this is true.")] = None
    retry: Annotated[Retry | None, Meta(description="What happens when an attempt fails.")] = None
    timeout: Annotated[Duration | None, Meta(description="How long one attempt may take.")] = None
    output: Annotated[Value | None, Meta(description="Reshapes `result` into the step's output.")] = None
    schema: Annotated[dict[str, Any] | None, Meta(description="A JSON Schema that the output must meet.")] = None
    save: Annotated[dict[str, Value], Meta(description="Writes declared state, together with the step's end.")] = {}
    replay: Annotated[
        Replay | None, Meta(description="What may be done with an attempt that started and whose end was not seen.")
    ] = None


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """A whole definition. `document` is the file it was read from, None when it was rebuilt from a store."""

    tramai: Annotated[Literal[1], Meta(description="The version of this language.")] = 1
    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=NAME, description="What people call it.")]
    version: Annotated[str, Meta(min_length=1, max_length=100, description="The author's version of it.")] = "1"
    description: Annotated[str | None, Meta(description="For people.")] = None
    inputs: Annotated[dict[str, InputSpec], Meta(description="What a run is given.")] = {}
    secrets: Annotated[dict[str, SecretSource], Meta(description="Values that are never shown or stored.")] = {}
    env: Annotated[dict[str, Template], Meta(description="Environment of every child process.")] = {}
    limits: Annotated[Limits, Meta(description="When a run is stopped.")] = Limits()
    state: Annotated[dict[str, StateSpec], Meta(description="Values that steps share and replace.")] = {}
    steps: Annotated[Block, Meta(description="What is done, in order.")]
    outputs: Annotated[dict[str, Value], Meta(description="What a completed run gives.")] = {}
    document: Any = None

    @property
    def file(self) -> str | None:
        """The file it was read from."""
        return self.document.file if self.document is not None else None


class Opaque(Step, frozen=True, kw_only=True):
    """Stands for a step that could not be built: its id is known, nothing else is looked at."""

    ids: tuple[str, ...] = ()


SECTIONS: dict[str, Any] = {
    "inputs": InputSpec,
    "secrets": SecretSource,
    "env": Template,
    "state": StateSpec,
    "outputs": Value,
}
COMMON = frozenset(Common.__struct_encode_fields__)
TOP = frozenset(Workflow.__struct_encode_fields__) - {"document"}


class Unbuildable(ValueError):
    """Plain data that is no workflow: `pointer` is the place, the text says why."""

    def __init__(self, pointer: Pointer, what: str) -> None:
        self.pointer = pointer
        super().__init__(what)


@cache
def verbs() -> frozenset[str]:
    """Every step type there is."""
    return frozenset(kinds.names("steps"))


@cache
def verb_class(verb: str) -> type[Step]:
    """The settings class of a verb."""
    return kinds.find("steps", verb)  # type: ignore[no-any-return]


def build(data: Any, *, document: Document | None = None) -> Workflow:
    """The workflow that resolved data says; Unbuildable at the first thing that does not fit."""
    return _Builder(canonical=False, lenient=False).workflow(data, document)


def rebuild(data: Any) -> Workflow:
    """The workflow of a canonical form, in which durations are numbers of seconds."""
    return _Builder(canonical=True, lenient=False).workflow(data, None)


def salvage(data: Any, document: Document) -> Workflow | None:
    """What can be built of data that the schema refused, so that the rest can be checked in the same pass.

    Steps that cannot be built become Opaque, entries of sections are left as they were (see `declared`).
    """
    if not isinstance(data, dict):
        return None
    return _Builder(canonical=False, lenient=True).workflow(data, document)


class _Builder:
    """Conversion with two switches: durations as numbers, and going on after a fault."""

    def __init__(self, *, canonical: bool, lenient: bool) -> None:
        self.canonical = canonical
        self.lenient = lenient
        # Blocks that a verb's settings hold are made empty and filled when their place is known.
        self.waiting: dict[int, list[Any]] = {}

    def workflow(self, data: Any, document: Document | None) -> Workflow:
        if not isinstance(data, dict):
            raise Unbuildable((), "a workflow is a mapping")
        fields: dict[str, Any] = {}
        for key, value in data.items():
            if key in SECTIONS:
                fields[key] = self.section(key, value)
            elif key == "steps":
                fields[key] = self.steps(value)
            elif key == "limits":
                fields[key] = self.limits(value)
            elif key in TOP:
                fields[key] = value
            elif key != "$schema" and not key.startswith("x-") and not self.lenient:
                raise Unbuildable((key,), "unknown key")
        if self.lenient:
            for key in ("name", "version", "description"):
                if not isinstance(fields.get(key, ""), str):
                    del fields[key]
            fields.setdefault("name", "?")
            fields.setdefault("steps", Block(()))
            fields["tramai"] = 1
        else:
            self._scalars(data)
        return Workflow(document=document, **fields)

    def _scalars(self, data: dict[str, Any]) -> None:
        if "steps" not in data or (not self.canonical and "tramai" not in data):
            raise Unbuildable((), "missing key")
        head = {key: data[key] for key in ("tramai", "name", "version", "description") if key in data}
        self.convert(head, _Head, ())

    def steps(self, raw: Any) -> Block:
        if not isinstance(raw, list) or not raw:
            if self.lenient:
                return Block(())
            raise Unbuildable(("steps",), "steps is a list with at least one step")
        return Block(self.nodes(raw, ("steps",)))

    def limits(self, raw: Any) -> Limits:
        try:
            return self.convert(raw, Limits, ("limits",))
        except Unbuildable:
            if self.lenient:
                return Limits()
            raise

    def section(self, name: str, raw: Any) -> dict[str, Any]:
        if not isinstance(raw, dict):
            if self.lenient:
                return {}
            raise Unbuildable((name,), "not a mapping")
        made: dict[str, Any] = {}
        for key, value in raw.items():
            try:
                made[key] = self.entry(name, key, value)
            except Unbuildable:
                if not self.lenient:
                    raise
                made[key] = None
        return made

    def entry(self, name: str, key: str, value: Any) -> Any:
        if name == "inputs" and isinstance(value, dict):
            value = _own(value)
        if name in ("inputs", "state"):
            value = _whole(value)
        return self.convert(value, SECTIONS[name], (name, key))

    def nodes(self, raw: list[Any], at: Pointer) -> tuple[Node, ...]:
        made = []
        for index, item in enumerate(raw):
            place = (*at, index)
            try:
                made.append(self.node(item, place))
            except Unbuildable:
                if not self.lenient:
                    raise
                made.append(_opaque(item, place))
        return tuple(made)

    def node(self, raw: Any, at: Pointer) -> Node:
        if not isinstance(raw, dict):
            raise Unbuildable(at, "a step is a mapping")
        verb, head = None, {}
        for key, value in raw.items():
            if key in COMMON:
                head[key] = value
            elif key in verbs():
                if verb is not None:
                    raise Unbuildable(at, "more than one verb")
                verb = key
            elif not key.startswith("x-"):
                raise Unbuildable((*at, key), "unknown key")
        if verb is None:
            raise Unbuildable(at, "no verb")
        common = self.convert(head, Common, at)
        step = self.settings(verb, raw[verb], (*at, verb))
        return Node(
            id=common.id,
            verb=verb,
            step=step,
            at=at,
            description=common.description,
            when=common.when,
            retry=common.retry,
            timeout=common.timeout,
            output=common.output,
            schema=common.schema,
            save=common.save,
            replay_as=common.replay,
        )

    def settings(self, verb: str, raw: Any, at: Pointer) -> Step:
        kind = verb_class(verb)
        if isinstance(raw, dict):
            raw = _own(raw)
        elif kind.scalar is None or isinstance(raw, list):
            raise Unbuildable(at, "the settings of a verb are a mapping")
        else:
            raw = {kind.scalar: raw}
        self.waiting = {}
        step = self.convert(raw, kind, at)
        waiting = self.waiting
        if isinstance(step, Control):
            for inside, _, block in step.blocks():
                block.nodes = self.nodes(waiting[id(block)], (*at, *inside))
        return step

    def convert(self, raw: Any, kind: type[T], at: Pointer) -> T:
        try:
            made = msgspec.convert(raw, kind, dec_hook=self.hook)
        except msgspec.ValidationError as error:
            raise Unbuildable(at, str(error)) from error
        _refuse_nulls(made, raw, at)
        return made

    def hook(self, kind: type, raw: Any) -> Any:
        if kind is Duration:
            if self.canonical:
                return Duration(raw)
            if not isinstance(raw, str):
                raise ValueError("a duration is text such as 90s")
            return duration.parse(raw)
        if kind is Block:
            if not isinstance(raw, list):
                raise ValueError("a block is a list of steps")
            block = Block(())
            self.waiting[id(block)] = raw
            return block
        return expression.dec_hook(kind, _whole(raw) if kind is Value else raw)


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The scalars at the top, for conversion."""

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=NAME)]
    tramai: Literal[1] = 1
    version: Annotated[str, Meta(min_length=1, max_length=100)] = "1"
    description: str | None = None


def _own(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if not key.startswith("x-")}


def _whole(data: Any) -> Any:
    """Data in which `1.0` is 1, as the canonical form writes it: a run and its resume then work on the same values."""
    kind = type(data)
    if kind is float and data.is_integer():
        return int(data)
    if kind is dict:
        return {key: value if type(value) is str else _whole(value) for key, value in data.items()}
    if kind is list:
        return [item if type(item) is str else _whole(item) for item in data]
    return data


def _refuse_nulls(made: Any, raw: Any, at: Pointer) -> None:
    """An empty value is not the same as no value: `when:` with nothing behind it is a mistake."""
    if not isinstance(raw, dict) or not isinstance(made, msgspec.Struct):
        return
    for field, name in zip(made.__struct_fields__, made.__struct_encode_fields__, strict=True):
        if name not in raw:
            continue
        value = raw[name]
        if value is None and name not in _MAY_BE_NULL:
            raise Unbuildable((*at, name), "is empty")
        if isinstance(value, dict):
            inner = getattr(made, field)
            if isinstance(inner, dict):
                for key, item in inner.items():
                    _refuse_nulls(item, value[key], (*at, name, key))
            else:
                _refuse_nulls(inner, value, (*at, name))


_MAY_BE_NULL = frozenset({"default", "initial"})


def _opaque(raw: Any, at: Pointer) -> Node:
    found = tuple(_ids(raw))
    own = raw.get("id") if isinstance(raw, dict) else None
    name = own if isinstance(own, str) else ""
    return Node(id=name, verb="", step=Opaque(ids=tuple(item for item in found if item != name)), at=at)


def _ids(raw: Any) -> Iterator[str]:
    if isinstance(raw, dict):
        if isinstance(raw.get("id"), str):
            yield raw["id"]
        for value in raw.values():
            yield from _ids(value)
    elif isinstance(raw, list):
        for item in raw:
            yield from _ids(item)


def declared(section: Mapping[str, T | None]) -> dict[str, T]:
    """The entries of a section that could be built."""
    return {name: entry for name, entry in section.items() if entry is not None}
