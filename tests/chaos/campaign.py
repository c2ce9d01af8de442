"""One campaign: a server, its workers, those who use it, and the harm; then the rest drains, and all is audited."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tramai.store import Run, Status, Store
from tramai.stores import open_store

from ..postgres import Server, new_server, roomy_memory
from . import effects, flows, network, witness
from .auditor import Evidence, Violation, audit, lost, witnessed
from .fleet import LEASE, POLL, Fleet, Kind, left_behind, tidy, wrong_clock
from .harm import CUT, Harm
from .people import People

_SCHEMA = "chaos"
_REST = (Status.WAITING, Status.BLOCKED)
# Acknowledged has to mean written: what the server only remembers, its crash takes with it.
_SETTINGS = {"synchronous_commit": "on"}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of it."""

    seconds: float
    seed: int
    workers: int = 8
    runs: int = 300
    pace: float = 2.0
    """Seconds between two harms, on average."""
    drain: float = 240.0
    """Seconds within which all runs must have come to rest when the harm has stopped."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The figures, and each violation."""

    plan: Plan
    runs: int
    statuses: dict[str, int]
    harm: dict[str, int]
    people: dict[str, int]
    workers: int
    """So many were started."""
    effects: int
    unsafe: int
    """Of these, carried out by a step that is not safe to repeat."""
    repeated: int
    """Of these, a step's second or later, as it may be done again or somebody said so."""
    records: int
    writes: int
    takeovers: int
    """Leases that were taken from somebody who had not given them back."""
    drained: float
    """Seconds from the end of the harm until all runs had come to rest."""
    counts: dict[str, int]
    """Of violations: `duplicate`, `lost`, `stale`, `stuck`, `orphan`."""
    violations: tuple[Violation, ...]
    not_tested: tuple[str, ...]


KINDS = ("duplicate", "lost", "stale", "stuck", "orphan")


def campaign(plan: Plan, tell: Callable[[str], None] = lambda text: None) -> Report:
    """Carry it out."""
    with (
        tempfile.TemporaryDirectory(prefix="tramai-chaos-", dir=roomy_memory()) as place,
        _surroundings(tell) as around,
    ):
        server, link, missing = around
        folder = Path(place)
        url = f"{server.url}?schema={_SCHEMA}"
        open_store(url).close()
        witness.post(server, _SCHEMA)
        (folder / "effects").mkdir()
        (folder / "effect.sh").write_text(effects.PROGRAM, encoding="utf-8")
        flows.write(folder)
        kinds, more = _kinds(plan.workers, url, server.port, link)
        for text in (*missing, *more):
            tell(f"NOT TESTED, {text}")
        people = People(url, folder, flows.load(folder), runs=plan.runs, seconds=plan.seconds * 0.9, seed=plan.seed)
        fleet = Fleet(folder, kinds)
        harm = Harm(fleet, server, link, seed=plan.seed)
        try:
            people.begin()
            _rage(plan, fleet, harm, tell)
            harm.mend()
            drained = _settle(plan, url, fleet, people, tell)
        finally:
            people.end()
            wrong = fleet.end(LEASE + 60)
            tidy()
        found = [Violation("orphan", "", what) for what in (*wrong, *left_behind(folder))]
        # Who is told to end while Python is still starting ends by the signal itself, and has taken nothing.
        told = [status for status in fleet.statuses if status not in (0, -signal.SIGTERM)]
        found += [Violation("stuck", "", f"a worker ended with {status}") for status in told]
        return _report(plan, server, url, folder, people, fleet, harm, drained, found, (*missing, *more))


@contextlib.contextmanager
def _surroundings(tell: Callable[[str], None]) -> Iterator[tuple[Server, network.Link | None, tuple[str, ...]]]:
    """A server, and a link to it that can be cut, where there can be one."""
    missing = network.why_not()
    link = network.Link() if missing is None else None
    try:
        more = {} if link is None else {"address": link.address, "others": link.others}
        server = new_server(settings=_SETTINGS, **more)
        try:
            yield server, link, (f"a partition: {missing}",) if missing else ()
        finally:
            server.remove()
    finally:
        if link is not None:
            link.remove()


def _kinds(count: int, url: str, port: int, link: network.Link | None) -> tuple[list[Kind], tuple[str, ...]]:
    """Plain workers, two with clocks that are wrong, one behind the link; and what there cannot be here."""
    kinds, missing = [], []
    for minutes in (10, -10):
        clock = wrong_clock(minutes)
        if clock is None:
            missing.append("a clock that is set wrong: there is no libfaketime; apt-get install faketime")
            break
        kinds.append(Kind(f"{minutes:+d} min", url=url, more=clock))
    if link is not None:
        kinds.append(Kind(CUT, url=url.replace(f"127.0.0.1:{port}", f"{link.address}:{port}"), front=link.front))
    kinds += [Kind("plain", url=url)] * max(count - len(kinds), 1)
    return kinds[:count] if count >= len(kinds) else kinds, tuple(missing)


def _rage(plan: Plan, fleet: Fleet, harm: Harm, tell: Callable[[str], None]) -> None:
    """Do harm until the time is over."""
    began = last = time.monotonic()
    following = began + plan.pace
    while time.monotonic() < began + plan.seconds:
        fleet.tend()
        harm.tend()
        if time.monotonic() >= following:
            harm.once()
            following = time.monotonic() + harm.pause(plan.pace)
        if time.monotonic() - last > 30:
            last = time.monotonic()
            tell(f"{last - began:.0f} s: {sum(harm.done.values())} harms, {fleet.started} workers started")
        time.sleep(0.05)


def _settle(plan: Plan, url: str, fleet: Fleet, people: People, tell: Callable[[str], None]) -> float:
    """Wait until no run has anything left to do; how long that took."""
    began = time.monotonic()
    with contextlib.closing(open_store(url)) as store:
        while time.monotonic() < began + plan.drain:
            fleet.tend()
            left = [run for run in _runs(store) if _has_to_do(run)]
            if people.all_started and not left:
                return time.monotonic() - began
            time.sleep(POLL)
    tell(f"{len(left)} runs have not come to rest")
    return time.monotonic() - began


def _has_to_do(run: Run) -> bool:
    if run.status is Status.WAITING and run.start_key is not None:
        return not run.start_key.endswith("0")  # nobody decides at these
    if run.status is Status.BLOCKED or run.start_key is None:  # a called run goes with its caller
        return False
    return not run.status.terminal and run.status is not Status.FAILED


def _runs(store: Store) -> list[Run]:
    found: list[Run] = []
    after: str | None = None
    while True:
        page, after = store.page(limit=500, after=after)
        found += page
        if after is None:
            return found


def _report(
    plan: Plan,
    server: Server,
    url: str,
    folder: Path,
    people: People,
    fleet: Fleet,
    harm: Harm,
    drained: float,
    found: list[Violation],
    missing: tuple[str, ...],
) -> Report:
    """Read everything, and audit it."""
    seen = witness.statements(server, _SCHEMA)
    with contextlib.closing(open_store(url)) as store:
        runs = _runs(store)
        found += [Violation("lost", str(fault.get("run_id")), str(fault)) for fault in store.faults()]
        cases = [_evidence(store, run, folder, seen.get(run.run_id, ())) for run in runs]
    blocked = {run.run_id for run in runs if run.status is Status.BLOCKED}
    for case in cases:
        found += [one for one in audit(case) if not _waits_for_child(one, case, blocked)]
    readable = {run.run_id for run in runs}
    found += [one for run_id in seen if run_id not in readable for one in witnessed(run_id, seen[run_id])]
    found += lost(people.acknowledged, runs)
    ours = [effect for case in cases for effect in case.effects]
    unsafe = [
        effect
        for case in cases
        for effect in case.effects
        if flows.policy(case.run.workflow, effect.path) == "non_replayable"
    ]
    counts = Counter(one.kind for one in found)
    moves = [one for several in seen.values() for one in several if one.kind == "moved"]
    return Report(
        plan=plan,
        runs=len(runs),
        statuses=dict(Counter(run.status.value for run in runs)),
        harm=dict(harm.done),
        people=dict(people.did),
        workers=fleet.started,
        effects=len(ours),
        unsafe=len(unsafe),
        repeated=len(ours) - len({(effect.run, effect.path) for effect in ours}),
        records=sum(len(case.records) for case in cases),
        writes=len(moves),
        takeovers=sum(one.was_token is not None and one.token not in (None, one.was_token) for one in moves),
        drained=round(drained, 1),
        counts={kind: counts.get(kind, 0) for kind in KINDS},
        violations=tuple(found),
        not_tested=missing,
    )


def _evidence(store: Store, run: Run, folder: Path, seen: tuple[Any, ...]) -> Evidence:
    """All that is known of a run; the caller of a run that is not over may have left it in nobody's hands."""
    return Evidence(
        run=run,
        records=store.journal(run.run_id),
        notes=store.notes(run.run_id),
        effects=effects.of(folder / "effects", run.run_id),
        seen=seen,
        now=time.time(),
    )


def _waits_for_child(one: Violation, case: Evidence, blocked: set[str]) -> bool:
    """A called run goes on when its caller does: while that one is blocked, it is in nobody's hands."""
    caller = case.run.started_by.removeprefix("run ")
    return one.kind == "stuck" and case.run.started_by.startswith("run ") and caller in blocked
