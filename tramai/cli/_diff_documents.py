"""The JSON document of `tramai diff`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Text = str | None


class Difference(Struct, frozen=True, kw_only=True):
    """One change of the definition. `kind`: added, removed, renamed, moved, changed. `step` is null at the top."""

    kind: str
    step: Text
    what: Annotated[str, Meta(description="the field, such as `shell.run`, or `step`")]
    old: Text
    new: Text
    text: str
    ran: Annotated[bool, Meta(description="the step has begun in the run")]
    blocking: Annotated[bool, Meta(description="`--accept-changes` cannot take it over")]


class Standing(Struct, frozen=True, kw_only=True):
    """One side: a run, or a file (`run_id` null)."""

    run_id: Text
    file: Text
    workflow: str
    version: str
    digest: str
    status: Text


class Changed(Struct, frozen=True, kw_only=True):
    """A value of two runs that is not the same. `path` is the name of an input or output, or the path of a step."""

    path: str
    what: Annotated[str, Meta(description="input, output, step (how it ended), or output of step")]
    old: Any
    new: Any


class Differences(Struct, frozen=True, kw_only=True):
    """What `diff` found. `resume`: which ways on there are, for a run and a file."""

    schema: Literal["tramai.diff/1"] = "tramai.diff/1"
    same: bool
    old: Standing
    new: Standing
    changes: list[Difference]
    resume: Annotated[
        list[Literal["plain", "as_started", "accept_changes"]] | UnsetType,
        Meta(description="ways to go on with the run; empty when it is over"),
    ] = UNSET
    values: list[Changed] | UnsetType = UNSET
