"""`tramai logs`: print what the steps of a run wrote."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..errors import NotFound, TramaiError
from ..journal import log_name
from ..paths import step_id
from ..store import Mark, Record, Run, Status, Store
from ._group import verb
from ._session import Session
from ._tail import Follower, last_lines
from ._terminal import safe

if TYPE_CHECKING:
    from ._documents import Log

GLANCE = 0.2
"""Seconds between looks at a log that is followed."""


@verb("logs", "tramai logs k3f9q2mz", "tramai logs k3f9q2mz build --tail 50", "tramai logs @failed --failed")
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="[STEP]", required=False)
@click.option("--tail", type=click.IntRange(0), metavar="N", help="The last N lines of each log.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="This attempt only.  [default: all]")
@click.option("--failed", is_flag=True, help="Attempts that failed only.")
@click.option("-f", "--follow", "following", is_flag=True, help="Go on printing until the run stops.")
def command(
    session: Session,
    run: str,
    step: str | None,
    tail: int | None,
    attempt: int | None,
    failed: bool,
    following: bool,
) -> int:
    """Print what the steps of a run wrote to standard output and standard error.

    RUN is an id, the end of one, @last, @last:WORKFLOW or @failed. STEP is a path
    as `tramai show` prints it, or a step's id for all its paths. Control
    characters are shown as \\xNN; of a line that was overwritten, the end is.

    Exit status: 0 printed, 4 no such run or step.
    """
    from . import _documents, _select

    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    wanted = _Wanted(step, attempt, failed)
    found = _logs(store, run_id, wanted)
    if step is not None and (not following or _stopped(store, run_id)):
        _require(store, run_id, step)
    if following:
        return _follow(session, store, run_id, wanted, tail)
    logs = [
        _documents.Log(path=record.path, attempt=record.attempt, file=record.log or "", text=_text(record, tail))
        for record in found
    ]
    if session.json:
        session.emit(_documents.Logs(run_id=run_id, logs=logs))
        return 0
    for log in logs:
        if len(logs) > 1:
            session.out.line(session.out.paint(f"== {safe(log.path)}, attempt {log.attempt}", "bold"))
        if log.text is None:
            session.note(_unread(log))
        for line in (log.text or "").split("\n")[:-1]:
            session.out.line(safe(line))
    if not logs:
        which = " of these" if failed or attempt is not None else ""
        session.note(f"no logs{which}: steps that start no process write none")
    return 0


def _unread(log: Log) -> str:
    """Why there is no text. A child that writes nothing leaves no file."""
    whose = f"{safe(log.path)}, attempt {log.attempt}"
    if not os.path.lexists(log.file):
        return f"{whose}, wrote nothing, or its log is gone: {safe(log.file)}"
    return f"the log of {whose}, cannot be read: {safe(log.file)}"


class _Wanted:
    """Which attempts are asked for."""

    def __init__(self, step: str | None, attempt: int | None, failed: bool) -> None:
        self._step = step
        self._attempt = attempt
        self._failed = failed

    def __call__(self, path: str, attempt: int, mark: Mark) -> bool:
        """Whether this attempt, ended with this mark, is one of them."""
        if self._step is not None and self._step not in (path, step_id(path)):
            return False
        if self._attempt is not None and attempt != self._attempt:
            return False
        return not self._failed or mark in (Mark.FAILED, Mark.CANCELLED, Mark.UNKNOWN)


def _logs(store: Store, run_id: str, wanted: _Wanted) -> list[Record]:
    """The last record with a log of every attempt that is wanted."""
    found = {
        (record.path, record.attempt): record
        for record in store.journal(run_id)
        if record.log and wanted(record.path, record.attempt, record.mark)
    }
    return list(found.values())


def _require(store: Store, run_id: str, step: str) -> None:
    import difflib

    paths = list(dict.fromkeys(record.path for record in store.journal(run_id)))
    if step in paths or any(step_id(path) == step for path in paths):
        return
    near = difflib.get_close_matches(step, paths, n=1)
    raise NotFound(kind="step in this run", name=step, hint=f"did you mean {near[0]}?" if near else None)


def _text(record: Record, tail: int | None) -> str | None:
    lines = last_lines(record.log or "", tail)
    return None if lines is None else "".join(f"{line}\n" for line in lines)


def _follow(session: Session, store: Store, run_id: str, wanted: _Wanted, tail: int | None) -> int:
    from ._documents import LogLine

    for path, attempt, line in _lines(session, store, run_id, wanted, tail):
        if session.json:
            session.emit(LogLine(run_id=run_id, path=path, attempt=attempt, text=line))
        else:
            session.out.line(f"{session.out.paint(f'{safe(path)} |', 'dim')} {safe(line)}")
        if session.out.broken:
            break
    return 0


def _lines(
    session: Session, store: Store, run_id: str, wanted: _Wanted, tail: int | None
) -> Iterator[tuple[str, int, str]]:
    """Lines of all logs: those there are, then those that come, until the run stops."""
    followers: dict[tuple[str, int], Follower] = {}
    while True:
        stopped = _stopped(store, run_id)
        for path, attempt, file in _candidates(session, store, run_id, wanted):
            follower = followers.setdefault((path, attempt), Follower(file, tail))
            for line in follower.lines(last=stopped):
                yield path, attempt, line
        if stopped:
            return
        time.sleep(GLANCE)


def _candidates(session: Session, store: Store, run_id: str, wanted: _Wanted) -> Iterator[tuple[str, int, str]]:
    """Every attempt that may have a log by now; the journal learns of a log only when its attempt ends."""
    folder = os.path.join(session.logs_folder(), run_id)
    run = store.get(run_id)
    known: dict[str, int] = dict.fromkeys(_top_steps(store, run), 0)
    if run.step is not None:
        known.setdefault(run.step, 0)
    for record in store.journal(run_id):
        known[record.path] = max(known.get(record.path, 0), record.attempt)
        if record.log and wanted(record.path, record.attempt, record.mark):
            yield record.path, record.attempt, record.log
    for path, attempts in known.items():
        for attempt in (attempts, attempts + 1):
            file = os.path.join(folder, log_name(path, attempt))
            if attempt and wanted(path, attempt, Mark.STARTED) and os.path.exists(file):
                yield path, attempt, file


def _top_steps(store: Store, run: Run) -> list[str]:
    try:
        return [step["id"] for step in json.loads(store.definition(run.digest).canonical)["steps"]]
    except (TramaiError, ValueError, KeyError, TypeError):
        return []


def _stopped(store: Store, run_id: str) -> bool:
    run = store.get(run_id)
    return run.status is not Status.RUNNING or run.lease is None or run.lease.holder.known_dead()
