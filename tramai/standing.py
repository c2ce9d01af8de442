"""How a stored run stands, before anybody claims it: its plan, what has changed since, who has to do something."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import recovery
from .clock import Clock
from .codec import decode
from .errors import NotFound, OutcomeUnknown
from .plan import Plan
from .results import Options, Result, exit_status
from .store import Record, Run, Status, Store

if TYPE_CHECKING:
    from .diff import Difference

_BY_OPERATORS = (
    "run.rerun_of", "run.arriving", "run.arrived", "run.copied", "cancel.requested", "step.resolved", "gate.decided",
    "call.decided", "worker.refused", "definition.accepted", "children.ended", "journal.cut", "run.traced",
)  # fmt: skip
"""Events that are no sign of a runner, or are written by one before it says that it begins."""
_BEGIN = ("run.resumed", "run.entered", "run.taken")
"""Events after which a run runs: somebody goes on with it, or it has the place that it waited for."""


def restore(store: Store, run: Run) -> Plan:
    """The plan a run was started with, from the store alone."""
    from .plan import restore as rebuild

    return rebuild(store.definition(run.digest).canonical, run.version)


def compare(stored: Plan, now: Plan) -> tuple[Difference, ...]:
    """What has changed between two plans; nothing when digest and version agree."""
    if stored.digest == now.digest and stored.workflow.version == now.workflow.version:
        return ()
    from .diff import diff

    return diff(stored, now)


def standing(run: Run, *, resumed: bool) -> Result:
    """The result of a run as the store has it."""
    error = decode(run.error) if run.error is not None else None
    status = "interrupted" if run.status in (Status.READY, Status.RUNNING) else run.status.value
    return Result(
        run_id=run.run_id,
        status=status,
        exit_status=exit_status(status, error),
        outputs=decode(run.outputs) if run.outputs is not None else None,
        error=error,
        wake_at=run.wake_at,
        resumed=resumed,
    )


def nothing_to_do(store: Store, run: Run, options: Options, by: float) -> bool:
    """Whether a run sleeps or waits for longer than this process would."""
    if run.status is Status.SLEEPING:
        return run.wake_at is not None and run.wake_at > by and not has_failed(run)
    if run.status is not Status.WAITING or options.answer is not None:
        return False
    return not _due(store, run, by)


def _due(store: Store, run: Run, by: float) -> bool:
    """Whether a run that waits can go on: by itself, or because one that it has called can, or is over."""
    from . import deciding
    from .calling import open_calls

    if deciding.due(store, run, by) or (run.wake_at is not None and run.wake_at <= by):
        return True
    for run_id in open_calls(store.journal(run.run_id)):
        with contextlib.suppress(NotFound):  # it was never made, or is removed: nothing of it is waited for
            one = store.get(run_id)
            if one.status is not Status.WAITING or _due(store, one, by):
                return True
    return False


def waits_for_somebody(store: Store, run: Run, plan: Plan | None = None) -> bool:
    """Whether a run is blocked and an operator is needed: not all that is unknown can be asked by a `verify`."""
    if run.status is not Status.BLOCKED:
        return False
    plan = plan or restore(store, run)
    waiting = recovery.unknown_attempts(store.journal(run.run_id))
    return not all(recovery.can_be_asked(plan, record) for record in waiting)


def outcome_unknown(run: Run, records: Sequence[Record]) -> OutcomeUnknown:
    """The error that tells an operator what to look at and how to go on."""
    waiting = recovery.unknown_attempts(records)
    return OutcomeUnknown(path=waiting[0].path, run_id=run.run_id, attempts=waiting)


def new_id(clock: Clock) -> str:
    """A UUIDv7 (RFC 9562): ordered by time, its end random, so that people use the last eight characters."""
    millis = int(clock.now() * 1000) & ((1 << 48) - 1)
    noise = int.from_bytes(os.urandom(10), "big")
    value = millis << 80 | 0x7 << 76 | (noise >> 68) << 64 | 0b10 << 62 | noise & ((1 << 62) - 1)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def ran_before(store: Store, run: Run, records: Sequence[Record]) -> float:
    """Seconds the run has been running in earlier claims: from each start to the last sign of life before the next.

    Not of this run: what operators noted, and results that it took over from an earlier one. Nor is it running while
    it stands in line for its group.
    """
    if not records:
        return 0.0
    marks = [(run.created, _BEGINS)]
    notes = (note for note in store.notes(run.run_id) if note.type not in _BY_OPERATORS)
    marks += [
        (note.at, _BEGINS if note.type in _BEGIN else _WAITS if note.type == "run.queued" else _LIVES) for note in notes
    ]
    marks += [(record.at, _WORKS) for record in records if record.at >= run.created]
    total, start, last, waits = 0.0, run.created, run.created, False
    for at, mark in sorted(marks):
        if mark == _BEGINS or (waits and mark == _WORKS):
            total += last - start
            start = last = at
        elif not waits and mark != _WAITS:
            last = at
        waits = mark == _WAITS or (waits and mark == _LIVES)
    return total + last - start


_LIVES, _WORKS, _BEGINS, _WAITS = range(4)
"""What a line of the event list or a record says of a run at its instant."""


def has_failed(run: Run) -> bool:
    """Whether it is a failed run that is gone on with, by somebody or by itself; also if he died before he wrote."""
    if run.status in (Status.RUNNING, Status.SLEEPING) and run.error is not None:
        return bool(decode(run.error).get("type") != "unknown_outcome")
    return run.status is Status.FAILED


def in_finally(records: Sequence[Record]) -> bool:
    """Whether a walk had come to the end of its run: what had failed has failed."""
    return bool(records) and max(records, key=lambda record: record.seq).path.startswith("@finally")
