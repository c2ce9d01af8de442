"""`tramai schema`: print a published JSON Schema, or the reference of a verb."""

from __future__ import annotations

import json
import os

import click

from ..errors import NotFound, UsageError
from ._group import verb
from ._session import Session

ENDING = ".schema.json"


@verb("schema", "tramai schema > workflow.schema.json", "tramai schema run", "tramai schema step shell")
@click.argument("name", metavar="[NAME]", default="workflow")
@click.argument("step", metavar="[VERB]", required=False)
@click.option("--path", "only_path", is_flag=True, help="Print the path of the file instead.")
def command(session: Session, name: str, step: str | None, only_path: bool) -> int:
    """Print a JSON Schema: of workflow files (the default), or of a --json document.

    `schema step VERB` prints the reference of a verb for people: its keys, their
    types, defaults and examples; of a step type of an installed package, those
    of its `with`. `schema step` lists the verbs.

    NAME is the middle of a document's "schema" value: `run` for tramai.run/1.
    An unknown NAME lists all names. For an editor, the first line of a workflow:

      # yaml-language-server: $schema=PATH    (tramai schema --path)

    Exit status: 0 printed, 4 no such schema or verb.
    """
    from . import _documents

    if name == "step":
        return reference(session, step)
    if step is not None:
        raise UsageError(what=f"{step} is one name too many", hint="tramai schema step VERB")
    where = folder()
    known = sorted(entry.removesuffix(ENDING) for entry in os.listdir(where) if entry.endswith(ENDING))
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"schemas: {', '.join(known)}"
        raise NotFound(kind="schema", name=name, hint=hint)
    path = os.path.join(where, name + ENDING)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if session.json:
        session.emit(_documents.Named(name=name, file=path, document=json.loads(text), names=known))
    elif only_path:
        session.out.line(path)
    else:
        session.out.write(text)
    return 0


def reference(session: Session, asked: str | None) -> int:
    """Print the reference of a verb; without one, the verbs and the keys around them."""
    from . import _reference

    if asked is None:
        found = _reference.common()
    else:
        known = _reference.step(asked) or _reference.plugin(asked)
        if known is None:
            import difflib

            from .. import kinds

            names = [*_reference.verbs(), *(one.name for one in kinds.added("steps"))]
            near = difflib.get_close_matches(asked, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"verbs: {', '.join(names)}"
            raise NotFound(kind="verb", name=asked, hint=hint)
        found = known
    if session.json:
        session.emit(found)
        return 0
    if asked is None:
        verbs = _reference.verbs()
        width = max(map(len, verbs))
        for name, text in verbs.items():
            session.out.line(f"{session.out.paint(name.ljust(width), 'bold')}  {text}")
        session.out.line()
    for line in _reference.lines(found, session.out):
        session.out.line(line)
    return 0


def folder() -> str:
    """Where the published schemas are: beside the package in a source tree, inside it when installed."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "schemas")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "schemas")
