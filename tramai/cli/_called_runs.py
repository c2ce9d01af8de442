"""The runs that a run has called, and those that they have called, as an export lists them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..called import called_run
from ..errors import NotFound
from ..store import Record, Run, Store
from . import _fold
from ._export_documents import CalledRun, CalledStep
from ._standing import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._documents import StepView


def ids(records: Iterable[Record]) -> list[str]:
    """The runs that were called from this journal, in order."""
    return list(_places(records))


def of(store: Store, run_id: str, records: Iterable[Record]) -> list[CalledRun]:
    """Each called run, before those that it has called itself."""
    return list(_all(store, run_id, records))


def _all(store: Store, caller: str, records: Iterable[Record]) -> Iterator[CalledRun]:
    for run_id, path in _places(records).items():
        try:
            run, journal = store.get(run_id), store.journal(run_id)
        except NotFound:  # its caller died before it was made, or it was taken away since
            yield CalledRun(run_id=run_id, caller=caller, path=path)
            continue
        yield _view(run, caller, path, journal)
        yield from _all(store, run_id, journal)


def _view(run: Run, caller: str, path: str, journal: Iterable[Record]) -> CalledRun:
    standing = Standing(run, time.time())
    return CalledRun(
        run_id=run.run_id,
        caller=caller,
        path=path,
        workflow=run.workflow,
        version=run.version,
        status=run.status.value,
        stale=standing.word != run.status.value,
        created=run.created,
        ended=run.finished,
        steps=[_step(step) for step in _fold.steps(tuple(journal), standing)],
    )


def took_of(step: StepView) -> float | None:
    """Seconds that the last attempt of a step took which has an end."""
    times = [max(one.ended - one.started, 0.0) for one in step.attempts if one.started is not None and one.ended]
    return times[-1] if times else None


def _step(step: StepView) -> CalledStep:
    return CalledStep(
        path=step.path, verb=step.verb, status=step.status, attempts=len(step.attempts), took=took_of(step)
    )


def _places(records: Iterable[Record]) -> dict[str, str]:
    """The step that called it, by the id of each run."""
    found: dict[str, str] = {}
    for record in records:
        if (run_id := called_run(record)) is not None:
            found.setdefault(run_id, record.path)
    return found
