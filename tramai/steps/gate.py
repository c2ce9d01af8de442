"""`gate`: go on, or stop the run: by a condition, or as people decide."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from ..asking import APPROVED, REJECTED, TIMED_OUT, Decision, Question, Vote
from ..codec import Json
from ..duration import Duration
from ..expression import Condition, Expression, ExpressionError, Template, Value
from ..paths import redone
from ..running import Context, Known
from ..shape import Shape
from ..step import Done, Finding, Outcome, Redo, Reject, Replay, Step, StepError, Suspend
from . import _gate_check


class Again(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a rejection sends the walk back to."""

    redo: Annotated[str, Meta(description="The id of an earlier step, in this block or one around it.")]
    max: Annotated[int, Meta(ge=1, le=100, description="How often; the rejection after that fails.")]


class Gate(Step, frozen=True, kw_only=True, rename={"check_": "check"}):
    """Let the run pass while a condition holds (`check`), or when people approve (`ask`)."""

    scalar: ClassVar[str | None] = "check"
    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = True
    alone: ClassVar[bool] = False
    answers: ClassVar[bool] = False
    timed: ClassVar[bool] = False

    check_: Annotated[
        Condition | None,
        Meta(description="A policy: must be true for the run to go on.", examples=["${{ inputs.score >= 0.8 }}"]),
    ] = None
    reason: Annotated[Template, Meta(description="With `check`: shown to whoever reads the rejected run.")] = (
        _gate_check.CLOSED
    )
    ask: Annotated[
        Template | None,
        Meta(description="A question to people; the run waits until they decide.", examples=["Release to production?"]),
    ] = None
    show: Annotated[
        Value | None, Meta(description="What they need to know to decide; fixed when the question is asked.")
    ] = None
    form: Annotated[
        Shape | None,
        Meta(
            description="What an approval must say besides yes: an object of fields, as inputs are declared.",
            examples=[{"properties": {"ticket": {"type": "string"}}, "required": ["ticket"]}],
        ),
    ] = None
    approvers: Annotated[
        tuple[Template, ...], Meta(description="The names of those who may decide; anybody, if none are named.")
    ] = ()
    min: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="How many different people must approve; default: 1. One rejection always decides."),
    ] = None
    timeout: Annotated[
        Duration | None, Meta(description="How long it waits for the decision; default: for ever.", examples=["24h"])
    ] = None
    on_timeout: Annotated[
        Literal["approve", "reject", "fail"] | None,
        Meta(description="What happens when that time is over: `fail` (default), `approve` or `reject`."),
    ] = None

    on_reject: Annotated[
        Literal["fail"] | Again | None,
        Meta(
            description="What a rejection does: `fail` (default), or go back to an earlier step and on from there.",
            examples=[{"redo": "draft", "max": 3}],
        ),
    ] = None

    def back(self) -> str | None:
        """The step to which a rejection goes back."""
        return self.on_reject.redo if isinstance(self.on_reject, Again) else None

    def check(self) -> tuple[Finding, ...]:
        """Exactly one form, keys that belong to it, and numbers that can be met."""
        return _gate_check.findings(self)

    def pure(self) -> bool:
        """A policy has no effect; to ask somebody is one."""
        return self.ask is None

    def shape(self, known: Known) -> dict[str, Any] | None:
        """The decision, with what the form asks for."""
        text: dict[str, Any] = {"type": "string"}
        data: dict[str, Any] = {}
        if self.form is not None:
            data = {"anyOf": [{"type": "object", **msgspec.to_builtins(self.form)}, {"type": "null"}]}
        votes: dict[str, Any] = {"votes": {"type": "array"}} if (self.min or 1) > 1 else {}
        decision = {**text, "enum": [APPROVED, REJECTED, TIMED_OUT]}
        given = {"decision": decision, "by": text, "at": {"type": "number"}, "comment": {}, "data": data}
        return {"type": "object", "properties": {**given, **votes}}

    def record(self, known: Known) -> dict[str, Any] | None:
        """The same."""
        return self.shape(known)

    def output(self, result: Any) -> Json:
        """The decision."""
        return result  # type: ignore[no-any-return]

    def note(self, result: Any) -> str | None:
        """Who decided."""
        by = result.get("by")
        return f"{result['decision']} by {by}" if self.ask is not None and by else None

    async def run(self, ctx: Context) -> Outcome:
        """Decide by policy, or ask and wait for the decision."""
        if self.ask is None:
            return self._by_policy(ctx)
        question, decision = await ctx.decision(lambda: self._question(ctx))
        if decision is None:
            return Suspend(until=question.deadline, waiting=True)
        return self._decided(question, decision, redone(ctx.path))

    def _by_policy(self, ctx: Context) -> Outcome:
        assert self.check_ is not None  # `check` refuses a gate with neither
        if not ctx.test(self.check_):
            return Reject(ctx.text(self.reason), {"check": self.check_.text, "values": self._values(ctx)})
        return Done({"decision": APPROVED, "by": "policy", "at": ctx.now(), "comment": None, "data": None})

    def _values(self, ctx: Context) -> dict[str, Json]:
        """What the names in the condition stood for, for whoever has to understand the decision."""
        assert self.check_ is not None
        found: dict[str, Json] = {}
        for site in self.check_.sites():
            for use in (use for part in site.expressions for use in part.names):
                name = self.check_.text[use.start : use.end]
                try:
                    found[name] = ctx.value(Expression("${{ " + name + " }}"))
                except ExpressionError:
                    continue  # read only under a default: it has no value
        return found

    def _question(self, ctx: Context) -> Question:
        """Everything that is asked, as it is now."""
        assert self.ask is not None
        approvers = tuple(dict.fromkeys(ctx.text(name).strip() for name in self.approvers))
        least = self.min or 1
        if "" in approvers or 0 < len(approvers) < least:
            named = ", ".join(name or "''" for name in approvers)
            raise StepError("expression", f"{least} must approve, and the approvers are: {named}")
        now = ctx.now()
        return Question(
            ask=ctx.text(self.ask),
            show=None if self.show is None else ctx.value(self.show),
            form=None if self.form is None else msgspec.to_builtins(self.form),
            approvers=approvers,
            min=least,
            asked=now,
            deadline=None if self.timeout is None else now + self.timeout,
            on_timeout=self.on_timeout or "fail",
        )

    def _decided(self, question: Question, decision: Decision, times: int) -> Outcome:
        last = decision.last
        record = _record(last)
        if question.min > 1:
            record["votes"] = [_record(vote) for vote in decision.votes if vote.decision != TIMED_OUT]
        if decision.decision == TIMED_OUT:
            if question.on_timeout == "approve":
                return Done({**record, "decision": APPROVED, "by": "timeout"})
            if question.on_timeout == "fail":
                raise StepError("timeout", "nobody decided in time", details=record)
            return self._rejected("nobody decided in time", {**record, "by": "timeout"}, times)
        if decision.decision == APPROVED:
            return Done(record)
        said = f": {last.comment}" if last.comment else ""
        return self._rejected(f"{last.by} rejected it{said}", record, times)

    def _rejected(self, reason: str, record: dict[str, Json], times: int) -> Outcome:
        """Back to an earlier step, as often as that is allowed; then the end."""
        if isinstance(self.on_reject, Again) and times < self.on_reject.max:
            return Redo({**record, "decision": REJECTED})
        return Reject(reason, record)


def _record(vote: Vote) -> dict[str, Json]:
    return {
        "decision": vote.decision,
        "by": vote.by,
        "at": vote.at,
        "comment": vote.comment,
        "data": vote.data,
    }
