"""Which steps a key of a test file means: an id, a path, or a path with `*` for any key."""

from __future__ import annotations

import re

import msgspec

from ..expression import suggest
from ..plan import Plan
from ..step import Block, Node

INTO = " > "
"""Between the path of a step that calls a workflow and a path in that."""
ASKED = "@verify"
"""What follows the path of a step whose `verify` asks."""
_PART = re.compile(
    r"([a-z][a-z0-9_]*(?:@\d+)?(?:@catch)?|@catch|@finally)"  # a step and its round, what it catches, a run's ends
    r'(?:\[("(?:[^"\\]|\\.)*"|[^\]"]*)\])?(?:\.|$)'
)
_ROUND = re.compile(r"@\d+")


class Pattern(msgspec.Struct, frozen=True):
    """A key, taken apart: ids with the keys of the blocks they stand in; one id alone means it anywhere.

    `inner` is what follows in the workflow that the step calls.
    """

    text: str
    parts: tuple[tuple[str, str | None], ...]
    asked: bool = False
    inner: Pattern | None = None

    @property
    def id(self) -> str:
        """The id of the step itself."""
        return _roundless(self.parts[-1][0])

    @property
    def rank(self) -> tuple[int, int, int]:
        """How little it leaves open: of two that fit, the greater one goes first."""
        exact = sum(label != "*" for _, label in self.parts[:-1])
        mine = (len(self.parts), exact, sum(name != _roundless(name) for name, _ in self.parts))
        if self.inner is None:
            return mine
        first, second, third = self.inner.rank
        return (mine[0] + first, mine[1] + second, mine[2] + third)

    @property
    def anywhere(self) -> bool:
        """Whether it means the step in every turn of every loop around it."""
        mine = all(label == "*" for _, label in self.parts[:-1])
        return mine and (self.inner is None or self.inner.anywhere)

    def fits(self, path: str) -> bool:
        """Whether the step at a path is meant."""
        if self.inner is not None:
            head, _, rest = path.partition(INTO)
            outer = msgspec.structs.replace(self, inner=None)
            return bool(rest) and outer.fits(head) and self.inner.fits(rest)
        asked = path.endswith(ASKED)
        if asked is not self.asked:
            return False
        parts = split(path.removesuffix(ASKED))
        if parts is None:
            return False
        if len(self.parts) == 1:
            return _same(self.parts[0][0], parts[-1][0])
        return len(parts) == len(self.parts) and all(
            _same(wanted, found) and (mark == label or (mark == "*" and label is not None))
            for (wanted, mark), (found, label) in zip(self.parts, parts, strict=True)
        )


def _roundless(name: str) -> str:
    return _ROUND.sub("", name)


def _same(wanted: str, found: str) -> bool:
    """Whether a step is meant; a name without a round means it in every round."""
    return wanted in (found, _roundless(found))


def split(path: str) -> tuple[tuple[str, str | None], ...] | None:
    """The parts of a path, None for a text that is none."""
    parts: list[tuple[str, str | None]] = []
    at = 0
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            return None
        parts.append((found[1], found[2]))
        at = found.end()
    if not parts or path.endswith(".") or parts[-1][1] is not None or any(label is None for _, label in parts[:-1]):
        return None
    return tuple(parts)


class Steps:
    """The steps of a plan and what stands in what, to look keys up in."""

    def __init__(self, plan: Plan) -> None:
        self.nodes = plan.nodes
        self.holders: dict[str, str] = {}
        """For each step that stands in something: the part of its path before it, without the key."""
        for _, label, block in plan.workflow.blocks()[1:]:
            self.holders.update({inner.id: f"@{label}" for inner in block.nodes})
        for id, node in plan.nodes.items():
            for _, label, block in node.blocks():
                holder = f"{id}@catch" if label == "catch" and block in caught(node) else id
                self.holders.update({inner.id: holder for inner in block.nodes})

    def find(self, key: str) -> Pattern | str:
        """The pattern of a key; or, as text, what is wrong with it."""
        if ">" in key:
            head, _, rest = key.partition(">")
            return self._inside(key, head.strip(), rest.strip())
        asked = key.endswith(ASKED)
        parts = split(key.removesuffix(ASKED))
        if parts is None:
            return f"`{key}` is no step: write an id, or a path such as `{self.path('step')}`"
        for id in (name.partition("@")[0] for name, _ in parts):
            if id and id not in self.nodes:
                near = suggest(id, list(self.nodes))
                return f"there is no step `{id}` in the workflow" + (f"; did you mean `{near}`?" if near else "")
        if len(parts) > 1:
            chain = [_roundless(name) for name, _ in parts]
            if chain != self.chain(chain[-1]):
                return f"step `{chain[-1]}` stands elsewhere: `{self.path(chain[-1])}`"
        id = _roundless(parts[-1][0])
        if asked and not isinstance(self.nodes[id].verify, Node):
            return f"step `{id}` asks no verb in `verify`"
        return Pattern(key, parts, asked)

    def _inside(self, key: str, head: str, rest: str) -> Pattern | str:
        """The pattern of a key that goes on in a called workflow."""
        outer = self.find(head)
        if isinstance(outer, str):
            return outer
        called = self.called(outer.id)
        if called is None:
            return f"step `{outer.id}` calls no workflow"
        inner = called.find(rest)
        if isinstance(inner, str):
            return f"in what `{outer.id}` calls, {inner}"
        return msgspec.structs.replace(outer, text=key, inner=inner)

    def called(self, id: str) -> Steps | None:
        """The steps of the workflow that a `call` calls."""
        node = self.nodes[id]
        found = [target.workflow for _, target in node.step.called() if target.workflow is not None]
        return Steps(Plan(found[0])) if node.verb == "call" and found else None

    def meant(self, pattern: Pattern) -> Node:
        """The step that a pattern means, in whatever workflow it stands."""
        if pattern.inner is None:
            return self.nodes[pattern.id]
        called = self.called(pattern.id)
        assert called is not None  # `find` has seen to it
        return called.meant(pattern.inner)

    def at(self, path: str) -> Node | None:
        """The step at a path."""
        head, into, rest = path.partition(INTO)
        parts = split(head.removesuffix(ASKED))
        id = _roundless(parts[-1][0]) if parts else ""
        if id not in self.nodes:
            return None
        called = self.called(id) if into else None
        return called.at(rest) if called is not None else self.nodes[id] if not into else None

    def chain(self, id: str) -> list[str]:
        """The names from the outermost container to the step."""
        found = [id]
        while (holder := self.holders.get(found[0].partition("@")[0])) is not None:
            found.insert(0, holder)
        return found

    def path(self, id: str) -> str:
        """A path that means a step anywhere."""
        return "".join(f"{one}[*]." for one in self.chain(id)[:-1]) + id


def id_of(path: str) -> str:
    """The id of the step at a path."""
    parts = split(path.removesuffix(ASKED))
    return parts[-1][0].partition("@")[0] if parts else path


def caught(node: Node) -> tuple[Block, ...]:
    """The blocks of what a step catches."""
    return tuple(clause.do for clause in node.catch if clause.do is not None)


def blocks_of(node: Node) -> tuple[Block, ...]:
    """Every block inside a step: of its verb, and of what it catches."""
    return tuple(block for _, _, block in node.blocks())
