"""What is not the same in two runs: inputs, outputs, how their steps ended and what these gave."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _fold
from ._diff_documents import Changed
from ._standing import Standing

if TYPE_CHECKING:
    from ..store import Run, Store
    from ._documents import StepView


def values(store: Store, first: Run, second: Run) -> list[Changed]:
    """All differences, in the order of the first run."""
    found = list(_maps("input", _json(first.inputs), _json(second.inputs)))
    found += _maps("output", _json(first.outputs), _json(second.outputs))
    found += _steps(_views(store, first), _views(store, second))
    return found


def _maps(what: str, old: Any, new: Any) -> Iterator[Changed]:
    before, after = (value if isinstance(value, dict) else {} for value in (old, new))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name) or (name in before) != (name in after):
            yield Changed(path=name, what=what, old=before.get(name), new=after.get(name))


def _steps(before: Mapping[str, StepView], after: Mapping[str, StepView]) -> Iterator[Changed]:
    for path in dict.fromkeys([*before, *after]):
        old, new = before.get(path), after.get(path)
        statuses = [view.status if view is not None else None for view in (old, new)]
        if statuses[0] != statuses[1]:
            yield Changed(path=path, what="step", old=statuses[0], new=statuses[1])
        elif old is not None and new is not None and old.output != new.output:
            yield Changed(path=path, what="output of step", old=old.output, new=new.output)


def _views(store: Store, run: Run) -> dict[str, StepView]:
    standing = Standing(run, time.time())
    return {view.path: view for view in _fold.steps(store.journal(run.run_id), standing)}


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
