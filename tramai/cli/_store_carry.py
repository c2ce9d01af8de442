"""`tramai store copy` and `move`: whole runs to another store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ..errors import (
    CheckpointCorrupt,
    ConfigurationError,
    NotFound,
    NotInThatState,
    StoreUnavailable,
    TramaiError,
    UsageError,
)
from ..store import CALLED, Status
from ._advice import short
from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ..store import Store
    from ._store_documents import Carried

_PAGE = 200
_TO = click.option("--to", metavar="URL", required=True, help="The store to bring them to; made if there is none.")


@verb(
    "copy",
    "tramai store copy k3f9q2mz --to sqlite:archive.db",
    "tramai store copy --all --to markdown:audit",
    summary="Copy runs that are over to another store.",
)
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every run that is over; those that can go on stay out.")
@_TO
def copy(session: Session, runs: tuple[str, ...], everything: bool, to: str) -> int:
    """Copy runs with journal, events, definition and start key to another store.

    Only runs that are over: a copy of one that can go on could go on twice. To
    take such runs along, use `tramai store move`. What is there already is left
    as it is, so the same command again copies what is new.

    Exit status: 0 copied, 2 bad arguments, 4 no such run, 5 a run can still go
    on, or its id or start key is taken; 7 store unusable.
    """
    from .. import moving
    from ..clock import SystemClock
    from . import _store_documents
    from ._who import me

    def carry(source: Store, target: Store, run_id: str) -> str:
        return "copied" if moving.copy(source, target, run_id, by=me(), clock=SystemClock()) else "there"

    source, target, carried, status = _carry(session, runs, everything, to, carry)
    if session.json:
        session.emit(_store_documents.StoreCopy(url=source, to=target, runs=carried))
    else:
        _say(session, carried, target)
    return status


@verb(
    "move",
    "tramai store move k3f9q2mz --to postgresql://db/runs",
    "tramai store move --all --to sqlite:new.db",
    summary="Let runs go on in another store.",
)
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every run of the store.")
@_TO
def move(session: Session, runs: tuple[str, ...], everything: bool, to: str) -> int:
    """Take runs to another store, where they go on; here a tombstone says where.

    Also runs that sleep, wait, failed or were cut off. No run can go on in both
    places, whenever this command is killed; the same command again finishes the
    work. A run that somebody works on is refused. Runs that it has called and
    still waits for come along. Copies are made by `tramai store copy`.

    Exit status: 0 moved, 2 bad arguments, 4 no such run, 5 a runner owns the
    run, or its id or start key is taken; 7 store unusable.
    """
    from .. import moving
    from ..clock import SystemClock
    from . import _store_documents
    from ._who import me

    def carry(source: Store, target: Store, run_id: str) -> str:
        run = source.get(run_id)
        if everything and run.status.tombstone:
            if moving.finished(source, target, run, by=me(), clock=SystemClock()):
                return "moved"
            return "copied" if moving.copy(source, target, run_id, by=me(), clock=SystemClock()) else "there"
        for called in _open_calls(source, run_id):  # where one of them cannot come along, its caller stays with it
            with contextlib.suppress(NotFound):
                if not source.get(called).status.tombstone:
                    carry(source, target, called)
        moving.move(source, target, run_id, by=me(), clock=SystemClock())
        return "moved"

    source, target, carried, status = _carry(session, runs, everything, to, carry, along=_with_called)
    if session.json:
        session.emit(_store_documents.StoreMove(url=source, to=target, runs=carried))
    else:
        _say(session, carried, target)
    if everything and _keeps_schedules(session):
        session.note("its schedules stay and go on firing there; elsewhere: tramai schedule apply PATHS --store URL")
    return status


def _keeps_schedules(session: Session) -> bool:
    import time

    look = getattr(session.looking(), "roster", None)
    return look is not None and bool(look(now=time.time()).entries)


def _with_called(source: Store, wanted: Sequence[str]) -> list[str]:
    """The runs, each behind those that it has called and not heard of yet: it would call them anew in another store.

    NotInThatState for one that was called by a run which stays and still waits for it.
    """
    found: dict[str, None] = {}
    for run_id in wanted:
        _add(source, run_id, found)
    for run_id in wanted:
        with contextlib.suppress(NotFound, CheckpointCorrupt):
            run = source.get(run_id)
            caller = run.started_by.removeprefix(CALLED) if run.started_by.startswith(CALLED) else None
            if caller is None or caller in found or source.get(caller).status.terminal:
                continue
            if run_id in _open_calls(source, caller):
                what = f"run {caller} has called it and still waits for it"
                hint = f"tramai store move {short(caller)} takes it along"
                raise NotInThatState(run_id=run_id, status=run.status.value, what=what, hint=hint)
    return list(found)


def _add(source: Store, run_id: str, found: dict[str, None]) -> None:
    for called in _open_calls(source, run_id):
        if called not in found:
            with contextlib.suppress(NotFound, CheckpointCorrupt):
                if not source.get(called).status.tombstone:
                    _add(source, called, found)
    found.setdefault(run_id)


def _open_calls(source: Store, run_id: str) -> tuple[str, ...]:
    from ..calling import open_calls

    with contextlib.suppress(NotFound, CheckpointCorrupt):
        return open_calls(source.journal(run_id))
    return ()


def _carry(
    session: Session,
    runs: tuple[str, ...],
    everything: bool,
    to: str,
    carry: Callable[[Store, Store, str], str],
    along: Callable[[Store, Sequence[str]], list[str]] | None = None,
) -> tuple[str, str, list[Carried], int]:
    """Bring each run over; one that is refused stops the others only if it is the only one that was asked for."""
    from ..stores import open_store
    from . import _select
    from ._store_documents import Carried

    if bool(runs) is everything:
        raise UsageError(what="say which runs, or --all" if not runs else "--all and RUN exclude each other")
    source = session.looking()
    named = [] if everything else [_select.find(source, run) for run in runs]
    wanted = _all(source) if everything else iter(named if along is None else along(source, named))
    target = open_store(to)
    try:
        _refuse_same(source, target)
        carried: list[Carried] = []
        status = 0
        for run_id in wanted:
            try:
                carried.append(Carried(run_id=run_id, outcome=carry(source, target, run_id)))
            except (StoreUnavailable, ConfigurationError):
                raise
            except TramaiError as error:
                if len(runs) == 1 and run_id == named[0]:
                    raise
                carried.append(Carried(run_id=run_id, outcome="left", code=error.code, message=error.message))
                if not (everything and isinstance(error, NotInThatState)):
                    status = status or error.exit_status
        return source.url, target.url, carried, status
    finally:
        target.close()


def _all(store: Store) -> Iterator[str]:
    """Every id, tombstones too: in the other store they must not be used again either. Those of this call come last."""
    for status in (Status.MOVED, Status.REMOVED, None):
        cursor: str | None = None
        while True:
            runs, cursor = store.page(limit=_PAGE, after=cursor, status=status)
            yield from [run.run_id for run in runs] + [fault["run_id"] for fault in store.faults()]
            if cursor is None:
                break


def _refuse_same(source: Store, target: Store) -> None:
    from ..moving import address

    one, other = (os.path.realpath(address(store).partition(":")[2]) for store in (source, target))
    if one == other and source.url.partition(":")[0] == target.url.partition(":")[0] != "memory":
        raise UsageError(what=f"--to {target.url} is the store that the runs are in already")


def _say(session: Session, carried: list[Carried], to: str) -> None:
    for one in carried:
        why = f": {safe(one.message)}" if one.message is not None else ""
        if one.outcome == "left":
            session.out.line(f"{safe(short(one.run_id))}  left{why}")
        elif one.outcome != "there" or session.verbose:
            session.out.line(f"{safe(short(one.run_id))}  {one.outcome}")
    counts = [(word, sum(one.outcome == word for one in carried)) for word in ("copied", "moved", "there", "left")]
    words = {"there": "there already", "left": "left where they are"}
    said = ", ".join(f"{count} {words.get(word, word)}" for word, count in counts if count)
    session.note(f"{said or 'no runs'} (to {safe(to)})")
