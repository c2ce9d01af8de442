"""What every store decides alike about the places of a group: who comes before a run, and what is written.

A store keeps for every group a list of ids: of the runs that have a place, and of those that stand in line. It is a
list of where to look and nothing more. Whether somebody listed has a place is in the header of the run: it is running
under an active lease, and so a place ends as a lease does, without anybody who gives it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec.structs import replace

from . import rules
from .errors import LeaseLost
from .store import Lease, Run, Status

GRACE = 60.0
"""Seconds after its `wake_at` for which a run that nobody has stands in line: whoever was to take it is gone then."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of it when a run asks for its place. A store writes all of it at once, or nothing."""

    before: tuple[str, ...] = ()
    """The runs that come before it; the answer of `Store.enter`."""
    run: Run | None = None
    """Its header afterwards; None when that stays as it is."""
    listed: tuple[str, ...] | None = None
    """What the list of the group is afterwards; None when that stays as it is."""


def settled(run: Run, lease: Lease, now: float) -> bool:
    """Whether there is nothing to ask for: the run has no group, or is running. LeaseLost without its lease."""
    if not rules.current(run.lease, lease, now):
        raise LeaseLost
    return run.group is None or run.status is Status.RUNNING


def turn(run: Run, listed: Collection[str], others: Iterable[Run], *, within: Collection[str], now: float) -> Turn:
    """Decide about a run of a group. `others` are the headers of those listed, the run itself left out."""
    assert run.group is not None
    present = sorted((other for other in others if _present(other, run.group.name, now)), key=_age)
    if any(_inside(other) and other.run_id in within for other in present):
        return Turn(run=_entered(run, now))
    before = tuple(other.run_id for other in present if _inside(other) or _age(other) < _age(run))
    kept = tuple(sorted((run.run_id, *(other.run_id for other in present))))
    changed = None if kept == tuple(sorted(listed)) else kept
    if len(before) < run.group.limit:
        return Turn(run=_entered(run, now), listed=changed)
    return Turn(before=before, listed=changed)


def in_line(run: Run, now: float) -> bool:
    """Whether a run of a group waits for its place: somebody has its lease, or a worker will ask again."""
    return run.group is not None and not _inside(run) and (rules.active(run.lease, now) or _stands(run, now))


def next_up(others: Iterable[Run], group: str, now: float) -> tuple[str, ...]:
    """Of those listed the ones that nobody has and that would have a place now."""
    present = sorted((other for other in others if _present(other, group, now)), key=_age)
    inside = sum(map(_inside, present))
    line = [other for other in present if not _inside(other)]
    return tuple(
        other.run_id
        for older, other in enumerate(line)
        if other.group is not None and inside + older < other.group.limit and not rules.active(other.lease, now)
    )


def called_up(run: Run, now: float) -> Run:
    """The header of a run in line that may come up at once; as it is when it stands there no more."""
    if not _stands(run, now) or rules.active(run.lease, now) or run.wake_at is None or run.wake_at <= now:
        return run
    return replace(run, wake_at=now, revision=run.revision + 1, updated=now)


def _entered(run: Run, now: float) -> Run:
    return replace(rules.going_on(run), revision=run.revision + 1, updated=now)


def _present(run: Run, group: str, now: float) -> bool:
    if run.group is None or run.group.name != group:
        return False
    return rules.active(run.lease, now) or _stands(run, now)


def _stands(run: Run, now: float) -> bool:
    """Whether nobody has a run that stands in line all the same."""
    asleep = run.status in (Status.SLEEPING, Status.WAITING)
    return run.queued and asleep and run.wake_at is not None and now < run.wake_at + GRACE


def _inside(run: Run) -> bool:
    return run.status is Status.RUNNING


def _age(run: Run) -> tuple[float, str]:
    return run.created, run.run_id
