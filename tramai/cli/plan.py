"""`tramai plan`: show what a run would do, without doing it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ._group import verb
from ._session import Session
from ._terminal import cells, pad, safe

if TYPE_CHECKING:
    from .. import step
    from ..plan import Plan
    from ._documents import PlannedSecret, PlannedStep


@verb("plan", "tramai plan review.yaml -i base=main", "tramai plan review.yaml --json")
@click.argument("file", metavar="FILE")
@click.option("-i", "--input", "pairs", metavar="KEY=VALUE", multiple=True, help="An input, as for `tramai run`.")
@click.option("--inputs", "inputs_file", metavar="FILE", help="Inputs from a file, as for `tramai run`.")
def command(session: Session, file: str, pairs: tuple[str, ...], inputs_file: str | None) -> int:
    """Show what a run of FILE would do, without doing it; as `tramai run -n`.

    For each step: its verb, what a crash in the middle of it allows (replayable:
    run again; idempotent: run again with the same key; non_replayable: ask an
    operator), and whether it reaches outside. For each secret: whether it is
    set.

    Inputs that are given are checked; required ones may be missing here.

    Exit status: 0 shown, 2 bad input, 3 invalid file.
    """
    return show(session, file, pairs, inputs_file)


def show(session: Session, file: str, pairs: tuple[str, ...], inputs_file: str | None) -> int:
    """Print the plan of a file, as text or JSON."""
    from . import _documents, _given, _load

    made = _load.plan_of(session, file)
    bound = _bind(made, _given.gather(pairs, inputs_file))
    secrets = _secrets(made)
    steps = [_step(made, node) for node in made.workflow.steps]
    if session.json:
        document = _documents.Plan(
            file=file,
            workflow=made.workflow.name,
            version=made.workflow.version,
            digest=made.digest,
            inputs=bound,
            secrets=secrets,
            steps=steps,
        )
        session.emit(document)
        return 0
    for line in _text(session, made, bound, secrets, steps):
        session.out.line(line)
    return 0


def _bind(made: Plan, given: dict[str, Any]) -> dict[str, Any]:
    """The inputs as a run would have them, without those that are still missing."""
    from .. import inputs

    specs = {name: spec for name, spec in made.workflow.inputs.items() if name in given or not spec.needed}
    unknown = {name: value for name, value in given.items() if name not in made.workflow.inputs}
    return inputs.bind(made.workflow.inputs if unknown else specs, given)


def _secrets(made: Plan) -> list[PlannedSecret]:
    from .. import secret
    from ._documents import PlannedSecret

    return [
        PlannedSecret(name=name, source=secret.source_of(source), present=secret.present(source, base=os.getcwd()))
        for name, source in made.workflow.secrets.items()
    ]


def _step(made: Plan, node: step.Node) -> PlannedStep:
    from ..step import Control
    from ._documents import PlannedBlock, PlannedStep

    line, column = made.place(node.id) or (None, None)
    blocks = node.step.blocks() if isinstance(node.step, Control) else ()
    return PlannedStep(
        id=node.id,
        verb=node.verb,
        replay=str(node.replay),
        when=node.when.text if node.when is not None else None,
        pure=isinstance(node.step, Control) or node.step.pure(),
        spawns=node.step.spawns,
        line=line,
        column=column,
        blocks=[PlannedBlock(label=label, steps=[_step(made, inner) for inner in block]) for _, label, block in blocks],
    )


def _text(
    session: Session, made: Plan, bound: dict[str, Any], secrets: list[PlannedSecret], steps: list[PlannedStep]
) -> list[str]:
    paint = session.out.paint
    flow = made.workflow
    digest = made.digest if session.verbose else made.digest[:8]
    lines = [f"{paint(safe(flow.name), 'bold')} v{safe(flow.version)}  digest {digest}"]
    lines += _inputs_text(made, bound)
    for secret in secrets:
        state = paint("set", "green") if secret.present else paint("missing", "red")
        lines.append(f"  secret {safe(secret.name)}: {state}  ({safe(secret.source)})")
    strokes = ("├─ ", "└─ ", "│  ") if session.out.unicode else ("|- ", "`- ", "|  ")
    rows = list(_rows(steps, "", strokes))
    width = max((cells(head) for head, *_ in rows), default=0)
    for head, kind, replay, effect in rows:
        lines.append(f"{pad(head, width)}  {kind:<9} {replay:<15} {effect}".rstrip())
    lines.append("nothing was done; `tramai run` does it")
    return lines


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


def _rows(steps: list[PlannedStep], indent: str, strokes: tuple[str, str, str]) -> Any:
    """Four columns per step: its place in the tree, verb, replay policy, effect."""
    for index, one in enumerate(steps):
        last = index == len(steps) - 1
        yield indent + strokes[1 if last else 0] + one.id, one.verb, *_effect(one)
        inner = indent + ("   " if last else strokes[2])
        for position, block in enumerate(one.blocks):
            end = position == len(one.blocks) - 1
            yield inner + strokes[1 if end else 0] + safe(block.label) + ":", "", "", "" if block.steps else "nothing"
            yield from _rows(block.steps, inner + ("   " if end else strokes[2]), strokes)


def _effect(one: PlannedStep) -> tuple[str, str]:
    if one.blocks:
        said = ""
    elif one.spawns:
        said = "starts a process"
    else:
        said = "" if one.pure else "reaches outside"
    condition = f"when {safe(one.when)}" if one.when else ""
    return ("" if one.blocks else one.replay), "  ".join(part for part in (said, condition) if part)
