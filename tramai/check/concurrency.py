"""The group of a workflow's runs: it has a name, made of what is known before the run."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from .references import ROOTS
from .scene import Scene

AREA = "concurrency"
_AT = (AREA, "group")
_KNOWN = "it is made before the run: read inputs or run.workflow"


def group(scene: Scene) -> Iterator[Problem]:
    """A name that is not empty, and reads nothing but inputs and the workflow's name."""
    rule = scene.workflow.concurrency
    if rule is None:
        return
    if not rule.group.text.strip():
        yield scene.problem("TRM393", "the name of a group is empty", _AT, hint="name it: deploy-${{ inputs.host }}")
    for read in scene.reads:
        use = read.use
        if read.field.area != AREA or scene.is_blamed(read.at, use.start, use.end):
            continue
        if use.path[0] not in ROOTS or use.path[0] == "inputs" or use.path[:2] == ("run", "workflow"):
            continue  # known, or known nowhere
        message = f"`{'.'.join(map(str, use.path))}` is not known where the name of a group is made"
        scene.blame(read.at, use.start)
        yield scene.problem("TRM393", message, read.at, hint=_KNOWN, range=(use.start, use.end))
