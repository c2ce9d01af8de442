"""Names in expressions: what they are, and whether they have a value where they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..definition import declared
from ..errors import Pointer, Problem
from ..expression import Use
from ..expression.foreign import NAMES
from ..step import Node
from . import algebra, shapes
from .scene import PER_ITEM, Entry, Field, Link, Read, Scene

ROOTS = ("inputs", "state", "steps", "secrets", "env", "run")
OF_STEP = ("output", "status", "error", "attempts", "duration")
OF_RUN = ("id", "workflow", "version", "attempt", "started_at", "started_by")
OF_LOOP = ("index", "index0", "length")
OF_ATTEMPT = ("number", "started")
_WHOLE = dict.fromkeys(("outputs", "result", "results", "value", "data", "response", "return", "outputs"), "output")
_WHOLE |= dict.fromkeys(("conclusion", "outcome", "state", "success"), "status")
"""What other tools call the parts of a step."""
_OF_OTHER_LOOPS = {
    "first": "write loop.index == 1",
    "last": "write loop.index == loop.length",
    "item": "the item has the name that `as` gives it",
    "value": "the item has the name that `as` gives it",
    "key": "the item has the name that `as` gives it",
    "count": "write loop.length",
    "size": "write loop.length",
    "iteration": "write loop.index",
    "number": "write loop.index",
}
_BEFORE_STEPS = frozenset({"state", "steps", "env"})
"""What `env` at the top cannot read: it is made before the first step."""

Found = tuple[str, str, str | None]
"""Code, message and hint of a problem with a use."""


def names(scene: Scene) -> Iterator[Problem]:
    """Every name is known, declared, in scope and in order."""
    judge = _Judge(scene)
    subtracted: Read | None = None
    for read, following in zip(scene.reads, [*scene.reads[1:], None], strict=False):
        if read is subtracted:
            continue
        use, found = read.use, judge.use(read.use, read.field)
        if following is not None and (whole := _with_dash(read, following)) is not None:
            misread = judge.use(whole, read.field)
            if misread is None and found is not None:
                misread = "TRM202", f"this is `{_dotted(use)}` minus `{_dotted(following.use)}`", following.use.hint
            if misread is not None:
                use, found, subtracted = whole, misread, following
        if found is not None and read.field.area == "concurrency" and scene.is_blamed(read.at, use.start, use.end):
            continue  # it could not be read there anyway
        if found is not None and found[0] == "TRM205" and scene.is_blamed(read.at, 0, len(_text(read))):
            continue  # what is unreadable there may have been about just this
        if found is not None:
            code, message, hint = found
            scene.blame(read.at, use.start)
            yield scene.problem(code, message, read.at, hint=hint, range=(use.start, use.end))


def _with_dash(read: Read, following: Read) -> Use | None:
    """What `steps.fetch-data.output` was meant to read; the expression says `steps.fetch` minus `data.output`."""
    left, right = read.use, following.use
    if (
        right.hint is None
        or following.field is not read.field
        or following.at != read.at
        or right.start != left.end + 1
    ):
        return None
    path = (*left.path[:-1], f"{left.path[-1]}-{right.path[0]}", *right.path[1:])
    return Use(path, left.start, right.end, right.guarded)


def _text(read: Read) -> str:
    return next(site.text for site in read.field.thing.sites() if (*read.field.pointer, *site.pointer) == read.at)


def _dotted(use: Use) -> str:
    return ".".join(map(str, use.path))


def outputs(scene: Scene) -> Iterator[Problem]:
    """A field that is read is one that a schema declares."""
    known = shapes.known(scene)
    for read in scene.reads:
        use = read.use
        if use.guarded or len(use.path) < 2 or scene.is_blamed(read.at, use.start, use.end):
            continue
        found = known.undeclared(use, read.field)
        if found is not None:
            message, hint = found
            scene.blame(read.at, use.start)
            yield scene.problem("TRM209", message, read.at, hint=hint, range=(use.start, use.end))


class _Judge:
    """Decides about one use at a time."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.sections: dict[str, Mapping[str, Any]] = {
            name: getattr(scene.workflow, name) for name in ("inputs", "state", "env", "secrets")
        }
        inputs = declared(scene.workflow.inputs)
        self.optional = {name for name, spec in inputs.items() if spec.optional and spec.default is msgspec.UNSET}
        self.loops = {name for entry in scene.entries for link in entry.chain for name in _binds(link)}

    def use(self, use: Use, field: Field) -> Found | None:
        root = str(use.path[0])
        if root in _bound(field):
            return self.member(use, OF_LOOP) if root == "loop" else None
        if field.area == "env" and root in _BEFORE_STEPS:
            return "TRM210", f"`{root}` has no value yet where `env` is made", "`env` may read inputs, secrets and run"
        if root == "steps":
            return self.step(use, field)
        if root in self.sections:
            return self.section(root, use)
        if root == "run":
            return self.member(use, (*OF_RUN, "status") if _area(field) == ("finally",) else OF_RUN)
        if root == "error" and _fails(field):
            return None
        if root == "result" and field.area in ("output", "save") and field.entry is not None:
            return None
        if root == "result" and shapes.early(field) is not None:
            return None
        if root == "attempt" and _verifies(field):
            return self.member(use, OF_ATTEMPT)
        return self.unknown(root, use, field)

    def member(self, use: Use, known: tuple[str, ...]) -> Found | None:
        if len(use.path) < 2 or use.path[1] in known:
            return None
        name, root = str(use.path[1]), use.path[0]
        if root == "loop" and name in _OF_OTHER_LOOPS:
            return "TRM202", f"unknown name `loop.{name}`", _OF_OTHER_LOOPS[name]
        hint = self.scene.did_you_mean(name, known, prefix=f"{root}.") or f"{root} has {', '.join(known)}"
        return "TRM202", f"unknown name `{root}.{name}`", hint

    def section(self, root: str, use: Use) -> Found | None:
        known = self.sections[root]
        if len(use.path) < 2:
            if root != "secrets":
                return None
            return "TRM208", "`secrets` as a whole cannot be used", "name one of them: secrets.NAME"
        name = str(use.path[1])
        if name not in known:
            hint = use.hint or self.scene.did_you_mean(name, known, prefix=f"{root}.")
            if hint is None and (
                there := next((other for other in self.sections if name in self.sections[other]), None)
            ):
                hint = f"did you mean `{there}.{name}`?"
            one = {"inputs": "input", "state": "state key", "env": "variable", "secrets": "secret"}[root]
            return "TRM208", f"{one} `{name}` is not declared", hint or f"declare it under `{root}`"
        if root == "inputs" and name in self.optional and not use.guarded:
            return "TRM205", f"input `{name}` may not be given", f"say what then: inputs.{name} | default(…)"
        return None

    def unknown(self, root: str, use: Use, field: Field) -> Found:
        if root == "result":
            return "TRM210", "`result` is known only in a step's own `output` and `save`", "read steps.<id>.output"
        if root == "attempt":
            return "TRM210", "`attempt` is known only in `verify`", "the number of the claim is run.attempt"
        if root == "error":
            where = "in `catch`, in `finally` and in `retry.when`"
            return "TRM210", f"`error` is known only {where}", "the error of a step is steps.<id>.error"
        if root in self.loops:
            return "TRM210", f"`{root}` is known only inside its loop", None
        known = [*ROOTS, *_bound(field)]
        hint = use.hint or NAMES.get(root) or self.scene.did_you_mean(root, known)
        for section in ("inputs", "state", "steps", "env", "secrets"):
            if hint is None and root in (self.scene.steps if section == "steps" else self.sections[section]):
                hint = f"did you mean `{section}.{root}" + (".output`?" if section == "steps" else "`?")
        return "TRM202", f"unknown name `{root}`", hint or f"known here: {', '.join(known)}"

    def step(self, use: Use, field: Field) -> Found | None:
        scene = self.scene
        if len(use.path) < 2:
            return "TRM202", "`steps` needs the id of a step that can be read here", "write steps.<id>.output"
        id = str(use.path[1])
        target = scene.steps.get(id)
        if target is None:
            if id in scene.hidden:
                return None
            hint = use.hint or scene.did_you_mean(id, scene.steps, prefix="steps.")
            return "TRM203", f"unknown step `{id}`", hint or "steps: " + (", ".join(list(scene.steps)[:8]) or "none")
        found = self.order(target, use, field)
        if found is not None or target.opaque:
            return found
        if len(use.path) < 3:
            return "TRM202", f"`steps.{id}` needs a part", f"write steps.{id}.output, or one of {', '.join(OF_STEP)}"
        part = str(use.path[2])
        if part not in OF_STEP:
            return "TRM202", f"a step has no `{part}`", self.part(id, part)
        return None

    def part(self, id: str, part: str) -> str:
        """What was meant by a part that a step does not have."""
        known = algebra.keys(shapes.known(self.scene).output(self.scene.steps[id].node)) or ()
        if part in known or part not in _WHOLE:
            hint = None if part in known else self.scene.did_you_mean(part, OF_STEP, prefix=f"steps.{id}.")
            return hint or f"did you mean `steps.{id}.output.{part}`?"
        return f"did you mean `steps.{id}.{_WHOLE[part]}`?"

    def order(self, target: Entry, use: Use, field: Field) -> Found | None:
        """Whether the step is over, and visible, where it is read."""
        id, reader = target.node.id, field.entry
        if reader is not None and target.order == reader.order:
            own = field.area in ("output", "save")
            hint = "its own record is `result` here" if own and not reader.asks else "a step cannot read itself"
            return "TRM204", f"step `{id}` is not over yet where it is read", hint
        chain = reader.chain if reader is not None else ()
        if target.area != _area(field):
            return self.elsewhere(target, chain, use, _area(field))
        around = next((link for link in chain if link.container is target.node), None)
        if around is not None and around.caught:
            return "TRM204", f"step `{id}` has failed where its `catch` stands", "what is known of it is in `error`"
        if around is not None:
            return "TRM204", f"step `{id}` is not over yet: this stands inside it", "read it in a step after it"
        if reader is not None and target.order > reader.order:
            return "TRM204", f"step `{id}` comes later", "only steps before this one have a value: move one of them"
        return self.sight(target, chain, use)

    def elsewhere(self, target: Entry, chain: tuple[Link, ...], use: Use, area: Pointer) -> Found | None:
        """Whether a step is seen from another part of the workflow: from its `catch`, its `finally`, its outputs."""
        id = target.node.id
        if target.area == ("finally",):
            return "TRM204", f"step `{id}` stands in `finally`, which comes last", "move it to `steps`"
        if target.area[0] == "catch":
            return "TRM204", f"step `{id}` is seen only in the `catch` that it stands in", None
        found = self.sight(target, chain, use)
        if found is not None or use.guarded or use.path[2:3] in (("status",), ("error",)):
            return found
        reason = f"step `{id}` may not have run when `{area[0]}` does"
        return "TRM205", reason, "say what then: … | default(…), or ask for .status"

    def sight(self, target: Entry, chain: tuple[Link, ...], use: Use) -> Found | None:
        """Whether an earlier step is seen from another place in the tree."""
        id = target.node.id
        shared = _shared(target.chain, chain)
        if shared < len(target.chain) and shared < len(chain):
            one, other = target.chain[shared], chain[shared]
            if one.container is other.container:
                hint = _apart(one.container)
                if other.caught and not one.caught:
                    hint = "what failed has no outputs: what is known of it is in `error`"
                return "TRM204", f"step `{id}` is in another block of `{one.container.id}`", hint
        inner = target.chain[shared:]
        for link in inner:
            if link.caught:
                hint = f"give the clause an `output`, and read steps.{link.container.id}.output"
                return "TRM204", f"step `{id}` is seen only in the `catch` of `{link.container.id}`", hint
            if not _visible(link.container):
                hint = f"read the output of the whole: steps.{link.container.id}.output"
                return "TRM204", f"step `{id}` is seen only inside `{link.container.id}`", hint
        if not inner or use.guarded or use.path[2:3] == ("status",):
            return None
        reason = f"step `{id}` may be skipped: it stands inside `{inner[0].container.id}`"
        return "TRM205", reason, "say what then: … | default(…), or ask for .status"


def _verifies(field: Field) -> bool:
    return field.area == "verify" or (field.entry is not None and field.entry.asks)


def _area(field: Field) -> Pointer:
    """The part of the workflow that a field belongs to."""
    return field.entry.area if field.entry is not None else field.part or ("steps",)


def _fails(field: Field) -> bool:
    """Whether a field is evaluated because something has failed, or at the end in any case."""
    if field.area in ("retry", "catch") or _area(field) != ("steps",):
        return True
    return field.entry is not None and any(link.caught for link in field.entry.chain)


def _binds(link: Link) -> tuple[str, ...]:
    """The names that a block sees because of what it stands in."""
    return () if link.caught else binds_of(link.container)


def binds_of(node: Node) -> tuple[str, ...]:
    """The names that a step gives to its blocks."""
    binds = getattr(node.step, "binds", None)
    return binds() if binds is not None else ()


def _visible(node: Node) -> bool:
    visible = getattr(node.step, "visible", None)
    return visible is not None and visible()


def _bound(field: Field) -> frozenset[str]:
    """The names of the loops around a field."""
    entry = field.entry
    if entry is None:
        return frozenset()
    found = {name for link in entry.chain for name in _binds(link)}
    if field.area == entry.node.verb and field.name in PER_ITEM:
        found.update(binds_of(entry.node))
    return frozenset(found)


def _shared(one: tuple[Link, ...], other: tuple[Link, ...]) -> int:
    """How many levels of nesting two places have in common."""
    for depth, (left, right) in enumerate(zip(one, other, strict=False)):
        if left.container is not right.container or left.block != right.block:
            return depth
    return min(len(one), len(other))


def _apart(node: Node) -> str:
    if _visible(node):
        return "only one of the blocks runs"
    return "the blocks run side by side: read it after they are over"
