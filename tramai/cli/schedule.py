"""`tramai schedule`: when workflows start by themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ._group import inputs, noun, verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ..schedule import Schedule

MOST = 1000
STATUSES = ("due", "queued", "fired", "skipped", "missed", "failed")
_NAMES = click.argument("names", metavar="SCHEDULE...", nargs=-1, required=True)
_COMMENT = click.option("--comment", metavar="TEXT", help="Why; it is shown with the schedule.")


@verb(
    "apply",
    "tramai schedule apply nightly.yaml",
    "tramai schedule apply workflows/ --prune",
    "tramai schedule apply workflows/ --dry-run --json",
    summary="Register the schedules of workflow files.",
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--prune", is_flag=True, help="Remove schedules that their file, or a file of the folder, has no more.")
@click.option("--take-over", is_flag=True, help="Replace a schedule that was registered from another file.")
@click.option("--queue", metavar="NAME", help="The queue of their runs.  [default: default]")
@click.option("--priority", metavar="N", type=click.IntRange(-1000, 1000), default=0, help="That of their runs.")
@click.option("--label", "labels", metavar="LABEL", multiple=True, help="A label of their runs.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would change, and change nothing.")
def apply(
    session: Session,
    paths: tuple[str, ...],
    prune: bool,
    take_over: bool,
    queue: str | None,
    priority: int,
    labels: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Register the schedules of workflow files, or of those in a folder, in the
    store. A running scheduler goes by them from its next look on.

    Each goes by its workflow and its place in the file: nightly#1. What is the
    same already is left as it is, so the same command again does no harm. The
    definition travels to the store: schedulers and workers need no file. Runs
    work in the folder in which this command is given (-C).

    Exit status: 0 registered, 2 bad input, 3 a file is invalid or cannot be
    read, 5 another file has a schedule of this name, 7 store unusable.
    """
    from ..enrolling import Asked
    from . import _schedule_change
    from ._detach import named

    asked = Asked(cwd=os.getcwd(), labels=tuple(dict.fromkeys(labels)), queue=named(queue), priority=priority)
    return _schedule_change.apply(session, paths, asked, prune=prune, dry_run=dry_run, take_over=take_over)


@verb(
    "list",
    "tramai schedule list",
    "tramai schedule list --json --store postgresql://db.example.org/flows",
    summary="List the schedules that are registered.",
)
def listed(session: Session) -> int:
    """List the schedules that are registered: when each comes next, what became
    of its last time, whether it pauses or is in trouble. Times are those of its
    own zone.

    Exit status: 0 said, 2 the store keeps no schedules, 7 store unusable.
    """
    from . import _schedule_look

    return _schedule_look.show_all(session)


@verb("next", "tramai schedule next", "tramai schedule next nightly -n 3", summary="Show what comes next.")
@click.argument("names", metavar="SCHEDULE...", nargs=-1)
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=10, show_default=True, help="How many times.")
def following(session: Session, names: tuple[str, ...], count: int) -> int:
    """Show the next times at which schedules start runs, of all of them in order.

    Exit status: 0 shown, 2 several schedules go by the name, 4 no such schedule,
    7 store unusable.
    """
    from . import _schedule_look

    return _schedule_look.show_next(session, names, count)


@verb(
    "history",
    "tramai schedule history nightly",
    "tramai schedule history --status missed -n 50",
    summary="Show which times were fired, skipped or missed, and why.",
)
@click.argument("name", metavar="SCHEDULE", required=False)
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=20, show_default=True, help="How many, at most.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those that became this.")
def history(session: Session, name: str | None, count: int, status: str | None) -> int:
    """Show what became of the times of schedules, the latest first: the run that
    was made, or why there was none.

    Exit status: 0 shown, 2 several schedules go by the name, 4 no such schedule,
    7 store unusable.
    """
    from . import _schedule_look

    return _schedule_look.show_history(session, name, count, status)


@verb(
    "preview",
    "tramai schedule preview nightly.yaml",
    'tramai schedule preview "30 2 * * 1-5" --tz Europe/Berlin -n 20',
    "tramai schedule preview nightly.yaml --after 2027-03-27T00:00:00Z --json",
    summary="Show when runs would start.",
)
@click.argument("what", metavar="FILE|CRON")
@click.option("--tz", "zone", metavar="ZONE", help="The IANA zone of a cron expression; UTC when none is given.")
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=10, show_default=True, help="How many times each.")
@click.option("--after", metavar="INSTANT", help="From when on; now when none is given.")
def preview(session: Session, what: str, zone: str | None, count: int, after: str | None) -> int:
    """Show the next times at which the schedules of a workflow file, or a cron
    expression, start a run, in their own zone and in UTC.

    A time that a clock change skips is moved to where the clocks go on, and one
    that comes twice counts once; both are said. Nothing is started or stored.

    Exit status: 0 shown, 2 no such zone or a wrong expression, 3 a file is
    invalid or cannot be read.
    """
    from . import _schedule_documents, _schedule_times

    start = _schedule_times.asked(after)
    found = [_schedule_times.firings(one.cron, one.timezone, start, count) for one in _schedules(session, what, zone)]
    if session.json:
        session.emit(_schedule_documents.SchedulePreview(after=start.isoformat(), schedules=found))
        return 0
    if not found:
        session.note(f"{safe(what)} has no `schedules`")
    for index, each in enumerate(found):
        if index:
            session.out.line("")
        session.out.line(f"{safe(each.cron)}  {safe(each.timezone)}  {each.described}")
        for firing in each.firings:
            moved = "  moved: the clocks go forward" if firing.moved else ""
            session.out.line(f"  {firing.weekday} {firing.at[:10]} {firing.at[11:]}  {firing.utc}{moved}")
    return 0


@verb(
    "run",
    "tramai schedule run nightly",
    "tramai schedule run nightly -i day=2026-11-29 -i limit:=20",
    summary="Start a run of a schedule now.",
)
@click.argument("name", metavar="SCHEDULE")
@inputs("An input other than the schedule's: KEY=VALUE, KEY:=JSON, or KEY=@FILE for a file's text.")
def start(session: Session, name: str, pairs: tuple[str, ...]) -> int:
    """Start a run of a schedule now, with its inputs, for a worker to carry out.
    What is given by -i takes the place of the schedule's own input.

    It is a run of its own: no time of the schedule is used up by it, also while
    the schedule pauses.

    Exit status: 0 started, 2 bad input, or several schedules go by the name,
    4 no such schedule, 6 secret missing, 7 store unusable.
    """
    from . import _schedule_change

    return _schedule_change.start(session, name, pairs)


@verb(
    "pause",
    "tramai schedule pause nightly --comment 'the database moves'",
    summary="Let a schedule pause.",
)
@_NAMES
@_COMMENT
def pause(session: Session, names: tuple[str, ...], comment: str | None) -> int:
    """Let schedules start nothing until `tramai schedule resume`. Runs that were
    started go on. What comes meanwhile is never made up for.

    Exit status: 0 it pauses, 2 several schedules go by the name, 4 no such
    schedule, 7 store unusable.
    """
    from . import _schedule_change

    return _schedule_change.pause(session, names, comment)


@verb("resume", "tramai schedule resume nightly", summary="Let a schedule that pauses go on.")
@_NAMES
@_COMMENT
def resume(session: Session, names: tuple[str, ...], comment: str | None) -> int:
    """Let schedules that pause go on with their next time. The times that have
    passed meanwhile are recorded as missed. (`tramai resume` goes on with a run.)

    Exit status: 0 it goes on, 2 several schedules go by the name, 4 no such
    schedule, 7 store unusable.
    """
    from . import _schedule_change

    return _schedule_change.resume(session, names, comment)


@verb("remove", "tramai schedule remove nightly#2", summary="Take a schedule out of the store.")
@_NAMES
def remove(session: Session, names: tuple[str, ...]) -> int:
    """Take schedules out of the store. Runs that were started go on, and what
    became of its times stays to be seen. The file is not touched: to apply it
    again registers the schedule again.

    Exit status: 0 removed, 2 several schedules go by the name, 4 no such
    schedule, 7 store unusable.
    """
    from . import _schedule_change

    return _schedule_change.remove(session, names)


@verb(
    "serve",
    "tramai schedule serve --store postgresql://db.example.org/flows",
    "tramai schedule serve --json",
    summary="Start the runs of schedules, without carrying them out.",
)
@click.option("--poll", metavar="DURATION", default="1s", help="How often it looks for changes.  [default: 1s]")
def serve(session: Session, poll: str) -> int:
    """Start the runs of schedules until it is told to end. Workers carry them out
    (`tramai worker`); a worker with --scheduler does both.

    As many as you like may look at one store: each time of a schedule makes one
    run, and when one of them dies another one makes it. SIGTERM or Ctrl-C ends
    it.

    Exit status: 0 ended as it was told to, 2 bad input, 7 store unusable.
    """
    from . import _scheduling

    return _scheduling.serve(session, poll)


def _schedules(session: Session, what: str, zone: str | None) -> Sequence[Schedule]:
    """Those of a file, or the one of an expression."""
    from ..errors import UsageError
    from ..schedule import Schedule

    if (len(what.split()) < 2 and not what.startswith("@")) or os.path.exists(what):
        if zone is not None:
            raise UsageError(what="a file says the zone of each of its schedules", hint="leave --tz out")
        from . import _load

        return _load.plan_of(session, what).workflow.schedules
    from ..check import cron

    found = cron.fault(what)
    if found is not None:
        raise UsageError(what=found[0], hint=found[1])
    if cron.never(what):
        raise UsageError(what=f"`{what}` never comes", hint="no month that it names has such a day")
    return (Schedule(cron=what, timezone=zone or "UTC"),)


TEXT = """Register schedules and look after them: when runs start by themselves.

Exit status: that of the verb; 2 for none.
"""

command = noun(
    "schedule",
    TEXT,
    (apply, listed, following, history, preview, start, pause, resume, remove, serve),
    "tramai schedule apply nightly.yaml",
    "tramai schedule next",
    "tramai schedule history nightly",
    "tramai schedule preview nightly.yaml",
    "tramai worker --scheduler",
)
