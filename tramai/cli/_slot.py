"""One slot of a worker, a process: `python -P -m tramai.cli._slot`. It is given runs on one pipe, reports on another.

When its worker is gone the pipe ends, and the slot kills itself; its watchdog then ends what its run had started.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from typing import Any

import msgspec

from ..store import Holder, Lease, Run
from ..worker import Report
from ._session import Session
from ._signals import Signals


class Setup(msgspec.Struct, frozen=True):
    """The first line that a slot is given: the flags of the worker, and how its runs are carried out."""

    flags: dict[str, Any]
    lease: float
    logs: str | None
    counts: bool = False
    """Whether what was done is reported in numbers, too."""
    retries: int = 0
    retry_delay: float = 0.0


class Order(msgspec.Struct, frozen=True):
    """Each other line: a run to carry out."""

    run: Run
    lease: Lease
    sent: float


def main() -> int:
    """Be a slot; what stops it is said in a line, and its worker hears that it has ended."""
    from ..faults import public

    try:
        return _serve()
    except Exception as error:  # noqa: BLE001 - the edge of a process
        found = public(error)
        os.write(2, f"error[{found.code}]: a slot of the worker cannot go on: {found.message}\n".encode())
        return 1


def _serve() -> int:
    """Carry out what comes in on the pipe that the first argument names, report on the second."""
    inward, outward = os.fdopen(int(sys.argv[1]), "rb"), int(sys.argv[2])
    first = inward.readline()
    if not first:
        return 1  # the worker has ended already
    setup = msgspec.json.decode(first, type=Setup)
    orders: queue.Queue[Order] = queue.Queue()
    threading.Thread(target=_listen, args=(inward, orders), daemon=True).start()
    session = Session()
    session.flags.update(setup.flags)
    store = session.store()
    _report(outward, Report(kind="ready", holder=Holder.here()))
    while True:
        _report(outward, _carried(session, store, setup, orders.get()))


def _listen(inward: Any, orders: queue.Queue[Order]) -> None:
    """Take in orders; the end of the pipe is the end of the worker, and so of this process."""
    for line in inward:
        orders.put(msgspec.json.decode(line, type=Order))
    os.kill(os.getpid(), signal.SIGKILL)


def _carried(session: Session, store: Any, setup: Setup, order: Order) -> Report:
    from .. import carrying
    from ..errors import TramaiError
    from ..faults import public
    from ..results import Options
    from ..revival import Policy
    from . import _observers
    from ._counted import Counted

    settings = session.settings
    with Signals() as signals:
        options = Options(
            wait=0.0,
            lease=setup.lease,
            logs=setup.logs,
            interrupt=signals.interrupt,
            hurry=signals.hurry,
            diagnostics=session.diagnose,
            servers=settings.servers,
            http=settings.http,
            providers=settings.providers,
            again=Policy(setup.retries, setup.retry_delay) if setup.retries else None,
        )
        counted = Counted(order) if setup.counts else None
        try:
            ended = carrying.carry(
                order.run,
                order.lease,
                sent=order.sent,
                store=store,
                observers=[
                    *(_observers.made(settings.observers) if settings.observers else ()),
                    *([counted] if counted is not None else ()),
                ],
                options=options,
            )
        except Exception as error:  # noqa: BLE001 - one run; others wait
            found: TramaiError = public(error)
            code = str(found.details.get("because", found.code))
            return Report(kind="refused", run_id=order.run.run_id, code=code, message=found.message, hint=found.hint)
    return Report(
        kind="done",
        run_id=ended.run_id,
        status=ended.status,
        exit_status=ended.exit_status,
        wake_at=ended.wake_at,
        carried=counted.all() if counted is not None else None,
    )


def _report(outward: int, report: Report) -> None:
    os.write(outward, msgspec.json.encode(report) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
