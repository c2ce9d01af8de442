"""`tramai plan`: show what a run would do, without doing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..duration import spell
from ._group import inputs, verb
from ._session import Session
from ._terminal import cells, pad, safe

if TYPE_CHECKING:
    from ..plan import Plan
    from . import _plan_documents
    from ._plan_documents import PlannedSecret, PlannedStep


_SAID = ("timeout", "max_tokens", "max_cost_usd")
"""Limits that the text shows when they are set."""


@verb("plan", "tramai plan review.yaml -i base=main", "tramai plan review.yaml --json")
@click.argument("file", metavar="FILE")
@inputs("An input, as for `tramai run`.")
@click.option("--inputs", "inputs_file", metavar="FILE", help="Inputs from a file, as for `tramai run`.")
def command(session: Session, file: str, pairs: tuple[str, ...], inputs_file: str | None) -> int:
    """Show what a run of FILE would do, without doing it; as `tramai run -n`.

    For each step: its verb, what a crash in the middle of it allows (replayable:
    run again; idempotent: run again with the same key; non_replayable: ask an
    operator, or its `verify`), what it does outside, how often it is tried, for
    how long. Conditions, branches and loops that the inputs decide are decided.
    For each secret: whether it is set. At the end: how many step executions
    there will be, against the limit.

    Inputs that are given are checked; required ones may be missing here.

    Exit status: 0 shown, 2 bad input, 3 invalid file.
    """
    return show(session, file, pairs, inputs_file)


def show(session: Session, file: str, pairs: tuple[str, ...], inputs_file: str | None) -> int:
    """Print the plan of a file, as text or JSON."""
    from . import _given, _load

    made = _load.plan_of(session, file)
    session.variables()
    bound = _bind(made, _given.gather(pairs, inputs_file))
    planned = _planned(made, bound, file)
    if session.json:
        session.emit(planned)
        return 0
    for line in _text(session, made, planned):
        session.out.line(line)
    return 0


def _planned(made: Plan, bound: dict[str, Any], file: str) -> _plan_documents.Plan:
    """The document."""
    from . import _plan_documents
    from ._planning import Planner, concurrency, executions, limits, permits

    planner = Planner(made, bound)
    flow = made.workflow
    steps = planner.block(flow.steps)
    others = [
        _plan_documents.PlannedBlock(label=label, steps=planner.block(block, known=False))
        for _, label, block in flow.blocks()[1:]
    ]
    last = [step for block in others if block.label == "finally" for step in block.steps]
    return _plan_documents.Plan(
        file=file,
        workflow=flow.name,
        version=flow.version,
        digest=made.digest,
        inputs=bound,
        secrets=_secrets(made),
        limits=limits(made),
        executions=executions(made, [*steps, *last]),
        permits=permits(made),
        concurrency=concurrency(made, bound),
        steps=steps,
        catch=[block for block in others if block.label != "finally"],
        last=last,
    )


def _bind(made: Plan, given: dict[str, Any]) -> dict[str, Any]:
    """The inputs as a run would have them, without those that are still missing."""
    from .. import inputs

    specs = {name: spec for name, spec in made.workflow.inputs.items() if name in given or not spec.needed}
    unknown = {name: value for name, value in given.items() if name not in made.workflow.inputs}
    return inputs.bind(made.workflow.inputs if unknown else specs, given)


def _secrets(made: Plan) -> list[PlannedSecret]:
    from .. import secret
    from ._plan_documents import PlannedSecret

    return [
        PlannedSecret(name=name, source=secret.source_of(source), present=secret.present(source, base=os.getcwd()))
        for name, source in made.workflow.secrets.items()
    ]


def _text(session: Session, made: Plan, planned: _plan_documents.Plan) -> list[str]:
    paint = session.out.paint
    flow = made.workflow
    digest = made.digest if session.verbose else made.digest[:8]
    lines = [f"{paint(safe(flow.name), 'bold')} v{safe(flow.version)}  digest {digest}"]
    lines += _inputs_text(made, planned.inputs)
    for secret in planned.secrets:
        state = paint("set", "green") if secret.present else paint("missing", "red")
        lines.append(f"  secret {safe(secret.name)}: {state}  ({safe(secret.source)})")
    strokes = ("├─ ", "└─ ", "│  ") if session.out.unicode else ("|- ", "`- ", "|  ")
    rows = list(_rows(planned.steps, "", strokes))
    for block in planned.catch:
        rows += [(f"{safe(block.label)}:", "", "", ""), *_rows(block.steps, "", strokes)]
    if planned.last:
        rows += [("finally:", "", "", ""), *_rows(planned.last, "", strokes)]
    width = max((cells(head) for head, *_ in rows), default=0)
    for head, kind, replay, effect in rows:
        lines.append(f"{pad(head, width)}  {kind:<9} {replay:<15} {effect}".rstrip())
    lines += _permits(planned)
    lines += _group(planned)
    lines.append(_count(planned))
    lines.append("nothing was done; `tramai run` does it")
    return lines


def _group(planned: _plan_documents.Plan) -> Iterator[str]:
    """The group, and what a run does that finds no place there."""
    found = planned.concurrency
    if found is not None:
        then = {"queue": "waits", "skip": "is skipped", "cancel_running": "cancels the older ones", "fail": "fails"}
        room = f"{found.limit} at a time; one more {then[found.on_conflict]}"
        yield f"runs of the group '{safe(found.group)}': {room}"


def _permits(planned: _plan_documents.Plan) -> Iterator[str]:
    """Permits that would be enough, and where the workflow's own are not."""
    found = planned.permits
    assert found is not None
    if found.missing:
        listed = ", ".join(f"{kind} {safe(name)}" for kind, name in found.missing)
        yield f"not permitted, so a step will fail: {listed}"
    if found.enough:
        inner = ", ".join(f"{kind}: [{', '.join(map(safe, names))}]" for kind, names in found.enough.items())
        yield f"{'needs' if found.declared else 'would be enough:'} permits: {{{inner}}}"
    if found.unknown:
        yield "only the run will know: " + ", ".join(f"the {kind} of {step}" for kind, step in found.unknown)


def _count(planned: _plan_documents.Plan) -> str:
    """How many executions, and the limits that are near."""
    count = planned.executions
    assert count is not None
    if count.most is None:
        text = f"at least {count.least} step executions, of at most {count.limit}"
    else:
        span = str(count.most) if count.least == count.most else f"{count.least} to {count.most}"
        text = f"{span} step executions, of at most {count.limit}"
        if count.most > count.limit:
            text += ": retries and loops may reach the limit"
    others = [_limit(name, planned.limits[name]) for name in _SAID if name in planned.limits]
    return text + (f"; limits: {', '.join(others)}" if others else "")


def _limit(name: str, value: float) -> str:
    return f"{name} {spell(value) if name == 'timeout' else f'{value:g}'}"


def _inputs_text(made: Plan, bound: dict[str, Any]) -> list[str]:
    from ._values import scalar

    lines = []
    for name, spec in made.workflow.inputs.items():
        if name in bound:
            shown = scalar(bound[name])
            lines.append(f"  input {safe(name)}: {shown if len(shown) <= 60 else shown[:57] + '...'}")
        else:
            lines.append(f"  input {safe(name)}: {'not given (required)' if spec.needed else 'not given'}")
    return lines


def _rows(steps: list[PlannedStep], indent: str, strokes: tuple[str, str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Four columns per step: its place in the tree, verb, replay policy, effect."""
    for index, one in enumerate(steps):
        last = index == len(steps) - 1
        yield indent + strokes[1 if last else 0] + one.id, one.verb, *_effect(one)
        inner = indent + ("   " if last else strokes[2])
        for position, block in enumerate(one.blocks):
            end = position == len(one.blocks) - 1
            said = "" if block.steps else "nothing"
            if block.taken is not None:
                said = "  ".join(part for part in ("taken" if block.taken else "not taken", said) if part)
            yield inner + strokes[1 if end else 0] + safe(block.label) + ":", "", "", said
            yield from _rows(block.steps, inner + ("   " if end else strokes[2]), strokes)


def _effect(one: PlannedStep) -> tuple[str, str]:
    if one.decided is False:
        return "", f"skipped  when {safe(one.when or '')} is false"
    holds = [block for block in one.blocks if block.label != "catch"]
    parts = [_reach(one)] if not holds or one.verb in ("call", "ai") else []
    if one.turns is not None:
        times = "once" if one.turns == 1 else f"{one.turns} times"
        parts.append(f"at most {times}" if one.verb == "repeat" else times)
    if one.max_attempts > 1:
        parts.append(f"up to {one.max_attempts} attempts")
    for name, seconds in (("timeout", one.timeout), ("deadline", one.deadline)):
        if seconds is not None:
            parts.append(f"{name} {spell(seconds)}")
    if one.verify is not None:
        parts.append(f"verify {safe(one.verify)}")
    if one.when:
        parts.append(f"when {safe(one.when)}" + (" is true" if one.decided else ""))
    return ("" if holds and one.verb not in ("call", "ai") else one.replay), "  ".join(part for part in parts if part)


def _reach(one: PlannedStep) -> str:
    """What it does outside."""
    if one.pure or one.verb in ("delay", "gate"):
        return ""
    if one.verb == "call":
        return safe(one.reaches or "")
    said = "starts a process" if one.spawns else "reaches outside"
    return f"{said}: {safe(one.reaches)}" if one.reaches else said
