"""The types of fields that hold expressions: what they look like to a file, to `check` and to a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec

from ..codec import Json
from ..errors import Pointer
from .parse import Record, Tree, record
from .values import ExpressionError, Run


class Use(msgspec.Struct, frozen=True):
    """A name that an expression reads: `("steps", "fetch", "output", "x")`, up to the first subscript not known.

    `start` and `end` are offsets in the text of the field. `guarded`: what is missing is no error here, because of
    `default(…)`, `is defined` or a test before it. `hint`: what may be meant if the name is not known.
    """

    path: tuple[str | int, ...]
    start: int
    end: int
    guarded: bool = False
    hint: str | None = None


class Parsed(msgspec.Struct, frozen=True):
    """One `${{ … }}` of a field (or the expression of a block tag): `start` and `end` include the delimiters."""

    text: str
    start: int
    end: int
    tree: Tree
    names: tuple[Use, ...]


class Site(msgspec.Struct, frozen=True):
    """A text with expressions; `pointer` leads to it inside a Value, and is empty otherwise."""

    pointer: Pointer
    text: str
    expressions: tuple[Parsed, ...]


class Template:
    """Text with `${{ … }}` parts. A text that is exactly one of them has the expression's own value.

    Making one never fails and costs nothing; `problems()` tells what is wrong with it.
    """

    __slots__ = ("_program", "text")
    blocks: ClassVar[bool] = False

    def __init__(self, text: str) -> None:
        self.text = text
        self._program: Callable[[Run], Any] | None = None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    @property
    def constant(self) -> bool:
        """Whether the text holds no expression at all."""
        return self._record().shape == "plain"

    @property
    def sole(self) -> bool:
        """Whether the text is exactly one `${{ … }}`."""
        return self._record().shape == "sole"

    def sites(self) -> Iterator[Site]:
        """Where expressions stand and which names they use; nothing for what cannot be parsed."""
        found = self._record()
        if found.expressions:
            yield _site((), self.text, found)

    def problems(self) -> Iterator[ExpressionError]:
        """What is wrong with the text, as errors that are not raised; each has a `code`."""
        yield from _problems((), self.text, self._record())

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a file may hold here."""
        return {
            "type": "string",
            "description": "Text; `${{ … }}` in it is replaced.",
            "examples": ["v${{ inputs.tag }}"],
        }

    def program(self) -> Callable[[Run], Any]:
        """The compiled form, made at first use."""
        if self._program is None:
            self._program = _program(self._source(), self._record())
        return self._program

    def _source(self) -> str:
        return self.text

    def _record(self) -> Record:
        return record(self._source(), blocks=self.blocks)


class Text(Template):
    """A Template that is always text, also when it is exactly one `${{ … }}`."""

    __slots__ = ()


class Prompt(Text):
    """Text with `${{ … }}`, `{% if %}`, `{% for %}`, `{% set %}` and `{## comments ##}`."""

    __slots__ = ()
    blocks: ClassVar[bool] = True

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a file may hold here."""
        return {
            "type": "string",
            "description": "Text; `${{ … }}`, `{% if %}`, `{% for %}` and `{% set %}` in it are replaced.",
            "examples": ["Summarise ${{ inputs.title }}."],
        }


class Expression(Template):
    """Exactly one `${{ … }}`, with nothing but white space around it; its value is kept as it is."""

    __slots__ = ()

    def problems(self) -> Iterator[ExpressionError]:
        """What is wrong with the text, as errors that are not raised; each has a `code`."""
        found = self._record()
        if found.shape == "sole" or found.problems:
            yield from super().problems()
            return
        inner = self._source()
        example = "${{ … }}" if found.expressions or "{{" in inner or not inner else f"${{{{ {inner[:60]} }}}}"
        advice = f"write {example}"
        if example != "${{ … }}" and "(" in inner:
            # What would be wrong inside it as well is said at once.
            inside = next(iter(record(f"${{{{ {inner} }}}}").problems), None)
            advice = inside[4] or advice if inside is not None else advice
        yield ExpressionError(
            "this must be one whole ${{ … }}" + (", without text around it" if found.expressions else ""),
            text=self.text,
            end=len(self.text),
            hint=advice,
            code="TRM207",
        )

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a file may hold here."""
        return {
            "type": "string",
            "description": "One whole `${{ … }}`.",
            "examples": ["${{ steps.fetch.output.items }}"],
        }

    def _source(self) -> str:
        # White space around it changes no value. Only the end is cut off, so that offsets stay those of the field.
        return self.text.rstrip()

    def _record(self) -> Record:
        found = super()._record()
        if (
            found.shape == "mixed"
            and len(found.body) == 2
            and isinstance(found.body[0], str)
            and not found.body[0].strip()
        ):
            return Record("sole", found.body[1], found.expressions, found.problems)
        return found


class Condition(Expression):
    """One whole `${{ … }}` that must be `true` or `false`; nothing else counts as either."""

    __slots__ = ()

    def problems(self) -> Iterator[ExpressionError]:
        """What is wrong with the text, as errors that are not raised; each has a `code`."""
        found = list(super().problems())
        yield from found
        if not found:
            from .kinds import never_boolean

            start, end, tree, _ = self._record().expressions[0]
            if what := never_boolean(tree):
                yield ExpressionError(
                    f"a condition must be true or false; this is always {what}",
                    text=self.text,
                    start=start,
                    end=end,
                    hint="compare it with something",
                    code="TRM212",
                )

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a file may hold here."""
        return {
            "type": "string",
            "description": "One whole `${{ … }}` that is true or false.",
            "examples": ["${{ steps.test.output.exit_code == 0 }}"],
        }


class Value:
    """Any JSON; every text in it, but no key, is a Template."""

    __slots__ = ("_program", "data")

    def __init__(self, data: Json) -> None:
        self.data = data
        self._program: Callable[[Run], Any] | None = None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other.data) == repr(self.data)

    def __hash__(self) -> int:
        return hash(repr(self.data))

    def __repr__(self) -> str:
        return f"Value({self.data!r})"

    @property
    def constant(self) -> bool:
        """Whether there is no expression in it."""
        return next(self.sites(), None) is None

    def sites(self) -> Iterator[Site]:
        """Where expressions stand and which names they use; nothing for what cannot be parsed."""
        for pointer, text in _texts(self.data, ()):
            found = record(text)
            if found.expressions:
                yield _site(pointer, text, found)

    def problems(self) -> Iterator[ExpressionError]:
        """What is wrong with the texts in it, as errors that are not raised; each has a `code` and a `pointer`."""
        for pointer, text in _texts(self.data, ()):
            yield from _problems(pointer, text, record(text))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a file may hold here: anything."""
        return {"description": "Any data; `${{ … }}` in its texts, but not in its keys, is replaced."}

    def program(self) -> Callable[[Run], Any]:
        """The compiled form, made at first use."""
        if self._program is None:
            self._program = _deep(self.data, ()) or (lambda run: self.data)
        return self._program


def _texts(data: Any, pointer: Pointer) -> Iterator[tuple[Pointer, str]]:
    if isinstance(data, str):
        if "${{" in data:
            yield pointer, data
    elif isinstance(data, dict):
        for name, item in data.items():
            yield from _texts(item, (*pointer, name))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            yield from _texts(item, (*pointer, index))


def _site(pointer: Pointer, text: str, found: Record) -> Site:
    return Site(
        pointer,
        text,
        tuple(
            Parsed(text[start:end], start, end, tree, tuple(Use(*use) for use in uses))
            for start, end, tree, uses in found.expressions
        ),
    )


def _problems(pointer: Pointer, text: str, found: Record) -> Iterator[ExpressionError]:
    for code, message, start, end, hint in found.problems:
        yield ExpressionError(message, text=text, start=start, end=end, hint=hint, code=code, pointer=pointer)


def _program(text: str, found: Record, pointer: Pointer = ()) -> Callable[[Run], Any]:
    for problem in _problems(pointer, text, found):
        raise problem
    from .compile import program

    return program(text, found, pointer)


def _deep(data: Any, pointer: Pointer) -> Callable[[Run], Any] | None:
    """A program for data with expressions in it; None for data without."""
    if isinstance(data, str):
        return _program(data, record(data), pointer) if "${{" in data else None
    if isinstance(data, dict):
        made = {name: _deep(item, (*pointer, name)) for name, item in data.items()}
        if any(made.values()):
            return lambda run: {name: part(run) if (part := made[name]) else item for name, item in data.items()}
    if isinstance(data, list):
        row = [_deep(item, (*pointer, index)) for index, item in enumerate(data)]
        if any(row):
            return lambda run: [part(run) if part else item for part, item in zip(row, data, strict=True)]
    return None
