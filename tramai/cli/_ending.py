"""The last lines of a run: its outputs, or what stopped it, where, and the next command."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..event import GateAsked, RunFinished, StepFinished
from ..paths import step_id
from ._advice import resolve_commands, short
from ._clockface import took, until
from ._errors import block, notes
from ._glyphs import word
from ._session import Session
from ._tally import Tally
from ._terminal import safe

if TYPE_CHECKING:
    from ..errors import Position
    from ..plan import Plan
    from ..store import Store

TAIL = 20
"""Lines of a failed step's output that are shown."""
LONGEST = 1000
"""Characters of such a line; the log has the rest."""
_CODES = {
    "auth": "TRM602",
    "limit": "TRM402",
    "unknown_outcome": "TRM505",
    "rejected": "TRM403",
    "lease_lost": "TRM503",
    "group_full": "TRM450",
}


def show(session: Session, finished: RunFinished, tally: Tally, plan: Plan | None, store: Store) -> None:
    """Print the end of a run for people: outputs on standard output, the rest on standard error."""
    if finished.status == "completed":
        # Stored values have their keys sorted: a result must not look different when it is printed again.
        if finished.outputs:
            from ._values import lines

            for line in lines(_sorted(finished.outputs)):
                session.out.line(line)
        session.note(_summary(session, finished, tally, plan))
        return
    if finished.error is not None and (
        finished.status in ("failed", "blocked", "interrupted") or finished.error.get("type") == "group_full"
    ):
        for line in failure(session, finished, tally, plan, store):
            session.err.line(line)
    session.note(_summary(session, finished, tally, plan))
    for label, command in _ways_on(finished, tally):
        session.note(f"  {label + ':':<9} {command}")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def failure(session: Session, finished: RunFinished, tally: Tally, plan: Plan | None, store: Store) -> list[str]:
    """The error block: what, where in the file, when, its last output, its log."""
    error = finished.error or {}
    path = str(error.get("path") or error.get("step") or "")
    code = _CODES.get(str(error.get("type")), "TRM401")
    facts = [("step", _facts(path, error, tally.failed.get(path)))] if path else []
    log = _log(store, finished.run_id, path)
    if log and os.path.exists(log):
        facts.append(("log", _near(log)))
    tail = _tail(log, session.err.ellipsis)
    if tail:
        facts.append(("output", "\n".join([f"the last {len(tail)} lines" if len(tail) > 1 else "", *tail]).strip("\n")))
    if error.get("type") == "rejected":
        facts += _condition(plan, path)
    if error.get("hint"):
        facts.append(("help", str(error["hint"])))
    if finished.status == "blocked":
        facts.append(("help", resolve_commands(finished.run_id, path)))
    return block(session, "error", code, message(error, path), place(plan, path), ()) + notes(session.err, facts)


def message(error: dict[str, Any], path: str) -> str:
    """What stopped a run, in one sentence."""
    said = str(error.get("message") or error.get("type") or "failed")
    kind = error.get("type")
    if not path or kind == "lease_lost":
        return said
    if kind == "unknown_outcome":
        return f"the outcome of step '{path}' is unknown: {said}"
    if kind == "rejected":
        return f"gate '{path}' rejected the run: {said}"
    return f"step '{path}' failed: {said}"


def _facts(path: str, error: dict[str, Any], event: StepFinished | None) -> str:
    facts = [path]
    if error.get("attempt"):
        facts.append(f"attempt {error['attempt']}")
    if event is not None:
        facts.append(f"after {took(event.duration)}")
    facts.append(str(error.get("type", "")))
    return ", ".join(fact for fact in facts if fact)


def _condition(plan: Plan | None, path: str) -> list[tuple[str, str]]:
    """The condition that a gate holds."""
    node = plan.nodes.get(step_id(path)) if plan is not None else None
    condition = getattr(node.step, "check_", None) if node is not None else None
    return [("check", condition.text)] if condition is not None else []


def place(plan: Plan | None, path: str) -> Position | None:
    """Where the step of a path stands in its file."""
    if plan is None or not path:
        return None
    node, document = plan.nodes.get(step_id(path)), plan.workflow.document
    if node is None or document is None:
        return None
    return document.position(node.at)  # type: ignore[no-any-return]


def _log(store: Store, run_id: str, path: str) -> str | None:
    if not path:
        return None
    logs = [record.log for record in store.journal(run_id) if record.path == path and record.log]
    return logs[-1] if logs else None


def _tail(log: str | None, ellipsis: str) -> list[str]:
    if log is None:
        return []
    from ._tail import last_lines

    lines = last_lines(log, TAIL) or ()
    return [safe(line) if len(line) <= LONGEST else safe(line[:LONGEST]) + ellipsis for line in lines]


def _near(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _summary(session: Session, finished: RunFinished, tally: Tally, plan: Plan | None) -> str:
    said = word(session.err, finished.status)
    if finished.wake_at is not None and finished.status == "sleeping":
        said += f" until {until(finished.wake_at, time.time())}"
    untouched = tally.started is not None and not tally.started.resumed and not finished.duration
    if not untouched:
        said += f" after {took(finished.duration)}"
        if plan is not None and finished.status != "blocked":  # a blocked run stops before it counts
            said += f", {len(tally.done)} of {len(plan.workflow.steps)} steps done"
    elif finished.status == "completed":
        said += " already, nothing ran"
    if finished.status == "cancelled" and finished.error is not None and finished.error.get("group"):
        said += f": {safe(str(finished.error.get('message')))}"
    if finished.status in ("sleeping", "waiting", "blocked", "interrupted", "failed"):
        said += ". The run is saved."
    return said


def _ways_on(finished: RunFinished, tally: Tally) -> list[tuple[str, str]]:
    run = short(finished.run_id)
    if finished.status == "waiting":
        asked = tuple(tally.questions.values())
        ways = [("approve", approval(finished.run_id, one, len(asked))) for one in asked] or [("look", "tramai status")]
        return [*ways, ("later", f"tramai resume {run}")]
    if finished.status == "sleeping":
        return [("later", f"tramai resume {run}")]
    if finished.status == "failed":
        return [("look", f"tramai show {run}"), ("retry", f"tramai resume {run}")]
    if finished.status == "interrupted":
        return [("resume", f"tramai resume {run}")]
    return []


def approval(run_id: str, asked: GateAsked, count: int = 0) -> str:
    """The command that decides a question; `count`: how many there are."""
    from ._questions import command

    return command(short(run_id), safe(asked.path), asked.needs, alone=count == 1)
