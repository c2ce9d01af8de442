"""`tramai list`: runs, newest first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from .. import places
from ..store import Run, Status
from ._advice import short
from ._clockface import stamp, took
from ._glyphs import glyph, word
from ._group import verb
from ._session import Session
from ._standing import Standing
from ._terminal import Terminal, cells, fit, pad, safe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._documents import Summary

STATUSES = tuple(status.value for status in Status)


@verb("list", "tramai list", "tramai list --status failed --limit 5", "tramai list --workflow review --json")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="At most this many.  [default: 20]")
@click.option("--after", metavar="CURSOR", help="Go on after a page: its `next`.")
@click.option("--status", type=click.Choice(STATUSES), metavar="STATUS", help=f"{', '.join(STATUSES)}.")
@click.option("--workflow", metavar="NAME", help="Runs of this workflow.")
@click.option("--label", metavar="LABEL", help="Runs with this label.")
def command(
    session: Session, limit: int, after: str | None, status: str | None, workflow: str | None, label: str | None
) -> int:
    """List runs, newest first. Where nothing was ever run, the list is empty.

    The first column is what the other commands take as RUN. A run whose runner is
    gone is `interrupted`; --status running finds it too.

    Exit status: 0 listed, 7 store unusable.
    """
    store = session.looking()
    runs, following = store.page(
        limit=limit, after=after, status=Status(status) if status else None, workflow=workflow, label=label
    )
    faults = store.faults()
    if session.json:
        from . import _documents

        session.emit(
            _documents.Runs(
                runs=[_summary(run) for run in runs],
                next=following,
                faults=[_documents.Fault(run_id=fault.get("run_id", ""), problem=_problem(fault)) for fault in faults],
            )
        )
        return 0
    for line in _table(session.out, runs):
        session.out.line(line)
    for fault in faults:
        session.err.line(f"warning: run {safe(fault.get('run_id', '?'))} cannot be read: {safe(_problem(fault))}")
    if following is not None:
        asked = {
            "--status": status,
            "--workflow": workflow,
            "--label": label,
            "--limit": limit if limit != 20 else None,
        }
        session.note(f"more: {_next(following, asked)}")
    elif not runs:
        session.note("no runs" if after or status or workflow or label else "no runs yet; tramai run FILE starts one")
    return 0


def _next(cursor: str, asked: Mapping[str, object]) -> str:
    """The command for the next page of the same list."""
    import shlex

    words = [word for flag, value in asked.items() if value is not None for word in (flag, str(value))]
    return safe(shlex.join(["tramai", "list", *words, "--after", cursor]))


def _problem(fault: Mapping[str, str]) -> str:
    return "; ".join(str(value) for key, value in fault.items() if key != "run_id")


def _stands(run: Run) -> str:
    return Standing(run, time.time()).word


def _summary(run: Run) -> Summary:
    from ._documents import GroupView, Summary

    return Summary(
        run_id=run.run_id,
        workflow=run.workflow,
        version=run.version,
        status=run.status.value,
        step=run.step,
        started=run.created,
        ended=run.finished,
        labels=[*run.labels],
        rerun_of=run.rerun_of,
        stale=run.stale(time.time()),
        group=GroupView(name=run.group.name, limit=run.group.limit) if run.group is not None else None,
        queued=places.in_line(run, time.time()),
    )


def _table(terminal: Terminal, runs: tuple[Run, ...]) -> list[str]:
    """Columns lined up by display width; names give way first, ids never."""
    if not runs:
        return []
    ids = max(cells(safe(short(run.run_id))) for run in runs)
    standings = [_stands(run) for run in runs]
    states = max(map(len, standings))
    fixed = ids + 2 + 2 + states + 2 + 16 + 2 + 8 + 2
    names = max(cells(safe(run.workflow)) for run in runs)
    names = min(names, max(terminal.width - fixed, 12)) if terminal.tty else min(names, 40)
    return [_row(terminal, run, stands.ljust(states), ids, names) for run, stands in zip(runs, standings, strict=True)]


def _row(terminal: Terminal, run: Run, stands: str, ids: int, names: int) -> str:
    ended = run.finished if run.finished is not None else run.updated
    long = took(max(ended - run.created, 0.0))
    where = safe(run.step or "") if run.status not in (Status.COMPLETED, Status.CANCELLED) else ""
    name = pad(fit(safe(run.workflow), names, terminal.ellipsis), names)
    sign, said = glyph(terminal, stands.rstrip()), word(terminal, stands.rstrip(), len(stands))
    head = f"{pad(safe(short(run.run_id)), ids)}  {sign} {said}"
    again = f"(rerun of {safe(short(run.rerun_of))})" if run.rerun_of else ""
    return f"{head}  {name}  {stamp(run.created)}  {long:>7}  {' '.join(filter(None, (where, again)))}".rstrip()
