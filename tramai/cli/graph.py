"""`tramai graph`: draw the steps of a workflow file or of a run."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ..plan import Plan
    from ._drawing import Stands


@verb(
    "graph",
    "tramai graph review.yaml",
    "tramai graph review.yaml --format mermaid",
    "tramai graph @last --format svg > run.svg",
)
@click.argument("target", metavar="FILE|RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(["tree", "mermaid", "dot", "svg", "json"]),
    default="tree",
    help="tree, mermaid, dot, svg or json.",
)
def command(session: Session, target: str, form: str) -> int:
    """Draw the steps of a workflow file, or those of a run with where it stands.

    Exit status: 0 drawn, 3 invalid file, 4 no such file and no such run.
    """
    from .. import graph
    from . import _drawing

    made, found = _plan(session, target)
    if session.json or form == "json":
        document = graph.document(made)
        nodes: Any = document["nodes"]
        for node in nodes if found else ():
            node["status"] = found[node["id"]].status
        session.emit(document)
    elif form == "tree":
        said = _drawing.told(session.out, found)
        for line in graph.tree(made, ascii=not session.out.unicode, told=said).splitlines():
            session.out.line(safe(line))
    elif form == "svg":
        from ._graph_svg import svg

        session.out.write(svg(made, found))
    else:
        drawn = {"mermaid": _drawing.mermaid, "dot": _drawing.dot}[form]
        session.out.write(drawn(made, found))
    return 0


def _plan(session: Session, target: str) -> tuple[Plan, dict[str, Stands]]:
    """The plan of a file, or of a run together with where its steps stand."""
    from ._errors import exists
    from ._load import plan_of

    if target == "-" or exists(target) or os.sep in target or target.endswith((".yaml", ".yml", ".toml")):
        return plan_of(session, target), {}
    from ..engine import restore
    from . import _drawing, _fold, _select
    from ._standing import Standing

    store = session.looking()
    run_id = session.run_id = _select.find(store, target)
    run = store.get(run_id)
    views = _fold.steps(store.journal(run_id), Standing(run, time.time()))
    plan = restore(store, run)
    return plan, _drawing.stands(plan, views)
