"""`tramai reject`: reject what a gate asks."""

from __future__ import annotations

from typing import Any

from ._decide import decide, options
from ._group import verb
from ._session import Session


@verb(
    "reject",
    'tramai reject k3f9q2mz --comment "the migration is missing"',
    "tramai reject @last release --resume",
)
@options
def command(session: Session, **asked: Any) -> int:
    """Reject what a gate of RUN asks; stored once, and never taken back.

    One rejection decides, however many must approve. The run then ends there as
    failed, with exit status 10, when it goes on: its runner does so at once, and
    `tramai resume RUN` or --resume otherwise.

    STEP is the gate's path or id, and can be left out when only one waits.

    Exit status: 0 stored, 2 the data do not fit the gate's form, 4 no such run or
    gate, 5 it does not count (see `tramai approve`). With --resume: that of
    `tramai resume`, so 10.
    """
    return decide(session, "rejected", **asked)
