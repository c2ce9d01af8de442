"""From plain data to a workflow: shorthand expanded, every step in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec

from . import duration, expression, kinds
from ._strict import Unbuildable, agree, below, meet_schema, whole
from .attached import PromptFile
from .concurrency import Concurrency
from .definition import NAME, Asking, Common, Limits, SecretSource, StateSpec, Workflow, bounded, opaque
from .duration import Duration
from .errors import Pointer
from .expression import Condition, Prompt, Template, Value
from .inputs import InputSpec
from .permits import Permits
from .schedule import Schedule
from .step import Block, Catch, Control, Node, Step, handlers
from .target import Described, Target

if TYPE_CHECKING:
    from .document import Document

T = TypeVar("T")
Meta = msgspec.Meta

SECTIONS: dict[str, Any] = {
    "inputs": InputSpec,
    "secrets": SecretSource,
    "env": Template,
    "state": StateSpec,
    "outputs": Value,
}
WHOLE: dict[str, Any] = {"permits": Permits, "concurrency": Concurrency, "schedules": tuple[Schedule, ...]}
"""Sections that are converted in one piece."""
COMMON = frozenset(Common.__struct_encode_fields__)
ASKING = frozenset(Asking.__struct_encode_fields__)
PRESET = frozenset(("timeout", "deadline", "retry"))
"""The common keys that `defaults` may give to the steps of a verb."""
TOP = frozenset(Workflow.__struct_encode_fields__) - {"document"}


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


def rebuild(data: Any, *, version: str = "1") -> Workflow:
    """The workflow of a canonical form, in which durations are numbers of seconds and no version stands."""
    return _Builder(canonical=True, lenient=False).workflow({**data, "version": version}, None)


def salvage(data: Any, document: Document, broken: Iterable[Pointer] = ()) -> Workflow | None:
    """What can be built of data that the schema refused, so that the rest can be checked in the same pass.

    A step is built without its `broken` keys where it still is one; steps that cannot be built become entries
    of sections are left as they were (see `declared`).
    """
    if not isinstance(data, dict):
        return None
    return _Builder(canonical=False, lenient=True, broken=frozenset(broken)).workflow(data, document)


class _Builder:
    """Conversion with two switches: durations as numbers, and going on after a fault."""

    def __init__(self, *, canonical: bool, lenient: bool, broken: frozenset[Pointer] = frozenset()) -> None:
        self.canonical = canonical
        self.lenient = lenient
        self.broken = broken
        # By place, the keys below it that are broken or hold what is: one look for each step, however many are.
        self.keys_broken: dict[Pointer, set[str | int]] = {}
        for place in broken:
            for depth, key in enumerate(place):
                self.keys_broken.setdefault(place[:depth], set()).add(key)
        # Blocks that a verb's settings hold are made empty and filled when their place is known.
        self.waiting: dict[int, list[Any]] = {}
        self.defaults: Mapping[str, Any] = {}

    def workflow(self, data: Any, document: Document | None) -> Workflow:
        if not isinstance(data, dict):
            raise Unbuildable((), "a workflow is a mapping")
        fields: dict[str, Any] = {}
        try:
            self.defaults = self.presets(data.get("defaults", {}))
        except Unbuildable:
            if not self.lenient:
                raise
        for key, value in data.items():
            if key in SECTIONS:
                fields[key] = self.section(key, value)
            elif key in WHOLE:
                self.whole(key, value, fields)
            elif key == "steps":
                fields[key] = self.steps(value)
            elif key == "limits":
                fields[key] = self.limits(value)
            elif key == "catch":
                fields[key] = self.catches(value)
            elif key == "finally":
                fields["finally_"] = self.closing(value)
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

    def catches(self, raw: Any) -> tuple[Catch, ...]:
        self.waiting = {}
        try:
            clauses = self.convert(raw, tuple[Catch, ...], ("catch",))
        except Unbuildable:
            if self.lenient:
                return ()
            raise
        self.fill(handlers(clauses), ())
        return clauses

    def closing(self, raw: Any) -> Block | None:
        if isinstance(raw, list):
            return Block(bounded(self.nodes(raw, ("finally",))))
        if self.lenient:
            return None
        raise Unbuildable(("finally",), "finally is a list of steps")

    def presets(self, raw: Any) -> Mapping[str, Any]:
        """`defaults` by verb; none of them where one is broken, since every step would repeat its fault."""
        if raw == {} or any(place[:1] == ("defaults",) for place in self.broken):
            return {}
        for verb, keys in raw.items() if isinstance(raw, dict) else ():
            if verb not in verbs() or not isinstance(keys, dict):
                raise Unbuildable(("defaults", verb), "defaults are a mapping for each verb")
        if not isinstance(raw, dict):
            raise Unbuildable(("defaults",), "defaults are a mapping")
        if not self.lenient:
            meet_schema(raw, "defaults")
        return {verb: _own(keys) for verb, keys in raw.items()}

    def fill(self, blocks: Iterable[tuple[Pointer, str, Block]], at: Pointer) -> None:
        """Give blocks that were just made their steps."""
        waiting = self.waiting
        for inside, _, block in blocks:
            block.nodes = self.nodes(waiting[id(block)], (*at, *inside))

    def limits(self, raw: Any) -> Limits:
        try:
            return self.convert(raw, Limits, ("limits",))
        except Unbuildable:
            if self.lenient:
                return Limits()
            raise

    def whole(self, name: str, raw: Any, fields: dict[str, Any]) -> None:
        """A section that is one value: left out where it is broken."""
        try:
            fields[name] = self.convert(whole(raw), WHOLE[name], (name,))
        except Unbuildable:
            if not self.lenient:
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
        if name in ("inputs", "state") and isinstance(value, dict):
            data = {key: whole(value[key]) for key in ("default", "enum", "initial", "schema") if key in value}
            value = {**value, **data}
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
                made.append(self.mended(item, place))
        return tuple(made)

    def mended(self, raw: Any, at: Pointer) -> Node:
        """A step without its broken common keys; Opaque if it is no step then either.

        A verb with broken settings stays broken: what its own check would say of the rest would only be an echo.
        """
        broken = self.keys_broken.get(at, set())
        if not isinstance(raw, dict) or "id" in broken or broken & verbs():
            return opaque(raw, at)
        try:
            return self.node({key: value for key, value in raw.items() if key not in broken}, at)
        except Unbuildable:
            return opaque(raw, at)

    def node(self, raw: Any, at: Pointer) -> Node:
        if not isinstance(raw, dict):
            raise Unbuildable(at, "a step is a mapping")
        verb, head = _parted(raw, at, COMMON)
        preset = self.defaults.get(verb)
        if preset:
            head = {**{key: value for key, value in preset.items() if key in PRESET}, **head}
        self.waiting = {}
        common = self.convert(head, Common, at)
        self.fill(handlers(common.catch), at)
        step = self.settings(verb, raw[verb], (*at, verb), preset)
        return Node(
            id=common.id,
            verb=verb,
            step=step,
            at=at,
            description=common.description,
            when=common.when,
            retry=common.retry,
            timeout=common.timeout,
            deadline=common.deadline,
            catch=common.catch,
            output=common.output,
            schema=common.schema,
            save=common.save,
            replay_as=common.replay,
            verify=self.verification(common.verify, common.id, (*at, "verify")) if "verify" in head else None,
        )

    def verification(self, raw: Any, id: str, at: Pointer) -> Condition | Node:
        """What tells whether a step had happened: a condition, or a verb with a few keys of its own."""
        if not isinstance(raw, dict):
            return self.convert(raw, Condition, at)
        verb, head = _parted(raw, at, ASKING)
        if not verb_class(verb).answers:
            raise Unbuildable((*at, verb), "a verb that gives no answer")
        keys = self.convert(head, Asking, at)
        step = self.settings(verb, raw[verb], (*at, verb))
        return Node(id=id, verb=verb, step=step, at=at, timeout=keys.timeout, output=keys.output, replay_as=keys.replay)

    def settings(self, verb: str, raw: Any, at: Pointer, preset: Mapping[str, Any] | None = None) -> Step:
        kind = verb_class(verb)
        if isinstance(raw, dict):
            raw = _own(raw)
        elif kind.scalar is None or isinstance(raw, list):
            raise Unbuildable(at, "the settings of a verb are a mapping")
        else:
            raw = {kind.scalar: raw}
        if preset:
            raw = {**{key: value for key, value in preset.items() if key not in PRESET}, **raw}
        self.waiting = {}
        step = self.convert(raw, kind, at)
        if isinstance(step, Control):
            self.fill(step.blocks(), at)
        return step.adopt(lambda other, key: self.guest(raw.get(key, {}), other, (*at, key)))

    def guest(self, raw: Any, kind: type[Step], at: Pointer) -> Step | None:
        """Settings of a step that a package adds; None where it has changed since they were accepted."""
        try:
            return self.convert(raw, kind, at)
        except Unbuildable:
            if self.canonical:
                return None
            raise
        except Exception as error:  # the edge to a foreign class: its `__post_init__` may raise anything
            if self.canonical:
                return None
            raise Unbuildable(at, f"{type(error).__name__}: {error}") from error

    def convert(self, raw: Any, kind: type[T], at: Pointer) -> T:
        try:
            made = msgspec.convert(raw, kind, dec_hook=self.hook)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$")
            raise Unbuildable((*at, *below(where)), what) from error
        if not self.canonical:  # what was accepted once is not doubted again
            agree(made, raw, at)
        return made

    def target(self, kind: type[Target], raw: Any) -> Target:
        """A called workflow: a path in a file; in a canonical form the workflow itself beside it."""
        if self.canonical and isinstance(raw, dict):
            made = kind(raw["file"], rebuild(raw["definition"], version=raw["version"]))
            if isinstance(made, Described):
                made.told = raw["told"]
            return made
        if not isinstance(raw, str) or not raw.strip():
            raise ValueError("a called workflow is the path of a file")
        return kind(raw)

    def prompt_file(self, raw: Any) -> PromptFile:
        """A file with a prompt: a path in a file; in a canonical form the text beside it."""
        if self.canonical and isinstance(raw, dict):
            return PromptFile(raw["file"], Prompt(raw["text"]))
        if not isinstance(raw, str) or not raw.strip():
            raise ValueError("a prompt file is the path of a file")
        return PromptFile(raw)

    def hook(self, kind: type, raw: Any) -> Any:
        if kind is Duration:
            if self.canonical:
                return Duration(raw)
            if not isinstance(raw, str):
                raise ValueError("a duration is text such as 90s")
            return duration.parse(raw)
        if issubclass(kind, Target):
            return self.target(kind, raw)
        if kind is PromptFile:
            return self.prompt_file(raw)
        if kind is Block:
            if not isinstance(raw, list):
                raise ValueError("a block is a list of steps")
            block = Block(())
            self.waiting[id(block)] = raw
            return block
        return expression.dec_hook(kind, whole(raw) if kind is Value else raw)


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """The scalars at the top, for conversion."""

    name: Annotated[str, Meta(max_length=100, pattern=NAME)]
    tramai: Literal[1] = 1
    version: Annotated[str, Meta(min_length=1, max_length=100)] = "1"
    description: str | None = None


def _parted(raw: dict[str, Any], at: Pointer, common: frozenset[str]) -> tuple[str, dict[str, Any]]:
    """The one verb of a step, and its common keys."""
    verb, head = None, {}
    for key, value in raw.items():
        if key in common:
            head[key] = value
        elif key in verbs():
            if verb is not None:
                raise Unbuildable(at, "more than one verb")
            verb = key
        elif not key.startswith("x-"):
            raise Unbuildable((*at, key), "unknown key")
    if verb is None:
        raise Unbuildable(at, "no verb")
    return verb, head


def _own(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if not key.startswith("x-")}
