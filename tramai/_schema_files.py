"""Takes JSON Schemas that stand in files of their own into the workflow that refers to them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from . import beside, document, schema
from .beside import Unreadable
from .check import keywords
from .check.schemas import Place, of
from .definition import Workflow
from .document import Document
from .errors import Pointer, Position, Problem, Related
from .hashing import sha256

_MOST = 16 << 20
"""Characters of all that is put into one workflow: it becomes part of its definition, which is kept."""


def take(workflow: Workflow, source: Document) -> Iterator[Problem]:
    """Put the content of a file into the place of each `{$ref: file}`; what is wrong where that cannot be done.

    What has references of its own can only be a whole schema: inside of another they would lead somewhere else.
    """
    known: dict[str, dict[str, Any] | None] = {}
    sizes: dict[str, int] = {}
    taken = 0
    for at, whole in of(workflow):
        for pointer, part in list(_references(whole, at)):
            name = part.pop("$ref")
            path = beside.path_of(name, source)
            if path in known and known[path] is None:
                continue  # what is wrong with the file has been said
            try:
                if part:
                    raise Unreadable("nothing else can stand beside it", "put what else there is into the file")
                found = known[path] = known.get(path) or _read(name, source)
                if part is not whole and any(_references(found, (), local=True)):
                    hint = "refer to it as the whole of the `schema`"
                    raise Unreadable("it refers to places of its own, and stands inside another schema", hint)
                sizes[path] = sizes.get(path) or len(json.dumps(found))
                taken += sizes[path]
                if taken > _MOST:
                    raise Unreadable("what is taken from files comes to more than 16 MiB", "refer to it fewer times")
                part.update(copy.deepcopy(found))
            except Unreadable as error:
                known.setdefault(path, None)
                message = f"cannot use the schema file {path}: {error.why}"
                yield _problem(source, (*pointer, "$ref"), message, error)


class _Broken(Unreadable):
    """A file that is not what it should be, and the place in it."""

    def __init__(self, why: str, hint: str | None, position: Position | None) -> None:
        super().__init__(why, hint)
        self.related = (Related(position, "it is here"),) if position is not None else ()


def _read(name: str, source: Document) -> dict[str, Any]:
    if "${{" in name:
        raise Unreadable("it takes no expression: it is read before the run", "write the schema of each case")
    if "#" in name:
        raise Unreadable("a place inside another file cannot be named", "put that schema into a file of its own")
    if "://" in name:
        raise Unreadable("nothing is fetched to read a workflow", "keep a copy beside the workflow")
    path = beside.path_of(name, source)
    text, content = beside.text_of(path)
    if not text.strip():
        raise Unreadable("it is empty")
    if path.endswith(".json"):
        _strictly(text)
    made = document.parse(content, file=path)
    read = schema.resolve(made, {}) if made.root is not None else None
    problems = [*made.problems, *(read.problems if read else ())]
    if problems or read is None:
        raise _Broken(problems[0].message, problems[0].hint, problems[0].position)
    data: dict[str, Any] = read.data
    if any(_references(data, ())):
        raise Unreadable("it refers to another file", "put everything into one file")
    for inside, what, hint in keywords.faults(data):
        raise _Broken(f"it is not a JSON Schema: {what}", hint, made.position(inside))
    source.beside[path] = sha256(content)
    return data


def _strictly(text: str) -> None:
    """JSON is read by the parser for YAML, which takes more; then other tools could not read the file."""
    try:
        json.loads(text)
    except ValueError as error:
        raise Unreadable(f"it is not JSON: {error}") from None
    except RecursionError:
        raise Unreadable("it is nested too deep") from None


def _references(part: Any, at: Pointer, *, local: bool = False) -> Iterator[Place]:
    """Parts that refer to a file (`local`: to a place in the same schema)."""
    if isinstance(part, dict):
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith("#") == local:
            yield at, part
        for key, inside in part.items():
            if key in keywords.NAMING and isinstance(inside, dict):
                for name, named in inside.items():  # a name may be that of a keyword
                    yield from _references(named, (*at, key, name), local=local)
            elif key not in ("enum", "const", "default", "examples"):
                yield from _references(inside, (*at, key), local=local)
    elif isinstance(part, list):
        for index, inside in enumerate(part):
            yield from _references(inside, (*at, index), local=local)


def _problem(source: Document, pointer: Pointer, message: str, error: Unreadable) -> Problem:
    related = error.related if isinstance(error, _Broken) else ()
    position = source.position(pointer)
    return Problem(code="TRM369", message=message, hint=error.hint, position=position, pointer=pointer, related=related)
