"""`tramai worker`: carry out the runs that wait in a store; `worker list` and `worker drain` look after workers."""

from __future__ import annotations

from typing import Any

import click

from ._group import doer, keep, verb
from ._session import Session

TEXT = """Carry out the runs that wait in a store, until it is told to end.

A worker takes runs that were started with `tramai run --detach`, runs whose
pause is over or whose gate was decided, and runs whose runner has died. It
needs no copy of a workflow file. Start as many as you like: for a PostgreSQL
store on as many machines as reach it, for a SQLite store on its host. With
--scheduler it also starts the runs of schedules (see `tramai schedule`).

SIGTERM or Ctrl-C drains it: it takes no more runs, waits for those it has, up
to --drain-timeout, interrupts the rest, which go on elsewhere, and exits. A
second signal kills what they have started at once.

Exit status: 0 ended as it was told to, 2 bad input, 7 store unusable.
"""


@click.option(
    "--concurrency", metavar="N", type=click.IntRange(1, 500), default=4, help="Runs at a time.  [default: 4]"
)
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="Take runs of this queue.  [default: default]")
@click.option("--pool", metavar="NAME", help="A name for several workers, to drain them together.")
@click.option("--label", "labels", metavar="LABEL", multiple=True, help="Take only runs that have one of these labels.")
@click.option(
    "--lease",
    metavar="DURATION",
    expose_value=False,
    callback=keep,
    help="How long others wait for a worker that was stopped.  [default: 30s]",
)
@click.option(
    "--drain-timeout",
    "drain",
    metavar="DURATION",
    default="30s",
    help="How long it waits for its runs at the end.  [default: 30s]",
)
@click.option(
    "--poll", metavar="DURATION", default="1s", help="How often it looks for runs when it has room.  [default: 1s]"
)
@click.option(
    "--max-claims",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=5,
    help="Claims without progress after which a run is dead.  [default: 5]",
)
@click.option(
    "--retry-failed",
    metavar="N",
    type=click.IntRange(1, 100),
    help="Try a run that fails so many times more, by itself.  [default: not]",
)
@click.option(
    "--retry-delay",
    metavar="DURATION",
    default="10s",
    help="How long after the first failure; twice as long after each more.  [default: 10s]",
)
@click.option("--max-runs", metavar="N", type=click.IntRange(1), help="End after this many runs.")
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve numbers for Prometheus there; without a HOST for this host alone.",
)
@click.option("--scheduler", "schedules", is_flag=True, help="Start the runs of schedules, too.")
@click.option("--once", is_flag=True, help="End when nothing is ready any more.")
def work(session: Session, **asked: Any) -> int:
    """Be a worker; the exit status."""
    from ._worker import serve

    return serve(session, **asked)


@verb(
    "list",
    "tramai worker list",
    "tramai worker list --json --store postgresql://db.example.org/flows",
    summary="List the workers of a store.",
)
def listed(session: Session) -> int:
    """List the workers of a store: what each takes, how many runs it carries.

    The last column says when it was heard of. A worker is stale when three of its
    beats are missing, lost after ten. A lost one is forgotten after a day; what
    it carried is taken over by others.

    Exit status: 0 said, 2 the store has no workers, 7 store unusable.
    """
    from ._worker import show_all

    return show_all(session)


@verb(
    "drain",
    "tramai worker drain build7:4211-9f3c",
    "tramai worker drain --pool blue",
    summary="Ask workers to end.",
)
@click.argument("worker", metavar="WORKER", required=False)
@click.option("--pool", metavar="NAME", help="All workers that were started with this --pool.")
@click.option("--all", "everybody", is_flag=True, help="All workers of the store.")
def drain(session: Session, worker: str | None, pool: str | None, everybody: bool) -> int:
    """Ask a worker to take no more runs, finish those it has, and end; or several.

    WORKER is its id, or the end of it. It hears of it within a few seconds and
    does as it does at SIGTERM.

    Exit status: 0 asked, 2 several workers fit, 4 no such worker, 7 store
    unusable.
    """
    from ._worker import ask_to_drain

    return ask_to_drain(session, worker, pool=pool, everybody=everybody)


command = doer(
    "worker",
    TEXT,
    work,
    (listed, drain),
    "tramai worker --store postgresql://db.example.org/flows",
    "tramai worker --concurrency 8 --queue reports --queue default",
    "tramai worker --scheduler --metrics 9464",
    "tramai worker --once",
    "tramai worker list",
)
