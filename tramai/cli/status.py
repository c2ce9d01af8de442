"""`tramai status`: what needs somebody: decisions, unknown outcomes, failures, and what sleeps."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click
import msgspec

from .. import deciding, places, recovery
from ..calling import open_calls
from ..errors import NotFound, TramaiError
from ..store import Run, Status, Store
from . import _questions
from ._advice import short
from ._clockface import stamp, until
from ._gate_documents import Ailing, Matter, Matters, Unreadable
from ._glyphs import glyph, word
from ._group import verb
from ._session import Session
from ._terminal import safe, safe_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUPS = ("waiting", "blocked", "failed", "interrupted", "sleeping", "running")
LOOKED = 1000
"""Runs that are looked at to tell who is carried and who is not."""
_TITLES = {
    "waiting": "waiting for a decision",
    "blocked": "blocked: the outcome of a step is unknown",
    "failed": "failed",
    "interrupted": "interrupted: nobody carries it",
    "sleeping": "sleeping",
    "running": "running",
}
_STORED = {
    "waiting": (Status.WAITING,),
    "blocked": (Status.BLOCKED,),
    "failed": (Status.FAILED,),
    "interrupted": (Status.READY, Status.RUNNING),
    "sleeping": (Status.SLEEPING,),
    "running": (Status.RUNNING, Status.READY),
}


@verb("status", "tramai status", "tramai status --workflow release --json")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, help="At most this many of each kind.  [default: 20]"
)
@click.option("--workflow", metavar="NAME", help="Runs of this workflow.")
def command(session: Session, limit: int, workflow: str | None) -> int:
    """Show what needs somebody, with the command to type for each.

    Gates that wait for a decision with their question and deadline, runs that are
    blocked by an unknown outcome, failed and interrupted ones, those that sleep,
    and schedules in trouble. What is completed or cancelled is not shown:
    `tramai list` has it.

    Exit status: 0 shown, whatever there is; 7 store unusable.
    """
    store = session.looking()
    found = _typed(session, gather(store, limit, workflow))
    if session.json:
        session.emit(found)
        return 0
    for line in _text(session, found):
        session.out.line(line)
    for fault in found.faults:
        session.err.line(f"warning: run {safe(fault.run_id)} cannot be read: {safe(fault.problem)}")
    if found.more:
        session.note(f"more are {', '.join(found.more)}: see them with --limit")
    return 0


def gather(store: Store, limit: int, workflow: str | None = None) -> Matters:
    """Everything that is not over."""
    now = time.time()
    groups: dict[str, list[Matter]] = {}
    more: list[str] = []
    faults: dict[str, Mapping[str, str]] = {}
    found = {
        status: _newest(store, status, limit, workflow, faults)
        for status in dict.fromkeys(status for name in GROUPS for status in _STORED[name])
    }
    for name in GROUPS:
        runs = [run for status in _STORED[name] for run in found[status][0] if _belongs(name, run, now)]
        if len(runs) > limit or any(found[status][1] for status in _STORED[name]):
            more.append(name)
        runs.sort(key=lambda run: (run.created, run.run_id), reverse=True)
        groups[name] = [_matter(store, name, run, now) for run in runs[:limit]]
    unreadable = [
        Unreadable(run_id=run_id, problem="; ".join(str(text) for key, text in fault.items() if key != "run_id"))
        for run_id, fault in faults.items()
    ]
    ailing = _ailing(store, workflow, now)
    return msgspec.convert({**groups, "schedules": ailing, "more": more, "faults": unreadable}, Matters)


def _newest(
    store: Store, status: Status, limit: int, workflow: str | None, faults: dict[str, Mapping[str, str]]
) -> tuple[list[Run], bool]:
    """The newest runs of a status, and whether there are more. Of those that may be in anybody's hands or in nobody's
    there are so many that an interrupted one is found behind all that are carried."""
    wanted = LOOKED if status in (Status.RUNNING, Status.READY) else limit
    runs, cursor = store.page(limit=wanted, status=status, workflow=workflow)
    faults |= {fault.get("run_id", ""): fault for fault in store.faults()}
    return [*runs], cursor is not None


def _typed(session: Session, found: Matters) -> Matters:
    """The same with commands that find these runs when they are typed."""
    told = {
        name: [msgspec.structs.replace(one, commands=[*map(session.typed, one.commands)]) for one in matters]
        for name in (*GROUPS, "schedules")
        if (matters := getattr(found, name))
    }
    return msgspec.structs.replace(found, **told)


def _ailing(store: Store, workflow: str | None, now: float) -> list[Ailing]:
    """The schedules that start nothing at the moment."""
    look = getattr(store, "roster", None)
    if look is None:
        return []
    from .. import ticking

    roster = look(now=now)
    found = [
        Ailing(
            name=entry.id,
            code=entry.trouble.code,
            message=entry.trouble.message,
            hint=entry.trouble.hint,
            since=entry.trouble.at,
            commands=[f"tramai schedule history {ticking.as_typed(entry.id)}"],
        )
        for entry in roster.entries
        if entry.trouble is not None and workflow in (None, entry.workflow)
    ]
    return found + [
        Ailing(name=name, code="TRM461", message=what, hint=None, since=None, commands=["tramai store check"])
        for name, what in roster.faults
        if workflow is None
    ]


def _belongs(name: str, run: Run, now: float) -> bool:
    if run.status is Status.READY:  # one that waits for its place in its group is carried, too
        return places.in_line(run, now) is (name == "running")
    if run.status is not Status.RUNNING:
        return True
    return run.stale(now) is (name == "interrupted")


def _matter(store: Store, name: str, run: Run, now: float) -> Matter:
    found = Matter(
        run_id=run.run_id,
        workflow=run.workflow,
        version=run.version,
        status=run.status.value,
        step=run.step,
        since=run.updated,
        wake_at=run.wake_at,
        error=json.loads(run.error) if run.error is not None else None,
    )
    more = _MORE.get(name)
    try:
        return found if more is None else more(store, run, found, now)
    except TramaiError as error:  # a journal that cannot be read hides no other run
        return _replaced(found, error={"type": "unreadable", "message": error.message})


def _waiting(store: Store, run: Run, found: Matter, now: float) -> Matter:
    questions = _questions.of(deciding.look(store, run.run_id))
    commands = _questions.commands(run.run_id, questions, now)
    called = _called(store, run)
    over = any(one.decision is not None or (one.deadline is not None and now >= one.deadline) for one in questions)
    if over or not (questions or called):
        commands.append(f"tramai resume {short(run.run_id)}")
    return _replaced(found, questions=questions, called=called, commands=commands)


def _called(store: Store, run: Run) -> list[str]:
    """The runs it has called for which it still has to wait: they are listed themselves, with what to do."""
    found = []
    for run_id in open_calls(store.journal(run.run_id)):
        with contextlib.suppress(NotFound):
            if store.get(run_id).status in (Status.WAITING, Status.SLEEPING, Status.BLOCKED):
                found.append(run_id)
    return found


def _blocked(store: Store, run: Run, found: Matter, now: float) -> Matter:
    paths = [record.path for record in recovery.unknown_attempts(store.journal(run.run_id))]
    return _replaced(found, unknown=paths, commands=[_resolve(run, path) for path in paths])


def _resolve(run: Run, path: str) -> str:
    return f"tramai resolve {short(run.run_id)} {shlex.quote(path)} --as completed|failed|retry|skipped"


def _resumable(store: Store, run: Run, found: Matter, now: float) -> Matter:
    return _replaced(found, commands=[f"tramai resume {short(run.run_id)}"])


def _sleeping(store: Store, run: Run, found: Matter, now: float) -> Matter:
    due = run.wake_at is None or run.wake_at <= now
    return _resumable(store, run, found, now) if due else found


_MORE: dict[str, Callable[[Store, Run, Matter, float], Matter]] = {
    "waiting": _waiting,
    "blocked": _blocked,
    "failed": _resumable,
    "interrupted": _resumable,
    "sleeping": _sleeping,
}


def _replaced(matter: Matter, **news: object) -> Matter:
    return msgspec.structs.replace(matter, **news)


def _text(session: Session, found: Matters) -> list[str]:
    lines: list[str] = []
    now = time.time()
    for name in GROUPS:
        matters: list[Matter] = getattr(found, name)
        if matters:
            lines += ([""] if lines else []) + [session.out.paint(_TITLES[name], "bold")]
            lines += [line for matter in matters for line in _lines(session, name, matter, now)]
    if found.schedules:
        lines += ([""] if lines else []) + [session.out.paint("schedules in trouble", "bold")]
    for one in found.schedules:
        since = "" if one.since is None else f"  since {stamp(one.since)}"
        lines += [f"  {safe(one.name)}{since}", f"      {safe(one.message)} ({one.code})"]
        lines += [f"      {session.out.paint(safe(command), 'cyan')}" for command in one.commands]
    return lines or ["nothing needs you"]


def _lines(session: Session, name: str, matter: Matter, now: float) -> Iterator[str]:
    out = session.out
    sign, said = glyph(out, name), word(out, name)
    head = f"  {safe(short(matter.run_id))}  {sign} {said}  {safe(matter.workflow)} v{safe(matter.version)}"
    where = f"  {safe(matter.step)}" if matter.step and name in ("failed", "interrupted", "running") else ""
    yield f"{head}{where}  since {stamp(matter.since)}"
    if name == "sleeping" and matter.wake_at is not None:
        yield f"      until {until(matter.wake_at, now)}" if matter.wake_at > now else "      its time has come"
    if matter.error is not None and name in ("failed", "waiting", "blocked"):
        yield f"      {safe_lines(str(matter.error.get('message') or matter.error.get('type') or 'failed'))[0]}"
    for question in matter.questions:
        yield f"      {safe(question.path)}"
        yield from _questions.described(out, question, 8, now)
    for run_id in matter.called:
        yield f"      for the run that it has called: {safe(short(run_id))}"
    for command in matter.commands:
        yield f"      {out.paint(safe(command), 'cyan')}"
