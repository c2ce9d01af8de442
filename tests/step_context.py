"""A `Context` for tests that run one step alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from tramai.expression import Condition, Expression, Template, Value, dec_hook, evaluate, render_text, test
from tramai.interrupt import Interrupt
from tramai.permits import Permits
from tramai.step import Done, Replay, Step, Usage

T = TypeVar("T")
S = TypeVar("S", bound=Step)


def made(kind: type[S], **settings: Any) -> S:
    """A step from plain settings, as a file would give them."""
    return msgspec.convert(settings, kind, dec_hook=dec_hook)


class StepContext:
    """Values from a plain scope, a clock that stands still, no journal."""

    def __init__(
        self,
        scope: Mapping[str, Any] | None = None,
        *,
        now: float = 0.0,
        deadline: float | None = None,
        policy: Replay = Replay.NON_REPLAYABLE,
    ) -> None:
        self.scope = scope or {}
        self.run_id = "run"
        self.workflow = "test"
        self.path = "step"
        self.attempt = 1
        self.policy = policy
        self.idempotency_key = "key"
        self.cwd = "."
        self.folder: str | None = None
        self.deadline = deadline
        self.env: Mapping[str, str] = {}
        self.permits: tuple[Permits, ...] = ()
        self.servers: Mapping[str, Any] = {}
        self.http: Mapping[str, Any] = {}
        self.cost_limited = False
        self.interrupt = Interrupt()
        self.hurry = Interrupt()
        self.hidden: tuple[bytes, ...] = ()
        self.log_path: str | None = None
        self.traceparent: str | None = None
        self._now = now

    def text(self, source: Template, *, clean: Callable[[str], str] | None = None) -> str:
        return render_text(source, self.scope, clean=clean)

    def value(self, source: Expression | Template | Value) -> Any:
        return evaluate(source, self.scope)

    def value_with(self, source: Expression | Template | Value, names: Mapping[str, Any]) -> Any:
        return evaluate(source, {**self.scope, **names})

    def test(self, condition: Condition) -> bool:
        return test(condition, self.scope)

    def now(self) -> float:
        return self._now

    async def account(self, name: str) -> Any:
        return None

    async def once(self, make: Callable[[], Any]) -> Any:
        return make()

    async def blocking(self, work: Callable[[], T], *, grace: float = 60.0) -> T:
        return await asyncio.to_thread(work)

    def output(self, stream: str, text: str) -> None:
        pass

    def spent(self, usage: Usage) -> None:
        self.used = usage

    def redacted(self, value: Any) -> Any:
        return value

    def signal(self, name: str, **attributes: Any) -> None:
        pass


async def result_of(step: Step, ctx: StepContext | None = None) -> Any:
    """The full record of a step that succeeds."""
    outcome = await step.run(ctx or StepContext())
    assert isinstance(outcome, Done)
    return outcome.result


def run(step: Step, ctx: StepContext | None = None) -> Any:
    """`result_of` on a loop of its own."""
    return asyncio.run(result_of(step, ctx))
