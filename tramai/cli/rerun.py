"""`tramai rerun`: a new run with the inputs of an earlier one."""

from __future__ import annotations

from typing import Any

import click

from ._group import verb
from ._session import Session
from .run import execution


@verb(
    "rerun",
    "tramai rerun k3f9q2mz",
    "tramai rerun @last --from deploy",
    "tramai rerun @failed --file review.yaml --label again",
)
@click.argument("run", metavar="RUN")
@click.option("--from", "start_at", metavar="STEP", help="Begin at this step, with the results of those before it.")
@click.option("--file", metavar="FILE", help="This workflow file, also if it has changed since.")
@click.option("--as-started", is_flag=True, help="The definition that RUN was started with, from the store.")
@click.option("--start-key", metavar="KEY", help="Start once: a key used before gives the run it started.")
@click.option("--label", "labels", metavar="LABEL", multiple=True, help="A label, beside those of RUN.")
@execution
def command(session: Session, run: str, as_started: bool, **rest: Any) -> int:
    """Start a new run with the inputs of RUN, and carry it as far as it goes.

    RUN is an id, the end of one, @last, @last:WORKFLOW or @failed; it stays as it
    is. Inputs come from the store, secrets are fetched again. With --from, what
    stands before STEP is not run again: its results are taken over.

    A file that has changed since is refused: take it with --file, or the old
    definition with --as-started.

    To let the same run go on after a crash, a pause or a failure, use
    `tramai resume`.

    Exit status: as `tramai run`; 4 no such run or step; 5 the file has changed,
    or a step before STEP has not ended.
    """
    from ..errors import UsageError
    from ._start import Request, rerun

    if as_started and rest["file"]:
        raise UsageError(what="--as-started and --file exclude each other")
    return rerun(session, Request(run=run, as_started=as_started, **rest))
