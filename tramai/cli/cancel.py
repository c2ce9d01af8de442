"""`tramai cancel`: cancel a run for good."""

from __future__ import annotations

import click

from ..store import Status
from ._advice import short
from ._group import verb
from ._session import Session


@verb("cancel", "tramai cancel k3f9q2mz --comment 'wrong branch'")
@click.argument("run", metavar="RUN")
@click.option("--comment", metavar="TEXT", help="Why; kept with the run.")
def command(session: Session, run: str, comment: str | None) -> int:
    """Cancel a run: it will never go on.

    If a runner owns it now, that runner stops its steps, runs `finally` and
    ends; if not, `finally` runs here. The runs it has called go with it. To
    stop a run and go on with it later, press Ctrl-C in its terminal instead.

    Exit status: 0 cancelled or asked to, 4 no such run, 5 the run is over.
    """
    from .. import engine
    from . import _documents, _select
    from ._who import me

    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    session.variables()
    options = engine.Options(
        logs=session.logs(),
        diagnostics=session.diagnose,
        servers=session.settings.servers,
        providers=session.settings.providers,
        http=session.settings.http,
    )
    after = engine.cancel(run_id, store=store, by=me(), comment=comment, options=options)
    if session.json:
        session.emit(_documents.Cancelled(run_id=run_id, status=after.status.value))
    elif after.status is Status.CANCELLED:
        session.out.line(f"run {short(run_id)} is cancelled")
    else:
        session.out.line(f"run {short(run_id)} is asked to stop; its runner ends it")
    return 0
