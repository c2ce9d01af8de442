"""Classes that are almost what they should be."""

from typing import Any

from tramai.duration import Duration
from tramai.step import Control, Done, Finding, Outcome, Step


class NoStep:
    """No step."""


class Loose(Step, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Takes settings that it does not know."""

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(None)


class Holder(Control, frozen=True, kw_only=True):
    """Holds steps."""

    async def walk(self, walk: Any) -> Any:
        """Nothing."""


class Hiding(Step, frozen=True, kw_only=True):
    """Has a setting with the name of a method."""

    output: str = ""

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(None)


class Idle(Step, frozen=True, kw_only=True):
    """Does nothing at all."""


class Odd(Step, frozen=True, kw_only=True):
    """Has a setting that no schema describes."""

    what: complex = 0j

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(None)


class Raises(Step, frozen=True, kw_only=True):
    """Raises what it is told to."""

    what: str
    pause: Duration = Duration(0.0)

    async def run(self, ctx: Any) -> Outcome:
        """Raise."""
        raise {"value": ValueError("no good"), "time": TimeoutError(), "lookup": KeyError("x")}[self.what]


class WrongEnd(Step, frozen=True, kw_only=True):
    """Forgets to say that it is done."""

    async def run(self, ctx: Any) -> Any:
        """A bare value."""
        return 3


class NoJson(Step, frozen=True, kw_only=True):
    """Gives what no JSON can say."""

    async def run(self, ctx: Any) -> Outcome:
        """A set."""
        return Done({1, 2})  # type: ignore[arg-type]


class BadCheck(Step, frozen=True, kw_only=True):
    """Cannot check itself."""

    def check(self) -> tuple[Finding, ...]:
        """Raise."""
        raise RuntimeError("no idea")

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(None)


class AllBad(Step, frozen=True, kw_only=True):
    """Raises whatever it is asked."""

    wanted: int = 0

    def __post_init__(self) -> None:
        """Raise, for one setting."""
        if self.wanted == 13:
            raise LookupError("no 13")

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("do not ask me")

    replay = pure = needs_loop = shape = record = reaches = attached = output = note = _raise  # type: ignore[assignment]

    async def run(self, ctx: Any) -> Outcome:
        """Nothing."""
        return Done(1)


class Unmade:
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no disk")


class Raiser:
    """Raises at every event."""

    def __call__(self, event: Any) -> None:
        """Raise."""
        raise RuntimeError("never mind me")
