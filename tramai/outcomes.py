"""How a step or a walk ends when it does not simply succeed: it failed, or it cannot go on yet."""

from __future__ import annotations

from .codec import Json
from .errors import TramaiError
from .step import StepError


class StepFailed(TramaiError):
    """step '{path}' failed: {reason}"""

    # `error` is the record that `catch`, `show` and the JSON documents carry.
    code = "TRM401"
    exit_status = 1

    error: dict[str, Json]
    final: bool = False
    """The run has reached one of its limits: nothing catches that."""


class Suspended(Exception):
    """The run cannot go on before `until` (epoch seconds; None: until somebody decides).

    `waiting`: somebody may let it go on earlier, by a decision.
    """

    def __init__(self, until: float | None, *, waiting: bool = False) -> None:
        self.until = until
        self.waiting = waiting or until is None
        super().__init__("suspended")

    def by(self, ends: float, now: float, allowed: str) -> Suspended:
        """The same, no longer than until an instant at which the step's time is over; StepError when that has come."""
        if ends <= now:
            raise StepError("timeout", f"the step took longer than its {allowed}") from None
        return Suspended(ends if self.until is None else min(self.until, ends), waiting=self.waiting)


class Blocked(Suspended):
    """The run cannot go on before somebody says what became of a step; `error` is the record, as JSON text."""

    def __init__(self, error: str) -> None:
        self.error = error
        super().__init__(None)


class GoBack(Exception):
    """A gate sends the walk back to an earlier step, named by its id."""

    def __init__(self, to: str) -> None:
        self.to = to
        super().__init__(to)


def failure(id: str, path: str, error: StepError, attempt: int = 1) -> StepFailed:
    """The failure of a step, with the record that expressions and documents see."""
    record: dict[str, Json] = {
        "type": error.type,
        "message": error.message,
        "step": id,
        "path": path,
        "attempt": attempt,
        **error.details,
    }
    if error.hint is not None:
        record["hint"] = error.hint
    failed = StepFailed(path=path, reason=error.message, error=record, hint=error.hint)
    failed.final = error.final
    return failed


def allowed(timeout: float | None, left: float | None) -> str | None:
    """How long the step itself allows the attempt to take, for people."""
    if left is not None and (timeout is None or left < timeout):
        return f"deadline allows (there were {left:.3g}s left)"
    return None if timeout is None else f"timeout of {timeout:g}s"
