"""Judges a changed definition against what a run has already done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .errors import DefinitionChanged
from .paths import step_id
from .plan import Plan
from .step import Control
from .store import Mark, Record, Run

if TYPE_CHECKING:
    from .diff import Difference

_PART = re.compile(r'(?<!@)(?<![a-z0-9_])([a-z][a-z0-9_]*)(?:@[0-9]+)?(?:\[(?:"(?:[^"\\]|\\.)*"|[^\]"]*)\])?\.?')
_FREE = ("version", "limits", "concurrency", "outputs", "env", "secrets", "state")
"""Keys of a workflow that a run may take over while it is under way."""


def judge(
    run: Run,
    old: Plan,
    new: Plan,
    changed: Sequence[Difference],
    records: Sequence[Record],
    *,
    accept: bool,
    verb: str = "resume",
) -> None:
    """Raise DefinitionChanged, unless the changes are to be accepted and touch nothing that has begun.

    The error carries `differences`, `ran` (those of steps that have begun) and `blocking` (those that cannot be
    accepted). `verb` is what was asked for, and stands in the advice.
    """
    begun = begun_ids(records)
    ran = tuple(difference for difference in changed if _touches(difference, begun))
    order = [node.id for node in new.workflow.steps.walk()]
    last = max((place for place, id in enumerate(order) if id in begun), default=-1)
    over = _inside_ended(records, old, new)
    blocking = tuple(
        difference
        for difference in changed
        if difference in ran
        or difference.step in over
        or _rewrites(difference, order[: last + 1])
        or _folds_otherwise(difference, old)
    )
    if accept and not blocking:
        return
    raise DefinitionChanged(
        run_id=run.run_id,
        differences=tuple(changed),
        ran=ran,
        blocking=blocking,
        accept=accept,
        verb=verb,
        file=run.file,
        digests=(old.digest, new.digest),
        versions=(old.workflow.version, new.workflow.version),
    )


def begun_ids(records: Iterable[Record]) -> frozenset[str]:
    """The ids of steps that have begun, containers included; not those of `finally`, which begins anew each time."""
    begun = (record for record in records if record.mark is not Mark.SKIPPED and not record.path.startswith("@finally"))
    return frozenset(id for record in begun for id in path_ids(record.path))


def _inside_ended(records: Iterable[Record], old: Plan, new: Plan) -> frozenset[str]:
    """The ids of steps in the blocks of containers that have ended: nothing comes to them any more."""
    ended = {step_id(record.path) for record in records if record.mark is Mark.COMPLETED}
    steps = [plan.nodes[id].step for plan in (old, new) for id in ended if id in plan.nodes]
    blocks = [block for step in steps if isinstance(step, Control) for _, _, block in step.blocks()]
    return frozenset(node.id for block in blocks for node in block.walk())


def path_ids(path: str) -> tuple[str, ...]:
    """The step ids along a path: `triage[42].classify` gives triage and classify."""
    return tuple(_PART.findall(path))


def _touches(difference: Difference, begun: frozenset[str]) -> bool:
    return difference.step in begun or (difference.kind == "renamed" and difference.old in begun)


def _folds_otherwise(difference: Difference, old: Plan) -> bool:
    """Whether what was saved to a key of the state would come to something else now: all of it is put together anew."""
    of_key = difference.step is None and difference.what.startswith("state.") and difference.what.endswith(".reduce")
    return of_key and difference.what[len("state.") : -len(".reduce")] in old.workflow.state


def _rewrites(difference: Difference, before: Sequence[str]) -> bool:
    """Whether the change alters what the run was told at its start, or what stands before a step that has begun."""
    if difference.step is None:
        return difference.what.partition(".")[0] not in _FREE
    return difference.step in before
