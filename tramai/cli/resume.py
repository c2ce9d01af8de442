"""`tramai resume`: go on with a run after a crash, a pause, an interruption or a failure."""

from __future__ import annotations

from typing import Any

import click

from ._group import verb
from ._session import Session
from .run import execution


@verb(
    "resume",
    "tramai resume k3f9q2mz",
    "tramai resume @failed",
    "tramai resume k3f9q2mz --file moved/review.yaml",
)
@click.argument("run", metavar="RUN")
@click.option("--file", metavar="FILE", help="The workflow file, when it is not where it was.")
@click.option("--as-started", is_flag=True, help="Go on with the definition the run was started with, from the store.")
@click.option("--accept-changes", is_flag=True, help="Go on with the changed file, if no step that began has changed.")
@execution
def command(session: Session, run: str, as_started: bool, accept_changes: bool, **rest: Any) -> int:
    """Go on with a run from its journal: the same run, never a new one.

    RUN is an id, the end of one, @last, @last:WORKFLOW or @failed. What was
    recorded as done is not done again. A failed run goes on at the failed step
    with a new attempt. A completed run prints its result and runs nothing.

    For a new run use `tramai rerun` (with the same inputs) or `tramai run`.

    Exit status: as `tramai run`; 4 no such run; 5 the file has changed, another
    runner owns the run, or the outcome of a step is unknown.
    """
    from ..errors import UsageError
    from ._start import Request, resume

    if as_started and (accept_changes or rest["file"]):
        other = "--accept-changes" if accept_changes else "--file"
        raise UsageError(what=f"--as-started and {other} exclude each other")
    return resume(session, Request(run=run, as_started=as_started, accept_changes=accept_changes, **rest))
