"""The world as a walk sees it: what the interpreter asks of whoever carries out a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from .codec import Json
from .scope import View
from .step import Node


class Host(Protocol):
    """The world, as a walk sees it."""

    limit: int
    """How many branches of a fan-out may run at once."""

    def replayed(self, node: Node, path: str) -> View | None:
        """The journal's answer: how this path ended; None when it has not."""
        ...

    def begun(self, path: str) -> bool:
        """Whether the journal has seen this path begin, so that its `when` is decided."""
        ...

    async def skip(self, node: Node, path: str) -> None:
        """Record that a step was skipped."""
        ...

    def decided(self, path: str) -> Any | None:
        """What `once` gave for this path, None when it was never asked."""
        ...

    def now(self) -> float:
        """Wall time, epoch seconds."""
        ...

    async def pause(self, until: float) -> None:
        """Wait for an instant; Suspended when it is too far away to wait here."""
        ...

    def closing(self) -> int:
        """The walk comes to `finally`: which round of it this is. From now on the run's limits stop nothing."""
        ...

    async def recovered(self, node: Node, path: str, output: Json, error: dict[str, Json]) -> View:
        """Record that a step failed and that its `catch` took care of it."""
        ...

    async def leaf(self, node: Node, path: str, scope: dict[str, Any]) -> View:
        """Run a leaf step to its end: attempts, retries, journal. Raises StepFailed or Suspended."""
        ...

    def opened(self, node: Node, path: str) -> None:
        """A control step begins."""
        ...

    async def closed(self, node: Node, path: str, output: Json, saves: Mapping[str, Json]) -> View:
        """Record the end of a control step."""
        ...

    def failed(self, node: Node, path: str, error: dict[str, Json]) -> None:
        """A control step ends as failed."""
        ...

    async def once(self, path: str, verb: str, make: Callable[[], Json]) -> Any:
        """The value `make` gave the first time for this path: journaled."""
        ...

    async def gather(
        self, jobs: Sequence[Callable[[], Awaitable[Any]]], *, window: int, fail_fast: bool, in_order: bool
    ) -> list[Any]:
        """Results or StepFailed/Suspended of each job, in order; never started ones are None. Others escape.

        `fail_fast`: a failure cancels the others. `in_order`: nothing starts after a job that is suspended.
        """
        ...

    def progress(self, node: Node, path: str, done: int, total: int, failed: int) -> None:
        """So many of the jobs of a control step are over."""
        ...

    async def within(self, seconds: float, work: Awaitable[Any], allowed: str) -> Any:
        """Await with a limit, `allowed` says it for people; StepError of type `timeout` when it passes."""
        ...
