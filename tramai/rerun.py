"""A run that begins again: with which results of an earlier one, and what is stored of it before it starts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from .called import called_run
from .codec import decode, encode
from .errors import NotFound, NotInThatState, UsageError
from .expression import suggest
from .inputs import bind
from .paths import spell
from .plan import Plan
from .portable import Bundle
from .step import Block, Control, Node
from .store import Mark, Note, Record, Run, Status

ENDED = (Mark.COMPLETED, Mark.SKIPPED)
_ROUND = re.compile(r"@[0-9]+$")
_ROUND_IN = re.compile(r"(?:@([0-9]+))?(?=[\[@]|$)")


class Place(msgspec.Struct, frozen=True):
    """A step that a run can begin at: its path, what it stands in, and what stands before it.

    `blocks` are the prefixes of the blocks it stands in, from the outermost; `around` the paths of their containers.
    """

    path: str
    around: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def find(plan: Plan, step: str) -> Place:
    """The place of a step, given its path or its id; NotFound, or UsageError for one that never runs alone."""
    places = {place.path: place for place in _places(plan.workflow.steps, Place(""))}
    if step in places:
        return places[step]
    named = [place for place in places.values() if place.path.rpartition(".")[2] == step]
    if len(named) == 1:
        return named[0]
    if step in plan.nodes and step not in {node.id for node in plan.workflow.steps.walk()}:
        what = f"step '{step}' runs only when something has failed, or at the end"
        raise UsageError(what=what, hint="--from takes a step of `steps`")
    if step in plan.nodes:
        # The innermost comes last: a step inside a branch inside a loop runs with the loop.
        holder = [path for path in places if any(node.id == step for node in _inside(plan, path))][-1]
        what = f"step '{step}' runs once for each turn of '{holder}'"
        raise UsageError(what=what, hint=f"--from {holder} runs all of it again")
    near = suggest(step, [*places, *(place.path.rpartition(".")[2] for place in places.values())])
    raise NotFound(kind="step", name=step, hint=f"did you mean {near}?" if near else None)


def before(run: Run, place: Place, records: Sequence[Record]) -> tuple[Record, ...]:
    """The records that a walk needs to come to a place without running anything, numbered anew.

    Everything of the steps that stand before it, and what the containers around it have decided. NotInThatState when
    one of those steps has not ended, or the run never came into the block. A place to which a gate has sent the walk
    back begins with what was there the last time, as if it had been the first.
    """
    if any(record.path.startswith(f"{path}@") for path in (place.path, *place.around) for record in records):
        for path in (*place.around, *place.before):  # what stands inside is found once its container is the first
            records = _last_rounds(records, (path,))
    ended = {_unrounded(record.path) for record in records if record.mark in ENDED}
    for path in place.before:
        if path not in ended:
            what = f"step '{path}' stands before '{place.path}' and has not ended"
            raise NotInThatState(run_id=run.run_id, status=run.status.value, what=what)
    for prefix in place.blocks:
        if not any(record.path.startswith(prefix) for record in records):
            what = f"it never came into the block of step '{place.path}'"
            raise NotInThatState(run_id=run.run_id, status=run.status.value, what=what)
    inside = tuple(f"{path}{mark}" for path in place.before for mark in "[@")
    kept = [
        record
        for record in records
        if (record.path in place.around and record.mark is Mark.DECIDED)
        # The runs that were called stay those of the run that called them.
        or ((record.path in place.before or record.path.startswith(inside)) and called_run(record) is None)
    ]
    return tuple(replace(record, seq=seq, fence=0) for seq, record in enumerate(kept, 1))


def _unrounded(path: str) -> str:
    """The path of a step in whatever round it ended; the rounds of what it stands in stay."""
    return _ROUND.sub("", path)


def _last_rounds(records: Sequence[Record], paths: Sequence[str]) -> list[Record]:
    """The records with the last round of each of these steps in the place of the first, and without the others."""
    kept: list[Record] = []
    last = dict.fromkeys(paths, 1)
    for record in records:
        for path in paths:
            found = _round_of(record.path, path)
            if found is not None and record.mark is not Mark.FAILED:
                last[path] = max(last[path], found[0])
    for record in records:
        for path in paths:
            found = _round_of(record.path, path)
            if found is not None:
                if found[0] == last[path] and found[1] != "@redo":
                    kept.append(replace(record, path=path + found[1]))
                break
        else:
            kept.append(record)
    return kept


def _round_of(path: str, step: str) -> tuple[int, str] | None:
    """Which round of a step a path belongs to, and what stands behind it; None when it is another's."""
    if not path.startswith(step):
        return None
    found = _ROUND_IN.match(path, len(step))
    return (int(found[1] or 1), path[found.end() :]) if found is not None else None


def again(
    found: Run,
    plan: Plan,
    kept: Sequence[Record],
    *,
    run_id: str,
    start_at: str | None,
    start_key: str | None,
    labels: Sequence[str],
    cwd: str,
    by: str,
    now: float,
) -> Bundle:
    """The whole of a run that begins again, to be taken in by one write: so that it never begins with less.

    Its inputs are those of the run it is a rerun of; a plan that has changed since must still accept them.
    """
    same = plan.digest == found.digest
    definition = plan.definition()
    run = Run(
        run_id=run_id,
        generation=os.urandom(16).hex(),
        workflow=definition.name,
        version=definition.version,
        digest=definition.digest,
        status=Status.READY,
        inputs=found.inputs if same else encode(bind(plan.workflow.inputs, decode(found.inputs))),
        cwd=cwd,
        file=found.file if same else definition.file,
        fence=0,
        revision=0,
        created=now,
        updated=now,
        started_by=by,
        start_key=start_key,
        labels=(*found.labels, *(label for label in labels if label not in found.labels)),
        queue=found.queue,
        priority=found.priority,
        rerun_of=found.run_id,
    )
    data = {"run_id": found.run_id, "from": start_at, "records": len(kept)}
    note = Note(seq=1, at=now, type="run.rerun_of", by=by or None, data=encode(data))
    return Bundle(run=run, definition=definition, records=tuple(kept), notes=(note,))


def _places(block: Block, outer: Place, prefix: str = "") -> Iterator[Place]:
    """Every step that runs at most once in a run, in the order of the file."""
    earlier = outer.before
    for node in block.nodes:
        path = prefix + node.id
        here = Place(path, outer.around, outer.blocks, earlier)
        yield here
        if isinstance(node.step, Control) and node.step.visible():
            for _, label, inner in node.step.blocks():
                deeper = f"{path}[{spell(label)}]."
                yield from _places(inner, Place(path, (*here.around, path), (*here.blocks, deeper), earlier), deeper)
        earlier = (*earlier, path)


def _inside(plan: Plan, path: str) -> Iterator[Node]:
    node = plan.nodes[path.rpartition(".")[2]]
    for _, _, block in node.blocks():
        yield from block.walk()
