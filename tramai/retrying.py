"""Whether and when a failed attempt is followed by another."""

from __future__ import annotations

from .codec import decode
from .error_types import matches
from .outcomes import StepFailed
from .step import Retry, StepError
from .store import Record

FINAL = frozenset(("limit", "rejected", "cancelled", "expression", "refused"))
"""Error types that another attempt cannot mend."""


def again_after(retry: Retry, used: int, error: StepError) -> float | None:
    """Seconds to wait before the next attempt, after `used` of them; None when there is none.

    The other side's wish (`retry_after`) goes before our own pace, up to `max_delay`: a longer one ends the step, and
    the error says so.
    """
    if used >= retry.max_attempts or error.type in FINAL:
        return None
    if retry.on and not matches(error.type, retry.on):
        return None
    if error.retry_after is not None:
        if error.retry_after > retry.max_delay:
            longest = f"retry.max_delay is {retry.max_delay:g}s"
            error.message += f" (asked to wait {error.retry_after:g}s, {longest})"
            return None
        return max(error.retry_after, 0.0)
    import random

    try:
        delay: float = min(retry.delay * float(retry.backoff) ** (used - 1), retry.max_delay)
    except OverflowError:  # beyond all floats
        delay = retry.max_delay
    return delay * (1 + random.uniform(-retry.jitter, retry.jitter))  # noqa: S311 - spreads load, guards nothing


def recorded_failure(path: str, record: Record) -> StepFailed:
    """The failure that the journal has for a step whose attempts are used up."""
    error = decode(record.error) if record.error is not None else {"type": "exit", "message": "failed"}
    return StepFailed(path=path, reason=error.get("message", ""), error=error, hint=error.get("hint"))
