"""Schemas of files and of data: made from Structs, read along, and explained where they are broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from . import _quick
from .errors import Pointer, Problem

if TYPE_CHECKING:  # a run that is in the plan cache needs `schema_bytes` and nothing else from here
    from ._resolve import Resolved
    from .document import Document

Schema = dict[str, Any]

__all__ = [
    "Schema",
    "components",
    "free",
    "generate",
    "resolve",
    "schema_bytes",
    "schema_problems",
    "step_schema",
    "validate",
    "workflow_schema",
]
DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that every editor knows; nothing in our schemas means another thing in 2020-12."""
_FILE = "workflow.schema.json"


def generate(*types: Any, hook: Callable[[type], Schema] | None = None) -> Schema:
    """A whole schema for a type, or for one of several: Structs become definitions, docstrings descriptions."""
    references, definitions = components(types, hook)
    top = {"allOf" if len(references) == 1 else "anyOf": references}
    return {"$schema": DIALECT, **top, "definitions": definitions}


def components(
    types: Iterable[Any], hook: Callable[[type], Schema] | None = None
) -> tuple[list[Schema], dict[str, Schema]]:
    """A schema for each type, and the definitions they refer to as `#/definitions/Name`.

    A class that msgspec does not know says its schema in a classmethod `json_schema()`, and what a default looks
    like in a file in `json_default()`; `hook` is asked for classes without. A field called `schema` or `form` that is
    an untyped mapping holds a JSON Schema. `x-also` (by `Meta(extra_json_schema=…)`) lists wrong names of a key.
    """
    from ._generate import Generator

    generator = Generator(hook)
    return [generator.schema(type) for type in types], generator.definitions


def step_schema(
    verbs: dict[str, tuple[Schema, Schema | None]],
    common: dict[str, Schema],
    *,
    required: Iterable[str] = ("id",),
    title: str = "step",
    definitions: dict[str, Schema] | None = None,
) -> Schema:
    """The schema of a step: the common keys, and exactly one verb.

    A verb has the schema of its settings and, or None, that of its scalar form. `definitions` lend descriptions.
    """
    from ._generate import step

    return step(verbs, common, required=required, title=title, definitions=definitions or {})


def free(schema: Schema) -> Schema:
    """The schema of a mapping in which `x-…` keys are free for notes."""
    from ._generate import free as make

    return make(schema)


def resolve(document: Document, schema: Schema) -> Resolved:
    """The plain JSON `data` of a document, and the `problems` of reading it.

    A plain YAML scalar is the text as written where the schema wants text and would not take what the scalar looks
    like; elsewhere it is what it looks like, or a problem when readers disagree about it. Keys that are free
    (`x-…`) are left out, and so is `$schema` at the top.
    """
    from ._resolve import resolve as walk

    return walk(document, schema)


def validate(data: Any, schema: Schema, document: Document, *, known: tuple[Problem, ...] = ()) -> tuple[Problem, ...]:
    """What is wrong with the resolved data of a document: one problem for one mistake, sorted by place.

    `known` problems, of reading and resolving, silence what would only say them again.
    """
    from ._ranking import Ranking, below_any

    if document.root is None:
        return ()
    done = {problem.pointer for problem in (*known, *document.problems) if problem.code in _SAY_IT_ALL}
    found = [problem for problem in Ranking(data, schema, document).problems() if not below_any(problem.pointer, done)]
    return tuple(sorted(found, key=Problem.sort_key))


_SAY_IT_ALL = frozenset(("TRM112", "TRM119", "TRM120"))


def schema_problems(instance: Any, schema: Schema | bool, *, show: bool = True) -> list[tuple[Pointer, str]]:
    """Where and why a value does not meet a JSON Schema; nothing when it does.

    With `show` false no value is quoted, for secrets. References beyond the schema itself are never followed.
    """
    if schema is True or (isinstance(schema, dict) and _quick.fits(instance, schema)):
        return []
    if schema is False:
        return [((), "is not allowed here")]
    from . import _findings, _wording

    try:
        found = _findings.findings(instance, schema)
    except RecursionError:
        return [((), "cannot be checked: the schema refers to itself without end, or the value is too deep")]
    except Exception as error:  # noqa: BLE001 - the edge to a library that reports a broken schema in many ways
        return [((), f"cannot be checked: {_first_line(error)}")]
    problems: dict[tuple[Pointer, str], None] = {}
    for finding in found:
        for what in _sayings(finding, show, _wording):
            problems[(finding.pointer, what)] = None
    return list(problems)


def _sayings(finding: Any, show: bool, wording: Any) -> Iterable[str]:
    value = finding.value if show or finding.value is None else ""
    if finding.keyword == "type":
        yield wording.wrong_type(finding.wanted, finding.value) if show else f"must be {wording.types(finding.wanted)}"
    elif finding.keyword == "required":
        yield from (f"lacks the key `{key}`" for key in finding.wanted if key not in finding.value)
    elif finding.keyword == "additionalProperties":
        known = finding.schema.get("properties", {})
        yield from (f"has the unknown key `{key}`" for key in finding.value if key not in known)
    elif not show and finding.keyword in ("enum", "const", "pattern"):
        yield "is not an allowed value"
    else:
        yield wording.wrong_value(finding.keyword, finding.wanted, value)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


@cache
def schema_bytes() -> bytes:
    """The published schema of workflow files, as it stands in the package."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.join(here, "schemas"), os.path.join(os.path.dirname(here), "schemas")):
        try:
            with open(os.path.join(folder, _FILE), "rb") as file:
                return file.read()
        except FileNotFoundError:
            continue
    raise FileNotFoundError(_FILE)


@cache
def workflow_schema() -> Schema:
    """The published schema of workflow files. One object for the life of the process; never changed."""
    return msgspec.json.decode(schema_bytes(), type=dict[str, Any])
