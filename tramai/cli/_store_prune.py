"""`tramai store prune`: remove runs that were over long enough ago."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from ..errors import CheckpointCorrupt, UsageError
from ..retention import OVER, REMOVABLE
from ..store import Status
from ._advice import short
from ._clockface import stamp
from ._group import verb
from ._session import Session
from ._store_look import amount, many
from ._terminal import cells, pad, safe

if TYPE_CHECKING:
    from ..store import Run, Store


@verb(
    "prune",
    "tramai store prune --older-than 30d --dry-run",
    "tramai store prune --older-than 7d --status failed",
    "tramai store prune",
    summary="Remove runs that were over long enough ago.",
)
@click.option("--older-than", metavar="DURATION", help="Runs that ended before that.  [default: the setting retention]")
@click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in REMOVABLE]),
    multiple=True,
    help="Runs of this status.  [default: completed, cancelled and dead]",
)
@click.option("-n", "--dry-run", "dry", is_flag=True, help="Show what would be removed, and remove nothing.")
def prune(session: Session, older_than: str | None, statuses: tuple[str, ...], dry: bool) -> int:
    """Remove runs that ended longer ago than DURATION, with their logs.

    Of each a tombstone stays: its id and its start key are never used again, so
    nothing is started twice. A failed run can be resumed, so it is removed only
    with --status failed. A run that is not over is never removed. What became of
    the times of schedules before that goes too, unless a --status is named.

    Exit status: 0 removed, 2 no DURATION and no setting, 7 store unusable.
    """
    from .. import retention
    from ..portable import portable
    from . import _store_documents

    before = time.time() - _age(session, older_than)
    store = portable(session.looking(), "bury", "tidy")
    due = retention.due(store, before=before, statuses=tuple(map(Status, statuses)) or OVER)
    removed = list(due) if dry else list(_removed(session, store, due))
    freed = store.tidy() if removed and not dry else 0
    forget = None if dry or statuses else getattr(store, "forget_ticks", None)
    ticks = 0 if forget is None else forget(before=before)
    if session.json:
        pruned = [
            _store_documents.Pruned(
                run_id=run.run_id, workflow=run.workflow, status=run.status.value, ended=retention.ended(run)
            )
            for run in removed
        ]
        session.emit(
            _store_documents.StorePruning(
                url=store.url, before=before, dry_run=dry, removed=pruned, freed=freed, ticks=ticks
            )
        )
        return 0
    width = max((cells(safe(short(run.run_id))) for run in removed), default=0)
    for run in removed:
        head = f"{pad(safe(short(run.run_id)), width)}  {run.status.value:<9}  {stamp(retention.ended(run))}"
        session.out.line(f"{head}  {safe(run.workflow)}")
    said = many(len(removed), "run")
    size = f", {amount(freed)} more freed" if freed else ""
    size += f", {many(ticks, 'entry')} of the history of schedules" if ticks else ""
    session.note(f"{said} would be removed" if dry else f"{said} removed{size}")
    return 0


def _removed(session: Session, store: Store, due: Iterable[Run]) -> Iterator[Run]:
    """Remove runs, one after the other; those that are gone then."""
    from .. import retention
    from ..clock import SystemClock
    from ._who import me

    unread = 0
    for run in due:
        try:
            gone = retention.remove(store, run, by=me(), clock=SystemClock())
        except CheckpointCorrupt:
            unread += 1
            continue
        if gone:
            _remove_logs(session.logs_folder(), run.run_id)
            yield run
    if unread:
        stay = "stays" if unread == 1 else "stay"
        session.note(f"{many(unread, 'run')} that cannot be read {stay}: tramai store check")


def _age(session: Session, given: str | None) -> float:
    if given is None:
        kept = session.settings.retention
        if kept is None:
            hint = 'tramai store prune --older-than 30d, or retention = "30d" in tramai.toml'
            raise UsageError(what="nothing says how long runs are kept", hint=hint)
        return kept
    from ..duration import parse

    try:
        return parse(given)
    except ValueError as error:
        raise UsageError(what=f"--older-than: {error}") from None


def _remove_logs(folder: str, run_id: str) -> None:
    """What the children of a run wrote; an id that is no plain name has no folder of its own."""
    if run_id == os.path.basename(run_id) and run_id not in ("", ".", ".."):
        shutil.rmtree(os.path.join(folder, run_id), ignore_errors=True)
