"""What must hold of every run after the chaos: pure functions over what the store, the witness and the effects say.

An auditor that nobody has seen find anything proves nothing: `test_auditor` plants each violation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tramai.codec import decode
from tramai.store import Mark, Note, Record, Run, Status

from .effects import Effect
from .flows import FLOWS, policy
from .witness import Seen

DOUBT = 0.5
"""Seconds of a lease that may have passed between the server's look at its end and the witness's."""
_TICK = 0.02
"""What is written and what is read of the system's uptime are rounded down to hundredths."""


class Violation(msgspec.Struct, frozen=True):
    """Something that must not be: `kind` is what is counted."""

    kind: str
    run: str
    what: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one run."""

    run: Run
    records: tuple[Record, ...]
    notes: tuple[Note, ...] = ()
    effects: tuple[Effect, ...] = ()
    seen: tuple[Seen, ...] = ()
    now: float
    """By the store's clock, when it was read."""


def audit(evidence: Evidence) -> tuple[Violation, ...]:
    """Everything that is wrong with one run."""
    checks = (_ending, _completed_once, _journal, _unsafe_once, _have_effects, _side_by_side, _keys, _last, _folded)
    name = evidence.run.run_id
    found = [Violation(kind, name, what) for check in checks for kind, what in check(evidence)]
    return (*found, *witnessed(name, evidence.seen))


def witnessed(run_id: str, seen: Sequence[Seen]) -> tuple[Violation, ...]:
    """Everything that the witness saw and should not have seen of one run, whether it can still be read or not."""
    return tuple(Violation("stale", run_id, what) for one in seen for what in _stale(one))


def lost(acknowledged: Mapping[str, str], runs: Sequence[Run]) -> tuple[Violation, ...]:
    """Runs that were acknowledged, by start key, and are not there or are another's; start keys with two runs."""
    there = {run.run_id: run for run in runs}
    found = []
    for key, run_id in acknowledged.items():
        if run_id not in there:
            found.append(Violation("lost", run_id, f"it was acknowledged under {key}, and is not there"))
        elif there[run_id].start_key != key:
            found.append(Violation("lost", run_id, f"its start key is {there[run_id].start_key}, not {key}"))
    keys = [run.start_key for run in runs if run.start_key is not None]
    return (
        *found,
        *(Violation("duplicate", "", f"two runs of {key}") for key in {k for k in keys if keys.count(k) > 1}),
    )


Found = Iterator[tuple[str, str]]


def _ending(evidence: Evidence) -> Found:
    """Terminal, asleep, waiting for somebody, or blocked with a reason; never in anybody's hands for ever."""
    run = evidence.run
    if run.status in (Status.READY, Status.RUNNING):
        holder = "nobody" if run.lease is None or run.lease.expires <= evidence.now else run.lease.owner
        yield "stuck", f"it is {run.status.value}, held by {holder}"
    elif run.status is Status.BLOCKED and _blocking_reason(run) is None:
        yield "stuck", "it is blocked without a reason"
    elif run.status is Status.SLEEPING and run.wake_at is None:
        yield "stuck", "it sleeps, and nobody will wake it"
    elif run.status is Status.SLEEPING and run.wake_at is not None and run.wake_at < evidence.now - 60:
        yield "stuck", f"it should have been woken {evidence.now - run.wake_at:.0f} s ago"
    elif run.status in (Status.FAILED, Status.DEAD, Status.CANCELLED):  # nothing in these workflows ends like that
        yield "lost", f"it is {run.status.value}: {run.error}"


def _blocking_reason(run: Run) -> str | None:
    error = decode(run.error) if run.error else None
    return str(error.get("type")) if isinstance(error, dict) and error.get("type") else None


def _completed_once(evidence: Evidence) -> Found:
    paths = [record.path for record in evidence.records if record.mark is Mark.COMPLETED]
    for path in {path for path in paths if paths.count(path) > 1}:
        yield "duplicate", f"{path} completed {paths.count(path)} times"


def _journal(evidence: Evidence) -> Found:
    """No gap, no twin, no fence that falls, none that the header does not know."""
    records = evidence.records
    if [record.seq for record in records] != list(range(1, len(records) + 1)):
        yield "lost", f"the journal has a gap: {[record.seq for record in records]}"
    for before, after in itertools.pairwise(records):
        if after.fence < before.fence:
            yield "stale", f"record {after.seq} is of fence {after.fence}, after one of {before.fence}"
    if records and records[-1].fence > evidence.run.fence:
        yield "stale", f"a record is of fence {records[-1].fence}, the run of {evidence.run.fence}"


def _unsafe_once(evidence: Evidence) -> Found:
    """What is not safe to repeat: once per attempt, each attempt recorded before, each but the first authorised."""
    for path, effects in _by_path(evidence.effects).items():
        if policy(evidence.run.workflow, path) != "non_replayable":
            continue
        attempts = [effect.attempt for effect in effects]
        for attempt in {attempt for attempt in attempts if attempts.count(attempt) > 1}:
            yield "duplicate", f"attempt {attempt} of {path} was carried out {attempts.count(attempt)} times"
        for attempt in set(attempts):
            if not _marked(evidence.records, path, attempt, Mark.STARTED):
                yield "duplicate", f"attempt {attempt} of {path} had an effect, and was never recorded as started"
        for before, after in itertools.pairwise(sorted(set(attempts))):
            if not _marked(evidence.records, path, before, Mark.FAILED, Mark.CANCELLED):
                yield "duplicate", f"attempt {after} of {path} was carried out, and nobody had ended attempt {before}"


def _have_effects(evidence: Evidence) -> Found:
    """Each completed step of a child has an effect that came to its end in that attempt."""
    whole = {(effect.path, effect.attempt) for effect in evidence.effects if effect.ended is not None}
    resolved = {str(decode(note.data or "{}").get("path")) for note in evidence.notes if note.type == "step.resolved"}
    caught = {record.path.partition("@catch")[0] for record in evidence.records if "@catch" in record.path}
    for record in evidence.records:
        if record.mark is not Mark.COMPLETED or record.verb != "shell" or record.path in resolved | caught:
            continue
        if (record.path, record.attempt) not in whole:
            yield "lost", f"attempt {record.attempt} of {record.path} completed, and had no effect"


def _side_by_side(evidence: Evidence) -> Found:
    """Whoever takes a step over has ended what the one before had started: no two at one time, none that goes on."""
    for path, effects in _by_path(evidence.effects).items():
        for before, after in itertools.pairwise(sorted(effects, key=lambda effect: effect.began)):
            if before.ended is not None and before.ended > after.began + _TICK:
                yield "orphan", f"{path} was still carried out by {before.pid} when {after.pid} began with it"


def _keys(evidence: Evidence) -> Found:
    for path, effects in _by_path(evidence.effects).items():
        if len({effect.key for effect in effects}) > 1:
            yield "duplicate", f"{path} has had {len({effect.key for effect in effects})} idempotency keys"


def _stale(seen: Seen) -> Iterator[str]:
    """Revisions go up one by one, fences never fall, journals only grow, nothing is written after a lease."""
    if seen.kind in ("record changed", "gone"):
        yield f"what may only grow was changed: {seen.kind}"
    if seen.kind != "moved":
        return
    assert seen.revision is not None
    assert seen.was_revision is not None
    assert seen.fence is not None
    assert seen.was_fence is not None
    if seen.revision not in (seen.was_revision, seen.was_revision + 1):
        yield f"revision {seen.revision} was written over {seen.was_revision}"
    if seen.fence < seen.was_fence:
        yield f"fence {seen.fence} was written over {seen.was_fence}"
    if seen.token not in (None, seen.was_token) and seen.fence != seen.was_fence + 1:
        yield f"a new lease has fence {seen.fence} after {seen.was_fence}"
    # What anybody may add beside the holder (a decision, a wish) ends no lease and adds no record.
    under = seen.fence == seen.was_fence and seen.was_token is not None and seen.records
    if under and (seen.lease_left is None or seen.lease_left < -DOUBT):
        yield f"records of revision {seen.revision} were written with {seen.lease_left} s left of the lease"


def _last(evidence: Evidence) -> Found:
    """How the run stands is what was written last."""
    run, moves = evidence.run, [seen for seen in evidence.seen if seen.kind == "moved"]
    if moves and (moves[-1].revision, moves[-1].fence) != (run.revision, run.fence):
        yield "lost", f"revision {moves[-1].revision} was written last, the run is at {run.revision}"


def _folded(evidence: Evidence) -> Found:
    """A completed run has the outputs that its workflow comes to, and its journal adds up to the same."""
    run = evidence.run
    if run.status is not Status.COMPLETED:
        return
    saved = [decode(record.saves) for record in evidence.records if record.mark is Mark.COMPLETED and record.saves]
    state = {
        "total": sum(one.get("total", 0) for one in saved),
        "seen": [one["seen"] for one in saved if "seen" in one],
    }
    outputs = decode(run.outputs or "null")
    if not isinstance(outputs, dict) or {name: outputs.get(name) for name in state} != state:
        yield "lost", f"its journal adds up to {state}, its outputs are {outputs}"
    decisions = [decode(note.data or "{}").get("as") for note in evidence.notes if note.type == "step.resolved"]
    flow, n = FLOWS[run.workflow], decode(run.inputs)["n"]
    wanted = {"n": n, "total": flow.total(n), "seen": flow.seen(n)}
    if all(decision == "retry" for decision in decisions) and outputs != wanted:
        yield "lost", f"its outputs are {outputs}, and should be {wanted}"


def _by_path(effects: Sequence[Effect]) -> dict[str, list[Effect]]:
    found: dict[str, list[Effect]] = {}
    for effect in effects:
        found.setdefault(effect.path, []).append(effect)
    return found


def _marked(records: Sequence[Record], path: str, attempt: int, *marks: Mark) -> bool:
    return any(record.path == path and record.attempt == attempt and record.mark in marks for record in records)
