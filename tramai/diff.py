"""What changed between two definitions, step by step and field by field."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import msgspec

from . import duration
from .canonical import rfc8785
from .codec import Json
from .definition import Workflow
from .plan import Plan, restore, step
from .step import Block, Node

_DURATIONS = frozenset(("timeout", "limits.timeout", "retry.delay", "retry.max_delay", "shell.kill_after"))
_WIDTH = 60


class Difference(msgspec.Struct, frozen=True):
    """One change. `kind`: added, removed, renamed, moved, changed. `step` is None for the workflow's own keys.

    `what` is the field (`shell.run`, `limits.timeout`), or `step`. `old` and `new` are short texts for people.
    For a step that was renamed, `step` is the new id and `old` the id before.
    """

    kind: str
    step: str | None
    what: str
    old: str | None = None
    new: str | None = None

    @property
    def text(self) -> str:
        """One line for people."""
        subject = f"step `{self.step}`" if self.step is not None else f"`{self.what}`"
        if self.kind in ("added", "removed"):
            return f"{subject} was {self.kind}"
        if self.kind == "renamed":
            return f"step `{self.old}` is now called `{self.new}`"
        if self.kind == "moved":
            return f"{subject} moved: {self.old} → {self.new}"
        field = f"{subject}: `{self.what}`" if self.step is not None else subject
        if self.old is None:
            return f"{field} was added: {self.new}"
        if self.new is None:
            return f"{field} was removed: {self.old}"
        return f"{field} changed: {self.old} → {self.new}"


class _Place(msgspec.Struct, frozen=True):
    """Where a step stands: in which block of which container, and behind which step."""

    container: str | None
    block: tuple[str | int, ...]
    index: int
    behind: str | None

    def spell(self) -> str:
        where = self.block if self.container is None else self.block[1:]
        inside = f"in `{self.container}` " if self.container is not None else "in "
        inside = "" if self.block == ("steps",) else f"{inside}{'.'.join(map(str, where))}, "
        return inside + (f"after `{self.behind}`" if self.behind is not None else "first")


def diff(old: Plan | str, new: Plan | str) -> tuple[Difference, ...]:
    """Every change from one plan (or stored canonical form) to another; empty when digest and version are equal.

    A canonical text has no version: give plans where versions matter.
    """
    versions = isinstance(old, Plan) and isinstance(new, Plan)
    before = old if isinstance(old, Plan) else restore(old)
    after = new if isinstance(new, Plan) else restore(new)
    found: list[Difference] = []
    if versions and before.workflow.version != after.workflow.version:
        found.append(_changed(None, "version", before.workflow.version, after.workflow.version))
    if before.digest == after.digest:
        return tuple(found)
    found.extend(_top(before.data, after.data))
    found.extend(_steps(before, after))
    return tuple(found)


def _top(old: dict[str, Json], new: dict[str, Json]) -> Iterator[Difference]:
    before, after = (_without_steps(data) for data in (old, new))
    yield from _fields(None, before, after)


def _without_steps(data: dict[str, Any]) -> dict[str, Any]:
    """The workflow's own keys; `catch` without its steps."""
    made = {key: value for key, value in data.items() if key not in ("steps", "finally")}
    if "catch" in made:
        made["catch"] = [{key: value for key, value in clause.items() if key != "do"} for clause in made["catch"]]
    return made


def _steps(old: Plan, new: Plan) -> Iterator[Difference]:
    renamed = _renamed(old, new)
    back = {name: earlier for earlier, name in renamed.items()}
    before, after = _places(old.workflow), _places(new.workflow)
    for id, place in before.items():
        if id not in after and id not in renamed and not _gone(place.container, after, renamed):
            yield Difference("removed", id, "step", old.nodes[id].verb)
    labels = _labels(old, new, renamed)
    moved = _moved(before, after, renamed, labels)
    for id, place in after.items():
        earlier = back.get(id, id)
        if earlier not in before:
            if place.container is None or back.get(place.container, place.container) in before:
                yield Difference("added", id, "step", None, new.nodes[id].verb)
            continue
        if id in back:
            yield Difference("renamed", id, "step", earlier, id)
        if id in moved:
            yield Difference("moved", id, "step", before[earlier].spell(), place.spell())
        yield from _fields(id, _own(old.nodes[earlier]), _own(new.nodes[id]))
        yield from _blocks_changed(id, old.nodes[earlier], new.nodes[id], labels)


def _gone(container: str | None, after: dict[str, _Place], renamed: dict[str, str]) -> bool:
    return container is not None and container not in after and container not in renamed


def _places(workflow: Workflow) -> dict[str, _Place]:
    found: dict[str, _Place] = {}

    def visit(block: Block, container: str | None, at: tuple[str | int, ...]) -> None:
        behind = None
        for index, node in enumerate(block):
            found[node.id] = _Place(container, at, index, behind)
            behind = node.id
            for inside, _, inner in _blocks(node):
                visit(inner, node.id, inside)

    for at, _, top in workflow.blocks():
        visit(top, None, at)
    return found


def _renamed(old: Plan, new: Plan) -> dict[str, str]:
    """Old id → new id of steps that differ in nothing but their id."""
    gone = [node for id, node in old.nodes.items() if id not in new.nodes]
    come: dict[str, list[str]] = {}
    for id, node in new.nodes.items():
        if id not in old.nodes:
            come.setdefault(_content(node), []).append(id)
    pairs: dict[str, str] = {}
    for node in gone:
        same = come.get(_content(node))
        if same:
            pairs[node.id] = same.pop(0)
    return pairs


def _content(node: Node) -> str:
    return rfc8785({key: value for key, value in step(node).items() if key != "id"})


def _labels(
    old: Plan, new: Plan, renamed: dict[str, str]
) -> dict[tuple[str, tuple[str | int, ...]], tuple[str | int, ...]]:
    """(container, old block) → new block, for blocks whose name alone changed."""
    found = {}
    for id, node in old.nodes.items():
        other = new.nodes.get(renamed.get(id, id))
        if other is None:
            continue
        before, after = _ids(node), _ids(other)
        come = [(at, ids) for at, ids in after.items() if at not in before]
        for at, ids in before.items():
            same = [name for name, others in come if others == [renamed.get(one, one) for one in ids]]
            if at not in after and same:
                found[id, at] = same[0]
    return found


def _ids(node: Node) -> dict[tuple[str | int, ...], list[str]]:
    return {at: [inner.id for inner in block] for at, _, block in _blocks(node)}


def _moved(
    before: dict[str, _Place],
    after: dict[str, _Place],
    renamed: dict[str, str],
    labels: dict[tuple[str, tuple[str | int, ...]], tuple[str | int, ...]],
) -> set[str]:
    """New ids of steps in another block, and the fewest that explain a changed order inside one."""
    moved: set[str] = set()
    kept: dict[tuple[str | None, tuple[str | int, ...]], list[tuple[int, str]]] = {}
    earlier = {renamed.get(id, id): (id, place) for id, place in before.items()}
    for id, place in after.items():
        if id not in earlier:
            continue
        was = earlier[id][1]
        container = renamed.get(was.container, was.container) if was.container is not None else None
        block = labels.get((was.container, was.block), was.block) if was.container is not None else was.block
        if (container, block) == (place.container, place.block):
            kept.setdefault((container, block), []).append((was.index, id))
        else:
            moved.add(id)
    for order in kept.values():
        moved.update(_out_of_order(order))
    return moved


def _out_of_order(order: list[tuple[int, str]]) -> set[str]:
    """The ids outside a longest increasing run of old indexes."""
    tails: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for position, (index, _) in enumerate(order):
        at = bisect_left(tails, index)
        tails[at : at + 1] = [index]
        last[at : at + 1] = [position]
        previous.append(last[at - 1] if at else -1)
    keep, position = set(), last[-1] if last else -1
    while position >= 0:
        keep.add(position)
        position = previous[position]
    return {id for position, (_, id) in enumerate(order) if position not in keep}


def _own(node: Node) -> dict[str, Json]:
    """The canonical step without its id and without the steps inside it."""
    made = {key: value for key, value in step(node).items() if key != "id"}
    for at, _, _ in _blocks(node):
        inner: Any = made
        for part in at[:-1]:
            inner = inner[part]
        del inner[at[-1]]
    return made


def _blocks_changed(
    id: str, old: Node, new: Node, labels: dict[tuple[str, tuple[str | int, ...]], tuple[str | int, ...]]
) -> Iterator[Difference]:
    before, after = _ids(old), _ids(new)
    for at in before:
        if at not in after:
            other = labels.get((old.id, at))
            shown = ".".join(map(str, other[1:])) if other is not None else None
            yield Difference("changed", id, str(at[0]), ".".join(map(str, at[1:])), shown)
    known = set(before) | {labels[old.id, at] for at in before if (old.id, at) in labels}
    for at in after:
        if at not in known:
            yield Difference("changed", id, str(at[0]), None, ".".join(map(str, at[1:])))


def _blocks(node: Node) -> tuple[tuple[tuple[str | int, ...], str, Block], ...]:
    return node.blocks()


def _fields(id: str | None, old: dict[str, Json], new: dict[str, Json]) -> Iterator[Difference]:
    before, after = dict(_flat(old)), dict(_flat(new))
    for name in [*before, *(name for name in after if name not in before)]:
        if before.get(name, _ABSENT) != after.get(name, _ABSENT) or _kinds_differ(before.get(name), after.get(name)):
            yield _changed(id, name, before.get(name, _ABSENT), after.get(name, _ABSENT))


_ABSENT: Any = object()


def _kinds_differ(old: Json, new: Json) -> bool:
    # 1 == True in Python; the nested case is told by the texts.
    return (
        old == new
        and json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True)
        and rfc8785(old) != rfc8785(new)
    )


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Json]]:
    for key, item in value.items():
        name = f"{prefix}.{key}" if prefix else key
        if isinstance(item, dict) and item:
            yield from _flat(item, name)
        else:
            yield name, item


def _changed(id: str | None, what: str, old: Any, new: Any) -> Difference:
    if isinstance(old, str) and isinstance(new, str):
        return Difference("changed", id, what, *_around(old, new))
    # A text is quoted where it takes the place of something else, or the two might look the same.
    quoted = old is not _ABSENT and new is not _ABSENT
    return Difference("changed", id, what, _shown(what, old, quoted), _shown(what, new, quoted))


def _shown(what: str, value: Any, quoted: bool) -> str | None:
    if value is _ABSENT:
        return None
    if what in _DURATIONS and isinstance(value, (int, float)):
        return duration.spell(value)
    return _cut(value if isinstance(value, str) and not quoted else rfc8785(value), 0)


def _around(old: str, new: str) -> tuple[str, str]:
    """Both texts, cut to where they part."""
    same = next(
        (at for at, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new))
    )
    start = 0 if max(len(old), len(new)) <= _WIDTH else max(0, same - 15)
    return _cut(old, start), _cut(new, start)


def _cut(text: str, start: int) -> str:
    piece = text[start : start + _WIDTH]
    piece = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in piece)
    return ("…" if start else "") + piece + ("…" if start + _WIDTH < len(text) else "")
