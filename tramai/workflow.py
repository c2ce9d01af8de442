"""From a file to a checked workflow: document, schema, Structs, rules; every problem in one pass."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

from . import build, check, document, guests, linking, schema
from ._strict import Unbuildable
from .codec import decode
from .definition import Limits, SecretSource, StateSpec, Workflow
from .document import Document
from .errors import InvalidDefinition, Pointer, Problem
from .inputs import InputSpec
from .schema import Schema

__all__ = [
    "InputSpec",
    "Limits",
    "SecretSource",
    "StateSpec",
    "Workflow",
    "advise",
    "check_file",
    "examine",
    "from_canonical",
    "generate_schema",
    "load",
]

MAJOR = 1
"""The version of the language that this tramai reads."""


def load(path: str) -> Workflow:
    """The workflow in a file; `-` is standard input.

    Raises InvalidDefinition with every problem in the file, ConfigurationError when it cannot be read.
    """
    workflow, problems = check_file(path)
    if workflow is None:
        raise InvalidDefinition(problems, file="<stdin>" if path == document.STDIN else path)
    return workflow


def check_file(path: str) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """The workflow in a file, None when it has errors; and its errors and warnings, in order of the file."""
    return examine(document.read(path))


def examine(source: Document) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """The same for a document that was read already."""
    collecting = gc.isenabled()
    gc.disable()  # much is made and nothing thrown away: a collection here only costs time
    try:
        return _examine(source, linking.Reading.begin(source))
    finally:
        if collecting:
            gc.enable()


def _examine(source: Document, reading: linking.Reading) -> tuple[Workflow | None, tuple[Problem, ...]]:
    if source.root is None:
        return None, source.problems
    newer = _newer(source)
    if newer is not None:
        return None, (newer,)
    wanted = guests.schema_of(source)
    resolved = schema.resolve(source, wanted)
    found = [*source.problems, *resolved.problems]
    workflow = _build(resolved.data, source) if not _errors(found) else None
    if workflow is not None:
        found.extend(linking.link(workflow, source, reading, _examine))
        found.extend(check.problems(workflow))
    else:
        found.extend(_explain(resolved.data, source, wanted, tuple(found), reading))
    problems = tuple(sorted(_once(found), key=Problem.sort_key))
    return (None if _errors(problems) else workflow), problems


def advise(workflow: Workflow) -> tuple[Problem, ...]:
    """Warnings about a workflow without errors: what never runs, races, is used nowhere or waits without need."""
    return check.advice(workflow)


def from_canonical(text: str, version: str = "1") -> Workflow:
    """The workflow of a stored canonical form; its version stands beside it in the store."""
    return build.rebuild(decode(text), version=version)


def generate_schema() -> Schema:
    """The JSON Schema of workflow files, made anew from the Structs."""
    from . import contract

    return contract.generate()


def _newer(source: Document) -> Problem | None:
    """A file for a later version of the language may hold anything: only that is said."""
    node = source.node(("tramai",))
    if not isinstance(node, document.Scalar) or node.style not in ("", "toml"):
        return None
    text = str(node.value if node.style == "toml" else node.text)
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) <= MAJOR:
        return None
    return Problem(
        code="TRM122",
        message=f"this file needs tramai ≥ {int(text)}; this is a tramai for version {MAJOR} of the language",
        hint="install a newer tramai",
        position=source.position(("tramai",)),
        pointer=("tramai",),
    )


def _build(data: object, source: Document) -> Workflow | None:
    try:
        return build.build(data, document=source)
    except Unbuildable:
        return None


def _explain(
    data: object, source: Document, wanted: Schema, known: tuple[Problem, ...], reading: linking.Reading
) -> tuple[Problem, ...]:
    """Why data is no workflow, and what the rules say of the parts that are."""
    shape = schema.validate(data, wanted, source, known=known)
    if not _errors([*known, *shape]):
        shape = (*shape, *_unsaid(data, source))
    partial = build.salvage(data, source, [problem.pointer for problem in (*known, *shape)])
    if partial is None:
        return shape
    linked = linking.link(partial, source, reading, _examine)
    return tuple(_independent((*shape, *linked, *check.problems(partial)), known, partial))


_TAKE_AWAY = frozenset(("TRM112", "TRM113", "TRM114", "TRM117", "TRM120"))
"""Refusals of the reader after which something that was written is not there."""


def _independent(found: tuple[Problem, ...], known: tuple[Problem, ...], partial: Workflow) -> Iterator[Problem]:
    """Problems that are not said of a step (or an input, a secret …) of which the reader took something away."""
    steps = {node.at for node in partial.walk()}

    def unit(pointer: Pointer) -> Pointer:
        around = (pointer[:length] for length in range(len(pointer), 0, -1))
        return next((place for place in around if place in steps), pointer[:2])

    damaged = {unit(problem.pointer) for problem in known if problem.code in _TAKE_AWAY}
    yield from (problem for problem in found if unit(problem.pointer) not in damaged)


def _once(found: Iterable[Problem]) -> list[Problem]:
    return list(
        {(problem.code, problem.pointer, problem.position, problem.message): problem for problem in found}.values()
    )


def _unsaid(data: object, source: Document) -> Iterator[Problem]:
    """What cannot be built although the schema takes it: values that no keyword of a schema can rule out."""
    try:
        build.build(data, document=source)
    except Unbuildable as error:
        message = f"{error}"
        position = source.position(error.pointer)
        yield Problem(code="TRM107", message=message, position=position, pointer=error.pointer)


def _errors(problems: list[Problem] | tuple[Problem, ...]) -> bool:
    return any(problem.severity == "error" for problem in problems)
