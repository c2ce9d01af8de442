"""Takes whole runs from one store to another, so that each can go on in exactly one of them.

A move has three writes. The run is put into the target as `arriving`, which nobody can go on with; the source leaves
a tombstone that names the target; the target's run is opened. The second write decides: before it the run goes on
from the source, after it from the target, where `arrive` makes up for a third write that was never made. Both sides
carry the same token, so that an arrival is opened only by the move that brought it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from .clock import Clock
from .codec import decode, encode
from .errors import CheckpointConflict, NotFound, NotInThatState, TramaiError, UsageError
from .portable import Bundle, portable
from .rules import nobody_holds
from .store import Change, Note, Run, RunExists, Status, Store

ARRIVING, ARRIVED, MOVED, COPIED = "run.arriving", "run.arrived", "run.moved", "run.copied"
_TRIES = 5
_FREE_OF_PATHS = ("memory", "postgresql", "postgres")


def address(store: Store) -> str:
    """The URL of a store as it can be used from any folder of this machine."""
    scheme, _, rest = store.url.partition(":")
    if scheme in _FREE_OF_PATHS or os.path.isabs(rest) or rest.startswith("//"):
        return store.url
    return f"{scheme}:{os.path.join(os.getcwd(), rest)}"


def bundle(store: Store, run_id: str) -> Bundle:
    """A whole run at one moment: read until nobody wrote meanwhile. CheckpointConflict when somebody always does."""
    for _ in range(_TRIES):
        run = store.get(run_id)
        definition = None if run.status.tombstone else store.definition(run.digest)
        records, notes = store.journal(run_id), store.notes(run_id)
        after = store.get(run_id)
        if (after.generation, after.revision) == (run.generation, run.revision):
            return Bundle(run=replace(run, lease=None), definition=definition, records=records, notes=notes)
    raise CheckpointConflict


def copy(source: Store, target: Store, run_id: str, *, by: str = "", clock: Clock) -> bool:
    """Put a copy of a run into another store; False when it is there already.

    NotInThatState for a run that could go on: then it could in both places. RunExists, StartKeyTaken when the target
    has another run of that name.
    """
    takes = portable(target, "adopt")
    whole = bundle(source, run_id)
    if not whole.run.status.terminal:
        what = "it can still go on, and its copy could too"
        hint = f"tramai store move {run_id} --to {shlex.quote(address(target))}    takes it along, and closes it here"
        raise NotInThatState(run_id=run_id, status=whole.run.status.value, what=what, hint=hint)
    if _is_there(target, whole):
        return False
    takes.adopt(_noted(whole, COPIED, {"from": address(source)}, by=by, now=clock.now()))
    return True


def move(source: Store, target: Store, run_id: str, *, by: str = "", clock: Clock) -> Run:
    """Let a run go on in another store and nowhere else; how it stands there. Done again after a crash, it goes on.

    LeaseHeld while somebody works on it; RunExists, StartKeyTaken when the target has another run of that name;
    CheckpointConflict when it was written to meanwhile: then it stays where it is.
    """
    leaves, takes = portable(source, "bury"), portable(target, "adopt")
    run = source.get(run_id)
    if run.status is Status.MOVED:
        return _finish(source, target, run, by=by, clock=clock)
    if run.status in (Status.REMOVED, Status.ARRIVING):
        what = "only its name is left" if run.status.tombstone else "it is still on its way to this store"
        raise NotInThatState(run_id=run_id, status=run.status.value, what=what)
    nobody_holds(run, clock.now())
    whole = bundle(source, run_id)
    nobody_holds(source.get(run_id), clock.now())
    if whole.run.status.terminal:
        if not _is_there(target, whole):
            takes.adopt(_noted(whole, ARRIVED, {"from": address(source)}, by=by, now=clock.now()))
        token = None
    else:
        takes.adopt(_arriving(whole, source, by=by, now=clock.now()))
        token = _note(target, run_id, ARRIVING)["token"]  # of whoever brought it first
    data = {"to": address(target), "status": whole.run.status.value, "token": token}
    left = Note(at=clock.now(), type=MOVED, by=by or None, data=encode(data))
    leaves.bury(run_id, left, revision=whole.run.revision, status=Status.MOVED, now=clock.now())
    return target.get(run_id) if token is None else _open(target, run_id, by=by, clock=clock)


def arrive(target: Store, run: Run, *, open_source: Callable[[str], Store], by: str = "", clock: Clock) -> Run:
    """Open a run that was brought here by a move which did not come to its end, if its source is closed.

    The run as it stands then; NotInThatState while it is its source that goes on with it, or nobody can say.
    """
    brought = _note(target, run.run_id, ARRIVING)
    try:
        source = open_source(brought["from"])
    except TramaiError as error:
        raise _undecided(target, run, brought, error.message) from error
    try:
        there = source.get(run.run_id)
        closed = there.status is Status.MOVED and _note(source, run.run_id, MOVED)["token"] == brought["token"] != ""
    except NotFound as error:
        raise _undecided(target, run, brought, "it has no such run") from error
    finally:
        source.close()
    if not closed:
        what = f"the move that brought it was never finished, and it goes on in {brought['from']}"
        raise NotInThatState(run_id=run.run_id, status=run.status.value, what=what)
    return _open(target, run.run_id, by=by, clock=clock)


def moved_to(store: Store, run_id: str) -> str:
    """The URL of the store in which a moved run goes on."""
    return str(_note(store, run_id, MOVED)["to"])


def gone(store: Store, run: Run) -> NotInThatState:
    """The error that says where a tombstone's run is."""
    if run.status is Status.MOVED:
        url = moved_to(store, run.run_id)
        hint = f"tramai show {run.run_id} --store {shlex.quote(url)}"
        return NotInThatState(run_id=run.run_id, status="moved", what=f"it is in {url} now", hint=hint)
    return NotInThatState(run_id=run.run_id, status=run.status.value, what="what it held is gone, its name stays taken")


def _finish(source: Store, target: Store, run: Run, *, by: str, clock: Clock) -> Run:
    """Of a run that its source has closed: open it, if it was this target that it was moved to."""
    left = _note(source, run.run_id, MOVED)
    try:
        there = target.get(run.run_id)
    except NotFound:
        raise gone(source, run) from None
    if there.generation != run.generation or there.status is Status.MOVED:
        raise gone(source, run)
    if there.status is Status.ARRIVING:
        if _note(target, run.run_id, ARRIVING)["token"] != left["token"]:
            raise gone(source, run)
        return _open(target, run.run_id, by=by, clock=clock)
    return there


def finished(source: Store, target: Store, run: Run, *, by: str = "", clock: Clock) -> bool:
    """Open a run that its source has closed, if a move to this target did not come to its end; whether it was one."""
    try:
        on_its_way = run.status is Status.MOVED and target.get(run.run_id).status is Status.ARRIVING
        return on_its_way and not _finish(source, target, run, by=by, clock=clock).status.tombstone
    except (NotFound, NotInThatState):
        return False


def _open(target: Store, run_id: str, *, by: str, clock: Clock) -> Run:
    """Let an arrived run go on from here."""
    run = target.get(run_id)
    if run.status is not Status.ARRIVING:
        return run  # somebody else did it
    brought = _note(target, run_id, ARRIVING)
    note = Note(at=clock.now(), type=ARRIVED, by=by or None, data=encode({"from": brought["from"]}))
    change = Change(now=clock.now(), status=Status(brought["status"]), notes=(note,))
    try:
        target.amend(run_id, revision=run.revision, change=change)
    except CheckpointConflict:
        if target.get(run_id).status is Status.ARRIVING:
            raise
    return target.get(run_id)


def _arriving(whole: Bundle, source: Store, *, by: str, now: float) -> Bundle:
    """The bundle as the target keeps it at first: its writers fenced off, and nobody can go on with it."""
    run = replace(
        whole.run, status=Status.ARRIVING, fence=whole.run.fence + 1, revision=whole.run.revision + 1, updated=now
    )
    data = {"from": address(source), "status": whole.run.status.value, "token": os.urandom(16).hex()}
    return _noted(replace(whole, run=run), ARRIVING, data, by=by, now=now)


def _noted(whole: Bundle, type: str, data: dict[str, Any], *, by: str, now: float) -> Bundle:
    note = Note(seq=len(whole.notes) + 1, at=now, type=type, by=by or None, data=encode(data))
    return replace(whole, notes=(*whole.notes, note))


def _is_there(target: Store, whole: Bundle) -> bool:
    """Whether the target has this run already, as it ended; RunExists when it has another of that name."""
    run = whole.run
    try:
        there = target.get(run.run_id)
    except NotFound:
        return False
    if there.generation != run.generation:
        raise RunExists(run_id=run.run_id)
    if target.notes(run.run_id) == whole.notes:
        # What was brought from elsewhere has an event that says so.
        raise UsageError(what=f"{address(target)} is the store that the run is in already")
    if run.status.tombstone or there.status is run.status:
        return True
    if there.status in (Status.MOVED, Status.ARRIVING):
        return False
    raise RunExists(run_id=run.run_id)


def _note(store: Store, run_id: str, type: str) -> dict[str, Any]:
    """The data of the last event of a type."""
    found = [note for note in store.notes(run_id) if note.type == type]
    data = decode(found[-1].data) if found and found[-1].data is not None else {}
    return {"from": "", "to": "", "token": "", "status": "", **data}


def _undecided(target: Store, run: Run, brought: dict[str, Any], why: str) -> NotInThatState:
    what = f"only {brought['from']} can say whether it goes on here, and that cannot be asked: {why}"
    places = f"--store {shlex.quote(brought['from'])} --to {shlex.quote(address(target))}"
    hint = f"where both can be reached: tramai store move {run.run_id} {places}"
    return NotInThatState(run_id=run.run_id, status=run.status.value, what=what, hint=hint)
