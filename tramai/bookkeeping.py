"""What a run writes down, and reads back: the journal's answers to the walk, and the records of what ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .audience import Audience
from .caps import Caps
from .clock import Clock
from .codec import Json, decode, encode, sha256
from .event import StepProgress
from .expression import Missing
from .interrupt import Interrupt
from .journal import Journal, log_name
from .outcomes import StepFailed
from .plan import Plan
from .redact import Redactor
from .reducing import reducers
from .scope import View
from .step import Node, Usage
from .store import Mark, Record, Run
from .texts import Texts


class Bookkeeper:
    """The half of `port.Host` that needs no driver."""

    def __init__(
        self,
        plan: Plan,
        run: Run,
        journal: Journal,
        clock: Clock,
        interrupt: Interrupt,
        audience: Audience,
        redactor: Redactor,
        logs: str | None,
        *,
        looped: bool,
    ) -> None:
        self.plan = plan
        self.run_id = run.run_id
        self.journal = journal
        self.clock = clock
        self.interrupt = interrupt
        self.audience = audience
        self.redactor = redactor
        self.logs = logs
        self.looped = looped
        self.texts = Texts(redactor, Caps(plan.workflow.limits, journal.state, reducers(plan.workflow.state)))
        self._worker = journal.lease.owner
        self._fence = journal.lease.fence
        self._opened: dict[str, float] = {}

    def replayed(self, node: Node, path: str) -> View | None:
        """The journal's answer for a path that has ended."""
        past = self.journal.past(path)
        if past is None or past.end is None:
            return None
        record = past.end
        if record.mark is Mark.SKIPPED:
            view = View("skipped", Missing(f"step '{node.id}' was skipped"))
        else:
            duration = _duration(record)
            error = decode(record.error) if record.error is not None else None
            output = decode(record.value) if record.value is not None else None
            view = View("succeeded" if error is None else "recovered", output, past.attempts, duration, error)
        if record.fence != self._fence and self.audience.news("replayed", path):
            self.audience.over(node, path, record.attempt, "replayed", 0.0)
        return view

    def begun(self, path: str) -> bool:
        """Whether `when` has been decided for this path."""
        return self.journal.past(path) is not None or self.journal.past(f"{path}@when") is not None

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

    def progress(self, node: Node, path: str, done: int, total: int, failed: int) -> None:
        """Tell how far a fan-out has come."""
        if self.audience.observers:
            told = StepProgress(path=path, id=node.id, verb=node.verb, done=done, total=total, failed=failed)
            self.audience.tell(told)

    async def closed(self, node: Node, path: str, output: Json, saves: Mapping[str, Json]) -> View:
        """Record the end of a control step."""
        began = self._opened.pop(path)
        return await self.complete(node, path, 1, began, output, saves, None, pure="[" in path)

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

    def decided(self, path: str) -> Any | None:
        """What was decided for a path."""
        past = self.journal.past(path)
        if past is None or past.decided is None or past.decided.value is None:
            return None
        return decode(past.decided.value)

    async def recovered(self, node: Node, path: str, output: Json, error: dict[str, Json]) -> View:
        """Record the end of a step whose `catch` took care of its failure."""
        past = self.journal.past(path)
        attempt = past.attempts if past is not None and past.attempts else 1
        began = self._opened.pop(path, None)
        error = self.redactor.error(error)
        value, said = self.texts.value(output, "output"), encode(error)
        record = self.record(node.verb, path, Mark.COMPLETED, attempt, started=began, value=value, error=said)
        self.journal.add(record)
        await self.durable(pure=False)
        self.audience.over(node, path, attempt, "recovered", 0.0, error=error)
        return View("recovered", decode(value), attempt, _duration(record), error)

    async def complete(
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
        self.count(usage)
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
        self.audience.over(node, path, attempt, "succeeded", _duration(record), note=note)
        # What later steps see is what is kept: a resume has nothing else, so no key may stand in another order, no
        # function have changed it since.
        kept = output if type(output) in _SAME and not self.redactor.active else decode(value)
        return View("succeeded", kept, attempt, _duration(record))

    async def fail(
        self, node: Node, path: str, attempt: int, began: float, failed: StepFailed, usage: Usage | None
    ) -> None:
        self.count(usage)
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

    def cancelled(self, node: Node, path: str, attempt: int, began: float) -> None:
        """Written with the run's last commit: nothing may be awaited while the walk is torn down."""
        reason = self.interrupt.reason or "sibling_failed"
        if reason != "lease_lost":
            error = encode({"type": "cancelled", "message": f"stopped: {reason}", "step": node.id, "path": path})
            self.journal.add(self.record(node.verb, path, Mark.CANCELLED, attempt, started=began, error=error))
        self.audience.over(node, path, attempt, "cancelled", self.clock.now() - began)

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

    def count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.journal.executions += usage.executions
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


_SAME = (str, int, bool, type(None))
"""Types of values that are what their JSON says, and that nobody can change."""


def _duration(record: Record) -> float:
    return record.at - record.started if record.started is not None else 0.0


def _usage(usage: Usage | None) -> str | None:
    return None if usage is None else encode(msgspec.to_builtins(usage))
