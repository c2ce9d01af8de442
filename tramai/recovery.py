"""What a crashed attempt allows, and what an operator may say of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from .clock import Clock
from .codec import Json, NotJson, check, encode
from .errors import InvalidInput, NotFound, NotInThatState
from .paths import SUSPENDED, step_id
from .plan import Plan
from .step import Replay
from .store import Change, Mark, Note, Record, Run, Status, Store

DECISIONS = ("completed", "failed", "retry", "skipped")
_MARKS = {
    "completed": Mark.COMPLETED,
    "failed": Mark.FAILED,
    "retry": Mark.CANCELLED,  # it has not failed: it is as if it had not been tried
    "skipped": Mark.SKIPPED,
}


def open_attempts(records: Iterable[Record]) -> tuple[Record, ...]:
    """The `started` records whose end was never seen; not those that a step has suspended in order."""
    started: dict[str, Record] = {}
    for record in records:
        if record.mark is Mark.STARTED:
            started[record.path] = record
        elif record.path.endswith(SUSPENDED):
            started.pop(record.path.removesuffix(SUSPENDED), None)
        elif record.mark is not Mark.DECIDED:
            started.pop(record.path, None)
    return tuple(started.values())


def unknown_attempts(records: Iterable[Record]) -> tuple[Record, ...]:
    """The attempts whose outcome is unknown and still waits for an operator."""
    found: dict[str, Record] = {}
    for record in records:
        if record.mark is Mark.UNKNOWN:
            found[record.path] = record
        elif record.mark is not Mark.DECIDED:
            found.pop(record.path, None)
    return tuple(found.values())


def can_be_asked(plan: Plan, record: Record) -> bool:
    """Whether the step of an attempt has a `verify`, which tells what became of it once the walk gets there."""
    node = plan.nodes.get(step_id(record.path))
    return node is not None and node.verify is not None


def settle(records: Sequence[Record], *, now: float, fence: int, worker: str, plan: Plan) -> tuple[Record, ...]:
    """What to append when a run is taken over: `unknown` for each open attempt that is not safe to repeat.

    Replayable steps leave no `started` record, an idempotent one may simply run again with the same key, and one with
    a `verify` is asked.
    """
    seq = max((record.seq for record in records), default=0)
    made: list[Record] = []
    for record in open_attempts(records):
        if record.policy == Replay.NON_REPLAYABLE and not can_be_asked(plan, record):
            seq += 1
            error: dict[str, Json] = {
                "type": "unknown_outcome",
                "message": "the step had started when its runner died, and its end was not seen",
                "step": record.path,
                "path": record.path,
                "attempt": record.attempt,
            }
            made.append(
                msgspec.structs.replace(
                    record, seq=seq, mark=Mark.UNKNOWN, at=now, fence=fence, worker=worker, error=encode(error)
                )
            )
    return tuple(made)


def resolve(
    store: Store, run: Run, path: str, *, as_: str, output: Any = None, comment: str = "", by: str = "", clock: Clock
) -> Run:
    """Say what became of a step whose outcome is unknown; once, fenced, and kept in the event list.

    `completed` takes `output` as the step's output; `failed` ends the run as failed; `retry` lets the next resume run
    the step again; `skipped` goes on without it. NotInThatState unless the run is blocked, NotFound for a step that
    is not waiting to be resolved, InvalidInput for an output that the `schema` of the step does not take.
    """
    if as_ not in DECISIONS:
        raise ValueError(f"a step is resolved as one of {', '.join(DECISIONS)}")
    if run.status is not Status.BLOCKED:
        what = "only a run that is blocked by an unknown outcome can be resolved"
        raise NotInThatState(run_id=run.run_id, status=run.status.value, what=what)
    records = store.journal(run.run_id)
    waiting = {record.path: record for record in unknown_attempts(records)}
    if path not in waiting:
        hint = "waiting to be resolved: " + (", ".join(sorted(waiting)) or "nothing")
        raise NotFound(kind="step with an unknown outcome", name=path, hint=hint)
    if as_ == "completed":
        _check(store, run, path, output)
    now = clock.now()
    base = waiting.pop(path)
    record = msgspec.structs.replace(
        base,
        seq=max(record.seq for record in records) + 1,
        mark=_MARKS[as_],
        at=now,
        worker=by or None,
        value=encode(output) if as_ == "completed" else None,
        error=_said(base, as_, comment) if as_ in ("failed", "retry") else None,
    )
    status = Status.BLOCKED if waiting else Status.FAILED if as_ == "failed" else Status.READY
    data = encode({"path": path, "attempt": base.attempt, "as": as_})
    change = Change(
        now=now,
        records=(record,),
        notes=(Note(at=now, type="step.resolved", by=by or None, comment=comment or None, data=data),),
        status=status,
        error=record.error if status is Status.FAILED else msgspec.UNSET if waiting else None,
        finished=now if status is Status.FAILED else None,
    )
    store.amend(run.run_id, revision=run.revision, change=change)
    return store.get(run.run_id)


def _check(store: Store, run: Run, path: str, output: Any) -> None:
    """Refuse an output that the step could not have given."""
    from .plan import restore
    from .schema import schema_problems

    try:
        check(output)
    except NotJson as error:
        raise InvalidInput(name="--output", what=str(error)) from None
    node = restore(store.definition(run.digest).canonical).nodes.get(step_id(path))
    found = schema_problems(output, node.schema) if node is not None and node.schema is not None else []
    for where, why in found[:1]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        what = f"does not meet the schema of step '{path}': output{place} {why}"
        raise InvalidInput(name="--output", what=what, hint="give what the step itself would have given")


def _said(base: Record, as_: str, comment: str) -> str:
    what = "an operator said that it failed" if as_ == "failed" else "an operator said to run it again"
    error: dict[str, Json] = {
        "type": "unknown_outcome",
        "message": f"{what}: {comment}" if comment else what,
        "step": base.path,
        "path": base.path,
        "attempt": base.attempt,
    }
    return encode(error)
