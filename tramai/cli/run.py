"""`tramai run`: start a run of a workflow file and carry it as far as it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ._group import inputs, keep, verb
from ._session import Session

EXECUTION = (
    click.option(
        "--wait",
        metavar="DURATION",
        expose_value=False,
        callback=keep,
        help="Wait in this process for delays up to this long; longer ones suspend the run.  [default: 60s]",
    ),
    click.option(
        "--lease",
        metavar="DURATION",
        expose_value=False,
        callback=keep,
        help="How long others wait for a runner that was stopped.  [default: 30s]",
    ),
    click.option(
        "--approve",
        metavar="STEP=yes",
        multiple=True,
        help="Answer a gate beforehand, in your name: STEP=yes or STEP=no; STEP is its path or id.",
    ),
    click.option(
        "--until",
        metavar="STEP",
        help="Stop, saved, when this step of the workflow is done; exit status 11. `resume` goes on.",
    ),
    click.option(
        "--report",
        "reports",
        metavar="KIND=FILE",
        multiple=True,
        help="When the run stops, write a report of it: junit=FILE, json=FILE or md=FILE.",
    ),
    click.option("--ok-if-suspended", is_flag=True, help="Exit with 0, not 11, when the run sleeps or waits."),
)
"""Options that carry out a run, for `run`, `resume` and `rerun` alike."""


def execution(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that `run`, `resume` and `rerun` share."""
    for option in reversed(EXECUTION):
        function = option(function)
    return function


@verb(
    "run",
    "tramai run review.yaml -i base=main -i limit:=20",
    "tramai run deploy.toml -i notes=@CHANGES.md --label nightly",
    "cat workflow.yaml | tramai run - --json",
    "tramai run nightly.yaml --detach --queue reports",
)
@click.argument("file", metavar="FILE")
@inputs("An input: KEY=VALUE as the declared type, KEY:=JSON, or KEY=@FILE for a file's text.")
@click.option(
    "--inputs", "inputs_file", metavar="FILE", help="Inputs from a JSON, YAML or TOML file; - is JSON on stdin."
)
@click.option("--start-key", metavar="KEY", help="Start once: a key used before gives the run it started.")
@click.option("--label", "labels", metavar="LABEL", multiple=True, help="A label for `tramai list --label`.")
@click.option("--detach", is_flag=True, help="Make the run and leave it to a worker: see `tramai worker`.")
@click.option("--queue", metavar="NAME", help="With --detach: the queue it waits in.  [default: default]")
@click.option(
    "--priority",
    metavar="N",
    type=click.IntRange(-1_000_000, 1_000_000),
    help="With --detach: the greater the sooner.  [default: 0]",
)
@execution
@click.option("-n", "--dry-run", "dry", is_flag=True, help="Show what would be done (as `tramai plan`) and do nothing.")
def command(
    session: Session,
    file: str,
    pairs: tuple[str, ...],
    dry: bool,
    detach: bool,
    queue: str | None,
    priority: int | None,
    **rest: Any,
) -> int:
    """Start a run of FILE and carry it as far as it goes.

    FILE is a workflow in YAML or TOML, or - for standard input. The outputs are
    printed on standard output, the progress on standard error.

    Every finished step is saved, so after a crash, a failure or Ctrl-C
    `tramai resume RUN` goes on where this run stopped. `run` itself never
    resumes: it always makes a new run. `tramai rerun RUN` makes one with the
    inputs of an earlier run. With --detach it only makes the run, prints its id,
    and leaves it to a worker.

    Exit status: 0 completed, 1 failed, 2 bad input, 3 invalid file, 5 blocked,
    6 secret missing, 7 store unusable, 10 a gate rejected, 11 suspended,
    12 cancelled, 130 and 143 stopped by a signal, with everything saved.
    """
    from ._start import Request, run

    if dry:
        from .plan import show

        return show(session, file, pairs, rest["inputs_file"])
    request = Request(file=file, inputs=pairs, **rest)
    if detach or queue is not None or priority is not None:
        from ._detach import detached

        return detached(session, request, detach=detach, queue=queue, priority=priority or 0)
    return run(session, request)
