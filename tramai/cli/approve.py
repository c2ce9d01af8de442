"""`tramai approve`: approve what a gate asks."""

from __future__ import annotations

from typing import Any

from ._decide import decide, options
from ._group import verb
from ._session import Session


@verb(
    "approve",
    'tramai approve k3f9q2mz --comment "checked on staging"',
    "tramai approve @last release --data ticket=OPS-7 --resume",
    "tramai approve k3f9q2mz 'each[eu].release' --as ann",
)
@options
def command(session: Session, **asked: Any) -> int:
    """Approve what a gate of RUN asks; stored once, and never taken back.

    STEP is the gate's path or id, and can be left out when only one waits. It
    works from any process that reaches the store. A runner that is still at work
    on the run hears of it; otherwise `tramai resume RUN` goes on, or --resume.

    `tramai status` lists what waits; `tramai reject` says no.

    Exit status: 0 stored, 2 the data do not fit the gate's form, 4 no such run or
    gate, 5 it does not count: nothing is asked, it is decided already, you have
    decided, you are not among those who may, or the time is over. With --resume:
    that of `tramai resume`.
    """
    return decide(session, "approved", **asked)
