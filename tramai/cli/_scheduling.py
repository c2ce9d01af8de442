"""The loop around a scheduler: `tramai schedule serve`, and `tramai worker --scheduler` on a thread beside its own."""

from __future__ import annotations

import contextlib
import random
import select
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._session import Session

if TYPE_CHECKING:
    from ..event import Attribute
    from ..interrupt import Interrupt
    from ..scheduler import Scheduler

Tell = Callable[[str, "dict[str, Attribute]"], None]
_SOON = 0.01
_LONGEST_AWAY = 30.0
_END = 15.0
"""Seconds for which the end of a scheduler is waited for: it may be in the middle of a call of the store."""


class Loop:
    """Turns a scheduler until it is stopped. A store in trouble is told once, and is no reason to end."""

    def __init__(self, scheduler: Scheduler, tell: Tell, stop: Interrupt, poll: float) -> None:
        self._scheduler = scheduler
        self._tell = tell
        self._stop = stop
        self._poll = poll
        self._away = 0.0
        """How long the last pause for a store in trouble was."""

    def run(self) -> None:
        """Turn until somebody says stop."""
        poll = select.poll()
        poll.register(self._stop.fileno(), select.POLLIN)
        while not self._stop.is_set:
            poll.poll(self.turn() * 1000)

    def turn(self) -> float:
        """One turn; seconds until the next one."""
        try:
            coming = self._scheduler.turn()
        except Exception as error:  # noqa: BLE001 - a store in trouble may come back
            return self._failed(error)
        if self._away:
            self._away = 0.0
            self._tell("schedule.store_back", {})
        pause = self._poll * random.uniform(0.75, 1.25)  # noqa: S311 - so that many do not ask as one
        return pause if coming is None else min(max(coming, _SOON), pause)

    def _failed(self, error: Exception) -> float:
        from ..faults import public

        if not self._away:
            found = public(error)
            self._tell("schedule.store_failed", {"code": found.code, "message": found.message})
        self._away = min(max(self._away * 2, self._poll, 1.0), _LONGEST_AWAY)
        return self._away


def made(session: Session, tell: Tell, stop: Interrupt, poll: float, name: str, until: contextlib.ExitStack) -> Loop:
    """A scheduler with a store of its own, ready to turn; the store is open until then."""
    from ..results import Options
    from ..scheduler import Scheduler
    from ..stores import open_store
    from ..timetable import timetabled

    session.store()  # made, if there is none
    store = timetabled(open_store(session.settings.store))
    until.callback(store.close)
    options = Options(interrupt=stop, diagnostics=session.diagnose)
    return Loop(Scheduler(store, tell, by=name, options=options), tell, stop, poll)


def join(
    session: Session, tell: Tell, stop: Interrupt, poll: float, name: str, *, once: bool, until: contextlib.ExitStack
) -> None:
    """Have a scheduler turn beside a worker until the end; with `once`, a single time, before its runs are taken.

    On a thread of its own, and over a store of its own: what it waits for, no run waits for, and the other way round.
    """
    from ..interrupt import Interrupt

    over = Interrupt()
    stop.on_set(lambda: over.set("signal"))
    loop = made(session, tell, over, poll, name, until)
    if once:
        loop.turn()
        return
    failed: list[BaseException] = []

    def turn() -> None:
        try:
            loop.run()
        except BaseException as error:  # noqa: BLE001 - told by the main thread, when the worker has drained
            failed.append(error)
            stop.set("signal")

    thread = threading.Thread(target=turn, name="scheduler", daemon=True)
    thread.start()

    def end() -> None:
        over.set("signal")
        thread.join(_END)
        if failed:
            raise failed[0]

    until.callback(end)


def serve(session: Session, poll: str) -> int:
    """Be a scheduler until it is told to end; the exit status."""
    from .. import scheduler
    from ..errors import UsageError
    from . import _observers
    from ._signals import Signals
    from ._worker import Teller, seconds

    session.variables()
    session.must_last()
    pause = seconds("--poll", poll)
    if pause <= 0:
        raise UsageError(what="--poll must be longer than 0s")
    watching = _observers.made(session.settings.observers)
    told = Teller(session, [one for one in watching if hasattr(one, "signal")])
    told.worker = scheduler.here()
    with Signals("stopping: the times to come are left to others") as signals, contextlib.ExitStack() as until:
        loop = made(session, told, signals.interrupt, pause, told.worker, until)
        about: dict[str, Any] = {"poll": pause}
        told("schedule.serving", about)
        loop.run()
    told("schedule.stopped", {})
    return 0
