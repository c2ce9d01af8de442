"""What a slot does with its orders: one run after the other, or several side by side that only compute.

A run that starts processes, reaches outside or runs code of others has the process for itself while it runs. One that
only computes can hurt nobody, unless it exhausts the process: so one that was claimed before and came no step further
is carried alone, too. Those side by side take turns in one thread (`_strands.py`) so that they share commits: over a
store that cannot do that, each is carried alone.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import carrying
from ..errors import TramaiError
from ..faults import public
from ..interrupt import Interrupt
from ..pacing import TOGETHER
from ..pool import Taken
from ..results import Options
from ..revival import Policy
from ..worker import Report
from ._counted import Counted
from ._signals import Signals

if TYPE_CHECKING:
    from ._session import Session
    from ._slot import Desk, Order, Reports, Setup
    from ._strands import Strands


class Carrier:
    """Carries out what lies on the desk, and reports. Made once in a slot, with all that its runs have in common."""

    def __init__(self, session: Session, setup: Setup, desk: Desk, report: Reports) -> None:
        self._session = session
        self._setup = setup
        self._desk = desk
        self._report = report
        self._settings = session.settings
        self._store = session.store()
        self._recall = getattr(self._store, "recall", None)
        self._plans = carrying.Plans(self._store)
        self._stops: dict[str, Interrupt] = {}
        """What stops those that are carried side by side, by their leases: a run can be here again at once."""
        self._strands = _strands(self._store)
        self._ended: list[Report] = []
        """Of those side by side; told in one piece."""

    def turn(self) -> None:
        """Wait for an order, and carry it out: alone, or with those after it that may stand beside it."""
        order = self._desk.first()
        if order is None or self._is_late(order):
            return
        if self._strands is not None and self._may_share(order):
            self._carry_together(self._strands)
        elif self._desk.begin(order):
            self._report(Report(kind="began", run_id=order.run.run_id))
            with Signals() as signals:
                self._report(self._carried(order, signals.interrupt, signals.hurry))

    def _is_late(self, order: Order) -> bool:
        """Whether its claim is too old to be acted on: it is given back by those who know how it stood."""
        if time.monotonic() - order.sent <= self._setup.lease / 2:
            return False
        if self._desk.begin(order):
            self._report.returned(order)
        return True

    def _may_share(self, order: Order) -> bool:
        if self._strands is None or order.run.claims_without_progress > 1 or self._settings.observers:
            return False
        try:
            return self._plans.of(order.run).computes
        except Exception:  # noqa: BLE001 - whoever carries it finds out, and says so
            return False

    # Side by side.

    def _carry_together(self, strands: Strands) -> None:
        """Carry out what may share this process, until the next that may not, or none is left."""
        with Signals() as signals:
            signals.interrupt.on_set(self._stop_all)
            while (begun := self._take(signals.interrupt)) or self._stops:
                self._begin(strands, begun, signals.interrupt)
                strands.turn()
                if self._ended:
                    ended, self._ended = self._ended, []
                    self._report(*ended)

    def _take(self, interrupt: Interrupt) -> list[Order]:
        """The orders that may stand beside those under way, as far as there is room."""
        taken: list[Order] = []
        while len(self._stops) + len(taken) < TOGETHER and not interrupt.is_set:
            order = self._desk.first(unless=lambda: True)
            if order is None or not self._may_share(order):
                break
            if not self._is_late(order) and self._desk.begin(order):
                taken.append(order)
        return taken

    def _begin(self, strands: Strands, orders: list[Order], interrupt: Interrupt) -> None:
        if not orders:
            return
        for order in orders:
            self._stops[order.lease.token] = Interrupt()
        if interrupt.is_set:  # since they were taken, when they were not there to be stopped
            self._stop_all()
        self._report(*(Report(kind="began", run_id=order.run.run_id, beside=True) for order in orders))
        for order in orders:
            strands.begin(partial(self._beside, order))

    def _beside(self, order: Order) -> None:
        token = order.lease.token
        report = self._carried(order, self._stops[token], Interrupt())
        self._ended.append(report)  # looked up now: while it was carried, others were told of
        self._stops.pop(token).close()

    def _stop_all(self) -> None:
        for stop in list(self._stops.values()):
            stop.set("signal")

    # One run.

    def _carried(self, order: Order, interrupt: Interrupt, hurry: Interrupt) -> Report:
        from . import _observers

        settings, run_id = self._settings, order.run.run_id
        options = Options(
            wait=0.0,
            lease=self._setup.lease,
            logs=self._setup.logs,
            interrupt=interrupt,
            hurry=hurry,
            diagnostics=self._session.diagnose,
            servers=settings.servers,
            http=settings.http,
            providers=settings.providers,
            again=Policy(self._setup.retries, self._setup.retry_delay) if self._setup.retries else None,
        )
        counted = Counted(order) if self._setup.counts else None
        observers = _observers.made(settings.observers) if settings.observers else []
        try:
            if self._recall is not None:
                self._recall(Taken(run_id=run_id, run=order.run, lease=order.lease, memo=order.memo))
            ended = carrying.carry(
                order.run,
                order.lease,
                sent=order.sent,
                store=self._store,
                observers=[*observers, *([counted] if counted is not None else ())],
                options=options,
                plans=self._plans,
            )
        except Exception as error:  # noqa: BLE001 - one run; others wait
            found: TramaiError = public(error)
            code = str(found.details.get("because", found.code))
            return Report(kind="refused", run_id=run_id, code=code, message=found.message, hint=found.hint)
        finally:
            _observers.close(observers)
        return Report(
            kind="done",
            run_id=ended.run_id,
            status=ended.status,
            exit_status=ended.exit_status,
            wake_at=ended.wake_at,
            carried=counted.all() if counted is not None else None,
        )


def _strands(store: Any) -> Strands | None:
    """What takes turns over a store that gathers their commits; None over another, and without greenlet."""
    if not hasattr(store, "gather"):
        return None
    try:
        from ._strands import Strands
    except ImportError:
        return None
    strands = Strands()
    strands.send = store.gather(strands.park)
    return strands
