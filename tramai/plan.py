"""The step graph of a workflow: its canonical form and digests, its places, what it needs to run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

from . import build, codec
from .attached import PromptFile
from .codec import Json
from .definition import Workflow
from .duration import Duration
from .expression import Template, Value
from .shape import Shape
from .step import Block, Control, Node
from .store import Definition
from .target import Described, Target


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an outline. `label` names the block of the container it stands in, at the block's first step."""

    depth: int
    id: str
    verb: str
    label: str | None
    condition: str | None
    replay: str
    line: int | None
    column: int | None


class Plan:
    """A workflow that is ready to run: the definition, its identity, and what it will need."""

    def __init__(self, workflow: Workflow, *, canonical: str | None = None) -> None:
        self.workflow = workflow
        if canonical is not None:
            self.__dict__["canonical"] = canonical  # known already: it need not be written again

    @cached_property
    def data(self) -> dict[str, Json]:
        """The resolved definition: shorthand expanded, defaults applied, descriptions and `x-*` left out."""
        return _workflow(self.workflow)

    @cached_property
    def canonical(self) -> str:
        """RFC 8785 JSON of `data`: what the digest is taken of, and enough to rebuild the workflow."""
        from .canonical import rfc8785

        return rfc8785(self.data)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form; the author's version is kept beside it."""
        return codec.sha256(self.canonical)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Every step of the file by id."""
        return {node.id: node for node in self.workflow.walk()}

    @cached_property
    def step_digests(self) -> dict[str, str]:
        """A digest per step, of the step with everything inside it."""
        from .canonical import rfc8785

        return {id: codec.sha256(rfc8785(step(node))) for id, node in self.nodes.items()}

    @cached_property
    def needs_loop(self) -> bool:
        """Whether running it needs an event loop."""
        limited = self.workflow.limits.timeout is not None
        return any(node.step.needs_loop() or _is_timed(node, limited=limited) for node in self._running())

    @cached_property
    def spawns(self) -> bool:
        """Whether it starts child processes, or a workflow that it calls does."""
        own = any(node.step.spawning() for node in self._running())
        return own or any(Plan(called).spawns for called in self.calls)

    @cached_property
    def computes(self) -> bool:
        """Whether it only computes: no process, nothing outside, no code of others, nothing to be fetched or to wait
        for. Such runs may share a process."""
        own = self.workflow
        if self.needs_loop or self.calls or own.secrets or own.concurrency is not None:
            return False
        if own.limits.timeout is not None:  # what others compute meanwhile is not its running time
            return False
        return all(_computes(node) for node in self._running())

    def _running(self) -> Iterator[Node]:
        """Everything that may run: the steps, and what their `verify` asks."""
        for node in self.nodes.values():
            yield node
            if isinstance(node.verify, Node):
                yield node.verify

    def able(self) -> None:
        """Raise why a stored definition cannot be carried out here: a package that it needs is not installed."""
        for each in (self.workflow, *self.calls):
            for node in Plan(each)._running():
                node.step.able()

    @cached_property
    def calls(self) -> tuple[Workflow, ...]:
        """Every workflow that it calls, and that those call."""
        found: list[Workflow] = []
        for node in self.nodes.values():
            for _, target in node.step.called():
                if target.workflow is not None:
                    found += [target.workflow, *Plan(target.workflow).calls]
        return tuple(found)

    def definition(self) -> Definition:
        """What a store keeps of it."""
        source = self.workflow.document
        return Definition(
            digest=self.digest,
            name=self.workflow.name,
            version=self.workflow.version,
            canonical=self.canonical,
            text=source.text if source is not None else self.canonical,
            format=source.format if source is not None else "json",
            file=self.workflow.file,
        )

    def place(self, id: str) -> tuple[int, int] | None:
        """Line and column of a step in its file; None when there is no such step or no file."""
        document, node = self.workflow.document, self.nodes.get(id)
        if document is None or node is None:
            return None
        position = document.position(node.at)
        return position.line, position.column

    def outline(self) -> tuple[Row, ...]:
        """Every step in order of the file, with its depth."""
        first, *others = self.workflow.blocks()
        rows = [*self._rows(first[2], 0, None)]
        for _, label, block in others:
            rows += self._rows(block, 0, label)
        return tuple(rows)

    def _rows(self, block: Block, depth: int, label: str | None) -> Iterator[Row]:
        for node in block:
            line, column = self.place(node.id) or (None, None)
            yield Row(
                depth=depth,
                id=node.id,
                verb=node.verb,
                label=label,
                condition=node.when.text if node.when is not None else None,
                replay=str(node.replay),
                line=line,
                column=column,
            )
            label = None
            for _, name, inner in node.blocks():
                yield from self._rows(inner, depth + 1, name)


def _is_timed(node: Node, *, limited: bool) -> bool:
    """Whether its time must be watched from outside: children are watched by those who started them.

    `limited`: the run as a whole may take no longer than it is allowed; then each step that can take long is watched.
    """
    step = node.step
    timed = node.timeout is not None or node.deadline is not None
    if limited and step.timed and not isinstance(step, Control):
        timed = True
    return timed and (isinstance(step, Control) or not (step.spawns or step.pure()))


def _computes(node: Node) -> bool:
    """Whether a step computes and no more: one that is tried again waits in its process until then."""
    step, once = node.step, node.retry is None or node.retry.max_attempts == 1
    return once and not step.alone and (isinstance(step, Control) or step.pure())


def load(path: str) -> Plan:
    """Read, check and plan a workflow file; InvalidDefinition with every problem in it."""
    from .workflow import load as read

    return of(read(path))


def of(workflow: Workflow) -> Plan:
    """The plan of a workflow that has passed its checks."""
    return Plan(workflow)


def restore(canonical: str, version: str = "1") -> Plan:
    """The plan of a stored canonical form; `version` stands beside it in the store."""
    return Plan(build.rebuild(codec.decode(canonical), version=version))


def _workflow(workflow: Workflow) -> dict[str, Json]:
    made: dict[str, Json] = {"tramai": workflow.tramai, "name": workflow.name, "limits": plain(workflow.limits)}
    for name in ("inputs", "secrets", "env", "permits", "concurrency", "schedules", "state", "outputs"):
        section = getattr(workflow, name)
        if section or (name == "permits" and section is not None):
            made[name] = plain(section)
    made["steps"] = plain(workflow.steps)
    if workflow.catch:
        made["catch"] = plain(workflow.catch)
    if workflow.finally_ is not None:
        made["finally"] = plain(workflow.finally_)
    return made


def step(node: Node) -> dict[str, Json]:
    """The canonical form of one step, with everything inside it."""
    made: dict[str, Json] = {"id": node.id, node.verb: plain(node.step), "replay": str(node.replay)}
    for name in ("when", "retry", "timeout", "deadline", "output", "schema"):
        value = getattr(node, name)
        if value is not None:
            made[name] = plain(value)
    if node.save:
        made["save"] = plain(node.save)
    if node.catch:
        made["catch"] = plain(node.catch)
    if isinstance(node.verify, Node):
        made["verify"] = _asked(node.verify)
    elif node.verify is not None:
        made["verify"] = plain(node.verify)
    return made


def _asked(node: Node) -> dict[str, Json]:
    """The canonical form of what a `verify` asks: a step without a name."""
    return {name: value for name, value in step(node).items() if name != "id"}


def plain(value: Any) -> Json:
    """JSON of settings: Structs as maps, durations as seconds, expressions as their text, blocks as lists of steps."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value  # type: ignore[no-any-return]
    if isinstance(value, Template):
        return value.text
    if isinstance(value, Value):
        return value.data
    if isinstance(value, Duration):
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, Block):
        return [step(node) for node in value]
    if isinstance(value, Target):
        return _called(value)
    if isinstance(value, PromptFile):
        return {"file": value.path, "text": value.prompt.text if value.prompt is not None else None}
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if kind is float:
        return int(value) if value.is_integer() else value
    return str(value)


def _called(target: Target) -> Json:
    """A called workflow, whole: what it does is part of what its caller does."""
    if target.workflow is None:
        return target.path
    inner = _workflow(target.workflow)
    made: dict[str, Json] = {"file": target.path, "version": target.workflow.version, "definition": inner}
    if isinstance(target, Described):
        made["told"] = target.told
    return made


def _struct(value: msgspec.Struct) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name, shown, empty in _fields(type(value)):
        item = getattr(value, name)
        if item is msgspec.UNSET or (name == "description" and isinstance(value, Shape)):
            continue
        # What says nothing is left out, so that a later version may add such a key and keep every digest.
        if empty is not _NOTHING and item == empty:
            continue
        made[shown] = plain(item)
    return made


_NOTHING = object()
_FIELDS: dict[type, tuple[tuple[str, str, Any], ...]] = {}


def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Name, name in a file, and the default where that is null or empty."""
    known = _FIELDS.get(kind)
    if known is None:
        found = []
        for field in msgspec.structs.fields(kind):
            made = field.default_factory is not msgspec.NODEFAULT
            default = field.default_factory() if made else field.default
            empty = default is None or (isinstance(default, (dict, list, tuple, str)) and not default)
            found.append((field.name, field.encode_name, default if empty else _NOTHING))
        known = _FIELDS[kind] = tuple(found)
    return known
