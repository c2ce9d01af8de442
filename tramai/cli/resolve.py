"""`tramai resolve`: say what became of a step whose end was not seen."""

from __future__ import annotations

import json
from typing import Any

import click

from ..errors import InvalidInput, UsageError
from ._advice import short
from ._group import verb
from ._session import Session
from ._terminal import safe

CHOICES = ("completed", "failed", "retry", "skipped")


@verb(
    "resolve",
    'tramai resolve k3f9q2mz deploy --as completed --output \'{"url": "…"}\'',
    "tramai resolve k3f9q2mz deploy --as retry --comment 'checked: nothing was sent'",
)
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="STEP")
@click.option(
    "--as",
    "as_",
    type=click.Choice(CHOICES),
    required=True,
    help="completed: it happened; failed: the run fails there; retry: run it again; skipped: go on without it.",
)
@click.option("--output", metavar="JSON", help="With --as completed: the step's output.")
@click.option("--comment", metavar="TEXT", default="", help="How you know; kept with the run.")
def command(session: Session, run: str, step: str, as_: str, output: str | None, comment: str) -> int:
    """Say what became of a step that started and whose end was not seen.

    A run is blocked when its runner died in the middle of a step that is not
    safe to repeat. Look at what the step did outside, then say so here, once;
    `tramai resume RUN` goes on.

    Exit status: 0 recorded, 4 no such run or step, 5 the run is not blocked.
    """
    from .. import recovery
    from ..clock import SystemClock
    from . import _documents, _select
    from ._who import me

    if output is not None and as_ != "completed":
        raise UsageError(what="--output belongs to --as completed")
    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    after = recovery.resolve(
        store, store.get(run_id), step, as_=as_, output=_json(output), comment=comment, by=me(), clock=SystemClock()
    )
    if session.json:
        session.emit(_documents.Resolved(run_id=run_id, path=step, resolved_as=as_, status=after.status.value))
        return 0
    session.out.line(f"step {safe(step)} of run {short(run_id)}: {as_}")
    if after.status.value == "ready":
        session.note(f"  resume:   tramai resume {short(run_id)}")
    return 0


def _json(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            name="--output", what=f"is not JSON: {error}", hint="text needs quotes: '\"done\"'"
        ) from None
