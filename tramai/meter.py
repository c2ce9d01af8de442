"""What a run has used, against what it may use: its own limits, and those of the run that called it."""

from __future__ import annotations

from .definition import Limits
from .journal import Journal
from .step import StepError, Usage

_OUT_OF_TIME = "the run reached its limit of running time (limits.timeout)"


class LimitReached(StepError):
    """A limit of the whole run: nothing more is started, and no `catch` takes it."""

    final = True

    def __init__(self, message: str = _OUT_OF_TIME, *, hint: str | None = None) -> None:
        super().__init__("limit", message, hint=hint)


Used = tuple[int, int, float]
"""Step executions, tokens, US dollars."""


class Meter:
    """Counts one run and the runs it has called that are not over; what is over stands in the journal's counts."""

    def __init__(self, limits: Limits, journal: Journal, outer: Meter | None) -> None:
        self._limits = limits
        self._journal = journal
        self._outer = outer
        self._counted: Used = (0, 0, 0.0)
        self._open: set[Meter] = set()
        self._attempts: dict[str, Used] = {}
        """What attempts under way have used, by path."""

    def used(self) -> Used:
        """What this run has used so far, with the runs it has called."""
        own = self._journal
        inner = [*(meter.uncounted() for meter in tuple(self._open)), *tuple(self._attempts.values())]
        return (
            own.executions + sum(used[0] for used in inner),
            own.tokens + sum(used[1] for used in inner),
            own.cost + sum(used[2] for used in inner),
        )

    def uncounted(self) -> Used:
        """What the run that called this one does not have in its own journal yet."""
        used, counted = self.used(), self._counted
        return used[0] - counted[0], used[1] - counted[1], used[2] - counted[2]

    @property
    def limits_cost(self) -> bool:
        """Whether this run, or one that called it, may cost no more than it is allowed."""
        own = self._limits.max_cost_usd is not None
        return own or (self._outer is not None and self._outer.limits_cost)

    def attempting(self, path: str, usage: Usage | None) -> None:
        """What an attempt has used so far; None when it is over, and the journal says it."""
        if usage is None:
            self._attempts.pop(path, None)
        else:
            tokens = usage.input_tokens + usage.output_tokens
            self._attempts[path] = (usage.executions, tokens, usage.cost_usd or 0.0)

    def enter(self, counted: Used) -> None:
        """This run begins to count in the one that called it; `counted` is what its journal already has of it."""
        self._counted = counted
        if self._outer is not None:
            self._outer._open.add(self)

    def leave(self) -> None:
        """It is over, or suspended: from here on it counts by what its caller's journal says."""
        if self._outer is not None:
            self._outer._open.discard(self)

    def check(self, out_of_time: bool, *, starts: bool = True) -> None:
        """LimitReached when nothing more may be started, here or in a run that called this one.

        `starts` false: a step that goes on is no further execution, and may only be out of what it uses.
        """
        limits = self._limits
        executions, tokens, cost = self.used()
        most = limits.max_step_executions
        if starts and executions >= most:
            text = f"the run reached its limit of {most} step executions (limits.max_step_executions)"
            raise LimitReached(text, hint="attempts count, on every resume; raise the limit to go on")
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            text = f"the run has used {tokens} tokens of {limits.max_tokens} (limits.max_tokens)"
            raise LimitReached(text, hint="all attempts count, on every resume; raise the limit to go on")
        if limits.max_cost_usd is not None and cost >= limits.max_cost_usd:
            text = f"the run has cost ${cost:.4f} of ${limits.max_cost_usd:g} (limits.max_cost_usd)"
            raise LimitReached(text, hint="all attempts count, on every resume; raise the limit to go on")
        if out_of_time:
            raise LimitReached
        if self._outer is not None:
            self._outer.check(out_of_time=False, starts=starts)
