"""The auditor finds each violation that is planted, and nothing in a run that went as it should."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tramai.codec import encode
from tramai.store import Holder, Lease, Mark, Note, Record, Run, Status

from . import effects
from .auditor import Evidence, audit, lost
from .effects import Effect
from .witness import Seen

NOW = 1_800_000_000.0


def record(seq: int, path: str, mark: Mark, **more: Any) -> Record:
    given: dict[str, Any] = {"attempt": 1, "verb": "shell", "at": NOW, "fence": 1, **more}
    return Record(seq=seq, path=path, mark=mark, **given)


def effect(path: str, attempt: int = 1, began: float = 10.0, ended: float | None = 11.0, **more: Any) -> Effect:
    given: dict[str, Any] = {"pid": 1, "nonce": f"{path}{attempt}{began}", "key": path, **more}
    return Effect(run="r", path=path, attempt=attempt, began=began, ended=ended, **given)


def moved(revision: int, *, fence: int = 1, token: str | None = "t", records: int = 1, **more: Any) -> Seen:
    given: dict[str, Any] = {"was_fence": 1, "was_revision": revision - 1, "was_token": "t", "lease_left": 3.0, **more}
    return Seen(kind="moved", fence=fence, revision=revision, token=token, records=records, **given)


SAVED = encode({"total": 1})
RECORDS = (
    record(1, "a", Mark.STARTED, policy="non_replayable"),
    record(2, "a", Mark.COMPLETED, saves=SAVED),
    record(3, "b", Mark.COMPLETED, verb="local", saves=encode({"total": 3})),
    record(4, "c", Mark.STARTED, policy="non_replayable"),
    record(5, "c", Mark.COMPLETED, saves=SAVED),
    record(6, "d", Mark.STARTED, policy="idempotent"),
    record(7, "d", Mark.COMPLETED, saves=SAVED),
)
RUN = Run(
    run_id="r",
    generation="g",
    workflow="unsafe",
    version="1",
    digest="d",
    status=Status.COMPLETED,
    inputs=encode({"n": 3}),
    cwd="/",
    file=None,
    fence=1,
    revision=4,
    created=NOW,
    updated=NOW,
    outputs=encode({"n": 3, "total": 6, "seen": []}),
)
GOOD = Evidence(
    run=RUN,
    records=RECORDS,
    effects=(effect("a"), effect("c", began=11.0, ended=12.0), effect("d", began=12.0, ended=13.0)),
    seen=(Seen("made", 1, 1, "t"), moved(2), moved(3), moved(4, token=None)),
    now=NOW,
)
RESOLVED = Note(at=NOW, type="step.resolved", data=encode({"path": "a", "attempt": 1, "as": "retry"}))


def kinds(evidence: Evidence) -> list[str]:
    return [violation.kind for violation in audit(evidence)]


def with_run(**changes: Any) -> Evidence:
    return replace(GOOD, run=replace(RUN, **changes))


def with_effects(*more: Effect) -> Evidence:
    return replace(GOOD, effects=(*GOOD.effects, *more))


def without_record(path: str, mark: Mark, *put: Record) -> Evidence:
    left = [one for one in RECORDS if (one.path, one.mark) != (path, mark)]
    whole = sorted([*left, *put], key=lambda one: one.seq)
    return replace(GOOD, records=tuple(replace(one, seq=seq) for seq, one in enumerate(whole, 1)))


def test_a_run_that_went_well_has_no_violation() -> None:
    assert audit(GOOD) == ()


def test_a_blocked_run_says_why_and_has_no_violation() -> None:
    blocked = with_run(status=Status.BLOCKED, outputs=None, error=encode({"type": "unknown_outcome"}))
    assert audit(blocked) == ()
    assert kinds(with_run(status=Status.BLOCKED, outputs=None)) == ["stuck"]


def test_a_retry_that_somebody_authorised_is_none() -> None:
    first = (record(1, "a", Mark.STARTED), record(2, "a", Mark.UNKNOWN), record(3, "a", Mark.CANCELLED))
    again = record(4, "a", Mark.STARTED, attempt=2), record(5, "a", Mark.COMPLETED, attempt=2, saves=SAVED)
    rest = [replace(one, seq=one.seq + 3) for one in RECORDS[2:]]
    ours = effect("a", ended=None), effect("a", 2, 20.0, 21.0), *GOOD.effects[1:]
    evidence = replace(GOOD, records=(*first, *again, *rest), effects=ours, notes=(RESOLVED,))
    assert audit(evidence) == ()
    unasked = replace(evidence, records=tuple(one for one in evidence.records if one.mark is not Mark.CANCELLED))
    assert "duplicate" in kinds(unasked)


LEASE = Lease(run_id="r", owner="w", token="t", fence=1, acquired=NOW, expires=NOW + 5, holder=Holder("h", "", 1, ""))

PLANTED = {
    "nobody carries it": ("stuck", with_run(status=Status.RUNNING, outputs=None)),
    "it is ready for ever": ("stuck", with_run(status=Status.READY, outputs=None)),
    "somebody carries it for ever": ("stuck", with_run(status=Status.RUNNING, outputs=None, lease=LEASE)),
    "it was never woken": ("stuck", with_run(status=Status.SLEEPING, outputs=None, wake_at=NOW - 120)),
    "it sleeps without an end": ("stuck", with_run(status=Status.SLEEPING, outputs=None)),
    "harm made it fail": ("lost", with_run(status=Status.FAILED, outputs=None, error=encode({"type": "bug"}))),
    "a path completed twice": ("duplicate", replace(GOOD, records=(*RECORDS, replace(RECORDS[6], seq=8)))),
    "the journal has a gap": ("lost", replace(GOOD, records=(*RECORDS[:2], *RECORDS[3:]))),
    "a fence falls": ("stale", replace(GOOD, records=(replace(RECORDS[0], fence=2), *RECORDS[1:]))),
    "a fence of the future": ("stale", replace(GOOD, records=(*RECORDS[:6], replace(RECORDS[6], fence=9)))),
    "an unsafe attempt was carried out twice": ("duplicate", with_effects(effect("a", began=30.0))),
    "an unsafe attempt nobody recorded": ("duplicate", without_record("a", Mark.STARTED)),
    "an unsafe step was tried again unasked": ("duplicate", with_effects(effect("a", 2, 30.0))),
    "a completed step had no effect": ("lost", replace(GOOD, effects=GOOD.effects[1:])),
    "the effect of a completed step did not end": (
        "lost",
        replace(GOOD, effects=(effect("a", ended=None), *GOOD.effects[1:])),
    ),
    "two carry out a step at one time": ("orphan", with_effects(effect("d", began=12.5, ended=13.5))),
    "an idempotency key changes": ("duplicate", with_effects(effect("d", began=14.0, ended=15.0, key="other"))),
    "a revision was passed over": ("stale", replace(GOOD, seen=(moved(2), moved(4, was_revision=2)))),
    "an old revision was written over a new one": ("stale", replace(GOOD, seen=(moved(3, was_revision=4), moved(4)))),
    "an old fence was written over a new one": ("stale", replace(GOOD, seen=(moved(4, was_fence=2),))),
    "a lease was taken without a new fence": ("stale", replace(GOOD, seen=(moved(4, token="other"),))),
    "a write came after the end of its lease": ("stale", replace(GOOD, seen=(moved(4, lease_left=-2.0),))),
    "a write came under no lease that is known": ("stale", replace(GOOD, seen=(moved(4, lease_left=None),))),
    "a record was changed": ("stale", replace(GOOD, seen=(Seen("record changed"), moved(4)))),
    "the last write is gone": ("lost", replace(GOOD, seen=(*GOOD.seen, moved(5)))),
    "outputs do not fit the journal": ("lost", with_run(outputs=encode({"n": 3, "total": 5, "seen": []}))),
    "a saved value is missing": ("lost", without_record("c", Mark.COMPLETED, replace(RECORDS[4], saves=None))),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_found(planted: str) -> None:
    kind, evidence = PLANTED[planted]
    assert kind in kinds(evidence)


def test_a_run_that_was_acknowledged_must_be_there_once() -> None:
    ours = replace(RUN, start_key="k")
    assert lost({"k": "r"}, [ours]) == ()
    assert [one.kind for one in lost({"k": "r"}, [])] == ["lost"]
    assert [one.kind for one in lost({"k": "r"}, [RUN])] == ["lost"]
    assert [one.kind for one in lost({"k": "r"}, [ours, replace(ours, run_id="r2")])] == ["duplicate"]


def test_effects_are_read_as_they_were_written() -> None:
    about = "r\ta\t1\t77\tnonce\tkey"
    (whole,) = effects.read([f"begin\t{about}\t1.5\n", f"end\t{about}\t2.5\n"])
    assert (whole.path, whole.attempt, whole.pid, whole.began, whole.ended, whole.failed) == (
        "a",
        1,
        77,
        1.5,
        2.5,
        False,
    )
    (cut,) = effects.read([f"begin\t{about}\t1.5\n"])
    assert cut.ended is None
    with pytest.raises(ValueError, match="no line of ours"):
        effects.read([f"start\t{about}\t1.5\n"])
