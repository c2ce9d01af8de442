"""What one attempt of a leaf step sees: `step.Context` over the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .codec import Json
from .event import Attribute, StepOutput
from .expression import Condition, Expression, Template, Value, evaluate, render_text, test
from .interrupt import Interrupt
from .outcomes import allowed
from .permits import Permits
from .step import Node, Outcome, Usage
from .target import Target

if TYPE_CHECKING:
    from .asking import Decision, Question
    from .host import StoreHost
    from .provider import Account
    from .redact import Stream

T = TypeVar("T")


class StepContext:
    """`step.Context` for one attempt."""

    def __init__(
        self, host: StoreHost, node: Node, path: str, attempt: int, scope: dict[str, Any], left: float | None = None
    ) -> None:
        """`left`: seconds until the step's `deadline`."""
        self._host = host
        self._node = node
        self._scope = scope
        self.run_id = host.run_id
        self.plans = host.plans
        """Plans of called workflows, by the identity of their Targets."""
        self.workflow = host.plan.workflow.name
        self.path = path
        self.attempt = attempt
        self.policy = node.replay
        self.called: list[str] = []
        """Paths of the calls that are made afresh, with those of earlier attempts."""
        self.cwd = host.cwd
        self.folder = host.folder
        self.env = host.env
        self.servers = host.servers
        self.http = host.http
        own = host.plan.workflow.permits
        self.permits: tuple[Permits, ...] = host.bounds if own is None else (*host.bounds, own)
        self.hurry = host.hurry
        self.cost_limited = host.meter.limits_cost
        self.hidden = host.redactor.hidden
        self._maskers: dict[str, Stream] = {}
        """What is shown of each stream: a value may come in pieces."""
        self.deadline = _deadline(node.timeout, left, host.run_deadline)
        self.allowed = allowed(node.timeout, left)
        self.interrupt = Interrupt() if host.looped and not node.step.pure() else host.interrupt

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt."""
        return self._host.key(self.path)

    @property
    def traceparent(self) -> str | None:
        """By the tracers among the observers, or that of whoever started the run."""
        return self._host.audience.traceparent(self.path)

    @property
    def log_path(self) -> str | None:
        """Where a child's output goes."""
        return self._host.log_path(self.path, self.attempt)

    def text(self, source: Template, *, clean: Callable[[str], str] | None = None) -> str:
        """Render to text."""
        return render_text(source, self._scope, clean=clean)

    def value(self, source: Expression | Template | Value) -> Any:
        """Render to a native value."""
        return evaluate(source, self._scope)

    def value_with(self, source: Expression | Template | Value, names: Mapping[str, Any]) -> Any:
        """Render with further names in scope."""
        return evaluate(source, {**self._scope, **names})

    def test(self, condition: Condition) -> bool:
        """Evaluate a condition."""
        return test(condition, self._scope)

    def now(self) -> float:
        """Wall time."""
        return self._host.clock.now()

    async def account(self, name: str) -> Account | None:
        """By `[providers.NAME]` of the configuration."""
        data = self._host.providers.get(name)
        if data is None:
            return None
        from . import accounts

        return await self.blocking(lambda: accounts.account(name, data, base=self.cwd))

    async def once(self, make: Callable[[], Json]) -> Any:
        """Journaled at the first evaluation."""
        return await self._host.once(self.path, self._node.verb, make)

    async def decision(self, make: Callable[[], Question]) -> tuple[Question, Decision | None]:
        """Asked once, and looked up wherever decisions are kept."""
        from . import answering

        return await answering.answer(self._host, self._node, self.path, self.attempt, make)

    async def blocking(self, work: Callable[[], T], *, grace: float = 60.0) -> T:
        """In place or on a thread, as the driver has it."""
        return await self._host.driver.blocking(work, self.interrupt, grace)

    def output(self, stream: str, text: str) -> None:
        """Show a piece of a child's output."""
        if not self._host.audience.observers:
            return
        if self.hidden:
            from . import redact

            masker = self._maskers.get(stream) or redact.stream(self.hidden)
            assert masker is not None
            self._maskers[stream] = masker
            text = masker.feed(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        if text:
            self._host.audience.tell(StepOutput(path=self.path, stream=stream, text=text))

    async def call(
        self, target: Target, given: dict[str, Any], secrets: Mapping[str, str], *, afresh: bool = False
    ) -> Outcome:
        """Carry out another workflow."""
        from .calling import call, call_afresh

        ours = self._scope["secrets"]
        passed = {name: ours[own] for name, own in secrets.items()}
        if afresh:
            return await call_afresh(self._host, self, target, given, passed)
        return await call(self._host, self, target, given, passed)

    def spent(self, usage: Usage) -> None:
        """On the meter, until the attempt is over and the journal has it."""
        self._host.meter.attempting(self.path, usage)
        if not self._host.is_closing:
            self._host.meter.check(False, starts=False)

    def redacted(self, value: Json) -> Json:
        """By the redactor of the run."""
        return self._host.redactor.value(value)  # type: ignore[no-any-return]

    def signal(self, name: str, **attributes: Attribute) -> None:
        """Tell those who listen."""
        self._host.audience.signal_of(name, self._node.id, self.path, self.attempt, attributes)

    def close(self) -> None:
        """Give the attempt's own interrupt back; what it has used is recorded now."""
        for stream, masker in self._maskers.items():
            if rest := masker.close().decode("utf-8", "replace"):
                self._host.audience.tell(StepOutput(path=self.path, stream=stream, text=rest))
        self._host.meter.attempting(self.path, None)
        if self.interrupt is not self._host.interrupt:
            self.interrupt.close()


def _deadline(timeout: float | None, left: float | None, run_deadline: float | None) -> float | None:
    now = time.monotonic()
    ends = [now + seconds for seconds in (timeout, left) if seconds is not None]
    if run_deadline is not None:
        ends.append(run_deadline)
    return min(ends, default=None)
