"""The JSON documents of questions and decisions. Fields may be added, never renamed: others build on them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Text = str | None


class VoteView(Struct, frozen=True, kw_only=True):
    """What somebody said; `by` is null for `timed_out`."""

    decision: str
    by: Text
    at: float
    comment: Text
    data: Any = None


class QuestionView(Struct, frozen=True, kw_only=True):
    """A question that a gate waits with. Times are epoch seconds."""

    path: str
    asking: Annotated[int, Meta(description="counts the askings of this step, from 1")]
    ask: str
    show: Any = None
    form: Annotated[dict[str, Any] | None, Meta(description="JSON Schema of the data of an approval")] = None
    approvers: Annotated[list[str], Meta(description="who may decide; anybody, when nobody is named")] = []
    min: Annotated[int, Meta(description="how many different people must approve")] = 1
    asked: float
    deadline: float | None = None
    on_timeout: str = "fail"
    votes: list[VoteView] = []
    decision: Annotated[Text, Meta(description="how it is decided, though its run has not gone on yet")] = None


class Decision(Struct, frozen=True, kw_only=True):
    """A vote that was stored. `outcome` is how the gate is decided by it, null while more must approve."""

    schema: Literal["tramai.decision/1"] = "tramai.decision/1"
    run_id: str
    path: str
    asking: int
    decision: str
    by: str
    at: float
    comment: Text
    data: Any = None
    outcome: Text
    approvals: int
    min: int
    status: Annotated[str, Meta(description="how the run stands after it")]


class Matter(Struct, frozen=True, kw_only=True):
    """A run that is not over, what it is waiting for, and what to type. Times are epoch seconds."""

    run_id: str
    workflow: str
    version: str
    status: str
    step: Text
    since: float
    wake_at: float | None = None
    questions: Annotated[list[QuestionView], Meta(description="of a run that waits")] = []
    unknown: Annotated[list[str], Meta(description="paths whose outcome is unknown, of a blocked run")] = []
    called: Annotated[list[str], Meta(description="runs that it has called and that wait or sleep")] = []
    error: dict[str, Any] | None = None
    commands: Annotated[list[str], Meta(description="the next commands")] = []


class Unreadable(Struct, frozen=True, kw_only=True):
    """A run that cannot be read."""

    run_id: str
    problem: str


class Ailing(Struct, frozen=True, kw_only=True):
    """A schedule that starts nothing at the moment, and why; `since` is in epoch seconds."""

    name: str
    code: str
    message: str
    hint: str | None
    since: float | None
    commands: list[str]


class Matters(Struct, frozen=True, kw_only=True):
    """What `status` shows: everything that is not over, by what it needs; newest first."""

    schema: Literal["tramai.status/1"] = "tramai.status/1"
    waiting: list[Matter]
    blocked: list[Matter]
    failed: list[Matter]
    interrupted: list[Matter]
    sleeping: list[Matter]
    running: list[Matter]
    schedules: Annotated[list[Ailing], Meta(description="schedules in trouble, of all workflows or the one")] = []
    more: Annotated[list[str], Meta(description="lists that were cut by --limit")] = []
    faults: list[Unreadable] = []


DOCUMENTS = (Decision, Matters)
