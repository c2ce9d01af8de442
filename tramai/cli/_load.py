"""From a path on the command line to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..plan import Plan


def plan_of(path: str) -> Plan:
    """The plan of a workflow file, `-` for standard input; InvalidDefinition with every problem."""
    from .. import plan, workflow

    return plan.of(workflow.load(path))
