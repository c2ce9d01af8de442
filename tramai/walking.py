"""A control verb's view of the walk: its place, and the means to run blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .codec import Json
from .expression import Condition, Expression, Template, Value, evaluate, test
from .outcomes import Blocked, GoBack, StepFailed, Suspended
from .paths import spell
from .scope import Steps
from .step import Block, Node, StepError

if TYPE_CHECKING:
    from .port import Host
    from .running import Job

RunBlock = Callable[[Block, str, dict[str, Any]], Awaitable[dict[str, Json]]]
"""Runs the steps of a block, whose paths begin with the text given, in a scope: `{id: output}`."""


class BlockWalk:
    """`step.Walk` for one control step."""

    def __init__(self, host: Host, run: RunBlock, node: Node, path: str, scope: dict[str, Any]) -> None:
        self._host = host
        self._run = run
        self._node = node
        self._scope = scope
        self.path = path
        self.limit = host.limit

    def value(self, source: Expression | Template | Value) -> Any:
        return evaluate(source, self._scope)

    def value_with(self, source: Expression | Template | Value, names: Mapping[str, Any]) -> Any:
        return evaluate(source, {**self._scope, **names})

    def test(self, condition: Condition) -> bool:
        return test(condition, self._scope)

    async def once(self, make: Callable[[], Json]) -> Any:
        return await self._host.once(self.path, self._node.verb, make)

    async def block(self, block: Block, *, key: str, names: Mapping[str, Json], visible: bool) -> dict[str, Json]:
        inner = Steps(self._scope["steps"])
        scope = {**self._scope, **names, "steps": inner}
        outputs = await self._run(block, f"{self.path}[{spell(key)}].", scope)
        if visible:
            self._scope["steps"].own.update(inner.own)
        return outputs

    async def turn(self, block: Block, *, number: int, names: Mapping[str, Json]) -> LoopTurn:
        scope = {**self._scope, **names, "steps": Steps(self._scope["steps"])}
        outputs = await self._run(block, f"{self.path}[{number}].", scope)
        return LoopTurn(self, number, scope, outputs)

    async def pause(self, seconds: float, *, after: int) -> None:
        host = self._host
        await host.pause(await host.once(f"{self.path}[{after}]@pause", self._node.verb, lambda: host.now() + seconds))

    async def fan_out(
        self, jobs: Sequence[Job], *, window: int, fail_fast: bool, collect: bool, in_order: bool = False
    ) -> tuple[list[dict[str, Json]], int]:
        over = {"done": 0, "failed": 0}

        def count(*names: str) -> None:
            over.update({name: over[name] + 1 for name in names})
            self._host.progress(self._node, self.path, over["done"], len(jobs), over["failed"])

        async def carry(job: Job) -> dict[str, Json]:
            try:
                outputs = await self._carried(job, collect=collect)
            except StepFailed:
                count("done", "failed")
                raise
            count("done")
            return outputs

        def start(job: Job) -> Callable[[], Awaitable[dict[str, Json]]]:
            return lambda: carry(job)

        count()
        starts = [start(job) for job in jobs]
        ended = await self._host.gather(starts, window=window, fail_fast=fail_fast, in_order=in_order)
        for end in ended:
            if isinstance(end, Blocked):
                raise end
        sent = [end for end in ended if isinstance(end, GoBack)]
        if sent:
            raise sent[0]
        failures = sorted((end for end in ended if isinstance(end, StepFailed)), key=lambda failed: not failed.final)
        if failures and fail_fast and not collect:
            raise failures[0]
        asleep = [end for end in ended if isinstance(end, Suspended)]
        if asleep:
            instants = [end.until for end in asleep if end.until is not None]
            raise Suspended(min(instants, default=None), waiting=any(end.waiting for end in asleep))
        if failures and (not collect or failures[0].final):  # nothing collects that a limit of the run is reached
            raise failures[0]
        results = [self._collected(job, end) for job, end in zip(jobs, ended, strict=True)]
        return results, sum(end is None or isinstance(end, StepFailed) for end in ended)

    async def _carried(self, job: Job, *, collect: bool) -> dict[str, Json]:
        """Run a job, unless its failure was collected before: then it is dealt with, whoever goes on with the run."""
        place = f"{self.path}[{spell(job.key)}]@collected"
        told = self._host.decided(place) if collect else None
        if told is not None:
            raise StepFailed(path=told["path"], reason=told["message"], error=told)
        try:
            return await self.block(job.block, key=job.key, names=job.names, visible=False)
        except StepFailed as failed:
            if collect and not failed.final:
                error = failed.error
                with contextlib.suppress(StepError):  # too large to be kept twice: it may be tried again
                    await self._host.once(place, self._node.verb, lambda: error)
            raise

    def _collected(self, job: Job, end: Any) -> dict[str, Json]:
        """What stands in the place of a job: its outputs, or why there are none."""
        if isinstance(end, StepFailed):
            return {"error": end.error}
        if end is not None:
            return end  # type: ignore[no-any-return]
        what = "stopped, or not begun, because another one had failed (fail_fast)"
        path = f"{self.path}[{spell(job.key)}]"
        return {"error": {"type": "cancelled", "message": what, "step": self._node.id, "path": path, "attempt": 1}}


class LoopTurn:
    """`step.Turn`: one turn of a loop that is over."""

    def __init__(self, walk: BlockWalk, number: int, scope: dict[str, Any], outputs: dict[str, Json]) -> None:
        self._walk = walk
        self._place = f"{walk.path}[{number}]@until"
        self._scope = scope
        self.outputs = outputs

    async def test(self, condition: Condition) -> bool:
        walk = self._walk
        decided = await walk._host.once(self._place, walk._node.verb, lambda: test(condition, self._scope))
        return bool(decided)
