"""The JSON documents of `tramai export`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ._documents import Log, RunView

Text = str | None


class JournalRecord(Struct, frozen=True, kw_only=True):
    """A line of the journal, as the store has it. Times are epoch seconds."""

    seq: int
    path: str
    mark: str
    attempt: int
    verb: str
    at: float
    started: float | None
    fence: Annotated[int, Meta(description="the claim under which it was written")]
    worker: Text
    policy: Annotated[Text, Meta(description="the replay policy of an attempt")]
    key: Annotated[Text, Meta(description="the idempotency key of an attempt")]
    input_sha: Text
    log: Text
    value: Annotated[Any, Meta(description="the output of a completed step, or what was decided")] = UNSET
    error: dict[str, Any] | UnsetType = UNSET
    saves: dict[str, Any] | UnsetType = UNSET
    usage: dict[str, Any] | UnsetType = UNSET


class Source(Struct, frozen=True, kw_only=True):
    """The definition that the run goes by, from the store."""

    digest: str
    name: str
    version: str
    format: str
    file: Text
    text: Annotated[str, Meta(description="the file as it was read")]
    canonical: Annotated[dict[str, Any], Meta(description="what the digest is taken of")]


class CalledStep(Struct, frozen=True, kw_only=True):
    """A step of a called run as far as the run got."""

    path: str
    verb: str
    status: str
    attempts: int
    took: Annotated[float | None, Meta(description="seconds of its last attempt that has ended")]


class CalledRun(Struct, frozen=True, kw_only=True):
    """A run that a step has called, with its steps."""

    run_id: str
    caller: Annotated[str, Meta(description="the run that has called it")]
    path: Annotated[str, Meta(description="the step of the caller that has called it")]
    workflow: Annotated[Text, Meta(description="null when the store does not have the run")] = None
    version: Text = None
    status: Text = None
    stale: Annotated[bool, Meta(description="it counts as running and its runner is gone")] = False
    created: float | None = None
    ended: float | None = None
    steps: list[CalledStep] = []


class Export(Struct, frozen=True, kw_only=True):
    """`export`: all that the store has of a run. Secrets are masked in it, as they are in the store."""

    schema: Literal["tramai.export/1"] = "tramai.export/1"
    tramai: Annotated[str, Meta(description="the version that made this document")]
    run: RunView
    journal: list[JournalRecord]
    definition: Annotated[Source | None, Meta(description="null of a run that was moved or removed")]
    called: Annotated[list[str], Meta(description="runs that it has called; each has an export of its own")]
    calls: Annotated[
        list[CalledRun], Meta(description="the runs that it has called, each before those that it has called itself")
    ]
    logs: Annotated[list[Log], Meta(description="the last lines of attempts that did not succeed")]


class Exported(Struct, frozen=True, kw_only=True):
    """`export` with `--output`, or with `--format md --json`: what was made."""

    schema: Literal["tramai.exported/1"] = "tramai.exported/1"
    run_id: str
    format: Literal["json", "md"]
    output: Annotated[Text, Meta(description="the file it was written to")]
    text: Annotated[Text, Meta(description="the text, unless it went to a file")]


DOCUMENTS = (Export, Exported)
