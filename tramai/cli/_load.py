"""From a path on the command line to a checked workflow and its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._session import Session

if TYPE_CHECKING:
    from ..errors import Problem
    from ..plan import Plan
    from ..workflow import Workflow


def plan_of(session: Session, path: str) -> Plan:
    """The plan of a workflow file, `-` for standard input; InvalidDefinition with every problem.

    A file that was checked before and has not changed is not read again.
    """
    from .. import plancache

    known = plancache.load(path) if path != "-" else None
    if known is not None:
        return known
    from .. import plan
    from ..errors import InvalidDefinition

    found, problems = check(session, path)
    if found is None:
        raise InvalidDefinition(problems, file=path)
    made = plan.of(found)
    if path != "-" and not problems:
        plancache.save(path, made)
    return made


def check(session: Session, path: str) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """The workflow in a file, None when it has errors; and all its problems.

    The text is kept for excerpts: standard input cannot be read twice, and a file may change in between.
    """
    from .. import document, workflow

    source = document.read(path)
    session.sources[source.file] = source.text
    return workflow.examine(source)
