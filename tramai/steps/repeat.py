"""`repeat`: run a block again and again, until a condition holds."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ..codec import Json
from ..duration import Duration
from ..errors import Pointer
from ..expression import Condition
from ..running import Known, Walk
from ..step import Block, Control, Finding, StepError
from . import _items


class Repeat(Control, frozen=True, kw_only=True):
    """Loop until a condition holds after a turn; reaching `max` turns without it is a failure."""

    do: Annotated[Block, msgspec.Meta(description="The block to run in each turn.")]
    until: Annotated[
        Condition | None,
        msgspec.Meta(
            description="Asked after each turn, whose steps it sees by id; without it there are `max` turns.",
            examples=['${{ steps.poll.output.status == "done" }}'],
        ),
    ] = None
    max: Annotated[int, msgspec.Meta(ge=1, le=100_000, description="The most turns.", examples=[20])]
    delay: Annotated[
        Duration | None, msgspec.Meta(description="The pause between two turns; it survives a restart.")
    ] = None

    def check(self) -> tuple[Finding, ...]:
        """A body with steps in it."""
        return _items.empty(self)

    def blocks(self) -> tuple[tuple[Pointer, str, Block], ...]:
        """The block of a turn."""
        return ((("do",), "do", self.do),)

    def binds(self) -> tuple[str, ...]:
        """The number of the turn: `loop.index`, from 1."""
        return ("loop",)

    def closing(self) -> dict[str, Pointer]:
        """`until` sees the steps of the turn that has just ended."""
        return {"until": ("do",)}

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The outputs of the last turn."""
        return known.block(self.do)

    def output(self, result: Any) -> Json:
        """The outputs of the last turn."""
        return result["steps"]  # type: ignore[no-any-return]

    def note(self, result: Any) -> str | None:
        """How many turns it took."""
        count = result["iterations"]
        return f"{count} turn{'' if count == 1 else 's'}"

    async def walk(self, walk: Walk) -> Any:
        """Turn after turn."""
        for number in range(1, self.max + 1):
            names = {"loop": {"index": number, "index0": number - 1}}
            turn = await walk.turn(self.do, number=number, names=names)
            if self.until is None:
                over = number == self.max
            else:
                over = await turn.test(self.until)
            if over:
                return {"iterations": number, "steps": turn.outputs}
            if self.delay is not None and number < self.max:
                await walk.pause(self.delay, after=number)
        assert self.until is not None
        raise StepError(
            "limit",
            f"after {self.max} turns `until` does not hold: {self.until.text}",
            hint="raise `max`, add a `delay`, or `catch` the error (type limit)",
            details={"iterations": self.max},
        )
