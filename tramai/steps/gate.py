"""`gate`: go on, or stop the run with a reason."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from ..codec import Json
from ..expression import Condition, Expression, ExpressionError, Template
from ..step import Context, Done, Known, Outcome, Reject, Replay, Step


class Gate(Step, frozen=True, kw_only=True):
    """Let the run pass only while a condition holds."""

    scalar: ClassVar[str | None] = "check"
    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = True
    answers: ClassVar[bool] = False

    check_: Annotated[
        Condition,
        msgspec.Meta(description="Must be true for the run to go on.", examples=["${{ inputs.score >= 0.8 }}"]),
    ] = msgspec.field(name="check")
    reason: Annotated[Template, msgspec.Meta(description="Shown to whoever reads the rejected run.")] = Template(
        "the gate is closed"
    )

    def pure(self) -> bool:
        """A policy has no effect."""
        return True

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The decision."""
        decision = {"type": "string", "enum": ["approved", "rejected", "timed_out"]}
        return {
            "type": "object",
            "properties": {"decision": decision, "by": {}, "at": {"type": "number"}, "comment": {}, "data": {}},
        }

    def record(self, known: Known) -> dict[str, Any] | None:
        """The same."""
        return self.shape(known)

    def output(self, result: Any) -> Json:
        """The decision."""
        return result  # type: ignore[no-any-return]

    async def run(self, ctx: Context) -> Outcome:
        """Decide by policy."""
        if not ctx.test(self.check_):
            return Reject(ctx.text(self.reason), {"check": self.check_.text, "values": self._values(ctx)})
        return Done({"decision": "approved", "by": "policy", "at": ctx.now(), "comment": None, "data": None})

    def _values(self, ctx: Context) -> dict[str, Json]:
        """What the names in the condition stood for, for whoever has to understand the decision."""
        found: dict[str, Json] = {}
        for site in self.check_.sites():
            for use in (use for part in site.expressions for use in part.names):
                name = self.check_.text[use.start : use.end]
                try:
                    found[name] = ctx.value(Expression("${{ " + name + " }}"))
                except ExpressionError:
                    continue  # read only under a default: it has no value
        return found
