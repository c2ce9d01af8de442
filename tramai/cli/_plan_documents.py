"""The JSON document of `tramai plan`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Text = str | None


class PlannedStep(Struct, frozen=True, kw_only=True):
    """A step of a plan; `blocks` are the labelled blocks of a control verb."""

    id: str
    verb: str
    replay: str
    when: Text = None
    decided: Annotated[
        bool | None, Meta(description="whether `when` holds, where the inputs decide that; false: it will be skipped")
    ] = None
    pure: Annotated[bool, Meta(description="no effect outside the run")]
    spawns: Annotated[bool, Meta(description="starts child processes")]
    reaches: Annotated[Text, Meta(description="what it does outside: the program, the request, the model")] = None
    verify: Annotated[Text, Meta(description="what settles an unknown outcome: a condition, or the verb asked")] = None
    max_attempts: int = 1
    timeout: Annotated[float | None, Meta(description="seconds of one attempt")] = None
    deadline: Annotated[float | None, Meta(description="seconds of the whole step")] = None
    turns: Annotated[
        int | None, Meta(description="how often its block runs, where that is known; at most, of a repeat")
    ] = None
    line: int | None = None
    column: int | None = None
    blocks: list[PlannedBlock] = []


class PlannedBlock(Struct, frozen=True, kw_only=True):
    """Steps that run one after another inside a step."""

    label: str
    taken: Annotated[bool | None, Meta(description="whether it is the one that runs, where that is known")] = None
    steps: list[PlannedStep]


class PlannedSecret(Struct, frozen=True, kw_only=True):
    """A secret the workflow declares, and whether it is there now."""

    name: str
    source: str
    present: bool


class PlannedExecutions(Struct, frozen=True, kw_only=True):
    """How many step executions there will be, retries included, against `limits.max_step_executions`."""

    least: Annotated[int, Meta(description="without retries, of what is sure to run")]
    most: Annotated[int | None, Meta(description="null when a loop is over a list that is not known yet")]
    limit: int


class PlannedPermits(Struct, frozen=True, kw_only=True):
    """What a run may reach. `enough`: permits that name all the file names; `unknown`: what only the run will know."""

    declared: Annotated[bool, Meta(description="the workflow has `permits`: what they do not name is refused")]
    enough: dict[str, list[str]]
    unknown: Annotated[list[list[str]], Meta(description="pairs of a kind (shell, http, …) and a step")]
    missing: Annotated[list[list[str]], Meta(description="pairs of a kind and a name that `permits` does not cover")]


class PlannedConcurrency(Struct, frozen=True, kw_only=True):
    """Of the runs of one group at most `limit` are carried out at once; `on_conflict` is what a new one does then."""

    group: Annotated[str, Meta(description="its name, with these inputs; as written, if inputs are missing")]
    limit: int
    on_conflict: str


class Plan(Struct, frozen=True, kw_only=True):
    """What a run would do."""

    schema: Literal["tramai.plan/1"] = "tramai.plan/1"
    file: str
    workflow: str
    version: str
    digest: str
    inputs: dict[str, Any]
    secrets: list[PlannedSecret]
    limits: dict[str, Any] = {}
    executions: PlannedExecutions | None = None
    permits: PlannedPermits | None = None
    concurrency: PlannedConcurrency | None = None
    steps: list[PlannedStep]
    catch: Annotated[list[PlannedBlock], Meta(description="blocks of the workflow's own `catch`")] = []
    last: Annotated[list[PlannedStep], Meta(description="the steps of `finally`")] = []
