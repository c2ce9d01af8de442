"""Starts a run from inputs as a caller has them; what `tramai.run` is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import engine
from .inputs import bind

if TYPE_CHECKING:
    from .clock import Clock
    from .codec import Json
    from .event import Observer
    from .plan import Plan
    from .results import Options, Result
    from .store import Store


def run(
    plan: Plan,
    inputs: Mapping[str, Json] | None = None,
    *,
    store: Store,
    observers: Sequence[Observer] = (),
    options: Options | None = None,
    clock: Clock | None = None,
) -> Result:
    """Start a new run and carry it as far as it goes.

    `inputs` are checked and converted, and their defaults filled in: InvalidInput for an unknown, missing or wrong one.
    The rest is `engine.run`, for inputs that are bound already.
    """
    bound = bind(plan.workflow.inputs, inputs or {})
    return engine.run(plan, bound, store=store, observers=observers, options=options, clock=clock)
