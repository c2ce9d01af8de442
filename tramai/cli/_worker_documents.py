"""The JSON documents of `tramai worker`. Fields may be added, never renamed."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Text = str | None


class WorkerLine(Struct, frozen=True, kw_only=True):
    """`worker --json`: one thing that happened, one a line. `at` is in epoch seconds."""

    schema: Literal["tramai.worker/1"] = "tramai.worker/1"
    seq: int
    type: str
    at: float
    worker: str
    run_id: str | UnsetType = UNSET
    workflow: str | UnsetType = UNSET
    from_status: Annotated[str | UnsetType, Meta(description="how the run stood before it was taken")] = UNSET
    fence: int | UnsetType = UNSET
    status: Annotated[Text | UnsetType, Meta(description="how the run stands now, or how a slot ended")] = UNSET
    duration: float | UnsetType = UNSET
    wake_at: float | None | UnsetType = UNSET
    claims: int | UnsetType = UNSET
    code: Text | UnsetType = UNSET
    message: Text | UnsetType = UNSET
    hint: Text | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    running: int | UnsetType = UNSET
    runs: int | UnsetType = UNSET
    concurrency: int | UnsetType = UNSET
    queues: str | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    slot: Annotated[str | UnsetType, Meta(description="the time of a schedule, in UTC")] = UNSET
    queue: str | UnsetType = UNSET
    late: Annotated[float | UnsetType, Meta(description="seconds from the time of a schedule to its run")] = UNSET
    made_up: Annotated[bool | UnsetType, Meta(description="its time had been missed")] = UNSET
    count: Annotated[int | UnsetType, Meta(description="as many times of a schedule share this fate")] = UNSET
    poll: float | UnsetType = UNSET
    metrics: Annotated[str | UnsetType, Meta(description="the URL of its metrics")] = UNSET


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker of the registry. `state`: online, draining, stale (three beats missed) or lost (ten)."""

    id: str
    state: str
    host: str
    pid: int
    started: float
    age: Annotated[float, Meta(description="seconds since it was last heard of, by the store's clock")]
    running: int
    concurrency: int
    queues: list[str]
    labels: list[str]
    pool: Annotated[str | None, Meta(description="the name it was started with, for `worker drain --pool`")] = None


class Workers(Struct, frozen=True, kw_only=True):
    """`worker list`."""

    schema: Literal["tramai.workers/1"] = "tramai.workers/1"
    workers: list[WorkerView]


class Draining(Struct, frozen=True, kw_only=True):
    """`worker drain`: they were asked, and hear of it with their next beat. `worker` is the first of them."""

    schema: Literal["tramai.worker_draining/1"] = "tramai.worker_draining/1"
    worker: WorkerView
    workers: list[WorkerView]


DOCUMENTS = (WorkerLine, Workers, Draining)
