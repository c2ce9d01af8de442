"""`delay`: a pause that survives restarts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

import msgspec

from .. import duration
from ..expression import Template
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Replay, Step, StepError, Suspend


class Delay(Step, frozen=True, kw_only=True, rename={"for_": "for"}):
    """Wait for a time, or until an instant. The instant is fixed when the step begins and kept with the run."""

    scalar: ClassVar[str | None] = "for"
    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = True
    answers: ClassVar[bool] = False
    timed: ClassVar[bool] = False

    for_: Annotated[
        Template | None, msgspec.Meta(description="How long: `90s`, `1h30m`, `2d`.", examples=["10m", "2d"])
    ] = None
    until: Annotated[
        Template | None,
        msgspec.Meta(
            description="An instant: ISO 8601 with an offset, or a local time followed by an IANA zone.",
            examples=["2027-01-31T08:00:00Z", "2027-01-31T08:00 Europe/Berlin"],
        ),
    ] = None

    def check(self) -> tuple[Finding, ...]:
        """Exactly one of `for` and `until`, and a literal that can be read."""
        if (self.for_ is None) == (self.until is None):
            return (Finding((), "TRM342", "a delay needs either `for` or `until`", "keep one of the two"),)
        field, text = ("for", self.for_) if self.for_ is not None else ("until", self.until)
        if text is None or "${{" in text.text:
            return ()
        try:
            if field == "for":
                duration.parse(text.text)
            else:
                instant(text.text)
        except ValueError as error:
            code = "TRM124" if field == "for" else "TRM343"
            return (
                Finding(
                    (field,), code, f"`{text.text}` is no {'duration' if field == 'for' else 'instant'}", str(error)
                ),
            )
        return ()

    def shape(self, known: Known) -> dict[str, Any] | None:
        """When it was over."""
        return {"type": "object", "properties": {"woke_at": {"type": "number"}}}

    def record(self, known: Known) -> dict[str, Any] | None:
        """The same."""
        return self.shape(known)

    async def run(self, ctx: Context) -> Outcome:
        """Fix the instant at the first evaluation, then wait for it."""
        wake: float = await ctx.once(lambda: self._begin(ctx))
        if ctx.now() < wake:
            ctx.signal("delay.waiting", wake_at=wake)
            return Suspend(until=wake)
        ctx.signal("delay.resumed", wake_at=wake)
        return Done({"woke_at": wake})

    def _begin(self, ctx: Context) -> float:
        wake = self._wake(ctx)
        ctx.signal("delay.started", wake_at=wake)
        return wake

    def _wake(self, ctx: Context) -> float:
        try:
            if self.for_ is not None:
                return ctx.now() + duration.parse(ctx.text(self.for_))
            assert self.until is not None  # `check` refuses a delay with neither
            return instant(ctx.text(self.until))
        except ValueError as error:
            raise StepError("expression", f"the delay cannot be read: {error}") from error


def instant(text: str) -> float:
    """Epoch seconds of an instant text; ValueError with a hint.

    A local time that a clock change skips is taken with the offset before the change (so it comes out later on the
    clock); one that happens twice is taken the first time. This is what `zoneinfo` does with `fold=0` (PEP 495).
    """
    stamp, _, zone = text.strip().partition(" ")
    if zone and zone[0].isdigit():
        stamp, _, zone = (stamp + "T" + zone).partition(" ")
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        raise ValueError("write an instant as 2027-01-31T08:00:00Z or 2027-01-31T08:00 Europe/Berlin") from None
    if moment.tzinfo is None:
        if not zone:
            raise ValueError("add an offset or a zone, such as Z, +01:00 or Europe/Berlin")
        return _local(moment, zone)
    if zone:
        raise ValueError("give an offset or a zone, not both")
    try:
        return moment.astimezone(UTC).timestamp()
    except OverflowError:
        raise ValueError("the calendar goes from the year 1 to 9999, in UTC") from None


def _local(moment: datetime, zone: str) -> float:
    from zoneinfo import ZoneInfo

    try:
        return moment.replace(tzinfo=ZoneInfo(zone)).timestamp()
    except (KeyError, ValueError, OSError):
        raise ValueError(f"unknown time zone {zone}") from None
