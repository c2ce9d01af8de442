"""The Host with a store: leaf steps are attempted, retried and journaled here."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from .audience import Audience
from .caps import Caps
from .clock import Clock
from .codec import Json, decode, encode, sha256
from .context import StepContext
from .driver import Driver, Interrupted, Loop
from .expression import ExpressionError, Missing
from .interpreter import StepFailed, Suspended, View, failure, finish
from .interrupt import Interrupt
from .journal import Journal, Past, log_name
from .plan import Plan
from .redact import Redactor
from .retrying import again_after, recorded_failure
from .step import Done, Node, Outcome, Reject, Replay, Retry, StepError, Suspend, Usage
from .store import Mark, Record, Run
from .texts import Texts

ONCE = Retry(max_attempts=1)
GLANCE = 0.5
"""Seconds between looks for a decision."""
OUT_OF_TIME = "the run reached its limit of running time (limits.timeout)"


class StoreHost:
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
    ) -> None:
        self.plan = plan
        self.run_id = run.run_id
        self.cwd = run.cwd
        self.folder = os.path.dirname(os.path.abspath(run.file)) if run.file else None
        self.journal = journal
        self.driver = driver
        self.clock = clock
        self.interrupt = interrupt
        self.hurry = hurry
        self.redactor = redactor
        self.env = env
        self.logs = logs
        self.wait = wait
        self.asks = asks
        """Whether somebody at a terminal is asked what gates wait for."""
        self.run_deadline = run_deadline
        self.limit = plan.workflow.limits.max_parallel_branches
        self.audience = audience
        self.texts = Texts(redactor, Caps(plan.workflow.limits, journal.state))
        self.looped = isinstance(driver, Loop)
        self._worker = journal.lease.owner
        self._fence = journal.lease.fence
        self._opened: dict[str, float] = {}

    # What the interpreter asks for.

    def replayed(self, node: Node, path: str) -> View | None:
        """The journal's answer for a path that has ended."""
        past = self.journal.past(path)
        if past is None or past.end is None:
            return None
        record = past.end
        if record.mark is Mark.SKIPPED:
            view = View("skipped", Missing(f"step '{node.id}' was skipped"))
        else:
            duration = record.at - record.started if record.started is not None else 0.0
            view = View(
                "succeeded", decode(record.value) if record.value is not None else None, past.attempts, duration
            )
        if record.fence != self._fence and self.audience.news("replayed", path):
            self.audience.over(node, path, record.attempt, "replayed", 0.0)
        return view

    def begun(self, path: str) -> bool:
        """Whether `when` has been decided for this path."""
        return self.journal.past(path) is not None

    async def skip(self, node: Node, path: str) -> None:
        """Record a skipped step; like a pure step's, its record waits for company."""
        self.journal.add(self.record(node.verb, path, Mark.SKIPPED, 0))
        await self.durable(pure=True)
        self.audience.over(node, path, 0, "skipped", 0.0)

    def opened(self, node: Node, path: str) -> None:
        """A control step begins."""
        if path in self._opened:
            return  # the walk comes by again
        self._opened[path] = self.clock.now()
        self.audience.started(node, path, 1, self._opened[path])

    async def closed(self, node: Node, path: str, output: Json, saves: Mapping[str, Json]) -> View:
        """Record the end of a control step."""
        began = self._opened.pop(path)
        return await self._complete(node, path, 1, began, output, saves, None, pure="[" in path)

    def failed(self, node: Node, path: str, error: dict[str, Json]) -> None:
        """A control step ends as failed; the journal already has the leaf that failed."""
        began = self._opened.pop(path, None)
        duration = self.clock.now() - began if began is not None else 0.0
        self.audience.over(node, path, 1, "failed", duration, error=error)

    async def once(self, path: str, verb: str, make: Callable[[], Json]) -> Any:
        """A decision: journaled with the next commit, so before anything that follows from it."""
        past = self.journal.past(path)
        if past is not None and past.decided is not None and past.decided.value is not None:
            return decode(past.decided.value)
        made = make()
        text = self.texts.value(made, "value")
        self.journal.add(self.record(verb, path, Mark.DECIDED, 0, value=text))
        return decode(text)

    async def gather(
        self, jobs: Sequence[Callable[[], Awaitable[Any]]], *, window: int, fail_fast: bool, in_order: bool
    ) -> list[Any]:
        """Side by side where the driver can."""

        def ends(error: Exception) -> bool:
            return in_order if isinstance(error, Suspended) else fail_fast

        return await self.driver.gather(jobs, window=window, ends=ends, caught=(StepFailed, Suspended))

    async def within(self, seconds: float, work: Awaitable[Any]) -> Any:
        """A time limit over a block."""
        try:
            return await self.driver.within(seconds, work)
        except TimeoutError:
            raise StepError("timeout", f"the step took longer than its timeout of {seconds:g}s") from None

    async def leaf(self, node: Node, path: str, scope: dict[str, Any]) -> View:
        """Attempt a leaf step until it ends."""
        past = self.journal.past(path) or Past()
        if node.verify is not None and past.last is not None:
            from . import verifying

            if verifying.in_doubt(node, past.last):
                view = await verifying.settle(self, node, path, past.last, scope)
                if view is not None:
                    return view
        retry = node.retry or ONCE
        if past.recent >= retry.max_attempts and past.last is not None and past.last.mark is Mark.FAILED:
            raise recorded_failure(path, past.last)
        used, attempt = past.recent, past.attempts
        while True:
            used, attempt = used + 1, attempt + 1
            began = self.clock.now()
            self._charge(node, path, attempt)
            try:
                return await self._attempt(node, path, attempt, began, scope)
            except Suspended:
                self.journal.executions -= 1  # it will be counted when it goes on
                raise
            except StepError as error:
                if error.type == "timeout" and self._out_of_time():
                    error.type, error.message = "limit", OUT_OF_TIME
                again = again_after(retry, used, error)
                failed = failure(node.id, path, error, attempt)
                failed.error = self.redactor.value(failed.error)
                await self._fail(node, path, attempt, began, failed, error.usage)
                if again is None:
                    raise failed from error
                self.audience.retrying(node, path, attempt, again, failed.error)
                await self.driver.sleep(again)

    # One attempt.

    async def _attempt(self, node: Node, path: str, attempt: int, began: float, scope: dict[str, Any]) -> View:
        self.journal.step = path
        policy = node.replay
        if policy is not Replay.REPLAYABLE:
            key = self.key(path) if policy is Replay.IDEMPOTENT else None
            log = self.log_path(path, attempt) if node.step.spawns else None
            self.journal.add(
                self.record(
                    node.verb, path, Mark.STARTED, attempt, started=began, policy=policy.value, key=key, log=log
                )
            )
            await self.durable(pure=False)
        ctx = StepContext(self, node, path, attempt, scope)
        try:
            if self.audience.news("started", path, attempt):
                self.audience.started(node, path, attempt, began)
            outcome = await self._outcome(node, ctx)
            if isinstance(outcome, Reject):
                raise StepError("rejected", self.redactor.text(outcome.reason), details=outcome.details)
            assert isinstance(outcome, Done)  # `_outcome` waits out a Suspend
            output, saves = finish(node, outcome.result, scope, self.plan.workflow.state)
        except ExpressionError as error:
            raise StepError("expression", str(error), hint=error.hint) from error
        except Interrupted:
            self._cancelled(node, path, attempt, began)
            raise
        except Exception:
            if self.interrupt.is_set:
                self._cancelled(node, path, attempt, began)
                raise Interrupted(self.interrupt.reason or "signal") from None
            raise
        except BaseException:  # cancelled by the walk: a sibling failed, a time limit passed, or the run stops
            self._cancelled(node, path, attempt, began)
            raise
        finally:
            ctx.close()
        pure = node.step.pure() and "[" in path
        note = node.step.note(outcome.result) if self.audience.observers else None
        return await self._complete(node, path, attempt, began, output, saves, outcome.usage, pure=pure, note=note)

    async def _outcome(self, node: Node, ctx: StepContext) -> Outcome:
        """Run the step, and wait in place for a suspension that is short enough; meanwhile a decision may come."""
        while True:
            outcome = await self.timed(node, ctx)
            if not isinstance(outcome, Suspend):
                return outcome
            left = None if outcome.until is None else outcome.until - self.clock.now()
            await self.durable(pure=False)
            if left is None or left > self.wait or (outcome.waiting and self.asks):
                raise Suspended(outcome.until, waiting=outcome.waiting)
            await self.driver.sleep(min(max(left, 0.0), GLANCE) if outcome.waiting else max(left, 0.0))

    async def timed(self, node: Node, ctx: StepContext) -> Outcome:
        """Run the step within its time."""
        if ctx.deadline is None or not self.looped or node.step.spawns:  # a child's runner watches the clock itself
            return await node.step.run(ctx)
        try:
            return await self.driver.within(max(ctx.deadline - time.monotonic(), 0.0), node.step.run(ctx))
        except TimeoutError:
            if node.timeout is None or self._out_of_time():
                raise StepError("limit", OUT_OF_TIME) from None
            raise StepError("timeout", f"the step took longer than its timeout of {node.timeout:g}s") from None

    async def _complete(
        self,
        node: Node,
        path: str,
        attempt: int,
        began: float,
        output: Json,
        saves: Mapping[str, Json],
        usage: Usage | None,
        *,
        pure: bool,
        note: str | None = None,
    ) -> View:
        value = self.texts.value(output, "output")
        saved = self.texts.saves(saves) if saves else None
        now = self.clock.now()
        self._count(usage)
        record = self.record(
            node.verb,
            path,
            Mark.COMPLETED,
            attempt,
            started=began,
            value=value,
            saves=saved,
            usage=_usage(usage),
            log=self._log_of(path, attempt),
        )
        self.journal.add(record)
        await self.durable(pure=pure)
        if self.redactor.active:
            output = decode(value)
        self.audience.over(node, path, attempt, "succeeded", now - began, note=note)
        return View("succeeded", output, attempt, now - began)

    async def _fail(
        self, node: Node, path: str, attempt: int, began: float, failed: StepFailed, usage: Usage | None
    ) -> None:
        self._count(usage)
        error = self.texts.error(failed)
        self.journal.add(
            self.record(
                node.verb,
                path,
                Mark.FAILED,
                attempt,
                started=began,
                error=error,
                usage=_usage(usage),
                log=self._log_of(path, attempt),
            )
        )
        await self.durable(pure=False)
        self.audience.over(node, path, attempt, "failed", self.clock.now() - began, error=failed.error)

    def _cancelled(self, node: Node, path: str, attempt: int, began: float) -> None:
        """Written with the run's last commit: nothing may be awaited while the walk is torn down."""
        reason = self.interrupt.reason or "sibling_failed"
        if reason != "lease_lost":
            error = encode({"type": "cancelled", "message": f"stopped: {reason}", "step": node.id, "path": path})
            self.journal.add(self.record(node.verb, path, Mark.CANCELLED, attempt, started=began, error=error))
        self.audience.over(node, path, attempt, "cancelled", self.clock.now() - began)

    # Rules.

    def _charge(self, node: Node, path: str, attempt: int) -> None:
        """Count an execution against the limit, before anything happens."""
        if self.interrupt.is_set:
            raise Interrupted(self.interrupt.reason or "signal")
        limit = self.plan.workflow.limits.max_step_executions
        if self.journal.executions >= limit:
            text = f"the run reached its limit of {limit} step executions (limits.max_step_executions)"
            error = StepError("limit", text, hint="attempts count, on every resume; raise the limit to go on")
            raise failure(node.id, path, error, attempt)
        if self._out_of_time():
            error = StepError("limit", OUT_OF_TIME)
            raise failure(node.id, path, error, attempt)
        try:
            self.texts.caps.state()
        except StepError as error:
            raise failure(node.id, path, error, attempt) from None
        self.journal.executions += 1

    def _out_of_time(self) -> bool:
        return self.run_deadline is not None and time.monotonic() >= self.run_deadline

    # Records, events, logs.

    def record(self, verb: str, path: str, mark: Mark, attempt: int, **fields: Any) -> Record:
        """The next record of the journal."""
        return Record(
            seq=self.journal.seq + 1,
            path=path,
            mark=mark,
            attempt=attempt,
            verb=verb,
            at=self.clock.now(),
            fence=self._fence,
            worker=self._worker,
            **fields,
        )

    async def durable(self, *, pure: bool) -> None:
        """Return when what was recorded is safe; for pure results inside a fan-out, when a batch will see to it."""
        if pure:
            self.journal.write_soon(looped=self.looped)
        elif self.looped:
            await self.journal.write_shared()
        else:
            self.journal.write()

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.journal.tokens += usage.input_tokens + usage.output_tokens
            self.journal.cost += usage.cost_usd or 0.0

    def key(self, path: str) -> str:
        """The idempotency key of a step: the same on every attempt and resume."""
        return sha256(f"{self.run_id}\0{path}")

    def log_path(self, path: str, attempt: int) -> str | None:
        """Where an attempt's child writes; None when the run keeps no logs."""
        return None if self.logs is None else os.path.join(self.logs, log_name(path, attempt))

    def _log_of(self, path: str, attempt: int) -> str | None:
        log = self.log_path(path, attempt)
        return log if log is not None and os.path.exists(log) else None


def _usage(usage: Usage | None) -> str | None:
    return None if usage is None else encode(msgspec.to_builtins(usage))
