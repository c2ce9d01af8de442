"""A run's journal as people and documents see it: steps with their attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from .. import reducing
from ..paths import is_aside, step_id
from ..store import ENDS, Mark, Note, Record
from ._documents import Attempt, Happening, StepView
from ._standing import Standing


def steps(records: Sequence[Record], standing: Standing) -> list[StepView]:
    """Every path in the order in which it was first touched; those without an end stand as their run lets them."""
    paths: dict[str, list[Record]] = {}
    for record in records:
        if not is_aside(record.path):
            paths.setdefault(record.path, []).append(record)
    return [_step(path, found, standing.of_open_step(path)) for path, found in paths.items()]


def _step(path: str, records: list[Record], open_as: str) -> StepView:
    told = [record for record in records if record.mark is not Mark.DECIDED]
    last = told[-1] if told else records[-1]
    end = next((record for record in told if record.mark is Mark.COMPLETED), None)
    attempts: dict[int, list[Record]] = {}
    for record in told:
        # That a `catch` took care of a failure makes the attempt no less failed.
        if record.mark is not Mark.SKIPPED and not (_recovers(record) and record.attempt in attempts):
            attempts.setdefault(record.attempt, []).append(record)
    return StepView(
        path=path,
        id=step_id(path),
        verb=last.verb,
        status="recovered" if _recovers(last) else ENDS.get(last.mark, open_as),
        output=json.loads(end.value) if end is not None and end.value is not None else None,
        attempts=[_attempt(number, found, open_as) for number, found in sorted(attempts.items())],
    )


def _recovers(record: Record) -> bool:
    return record.mark is Mark.COMPLETED and record.error is not None


def _attempt(number: int, records: list[Record], open_as: str) -> Attempt:
    last = records[-1]
    started = next((record.started for record in records if record.started is not None), None)
    if started is None:
        started = next((record.at for record in records if record.mark is Mark.STARTED), None)
    error = json.loads(last.error) if last.error is not None else None
    code = error.get("exit_code") if isinstance(error, dict) else None
    return Attempt(
        attempt=number,
        status=ENDS.get(last.mark, open_as),
        started=started,
        ended=None if last.mark is Mark.STARTED else last.at,
        worker=last.worker,
        log=next((record.log for record in reversed(records) if record.log), None),
        exit_status=code if isinstance(code, int) else UNSET,
        usage=json.loads(last.usage) if last.usage is not None else UNSET,
        error=error if isinstance(error, dict) else UNSET,
    )


def state(declared: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """What `state` holds after these records, as its canonical form declares it."""
    found = {name: spec.get("initial") for name, spec in declared.items()}
    kinds = {name: spec["reduce"] for name, spec in declared.items() if "reduce" in spec}
    for record in records:
        if record.mark is Mark.COMPLETED and record.saves is not None:
            reducing.fold(found, json.loads(record.saves), kinds)
    return found


def events(notes: Sequence[Note]) -> list[Happening]:
    """The run's event list."""
    return [
        Happening(
            seq=note.seq,
            at=note.at,
            type=note.type,
            by=note.by,
            comment=note.comment,
            data=json.loads(note.data) if note.data is not None else None,
        )
        for note in notes
    ]
