"""What a slot does with its orders: one run after the other, or several side by side that only compute.

A run that starts processes, reaches outside or runs code of others has the process for itself while it runs. One that
only computes can hurt nobody, unless it exhausts the process: so one that was claimed before and came no step further
is carried alone, too. Those side by side share the commits of a store that can do that.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING

from .. import carrying
from ..errors import TramaiError
from ..faults import public
from ..interrupt import Interrupt, deaf
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
        self._side_by_side: SimpleQueue[tuple[Order, Interrupt]] = SimpleQueue()
        self._threads = 0
        self._stops: dict[str, Interrupt] = {}
        """What stops those that are carried side by side, by their leases: a run can be here again at once."""
        self._broken: BaseException | None = None
        """What ended one of their threads."""

    def turn(self) -> None:
        """Wait for an order, and carry it out: alone, or with those after it that may stand beside it."""
        order = self._desk.first()
        if order is None or self._is_late(order):
            return
        if self._may_share(order):
            self._carry_together()
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
        if order.run.claims_without_progress > 1 or self._settings.observers:
            return False
        try:
            return self._plans.of(order.run).computes
        except Exception:  # noqa: BLE001 - whoever carries it finds out, and says so
            return False

    # Side by side.

    def _carry_together(self) -> None:
        """Carry out what may share this process, until the next that may not, or none is left."""
        with Signals() as signals:
            signals.interrupt.on_set(self._stop_all)
            while order := self._desk.first(unless=lambda: not self._stops or self._broken is not None):
                if signals.interrupt.is_set or not self._may_share(order):
                    break
                if self._is_late(order):
                    continue
                self._wait(TOGETHER - 1)
                if self._desk.begin(order):
                    self._begin(order)
                    if signals.interrupt.reason:  # while it was begun, when it was not there to be stopped
                        self._stop_all()
            self._wait(0)

    def _begin(self, order: Order) -> None:
        stop = Interrupt()
        self._stops[order.lease.token] = stop
        self._report(Report(kind="began", run_id=order.run.run_id, beside=True))
        if self._threads < min(len(self._stops), TOGETHER):
            self._threads += 1
            threading.Thread(target=self._beside, name="tramai-run", daemon=True).start()
        self._side_by_side.put((order, stop))

    def _beside(self) -> None:
        deaf()
        while self._broken is None:
            order, stop = self._side_by_side.get()
            try:
                report = self._carried(order, stop, Interrupt())
                stop.close()
                self._report(report)
            except BaseException as error:  # noqa: BLE001 - raised where the process ends with it, for nobody else would
                self._broken = error
            with self._desk.news:
                del self._stops[order.lease.token]
                self._desk.news.notify_all()

    def _wait(self, most: int) -> None:
        """Wait until no more than so many are carried."""
        with self._desk.news:
            self._desk.news.wait_for(lambda: len(self._stops) <= most or self._broken is not None)
        if self._broken is not None:
            raise self._broken

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
