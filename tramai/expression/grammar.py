"""From the nodes of Jinja2's parser to trees that can be kept and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import nodes

from . import foreign
from .kinds import never_boolean
from .names import uses_of
from .parse import Record, Tree
from .parser import FieldParser
from .scan import Part
from .tokens import Tokens, Unreadable, read_parts
from .values import suggest

Problem = tuple[str, str, int, int, str | None]

_DEEPEST = 100
_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "FloorDiv": "floordiv", "Mod": "mod", "Pow": "pow"}


def parse_expression(text: str, part: Part) -> tuple[Tree, tuple[Any, ...], list[Problem]]:
    """The tree of one `${{ … }}`, the names it uses, and what is wrong with it."""
    nothing: Tree = ("const", part.start, part.end, None)
    try:
        translator = _Translator(text)
        output = translator.statements([part])[0]
        tree = translator.tree(output.nodes[0])  # type: ignore[attr-defined]
    except Unreadable as error:
        return nothing, (), [("TRM201", error.message, error.start, error.end, error.hint)]
    if translator.problems:
        nothing = tree
    return tree, uses_of(tree, text), translator.problems


def parse_blocks(text: str, parts: list[Part]) -> Record:
    """The statements of a text with block tags."""
    from .statements import translate

    translator = _Translator(text)
    try:
        body, expressions = translate(translator.statements(parts), translator)
    except Unreadable as error:
        return Record("plain", text, (), (("TRM201", error.message, error.start, error.end, error.hint),))
    return Record("blocks", body, tuple(expressions), tuple(translator.problems))


class _Translator:
    """Turns nodes of Jinja2 into trees of ours; collects what is wrong beside the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = Tokens()
        self.problems: list[Problem] = []
        self._depth = 0

    def statements(self, parts: list[Part]) -> list[nodes.Node]:
        """What the parts of the field consist of; Unreadable for what does not follow the grammar."""
        read_parts(parts, self.tokens)
        return FieldParser(self.text, self.tokens).statements()

    def tree(self, node: nodes.Node) -> Tree:
        """The tree of an expression node."""
        name = type(node).__name__
        translate: Callable[[Any], Tree] | None = getattr(self, f"_{name.lower()}", None)
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise Unreadable("the expression is nested too deeply", node.lineno, self._end(node.lineno))
            if name in _BINARY:
                return self._around(_BINARY[name], self.tree(node.left), self.tree(node.right))  # type: ignore[attr-defined]
            if translate is None:
                raise Unreadable("this cannot stand in an expression", node.lineno, self._end(node.lineno))
            return translate(node)
        finally:
            self._depth -= 1

    def problem(self, code: str, message: str, tree: Tree | tuple[int, int], hint: str | None = None) -> None:
        """Note something wrong that does not keep the rest from being read."""
        start, end = tree if len(tree) == 2 else tree[1:3]
        self.problems.append((code, message, start, end, hint))

    def decides(self, tree: Tree, what: str) -> Tree:
        """A tree that has to be a boolean."""
        if always := never_boolean(tree):
            self.problem("TRM212", f"{what} must be true or false; this is always {always}", tree, _truth_hint(what))
        return tree

    def _end(self, start: int) -> int:
        return self.tokens.ends[self.tokens.index(start)]

    def _around(self, operation: str, *parts: Tree) -> Tree:
        return (operation, min(part[1] for part in parts), max(part[2] for part in parts), *parts)

    def _const(self, node: nodes.Const) -> Tree:
        number = self.tokens.index(node.lineno)
        if isinstance(node.value, str):
            while number + 1 < len(self.tokens.tokens) and self.tokens.tokens[number + 1].type == "string":
                number += 1
        return ("const", node.lineno, self.tokens.ends[number], node.value)

    def _name(self, node: nodes.Name) -> Tree:
        return ("name", node.lineno, self._end(node.lineno), node.name)

    def _getattr(self, node: nodes.Getattr) -> Tree:
        inner = self.tree(node.node)
        return ("get", inner[1], self.tokens.ends[self.tokens.index(node.lineno) + 1], inner, node.attr)

    def _getitem(self, node: nodes.Getitem) -> Tree:
        inner = self.tree(node.node)
        number = self.tokens.index(node.lineno)
        dotted = self.tokens.tokens[number].type == "dot"
        end = self.tokens.ends[number + 1] if dotted else self.tokens.closing(number)
        if isinstance(node.arg, nodes.Slice):
            bounds = (node.arg.start, node.arg.stop, node.arg.step)
            return ("slice", inner[1], end, inner, *(None if bound is None else self.tree(bound) for bound in bounds))
        key = self.tree(node.arg)
        if key[0] == "neg" and key[3][0] == "const" and type(key[3][3]) is int:
            key = ("const", key[1], key[2], -key[3][3])
        if key[0] == "const" and (isinstance(key[3], str) or type(key[3]) is int):
            return ("get", inner[1], end, inner, key[3])
        return ("index", inner[1], end, inner, key)

    def _list(self, node: nodes.List) -> Tree:
        items = tuple(self.tree(item) for item in node.items)
        return ("list", node.lineno, self.tokens.closing(self.tokens.index(node.lineno)), items)

    def _tuple(self, node: nodes.Tuple) -> Tree:
        items = tuple(self.tree(item) for item in node.items)
        start = min([node.lineno, *(item[1] for item in items)])
        return ("list", start, max([self._end(node.lineno), *(item[2] for item in items)]), items)

    def _dict(self, node: nodes.Dict) -> Tree:
        pairs = tuple((self.tree(pair.key), self.tree(pair.value)) for pair in node.items)
        for key, _ in pairs:
            if key[0] == "const" and not isinstance(key[3], str):
                self.problem("TRM201", "the keys of a mapping are text", key, f'write "{self.text[key[1] : key[2]]}"')
        return ("map", node.lineno, self.tokens.closing(self.tokens.index(node.lineno)), pairs)

    def _neg(self, node: nodes.Neg) -> Tree:
        inner = self.tree(node.node)
        return ("neg", node.lineno, inner[2], inner)

    def _pos(self, node: nodes.Pos) -> Tree:
        inner = self.tree(node.node)
        return ("pos", node.lineno, inner[2], inner)

    def _not(self, node: nodes.Not) -> Tree:
        inner = self.decides(self.tree(node.node), "what follows `not`")
        return ("not", min(node.lineno, inner[1]), inner[2], inner)

    def _and(self, node: nodes.And) -> Tree:
        sides = [self.decides(self.tree(side), "each side of `and`") for side in (node.left, node.right)]
        return self._around("and", *sides)

    def _or(self, node: nodes.Or) -> Tree:
        sides = [self.decides(self.tree(side), "each side of `or`") for side in (node.left, node.right)]
        return self._around("or", *sides)

    def _condexpr(self, node: nodes.CondExpr) -> Tree:
        test = self.decides(self.tree(node.test), "what follows `if`")
        then = self.tree(node.expr1)
        otherwise = None if node.expr2 is None else self.tree(node.expr2)
        end = (otherwise or test)[2]
        return ("if", then[1], end, test, then, otherwise)

    def _compare(self, node: nodes.Compare) -> Tree:
        first = self.tree(node.expr)
        rest = tuple((operand.op, self.tree(operand.expr)) for operand in node.ops)
        return ("compare", first[1], rest[-1][1][2], first, rest)

    def _concat(self, node: nodes.Concat) -> Tree:
        items = tuple(self.tree(item) for item in node.nodes)
        return ("join", items[0][1], items[-1][2], items)

    def _filter(self, node: nodes.Filter) -> Tree:
        from .filters import FILTERS, TESTS

        if node.node is None:
            raise Unreadable("this cannot stand in an expression", node.lineno, self._end(node.lineno))
        inner = self.tree(node.node)
        number = self._after_name(self.tokens.index(node.lineno))
        tree = self._use("filter", node, inner, number, FILTERS)
        for name, known, sort in (("map", FILTERS, "filter"), ("select", TESTS, "test"), ("reject", TESTS, "test")):
            if node.name == name:
                self._named(tree[5][:1], known, sort)
        if node.name in {"selectattr", "rejectattr"}:
            self._named(tree[5][1:2], TESTS, "test")
        return tree

    def _test(self, node: nodes.Test) -> Tree:
        from .filters import TESTS

        inner = self.tree(node.node)
        number = self.tokens.index(node.lineno) + 1
        negated = self.tokens.tokens[number].value == "not" and self.tokens.tokens[number].type == "name"
        number = self._after_name(number + negated)
        return self._use("test", node, inner, number, TESTS)

    def _call(self, node: nodes.Call) -> Tree:
        inner = self.tree(node.node)
        end = self.tokens.closing(self.tokens.index(node.lineno))
        self.problem("TRM201", "data has no methods, and there are no functions", (inner[1], end), _call_hint(inner))
        # What is called need not be known as a name as well; what it is called on and with are checked on.
        parts = [self.tree(argument) for argument in node.args]
        called_on = [inner[3]] if inner[0] == "get" else []
        return ("list", inner[1], end, (*called_on, *parts))

    def _after_name(self, number: int) -> int:
        """The token that ends the (dotted) name of a filter or test."""
        while number + 2 < len(self.tokens.tokens) and self.tokens.tokens[number + 1].type == "dot":
            number += 2
        return number

    def _use(self, sort: str, node: Any, inner: Tree, number: int, known: dict[str, Any]) -> Tree:
        """A filter or test with its arguments, checked; `number` is the token of its name."""
        from .filters import misuse

        arguments = tuple(self.tree(argument) for argument in node.args)
        named = tuple((keyword.key, self.tree(keyword.value)) for keyword in node.kwargs)
        place = self.tokens.tokens[number].lineno, self.tokens.ends[number]
        opened = number + 1 < len(self.tokens.tokens) and self.tokens.tokens[number + 1].type == "lparen"
        end = self.tokens.closing(number + 1) if opened else max([place[1], *(part[2] for part in arguments)])
        if node.dyn_args or node.dyn_kwargs:
            self.problem("TRM201", "arguments cannot be unpacked with * or **", (place[0], end))
        if node.name not in known:
            self.problem("TRM206", f"there is no {sort} '{node.name}'", place, _near(node.name, known))
        elif wrong := misuse(known[node.name], node.name, len(arguments), tuple(name for name, _ in named)):
            self.problem("TRM201", wrong, (place[0], end))
        return (sort, inner[1], end, inner, node.name, arguments, named)

    def _named(self, argument: tuple[Tree, ...], known: dict[str, Any], sort: str) -> None:
        """A filter or test that is named by an argument."""
        for tree in argument:
            if tree[0] == "const" and tree[3] not in known:
                name = str(tree[3])
                self.problem("TRM206", f"there is no {sort} '{name}'", tree, _near(name, known))


def _near(name: str, known: dict[str, Any]) -> str | None:
    others = {"regex_replace": "replace", "safe": "string", "strip": "trim", "len": "length", "str": "string"}
    if (habit := foreign.of_filter(name)) is not None:
        return habit
    near = others.get(name) or suggest(name, known)
    return f"did you mean '{near}'?" if near in known else "`tramai explain TRM206` lists them"


def _call_hint(callee: Tree) -> str:
    if callee[0] == "get" and callee[4] == "get":
        return 'read a key with x.key or x["key"], and give another value with `| default(…)`'
    name = callee[4] if callee[0] == "get" else callee[3] if callee[0] == "name" else "filter"
    if isinstance(name, str) and (habit := foreign.of_call(name, method=callee[0] == "get")) is not None:
        return habit
    spelled = {"strip": "trim", "len": "length", "str": "string", "dict": "fromitems", "sorted": "sort"}.get(name, name)
    from .filters import FILTERS, TESTS

    if name in {"startswith", "endswith"}:
        return f"write `x is {name}(…)`"
    if spelled in FILTERS:
        return f"write `x | {spelled}`"
    return f"write `x is {spelled}`" if spelled in TESTS else "use a filter: `x | filter(…)`"


def _truth_hint(what: str) -> str:
    if "`or`" in what:
        return "there is no truthiness; for another value write `x | default(y, true)`"
    return "there is no truthiness: compare with something"
