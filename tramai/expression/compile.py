"""From trees to Python closures: the evaluator."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..errors import Pointer
from . import lookup
from .operators import ARITHMETIC, COMPARISONS, cut
from .parse import Record, Tree
from .values import BIGGEST, ExpressionError, Missing, Refused, Run, is_number, kind, plain, present_only, text_of

Program = Callable[[Run], Any]

_QUICK: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def program(text: str, found: Record, pointer: Pointer = ()) -> Program:
    """The program of a whole field."""
    if found.shape == "plain":
        return lambda run: found.body
    if found.shape == "blocks":
        from .blocks import block_program

        return block_program(text, found.body, pointer)
    compiler = Compiler(text, pointer)
    if found.shape == "sole":
        return compiler.present(found.body)
    return compiler.text([piece if isinstance(piece, str) else (piece, compiler.shown(piece)) for piece in found.body])


class Compiler:
    """Makes the closures of one field; they hold its text, to place errors."""

    def __init__(self, text: str, pointer: Pointer = (), bound: frozenset[str] = frozenset()) -> None:
        self._text = text
        self._pointer = pointer
        self._bound = bound

    def node(self, tree: Tree) -> Program:
        """The closure of a tree; it may yield a Missing."""
        if tree[0] in ARITHMETIC:
            return self._arithmetic(tree)
        made: Program = getattr(self, f"_{tree[0]}")(tree)
        return made

    def present(self, tree: Tree) -> Program:
        """The closure of a tree whose value is used: plain data, or an error at its place."""
        inner = self.node(tree)
        if tree[0] == "const":
            return inner
        if levels := _levels_of_steps(tree):
            return lambda run: self._used(tree, present_only(inner(run), levels))

        def present(run: Run) -> Any:
            value = inner(run)
            of = type(value)
            if of is str or of is dict or of is list or of is int or of is bool or value is None or of is float:
                return value
            try:
                return plain(value)
            except Refused as error:
                raise self.error(tree, error) from None

        return present

    def boolean(self, tree: Tree, what: str) -> Callable[[Run], bool]:
        """The closure of a tree that decides something."""
        inner = self.node(tree)

        def boolean(run: Run) -> bool:
            value = inner(run)
            if value is True or value is False:
                return value
            if isinstance(value, Missing):
                raise self.error(tree, value.refuse())
            wrong = f"{what} must be true or false, not {kind(value)}"
            raise self.error(tree, Refused(wrong, "there is no truthiness: compare with something"))

        return boolean

    def text(self, pieces: list[str | tuple[Tree, Program]], *, inside: bool = False) -> Program:
        """The closure of literal and computed pieces as one text; `inside` an expression, nothing is cleaned."""

        def text(run: Run) -> str:
            made = []
            for piece in pieces:
                made.append(piece if type(piece) is str else self.spell(piece, run, inside))  # type: ignore[arg-type]
            try:
                run.wrote(sum(map(len, made)))
            except Refused as error:
                raise ExpressionError(
                    error.message, text=self._text, end=len(self._text), hint=error.hint, pointer=self._pointer
                ) from None
            return "".join(made)

        return text

    def shown(self, tree: Tree) -> Program:
        """The closure of a tree that `spell` makes text of."""
        return self.present(tree) if _levels_of_steps(tree) else self.node(tree)

    def spell(self, piece: tuple[Tree, Program], run: Run, inside: bool = False) -> str:
        """The text of a computed piece."""
        value = piece[1](run)
        if type(value) is not str:
            try:
                value = text_of(value, run)
            except Refused as error:
                raise self.error(piece[0], error) from None
        return value if run.clean is None or inside else run.clean(value)

    def error(self, tree: Tree, error: Refused) -> ExpressionError:
        """The error with its place."""
        message = error.message
        if tree[0] in {"name", "get", "index"} and message.startswith("null has"):
            message = f"{self._what(tree)} is null, which {message[5:]}"
        return ExpressionError(
            message, text=self._text, start=tree[1], end=tree[2], hint=error.hint, pointer=self._pointer
        )

    def _what(self, tree: Tree) -> str:
        text = self._text[tree[1] : tree[2]]
        return text if len(text) <= 60 else text[:59] + "…"

    def _const(self, tree: Tree) -> Program:
        value = tree[3]
        return lambda run: value

    def _name(self, tree: Tree) -> Program:
        name = tree[3]

        def from_scope(run: Run) -> Any:
            try:
                return run.scope[name]
            except KeyError:
                return lookup.name(run.scope, name)

        if name not in self._bound:
            return from_scope
        return lambda run: run.local[name] if name in run.local else from_scope(run)

    def _get(self, tree: Tree) -> Program:
        inner, key, what = self.node(tree[3]), tree[4], self._what(tree[3])

        def get(run: Run) -> Any:
            value = inner(run)
            if type(value) is dict:
                try:
                    return value[key]
                except KeyError:
                    pass
            return lookup.look(value, key, what)

        return get

    def _index(self, tree: Tree) -> Program:
        inner, key, what = self.node(tree[3]), self.present(tree[4]), self._what(tree[3])
        return lambda run: lookup.look(inner(run), key(run), what)

    def _slice(self, tree: Tree) -> Program:
        inner = self.node(tree[3])
        bounds = [(lambda run: None) if bound is None else self.present(bound) for bound in tree[4:]]

        def sliced(run: Run) -> Any:
            value = inner(run)
            if isinstance(value, Missing):
                return value
            start, stop, step = [bound(run) for bound in bounds]
            try:
                return cut(run, value, start, stop, step)
            except Refused as error:
                raise self.error(tree, error) from None

        return sliced

    def _list(self, tree: Tree) -> Program:
        items = [self.present(item) for item in tree[3]]
        return lambda run: [item(run) for item in items]

    def _map(self, tree: Tree) -> Program:
        pairs = [(key, self.present(key), self.present(value)) for key, value in tree[3]]

        def mapping(run: Run) -> dict[str, Any]:
            made = {}
            for place, key, value in pairs:
                name = key(run)
                if not isinstance(name, str):
                    raise self.error(place, Refused(f"the keys of a mapping are text, not {kind(name)}"))
                made[name] = value(run)
            return made

        return mapping

    def _signed(self, tree: Tree, sign: int) -> Program:
        inner = self.present(tree[3])

        def signed(run: Run) -> Any:
            value = inner(run)
            if is_number(value):
                return sign * value
            raise self.error(tree, Refused(f"only a number has a sign, not {kind(value)}"))

        return signed

    def _neg(self, tree: Tree) -> Program:
        return self._signed(tree, -1)

    def _pos(self, tree: Tree) -> Program:
        return self._signed(tree, 1)

    def _not(self, tree: Tree) -> Program:
        inner = self.boolean(tree[3], "what follows `not`")
        return lambda run: not inner(run)

    def _and(self, tree: Tree) -> Program:
        left, right = (self.boolean(side, "each side of `and`") for side in tree[3:])
        return lambda run: left(run) and right(run)

    def _or(self, tree: Tree) -> Program:
        left, right = (self.boolean(side, "each side of `or`") for side in tree[3:])
        return lambda run: left(run) or right(run)

    def _if(self, tree: Tree) -> Program:
        test, then = self.boolean(tree[3], "what follows `if`"), self.node(tree[4])
        if tree[5] is None:
            nothing = Missing("there is no value: what follows `if` is false, and there is no `else`")
            return lambda run: then(run) if test(run) else nothing
        otherwise = self.node(tree[5])
        return lambda run: then(run) if test(run) else otherwise(run)

    def _arithmetic(self, tree: Tree) -> Program:
        left, right, careful = self.node(tree[3]), self.node(tree[4]), ARITHMETIC[tree[0]]
        quick = _QUICK.get(tree[0])

        def strict(run: Run, one: Any, other: Any) -> Any:
            try:
                return careful(run, self._used(tree[3], one), self._used(tree[4], other))
            except Refused as error:
                raise self.error(tree, error) from None

        if quick is None:
            return lambda run: strict(run, left(run), right(run))

        def calculate(run: Run) -> Any:
            one, other = left(run), right(run)
            if type(one) is int and type(other) is int and -BIGGEST < one < BIGGEST and -BIGGEST < other < BIGGEST:
                result = quick(one, other)
                if -BIGGEST < result < BIGGEST:
                    return result
            return strict(run, one, other)

        return calculate

    def _compare(self, tree: Tree) -> Program:
        first = self.node(tree[3])
        rest = [(COMPARISONS[sign], self.node(operand), operand) for sign, operand in tree[4]]

        def step(run: Run, compare: Callable[[Run, Any, Any], bool], left: Any, right: Any) -> bool:
            try:
                return compare(run, left, right)
            except Refused as error:
                raise self.error(tree, error) from None

        if len(rest) == 1:
            (compare, second, place) = rest[0]
            return lambda run: step(run, compare, self._used(tree[3], first(run)), self._used(place, second(run)))

        def chain(run: Run) -> bool:
            left = self._used(tree[3], first(run))
            for compare, operand, place in rest:
                right = self._used(place, operand(run))
                if not step(run, compare, left, right):
                    return False
                left = right
            return True

        return chain

    def _join(self, tree: Tree) -> Program:
        pieces: list[str | tuple[Tree, Program]] = [(item, self.shown(item)) for item in tree[3]]
        return self.text(pieces, inside=True)

    def _filter(self, tree: Tree) -> Program:
        from .filters import FILTERS

        return self._applied(tree, FILTERS[tree[4]])

    def _test(self, tree: Tree) -> Program:
        from .filters import TESTS

        return self._applied(tree, TESTS[tree[4]])

    def _applied(self, tree: Tree, function: Callable[..., Any]) -> Program:
        """A filter or test on its value and arguments, all of which must be there unless it is a lenient one."""
        from .filters import LENIENT

        closure = self.node if function in LENIENT else self.present
        inner = closure(tree[3])
        arguments = [closure(argument) for argument in tree[5]]
        named = {name: closure(argument) for name, argument in tree[6]}

        def applied(run: Run) -> Any:
            value = inner(run)
            given = [argument(run) for argument in arguments]
            try:
                return function(run, value, *given, **{name: argument(run) for name, argument in named.items()})
            except Refused as error:
                raise self.error(tree, error) from None

        return applied

    def _used(self, tree: Tree, value: Any) -> Any:
        if isinstance(value, Missing):
            raise self.error(tree, value.refuse())
        return value


def _levels_of_steps(tree: Tree) -> int:
    """How many levels of `steps` or of one step a tree yields: there the output of a skipped step is missing."""
    if tree[0] in {"get", "index"}:
        return 1 if tree[3][0] == "name" and tree[3][3] == "steps" else 0
    return 2 if tree[0] == "name" and tree[3] == "steps" else 0
