"""The block tags of prompts: `if`, `for` and `set`, translated from Jinja2's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from jinja2 import nodes

from .names import Path, false_facts, true_facts, uses_of
from .parse import Tree
from .tokens import Tokens, Unreadable

Statement = tuple[Any, ...]
"""`("text", …)`, `("out", tree)`, `("branch", ((test, body), …), else)`, `("each", …)` or `("let", targets, tree)`."""

_DEEPEST = 30
_REFUSED = {
    "Macro": "macro",
    "Import": "import",
    "FromImport": "from … import",
    "Include": "include",
    "Extends": "extends",
    "Block": "block",
    "CallBlock": "call",
    "FilterBlock": "filter",
    "With": "with",
    "AssignBlock": "set … endset",
    "Scope": "autoescape",
}


class Translator(Protocol):
    """What turns the expressions inside the tags into trees."""

    text: str
    tokens: Tokens

    def tree(self, node: nodes.Node) -> Tree:
        """The tree of an expression node."""
        ...

    def decides(self, tree: Tree, what: str) -> Tree:
        """A tree that has to be a boolean."""
        ...


def translate(body: Sequence[nodes.Node], translator: Translator) -> tuple[tuple[Statement, ...], list[Any]]:
    """The statements of a text, and its expressions as a Record lists them."""
    walk = _Walk(translator)
    statements = walk.body(body, frozenset(), frozenset(), 0)[0]
    walk.expressions.sort(key=lambda expression: expression[:2])
    return statements, walk.expressions


class _Walk:
    """Goes through the statements with the names bound so far and the paths known to be there."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.expressions: list[tuple[int, int, Tree, tuple[Any, ...]]] = []

    def body(
        self, statements: Sequence[nodes.Node], bound: frozenset[str], facts: frozenset[Path], depth: int
    ) -> tuple[tuple[Statement, ...], frozenset[str]]:
        """The translated statements, and the names bound after them."""
        made: list[Statement] = []
        for node in statements:
            if depth > _DEEPEST:
                raise Unreadable("the tags are nested too deeply", node.lineno, node.lineno + 1)
            if isinstance(node, nodes.Output):
                made.extend(self._output(node, bound, facts))
            elif isinstance(node, nodes.If):
                statement, bound = self._branch(node, bound, facts, depth)
                made.append(statement)
            elif isinstance(node, nodes.For):
                made.append(self._each(node, bound, facts, depth))
            elif isinstance(node, nodes.Assign):
                names = self._targets(node.target)
                made.append(("let", names, self._read(node.node, bound, facts)))
                bound |= set(names)
            else:
                name = _REFUSED.get(type(node).__name__, type(node).__name__.lower())
                raise self._refusal(node, f"the tag '{name}' is not part of prompts")
        return tuple(made), bound

    def _refusal(self, node: nodes.Node, message: str) -> Unreadable:
        number = self.translator.tokens.index(node.lineno)
        end = self.translator.tokens.ends[number]
        return Unreadable(message, node.lineno, end, "there are if, for, set and raw")

    def _read(self, node: nodes.Node, bound: frozenset[str], facts: frozenset[Path], test: str = "") -> Tree:
        tree = self.translator.tree(node)
        if test:
            self.translator.decides(tree, test)
        self.expressions.append((tree[1], tree[2], tree, uses_of(tree, self.translator.text, bound, facts)))
        return tree

    def _output(self, node: nodes.Output, bound: frozenset[str], facts: frozenset[Path]) -> list[Statement]:
        return [
            ("text", part.data) if isinstance(part, nodes.TemplateData) else ("out", self._read(part, bound, facts))
            for part in node.nodes
        ]

    def _branch(
        self, node: nodes.If, bound: frozenset[str], facts: frozenset[Path], depth: int
    ) -> tuple[Statement, frozenset[str]]:
        cases, after = [], bound
        for case in (node, *node.elif_):
            test = self._read(case.test, bound, facts, "what follows `if`")
            body, names = self.body(case.body, bound, facts | true_facts(test), depth + 1)
            cases.append((test, body))
            after |= names
            facts |= false_facts(test)
        otherwise, names = self.body(node.else_, bound, facts, depth + 1)
        return ("branch", tuple(cases), otherwise), after | names

    def _each(self, node: nodes.For, bound: frozenset[str], facts: frozenset[Path], depth: int) -> Statement:
        if node.recursive:
            raise self._refusal(node, "a loop cannot be recursive")
        names = self._targets(node.target)
        items = self._read(node.iter, bound, facts)
        inner = bound | set(names)
        test = None if node.test is None else self._read(node.test, inner, facts, "what follows `if`")
        known = facts | (frozenset() if test is None else true_facts(test))
        body = self.body(node.body, inner | {"loop"}, known, depth + 1)[0]
        otherwise = self.body(node.else_, bound, facts, depth + 1)[0]
        return ("each", names, items, test, body, otherwise)

    def _targets(self, node: nodes.Node) -> tuple[str, ...]:
        """The names that are bound; a single one without a comma is a tuple of one text."""
        if isinstance(node, nodes.Name):
            return (node.name,)
        if isinstance(node, nodes.Tuple) and all(isinstance(item, nodes.Name) for item in node.items):
            return ("", *(item.name for item in node.items))  # type: ignore[attr-defined]
        raise self._refusal(node, "only names can be bound here")
