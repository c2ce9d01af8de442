"""A run of somebody else, as the events its runner told: made of what the store has, piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .. import asking, deciding
from ..answering import told_of
from ..engine import exit_status
from ..event import Event, GateDecided, RunFinished, RunStarted, StepFinished, StepStarted
from ..paths import is_aside, step_id
from ..store import Mark, Note, Record, Run, Status, Store

_ENDS = {
    Mark.COMPLETED: "succeeded",
    Mark.FAILED: "failed",
    Mark.CANCELLED: "cancelled",
    Mark.SKIPPED: "skipped",
}


class Follower:
    """Reads what is new of a run. The journal is read only when the run's revision has changed."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._revision = -1
        self._seen = (0, 0)
        self._begun: set[tuple[str, int]] = set()
        self._decided: set[tuple[str, int]] = set()
        self.run = store.get(run_id)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen by itself: it ended, or failed."""
        return self.run.status.terminal or self.run.status is Status.FAILED

    def news(self) -> list[Event]:
        """What has happened since the last call, in order; `run.started` first, `run.finished` when it is over."""
        run = self._store.get(self._run_id)
        if run.revision == self._revision and run.status is self.run.status:
            return []
        first, self.run, self._revision = self._revision < 0, run, run.revision
        records, notes = self._store.journal(self._run_id), self._store.notes(self._run_id)
        found = [RunStarted(
            run_id=run.run_id, workflow=run.workflow, version=run.version, digest=run.digest, resumed=False,
            file=run.file,
        )] if first else []  # fmt: skip
        events: list[Event] = [*found, *self._between(records, notes)]
        if self.over:
            events.append(_finished(run))
        return events

    def _between(self, records: tuple[Record, ...], notes: tuple[Note, ...]) -> Iterator[Event]:
        """The new lines of journal and event list, brought together by their times."""
        new_records, new_notes = records[self._seen[0] :], notes[self._seen[1] :]
        self._seen = (len(records), len(notes))
        lines: list[Record | Note] = sorted([*new_records, *new_notes], key=lambda line: line.at)
        for line in lines:
            if isinstance(line, Record):
                yield from self._of_record(line)
            else:
                yield from self._of_note(line, records, notes)

    def _of_record(self, record: Record) -> Iterator[Event]:
        path, id, verb, attempt = record.path, step_id(record.path), record.verb, record.attempt
        if record.mark is Mark.DECIDED or is_aside(path):
            return  # a decision about a step is no step
        if record.mark is not Mark.SKIPPED and (path, attempt) not in self._begun:
            self._begun.add((path, attempt))
            began = record.started if record.started is not None else record.at
            yield StepStarted(path=path, id=id, verb=verb, attempt=attempt, at=began)
        status = _ENDS.get(record.mark)
        if status is None:
            return
        began = record.started if record.started is not None else record.at
        yield StepFinished(
            path=path,
            id=id,
            verb=verb,
            attempt=attempt,
            status="recovered" if record.mark is Mark.COMPLETED and record.error is not None else status,
            duration=max(record.at - began, 0.0),
            error=json.loads(record.error) if record.error is not None and record.mark is not Mark.COMPLETED else None,
        )

    def _of_note(self, note: Note, records: tuple[Record, ...], notes: tuple[Note, ...]) -> Iterator[Event]:
        if note.type == asking.ASKED and note.data is not None:
            yield from self._asked(json.loads(note.data), note.at, records)
        elif note.type == asking.DECIDED and note.data is not None:
            data = json.loads(note.data)
            path, number = data["path"], data["asking"]
            question = deciding.asked(records, path, number)
            decision = None
            if question is not None:
                earlier = [one for one in notes if one.seq <= note.seq]
                decision = asking.outcome(question, asking.votes(earlier, path, number))
            if decision is not None and (path, number) not in self._decided:
                self._decided.add((path, number))
                yield GateDecided(path=path, id=step_id(path), decision=decision.decision, at=note.at, by=note.by)

    def _asked(self, data: dict[str, object], at: float, records: tuple[Record, ...]) -> Iterator[Event]:
        """A gate leaves no record of its start: it has begun when it asks."""
        path, number = str(data["path"]), data["asking"]
        question = deciding.asked(records, path, number if isinstance(number, int) else 1)
        if question is None:
            return
        ended = [record.attempt for record in records if record.path == path and record.at < at]
        attempt = max(ended, default=0) + 1
        if (path, attempt) not in self._begun:
            self._begun.add((path, attempt))
            yield StepStarted(path=path, id=step_id(path), verb="gate", attempt=attempt, at=at)
        yield told_of(path, question)


def _finished(run: Run) -> RunFinished:
    error = json.loads(run.error) if run.error is not None else None
    ended = run.finished if run.finished is not None else run.updated
    status = run.status.value
    return RunFinished(
        run_id=run.run_id,
        status=status,
        exit_status=exit_status(status, error),
        outputs=json.loads(run.outputs) if run.outputs is not None else None,
        error=error,
        duration=max(ended - run.created, 0.0),
    )
