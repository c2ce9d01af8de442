"""The Host with a store: leaf steps are attempted, retried and journaled here."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .audience import Audience
from .bookkeeping import Bookkeeper
from .clock import Clock
from .codec import encode
from .context import StepContext
from .driver import Driver, Interrupted, Loop
from .expression import ExpressionError, test
from .finishing import finish
from .interrupt import Interrupt
from .journal import Journal, Past
from .meter import LimitReached, Meter
from .outcomes import Blocked, GoBack, StepFailed, Suspended, failure
from .paths import SUSPENDED
from .permits import Permits
from .plan import Plan
from .redact import Redactor
from .retrying import again_after, recorded_failure
from .scope import View
from .step import Done, Node, Outcome, Redo, Reject, Replay, Retry, StepError, Suspend
from .store import Mark, Record, Run
from .target import Target

if TYPE_CHECKING:
    from .calling import Children

ONCE = Retry(max_attempts=1)
GLANCE = 0.5
"""Seconds between looks for a decision."""


class StoreHost(Bookkeeper):
    """Implements `interpreter.Host` over a journal and a driver."""

    def __init__(
        self,
        *,
        plan: Plan,
        run: Run,
        journal: Journal,
        driver: Driver,
        clock: Clock,
        interrupt: Interrupt,
        hurry: Interrupt,
        audience: Audience,
        redactor: Redactor,
        env: Mapping[str, str],
        logs: str | None,
        wait: float,
        asks: bool,
        run_deadline: float | None,
        meter: Meter,
        children: Children | None,
        bounds: tuple[Permits, ...],
        servers: Mapping[str, Any],
        http: Mapping[str, Any],
        providers: Mapping[str, Any],
    ) -> None:
        super().__init__(
            plan, run, journal, clock, interrupt, audience, redactor, logs, looped=isinstance(driver, Loop)
        )
        self.cwd = run.cwd
        self.folder = os.path.dirname(os.path.abspath(run.file)) if run.file else None
        self.driver = driver
        self.hurry = hurry
        self.env = env
        self.wait = wait
        self.asks = asks
        """Whether somebody at a terminal is asked what gates wait for."""
        self.run_deadline = run_deadline
        self.meter = meter
        self.children = children
        self.bounds = bounds
        """The permits of the workflows that call this one."""
        self.servers = servers
        self.http = http
        self.providers = providers
        self.plans: dict[int, Plan] = {}
        self.limit = plan.workflow.limits.max_parallel_branches
        self.is_closing = False
        """The walk is in `finally`: no limit of the run stops it any more."""

    # What the interpreter asks for.

    def plan_of(self, target: Target) -> Plan:
        """The plan of a called workflow."""
        found = self.plans.get(id(target))
        if found is None:
            assert target.workflow is not None  # a plan is made only of files whose calls could be read
            found = self.plans[id(target)] = Plan(target.workflow)
        return found

    def now(self) -> float:
        """Wall time."""
        return self.clock.now()

    async def pause(self, until: float) -> None:
        """Wait here, or suspend the run."""
        left = until - self.clock.now()
        if left <= 0:
            return
        await self.durable(pure=False)
        if left > self.wait:
            raise Suspended(until)
        await self._rest(left)

    async def _rest(self, seconds: float) -> None:
        """Wait in this process, which is running time too: no longer than the run may go on."""
        if self.run_deadline is not None:
            left = self.run_deadline - time.monotonic()
            if left < seconds:
                await self.driver.sleep(max(left, 0.0))
                raise LimitReached
        await self.driver.sleep(seconds)

    def closing(self) -> int:
        """The walk comes to `finally`."""
        self.is_closing = True
        self.run_deadline = None
        return self.journal.next_round()

    def opened(self, node: Node, path: str) -> None:
        """A control step begins, unless the run is to stop."""
        self._heed()
        super().opened(node, path)

    async def skip(self, node: Node, path: str) -> None:
        """Record a skipped step, unless the run is to stop."""
        self._heed()
        await super().skip(node, path)

    async def gather(
        self, jobs: Sequence[Callable[[], Awaitable[Any]]], *, window: int, fail_fast: bool, in_order: bool
    ) -> list[Any]:
        """Side by side where the driver can."""

        def ends(error: Exception) -> bool:
            return in_order if isinstance(error, Suspended | GoBack) else fail_fast

        return await self.driver.gather(jobs, window=window, ends=ends, caught=(StepFailed, Suspended, GoBack))

    async def within(self, seconds: float, work: Awaitable[Any], allowed: str) -> Any:
        """A time limit over a block."""
        try:
            return await self.driver.within(seconds, work)
        except TimeoutError:
            raise StepError("timeout", f"the step took longer than its {allowed}") from None

    async def leaf(self, node: Node, path: str, scope: dict[str, Any]) -> View:
        """Attempt a leaf step until it ends."""
        past = self.journal.past(path) or Past()
        waited = self._has_waited(path, past)
        if not waited and node.verify is not None and past.last is not None:
            from . import verifying

            if verifying.in_doubt(node, past.last):
                view = await verifying.settle(self, node, path, past.last, scope)
                if view is not None:
                    return view
        retry = node.retry or ONCE
        if past.recent and past.last is not None and past.last.mark is Mark.FAILED:
            self._gone_on_with(node, path, past.last, past, scope)
        used, attempt = max(past.recent - waited, 0), past.attempts - waited  # the same attempt goes on
        while True:
            used, attempt = used + 1, attempt + 1
            began = self.clock.now()
            self._charge(node, path, attempt)
            past.first = past.first or _first(past, self.journal.retry_base) or began
            ends = None if node.deadline is None else past.first + node.deadline
            try:
                return await self._attempt(node, path, attempt, began, scope, ends)
            except Suspended:
                self.journal.executions -= 1  # it will be counted when it goes on
                if node.replay is not Replay.REPLAYABLE:
                    number = encode(attempt)
                    self.journal.add(self.record(node.verb, f"{path}{SUSPENDED}", Mark.DECIDED, 0, value=number))
                raise
            except StepError as raised:
                error = LimitReached() if raised.type == "timeout" and self._out_of_time() else raised
                again = self._again(retry, used, error, failure(node.id, path, error, attempt), scope, ends)
                failed = failure(node.id, path, error, attempt)
                failed.error = self.redactor.error(failed.error)
                await self.fail(node, path, attempt, began, failed, error.usage)
                if again is None:
                    # A called run ends by our limits as by its own; ours nobody catches.
                    failed.final |= error.type == "limit" and "called" in error.details and self._over()
                    raise failed from raised
                self.audience.retrying(node, path, attempt, again, failed.error)
                with contextlib.suppress(LimitReached):  # the next attempt is refused, and says why
                    await self._rest(again)

    def _has_waited(self, path: str, past: Past) -> bool:
        """Whether the last attempt of a step was suspended: it is no attempt that was cut off."""
        last = past.last
        return last is not None and last.mark is Mark.STARTED and self.decided(f"{path}{SUSPENDED}") == last.attempt

    def _gone_on_with(self, node: Node, path: str, last: Record, past: Past, scope: dict[str, Any]) -> None:
        """Raise the failure that the journal has, unless another attempt follows it, as was decided before a crash."""
        failed = recorded_failure(path, last)
        error = StepError(str(failed.error["type"]), str(failed.error.get("message")))
        ends = None if node.deadline is None or past.first is None else past.first + node.deadline
        again = self._again(node.retry or ONCE, past.recent, error, failed, scope, ends)
        if again is None:
            failed.final = error.type == "limit" and self._over()
            raise failed

    def _again(
        self,
        retry: Retry,
        used: int,
        error: StepError,
        failed: StepFailed,
        scope: dict[str, Any],
        ends: float | None,
    ) -> float | None:
        """Seconds until the next attempt; None, with the reason in the error's message, when there is none."""
        again = again_after(retry, used, error)
        if again is None:
            return None
        if retry.when is not None:
            try:
                if not test(retry.when, {**scope, "error": failed.error}):
                    return None
            except ExpressionError as wrong:
                error.message += f" (and `retry.when` cannot be decided: {wrong})"
                return None
        if ends is not None and self.clock.now() + again >= ends:
            error.message += " (no time is left for another attempt: the step's `deadline`)"
            return None
        return again

    # One attempt.

    async def _attempt(
        self, node: Node, path: str, attempt: int, began: float, scope: dict[str, Any], ends: float | None
    ) -> View:
        self.journal.step = path
        policy = node.replay
        if policy is not Replay.REPLAYABLE:
            key = self.key(path) if policy is Replay.IDEMPOTENT else None
            log = self.log_path(path, attempt) if node.step.spawning() else None
            self.journal.add(
                self.record(
                    node.verb, path, Mark.STARTED, attempt, started=began, policy=policy.value, key=key, log=log
                )
            )
            await self.durable(pure=False)
        left = None if ends is None else max(ends - began, 0.0)
        ctx = StepContext(self, node, path, attempt, scope, left)
        try:
            if self.audience.news("started", path, attempt):
                self.audience.started(node, path, attempt, began)
            outcome = await self._outcome(node, ctx, ends)
            if isinstance(outcome, Reject):
                raise StepError("rejected", self.redactor.text(outcome.reason), details=outcome.details)
            if isinstance(outcome, Redo):  # before its end is recorded: a resume must not take it for an ordinary one
                back = self.texts.value({"to": node.step.back()}, "redo")
                self.journal.add(self.record(node.verb, f"{path}@redo", Mark.DECIDED, 0, value=back))
                outcome = Done(outcome.result)
            assert isinstance(outcome, Done)  # `_outcome` waits out a Suspend
            output, saves = finish(node, outcome.result, scope, self.plan.workflow.state)
        except ExpressionError as error:
            raise StepError("expression", str(error), hint=error.hint) from error
        except Interrupted:
            self.cancelled(node, path, attempt, began)
            raise
        except Exception:
            if self.interrupt.is_set:
                self.cancelled(node, path, attempt, began)
                raise Interrupted(self.interrupt.reason or "signal") from None
            raise
        except BaseException:  # cancelled by the walk: a sibling failed, a time limit passed, or the run stops
            self.cancelled(node, path, attempt, began)
            raise
        finally:
            ctx.close()
        pure = node.step.pure() and ("[" in path or self._ends_with(node, path))
        note = node.step.note(outcome.result) if self.audience.observers else None
        return await self.complete(node, path, attempt, began, output, saves, outcome.usage, pure=pure, note=note)

    async def _outcome(self, node: Node, ctx: StepContext, ends: float | None) -> Outcome:
        """Run the step, and wait in place for a suspension that is short enough."""
        while True:
            try:
                outcome = await self.timed(node, ctx)
            except Blocked:
                raise
            except Suspended as called:  # it is a run that it has called which cannot go on
                raise self._by(node, called, ends) from None
            if not isinstance(outcome, Suspend):
                return outcome
            asleep = self._by(node, Suspended(outcome.until, waiting=outcome.waiting), ends)
            left = None if asleep.until is None else max(asleep.until - self.clock.now(), 0.0)
            await self.durable(pure=False)
            if left is None or left > self.wait or (outcome.waiting and self.asks):
                raise asleep
            await self._rest(min(left, GLANCE) if outcome.waiting else left)

    def _by(self, node: Node, asleep: Suspended, ends: float | None) -> Suspended:
        """A suspension that ends with the `deadline` of its step."""
        return asleep if ends is None else asleep.by(ends, self.clock.now(), f"deadline of {node.deadline:g}s")

    async def timed(self, node: Node, ctx: StepContext) -> Outcome:
        """Run the step within its time."""
        if ctx.deadline is None or not self.looped or node.step.spawns:  # a child's runner watches the clock itself
            return await node.step.run(ctx)
        try:
            return await self.driver.within(max(ctx.deadline - time.monotonic(), 0.0), node.step.run(ctx))
        except TimeoutError:
            if ctx.allowed is None or self._out_of_time():
                raise LimitReached from None
            raise StepError("timeout", f"the step took longer than its {ctx.allowed}") from None

    # Rules.

    def _charge(self, node: Node, path: str, attempt: int) -> None:
        """Count an execution against the limit, before anything happens."""
        self._heed()
        try:
            if not self.is_closing:
                self.meter.check(self._out_of_time())
            self.texts.caps.state()
        except StepError as error:
            failed = failure(node.id, path, error, attempt)
            failed.final = True
            raise failed from None
        self.journal.executions += 1

    def _heed(self) -> None:
        """Begin nothing more, once somebody has asked the run to stop."""
        if self.interrupt.is_set:
            raise Interrupted(self.interrupt.reason or "signal")

    def _ends_with(self, node: Node, path: str) -> bool:
        """Whether nothing but the end of the run comes after this step: one commit holds both."""
        workflow = self.plan.workflow
        return path == node.id and node is workflow.steps.nodes[-1] and workflow.finally_ is None

    def _over(self) -> bool:
        """Whether a limit of the run is reached."""
        if self.is_closing:
            return False
        try:
            self.meter.check(self._out_of_time())
        except StepError:
            return True
        return False

    def _out_of_time(self) -> bool:
        return self.run_deadline is not None and time.monotonic() >= self.run_deadline


def _first(past: Past, base: int) -> float | None:
    """When a step first began of which no attempt has ended: a `call` that slept, or waited, may say it."""
    return past.decided.at if past.decided is not None and past.decided.seq > base else None
