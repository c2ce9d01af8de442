"""The end of an attempt as a class of another package gives it: looked at before the engine counts on it."""

from __future__ import annotations

import math
from typing import Any

from ..codec import check
from ..step import Done, Outcome, Reject, StepError, Suspend, Usage


def fitting(name: str, outcome: Any) -> Outcome:
    """The outcome, if it is one in every part; else the StepError that says what is wrong."""
    if not isinstance(outcome, Done | Suspend | Reject):
        what = f"the step type {name} gave {type(outcome).__name__} in the place of Done, Suspend or Reject"
        raise StepError("plugin.TypeError", what)
    why = _unfit(outcome)
    if why is not None:
        what = f"the step type {name} gave {type(outcome).__name__} with {why}"
        raise StepError("plugin.TypeError", what, hint="report it to those who maintain its package")
    found: Outcome = outcome
    return found


def _unfit(outcome: Any) -> str | None:
    if isinstance(outcome, Done):
        return None if outcome.usage is None else _unfit_usage(outcome.usage)
    if isinstance(outcome, Suspend):
        if outcome.until is not None and not _number(outcome.until):
            return "an `until` that is no number of seconds"
        return None if isinstance(outcome.waiting, bool) else "a `waiting` that is neither true nor false"
    if not isinstance(outcome.reason, str):
        return "a `reason` that is no text"
    try:
        check(outcome.details)
    except ValueError as error:
        return f"`details` that cannot be kept: {error}"
    return None if isinstance(outcome.details, dict) else "`details` that are no mapping"


def _unfit_usage(usage: Any) -> str | None:
    if not isinstance(usage, Usage):
        return "a `usage` that is no tramai.step.Usage"
    counts = (usage.input_tokens, usage.output_tokens, usage.executions)
    if any(type(count) is not int or count < 0 for count in counts):
        return "a `usage` whose counts are no whole numbers from 0 on"
    if usage.cost_usd is not None and not (_number(usage.cost_usd) and usage.cost_usd >= 0):
        return "a `usage` whose cost is no number from 0 on"
    return None


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
