"""One slot of a worker, a process: `python -P -m tramai.cli._slot`. It is given runs on one pipe, reports on another.

When its worker is gone the pipe ends, and the slot kills itself; its watchdog then ends what its run had started.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ..interrupt import deaf
from ..store import Holder, Lease, Run
from ..worker import Report
from ._session import Session


class Setup(msgspec.Struct, frozen=True):
    """The first line that a slot is given: the flags of the worker, and how its runs are carried out."""

    flags: dict[str, Any]
    lease: float
    logs: str | None
    counts: bool = False
    """Whether what was done is reported in numbers, too."""
    retries: int = 0
    retry_delay: float = 0.0


class Order(msgspec.Struct, frozen=True, tag="order"):
    """Another line: a run to carry out, after those before it. `memo`: what the store knows of it beside."""

    run: Run
    lease: Lease
    sent: float
    memo: str | None = None


class Withdraw(msgspec.Struct, frozen=True, tag="withdraw"):
    """Another line: return what is not begun."""


class Desk:
    """The orders that wait. Each is begun or returned, never both: what is taken from the desk is begun."""

    def __init__(self) -> None:
        self.news = threading.Condition()
        self._orders: deque[Order] = deque()

    def put(self, order: Order) -> None:
        """One more."""
        with self.news:
            self._orders.append(order)
            self.news.notify_all()

    def first(self, unless: Callable[[], bool] = lambda: False) -> Order | None:
        """Wait for an order and look at it; None as soon as this holds and there is none."""
        with self.news:
            self.news.wait_for(lambda: self._orders or unless())
            return self._orders[0] if self._orders else None

    def begin(self, order: Order) -> bool:
        """Take the first order off the desk; whether it is still there."""
        with self.news:
            there = bool(self._orders) and self._orders[0] is order
            if there:
                self._orders.popleft()
            return there

    def clear(self) -> list[Order]:
        """Take all off the desk."""
        with self.news:
            left = list(self._orders)
            self._orders.clear()
            return left


class Reports:
    """The pipe to the worker."""

    def __init__(self, outward: int) -> None:
        self._outward = outward
        self._lock = threading.Lock()

    def __call__(self, *reports: Report) -> None:
        """Tell, in one piece."""
        data = b"".join(msgspec.json.encode(report) + b"\n" for report in reports)
        with self._lock:
            while data:
                data = data[os.write(self._outward, data) :]

    def returned(self, *orders: Order) -> None:
        """These were not begun, and will not be."""
        if orders:
            self(*(Report(kind="returned", run_id=order.run.run_id) for order in orders))


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
    from ._carrier import Carrier

    inward, report = os.fdopen(int(sys.argv[1]), "rb"), Reports(int(sys.argv[2]))
    first = inward.readline()
    if not first:
        return 1  # the worker has ended already
    setup, desk = msgspec.json.decode(first, type=Setup), Desk()
    threading.Thread(target=_listen, args=(inward, desk, report), daemon=True).start()
    session = Session()
    session.flags.update(setup.flags)
    carrier = Carrier(session, setup, desk, report)
    gc.set_threshold(50_000, 10, 10)  # a run leaves hardly a cycle behind
    gc.freeze()  # what is there by now stays
    report(Report(kind="ready", holder=Holder.here()))
    while True:
        carrier.turn()


def _listen(inward: Any, desk: Desk, report: Reports) -> None:
    """Take in orders; the end of the pipe is the end of the worker, and so of this process."""
    deaf()
    decode = msgspec.json.Decoder(Order | Withdraw).decode
    for line in inward:
        message = decode(line)
        if isinstance(message, Order):
            desk.put(message)
        else:
            report.returned(*desk.clear())
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
