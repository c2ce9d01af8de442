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


@verb("graph", "tramai graph review.yaml", "tramai graph review.yaml --format mermaid", "tramai graph @last")
@click.argument("target", metavar="FILE|RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(["tree", "mermaid", "dot", "json"]),
    default="tree",
    help="tree, mermaid, dot or json.",
)
def command(session: Session, target: str, form: str) -> int:
    """Draw the steps of a workflow file, or those a run was started with.

    Exit status: 0 drawn, 3 invalid file, 4 no such file and no such run.
    """
    from .. import graph

    made, statuses = _plan(session, target)
    if session.json or form == "json":
        document = graph.document(made)
        if statuses is not None:
            nodes: Any = document["nodes"]
            for node in nodes:
                node["status"] = statuses.get(node["id"], "pending")
        session.emit(document)
    elif form == "tree":
        for line in graph.tree(made, ascii=not session.out.unicode).splitlines():
            session.out.line(safe(line))
    else:
        session.out.write(graph.render(made, form))
    return 0


def _plan(session: Session, target: str) -> tuple[Plan, dict[str, str] | None]:
    """The plan of a file, or of a run together with where its steps stand."""
    from ._errors import exists
    from ._load import plan_of

    if target == "-" or exists(target) or os.sep in target or target.endswith((".yaml", ".yml", ".toml")):
        return plan_of(session, target), None
    from ..engine import restore
    from . import _fold, _select
    from ._standing import Standing

    store = session.looking()
    run_id = session.run_id = _select.find(store, target)
    run = store.get(run_id)
    views = _fold.steps(store.journal(run_id), Standing(run, time.time()))
    return restore(store, run), {view.id: view.status for view in views}
