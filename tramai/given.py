"""What the expressions of a run see from its start on: its inputs, secrets, facts about it, and its `env`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .codec import decode
from .expression import ExpressionError, render_text
from .outcomes import StepFailed
from .plan import Plan
from .store import Run


def names(run: Run, secrets: Mapping[str, str], *, attempt: int) -> dict[str, Any]:
    """The names that are in scope before the first step; `attempt` counts the claims of the run."""
    return {
        "inputs": decode(run.inputs),
        "secrets": secrets,
        "run": {
            "id": run.run_id,
            "workflow": run.workflow,
            "version": run.version,
            "attempt": attempt,
            "started_at": run.created,
            "started_by": run.started_by,
        },
    }


def env(plan: Plan, known: Mapping[str, Any]) -> dict[str, str]:
    """The environment that the workflow declares; StepFailed when it cannot be made."""
    try:
        return {name: render_text(value, known) for name, value in plan.workflow.env.items()}
    except ExpressionError as error:
        failed = StepFailed(path="env", reason=str(error), error={"type": "expression", "message": str(error)})
        raise failed from error
