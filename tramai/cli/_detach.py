"""`tramai run --detach`: make a run and leave it to a worker."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._session import Session
from ._start import Request, asked_for, options_of

if TYPE_CHECKING:
    from ..store import Run
    from ._signals import Signals

QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def detached(session: Session, request: Request, *, detach: bool, queue: str | None, priority: int) -> int:
    """Make the run; the exit status."""
    from msgspec.structs import replace

    from .. import carrying
    from ..errors import UsageError

    if not detach:
        raise UsageError(what="--queue and --priority go with --detach")
    if request.approve or request.ok_if_suspended:
        raise UsageError(what="--approve and --ok-if-suspended do not go with --detach", hint="tramai approve RUN")
    if request.until is not None or request.reports:
        what = "--until and --report do not go with --detach: they are for who carries the run out"
        raise UsageError(what=what, hint="tramai resume RUN --until STEP")
    session.must_last()
    plan, bound = asked_for(session, request)

    def make(signals: Signals) -> Run:
        options = replace(options_of(session, request, signals), queue=named(queue), priority=priority)
        if not session.settings.observers:
            options = replace(options, trace=None)  # nobody follows a trace here: the event list has no word of it
        return carrying.enqueue(plan, bound, store=session.store(), options=options)

    return left(session, make)


def left(session: Session, make: Callable[[Signals], Run]) -> int:
    """Make a run, leave it to a worker, and say so; the exit status."""
    from ..errors import SecretMissing
    from . import _documents
    from ._advice import short
    from ._signals import Signals

    with Signals("stopping: nothing has been made yet") as signals:
        try:
            run = make(signals)
        except SecretMissing:
            if signals.number is None:
                raise
            session.err.line("interrupted while a secret was fetched; no run was made")
            return signals.exit_status
    session.run_id = run.run_id
    if session.json:
        session.emit(_documents.Detached(run_id=run.run_id, status=run.status.value))
    else:
        session.out.line(run.run_id)
        session.note(f"{run.status.value}, in queue {run.queue}. To follow it: tramai watch {short(run.run_id)}")
    return 0


def named(queue: str | None, flag: str = "--queue") -> str:
    """The name of a queue, or of a pool; UsageError when it cannot be one."""
    from ..errors import UsageError
    from ..pool import QUEUE as DEFAULT

    if queue is None:
        return DEFAULT
    if QUEUE.fullmatch(queue) is None:
        what = f"{flag}: {queue!r} is no name: up to 64 letters, digits, '.', '_' and '-', the first a letter or digit"
        raise UsageError(what=what)
    return queue
