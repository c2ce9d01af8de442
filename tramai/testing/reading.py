"""From a test file to a checked suite: document, schema, Structs, rules; every problem in one pass."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import msgspec

from .. import document, expression, schema, workflow
from .. import plan as planning
from ..document import Document
from ..duration import Duration, parse
from ..errors import ConfigurationError, InvalidDefinition, Problem
from ..plan import Plan
from ..schema import Schema
from .suite import Case, Suite


class InvalidSuite(InvalidDefinition):
    """{file} is not a valid test file"""

    code = "TRM770"
    exit_status = 3


class Loaded(msgspec.Struct, frozen=True):
    """A test file that was read. `suite` and `plan` are None where problems leave nothing to run."""

    file: str
    document: Document
    suite: Suite | None
    plan: Plan | None
    problems: tuple[Problem, ...]

    @property
    def sound(self) -> bool:
        """Whether its tests can be run."""
        return not any(problem.severity == "error" for problem in self.problems)


def load(path: str) -> Loaded:
    """The tests of a file; InvalidSuite with every problem of it and of its workflow."""
    loaded = check_file(path)
    if not loaded.sound:
        raise InvalidSuite(loaded.problems, file=path)
    return loaded


def check_file(path: str) -> Loaded:
    """The tests of a file and all its problems; ConfigurationError when it cannot be read."""
    return examine(document.read(path))


def examine(source: Document) -> Loaded:
    """The same for a document that was read already."""
    suite, found = _suite(source)
    plan: Plan | None = None
    if suite is not None:
        plan, of_workflow = _plan(suite, source)
        found += of_workflow
        if plan is not None:
            from ._rules import problems

            found += problems(suite, source, plan)
    ordered = sorted(found, key=lambda problem: (problem.position is not None and problem.position.file != source.file,
                                                 problem.sort_key()))  # fmt: skip
    return Loaded(source.file, source, suite, plan, tuple(ordered))


def _suite(source: Document) -> tuple[Suite | None, list[Problem]]:
    if source.root is None:
        return None, list(source.problems)
    resolved = schema.resolve(source, suite_schema())
    found = [*source.problems, *resolved.problems]
    found += schema.validate(resolved.data, suite_schema(), source, known=tuple(found))
    if any(problem.severity == "error" for problem in found):
        return None, found
    try:
        return msgspec.convert(resolved.data, Suite, dec_hook=hook), found
    except msgspec.ValidationError as error:
        return None, [*found, Problem(code="TRM107", message=str(error), position=source.position(()))]


def hook(kind: type, raw: Any) -> Any:
    """For msgspec: durations and expressions."""
    if kind is Duration:
        if not isinstance(raw, str):
            raise ValueError("a duration is text such as 90s")
        return parse(raw)
    return expression.dec_hook(kind, raw)


def _plan(suite: Suite, source: Document) -> tuple[Plan | None, list[Problem]]:
    """The plan of the workflow that is tested, and what is wrong with it."""
    path = workflow_path(suite, source.file)
    try:
        found, problems = workflow.check_file(path)
    except ConfigurationError as error:
        position = source.position(("workflow",))
        hint = "a path from the folder of this file"
        problem = Problem(code="TRM780", message=error.message, hint=hint, position=position, pointer=("workflow",))
        return None, [problem]
    wrong = [problem for problem in problems if problem.severity == "error"]
    return (planning.of(found), []) if found is not None else (None, wrong)


def workflow_path(suite: Suite, file: str) -> str:
    """Where the workflow of a test file is."""
    return os.path.relpath(os.path.join(os.path.dirname(os.path.abspath(file)), suite.workflow))


@cache
def suite_schema() -> Schema:
    """The JSON Schema of test files, made from the Structs."""
    (top, case), definitions = schema.components((Suite, Case))
    for reference in (top, case):
        name = reference["$ref"].rpartition("/")[2]
        definitions[name] = schema.free(definitions[name])
    whole = definitions.pop("Suite")
    where = {"type": "string", "description": "Where an editor finds this schema; no part of the tests."}
    return {
        "$schema": schema.DIALECT,
        **whole,
        "title": "tramai workflow test",
        "description": "A file of workflow tests.",
        "properties": {"$schema": where, **whole["properties"]},
        "definitions": dict(sorted(definitions.items())),
    }
