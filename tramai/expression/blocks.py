"""The evaluator of prompts with block tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import Pointer
from .compile import Compiler
from .parse import Tree
from .values import LONGEST_TEXT, Refused, Run, kind

Statement = Callable[["Run", "_Output"], None]


class _Output:
    """The text written so far."""

    __slots__ = ("pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.size = 0

    def write(self, run: Run, text: str) -> None:
        self.size += len(text)
        run.wrote(len(text) if self.size <= LONGEST_TEXT else self.size)
        self.pieces.append(text)


def block_program(text: str, body: Sequence[tuple[Any, ...]], pointer: Pointer) -> Callable[[Run], str]:
    """The program of a text with statements in it."""
    writer = _Writer(Compiler(text, pointer, frozenset(_bound(body))))
    statements = writer.body(body)

    def written(run: Run) -> str:
        output = _Output()
        for statement in statements:
            statement(run, output)
        return "".join(output.pieces)

    return written


class _Writer:
    """Makes the closures of statements."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def body(self, statements: Sequence[tuple[Any, ...]]) -> list[Statement]:
        """The closures of some statements."""
        return [getattr(self, f"_{statement[0]}")(statement) for statement in statements]

    def _text(self, statement: tuple[Any, ...]) -> Statement:
        text = statement[1]
        return lambda run, output: output.write(run, text)

    def _out(self, statement: tuple[Any, ...]) -> Statement:
        tree = statement[1]
        node = self._compiler.shown(tree)

        def out(run: Run, output: _Output) -> None:
            text = self._compiler.spell((tree, node), run)
            self._within(tree, lambda: output.write(run, text))

        return out

    def _branch(self, statement: tuple[Any, ...]) -> Statement:
        cases = [(self._compiler.boolean(test, "what follows `if`"), self.body(body)) for test, body in statement[1]]
        otherwise = self.body(statement[2])

        def branch(run: Run, output: _Output) -> None:
            chosen = next((body for test, body in cases if test(run)), otherwise)
            for part in chosen:
                part(run, output)

        return branch

    def _let(self, statement: tuple[Any, ...]) -> Statement:
        names, tree = statement[1:]
        value = self._compiler.present(tree)

        def let(run: Run, output: _Output) -> None:
            run.local = {**run.local, **self._bind(names, value(run), tree)}

        return let

    def _each(self, statement: tuple[Any, ...]) -> Statement:
        names, tree, test, body, otherwise = statement[1:]
        items = self._compiler.present(tree)
        passes = None if test is None else self._compiler.boolean(test, "what follows `if`")
        parts, rest, weight = self.body(body), self.body(otherwise), _weight(body)

        def each(run: Run, output: _Output) -> None:
            outer = run.local
            chosen = list(self._chosen(run, items(run), tree, names, passes, weight))
            for number, bound in enumerate(chosen):
                run.local = {**outer, **bound, "loop": _loop(number, len(chosen))}
                for part in parts:
                    part(run, output)
            run.local = outer
            if not chosen:
                for part in rest:
                    part(run, output)
                run.local = outer

        return each

    def _chosen(
        self,
        run: Run,
        value: Any,
        tree: Tree,
        names: tuple[str, ...],
        passes: Callable[[Run], bool] | None,
        weight: int,
    ) -> Iterator[dict[str, Any]]:
        """The names each round binds, for the items that pass."""
        if not isinstance(value, list | Mapping):
            raise self._compiler.error(tree, Refused(f"a loop needs a list, not {kind(value)}"))
        outer = run.local
        for item in value:
            self._within(tree, lambda: run.spend(weight + len(outer)))
            bound = self._bind(names, item, tree)
            run.local = {**outer, **bound}
            if passes is None or passes(run):
                yield bound
        run.local = outer

    def _bind(self, names: tuple[str, ...], value: Any, tree: Tree) -> dict[str, Any]:
        """The names with their values; names that begin with an empty one take a list apart."""
        if names[0]:
            return {names[0]: value}
        wanted = names[1:]
        if not isinstance(value, list) or len(value) != len(wanted):
            found = f"a list of {len(value)}" if isinstance(value, list) else kind(value)
            raise self._compiler.error(tree, Refused(f"{found} cannot be given to {len(wanted)} names"))
        return dict(zip(wanted, value, strict=True))

    def _within(self, tree: Tree, act: Callable[[], None]) -> None:
        """Do something that may run into a bound, which then concerns this tree."""
        try:
            act()
        except Refused as error:
            raise self._compiler.error(tree, error) from None


def _loop(number: int, length: int) -> dict[str, Any]:
    return {
        "index": number + 1,
        "index0": number,
        "revindex": length - number,
        "revindex0": length - number - 1,
        "first": number == 0,
        "last": number == length - 1,
        "length": length,
    }


def _bound(body: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """All names that statements bind, anywhere in a text."""
    for statement in body:
        if statement[0] == "let":
            yield from statement[1]
        elif statement[0] == "branch":
            for _, inner in statement[1]:
                yield from _bound(inner)
            yield from _bound(statement[2])
        elif statement[0] == "each":
            yield from (*statement[1], "loop")
            yield from _bound(statement[4])
            yield from _bound(statement[5])


def _weight(part: Any) -> int:
    """How many nodes a part of a program has."""
    return 1 + sum(_weight(inner) for inner in part if isinstance(inner, tuple)) if isinstance(part, tuple) else 0
