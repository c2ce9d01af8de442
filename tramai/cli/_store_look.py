"""`tramai store info`, `check` and `migrate`: how a store is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ..store import Store

_PAGE = 500


@verb("info", "tramai store info", "tramai store info --store sqlite:archive.db --json", summary="Say how a store is.")
def info(session: Session) -> int:
    """Say of what kind a store is, where it lies, how many runs it has.

    Nothing is made or changed. A password in the URL is never shown.

    Exit status: 0 said, 3 no such kind of store, 7 store unusable.
    """
    from ..portable import portable
    from . import _store_documents

    store = portable(session.looking(), "info")
    found = store.info()
    held = _held(store)
    kept = _schedules(store)
    if session.json:
        session.emit(
            _store_documents.StoreInfo(
                kind=found.kind,
                url=found.url,
                place=found.place,
                format=found.format,
                size=found.size,
                runs=found.runs,
                held=held,
                schedules=kept,
                locks=[*found.locks],
                hints=[*found.hints],
            )
        )
        return 0
    total = sum(found.runs.values())
    each = ", ".join(f"{count} {status}" for status, count in sorted(found.runs.items()))
    lines = [("kind", found.kind if found.format is None else f"{found.kind}, format {found.format}")]
    lines += [("place", found.place)] if found.place is not None else []
    lines += [("size", amount(found.size))] if found.size is not None else []
    lines += [("runs", f"{total}: {each}" if total else "none")]
    lines += [("held", f"{held} being worked on")] if held else []
    lines += [("times", f"{many(kept, 'schedule')} registered")] if kept else []
    lines += [("lock", lock) for lock in found.locks] + [("note", hint) for hint in found.hints]
    session.out.line(safe(found.url))
    for name, text in lines:
        session.out.line(f"  {name:<6} {safe(text)}")
    return 0


@verb(
    "check",
    "tramai store check",
    "tramai store check --store sqlite:archive.db --json",
    summary="Read everything, and report what is damaged.",
)
@click.option("--repair-nothing", is_flag=True, help="Say in a script that nothing is repaired; nothing ever is.")
def check(session: Session, repair_nothing: bool) -> int:
    """Read every run, journal, event, large value and definition of a store.

    Each fault is reported with the id of its run. Nothing is repaired, and the
    store is not changed: what to do about a damaged run is for you to say.

    Exit status: 0 nothing is wrong, 1 faults were found, 7 store unusable.
    """
    from .. import soundness
    from . import _store_documents

    store = session.looking()
    found = soundness.check(store)
    if session.json:
        session.emit(
            _store_documents.StoreCheck(
                url=store.url,
                runs=found.runs,
                records=found.records,
                events=found.events,
                definitions=found.definitions,
                faults=[_store_documents.StoreFault(run_id=one.run_id, problem=one.what) for one in found.faults],
            )
        )
        return 1 if found.faults else 0
    for fault in found.faults:
        whose = f"run {safe(fault.run_id)}" if fault.run_id is not None else "store"
        session.out.line(f"{whose}: {safe(fault.what)}")
    read = (many(found.runs, "run"), many(found.records, "record"), many(found.events, "event"))
    session.note(f"read {', '.join(read)}: {many(len(found.faults), 'fault')}")
    return 1 if found.faults else 0


@verb(
    "migrate",
    "tramai store migrate",
    "tramai store migrate --store postgresql://db/runs --print-sql",
    summary="Bring an older format up to date.",
)
@click.option("--print-sql", is_flag=True, help="Print the SQL of an empty store, for those who apply it themselves.")
def migrate(session: Session, print_sql: bool) -> int:
    """Bring a store that an older tramai made up to date.

    Every command does so when it opens one, once and under a lock; here it is
    said what was done. A store that a newer tramai made is refused, untouched.
    With --print-sql nothing is connected to: the statements are printed, for
    stores that have tables.

    Exit status: 0 up to date, 2 the store has no SQL, 7 unusable or too new.
    """
    from .. import stores
    from ..portable import portable
    from . import _store_documents

    if print_sql:
        sql = stores.ddl(session.settings.store)
        if session.json:
            session.emit(_store_documents.StoreSql(sql=sql))
        else:
            session.out.write(sql)
        return 0
    found = stores.peek(session.settings.store)
    store = portable(session.looking(), "info")
    now = store.info().format
    migrated = found is not None and now is not None and found < now
    if session.json:
        session.emit(_store_documents.StoreMigration(url=store.url, found=found, format=now, migrated=migrated))
    elif migrated:
        session.out.line(f"{safe(store.url)}: format {found} is now format {now}")
    elif now is None:
        session.out.line(f"{safe(store.url)}: nothing to migrate")
    else:
        session.out.line(f"{safe(store.url)}: format {now}, up to date")
    return 0


def many(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun[:-1]}ies" if noun.endswith("y") else f"{count} {noun}s"


def amount(size: int) -> str:
    """Bytes as people read them: `18 KB`."""
    if size < 1000:
        return f"{size} bytes"
    value, unit = float(size), ""
    for unit in ("KB", "MB", "GB", "TB"):  # noqa: B007 (the last one reached is wanted)
        value /= 1000
        if value < 999.5:
            break
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def _schedules(store: Store) -> int | None:
    """How many schedules are registered; None where they cannot be."""
    look = getattr(store, "roster", None)
    return None if look is None else len(look(now=time.time()).entries)


def _held(store: Store) -> int:
    """Runs that somebody works on now."""
    from ..store import Status

    held, now, cursor = 0, time.time(), None
    while True:
        runs, cursor = store.page(limit=_PAGE, after=cursor, status=Status.RUNNING)
        held += sum(not run.stale(now) for run in runs)
        if cursor is None:
            return held
