"""One claim of one run: from the lease to the last commit."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from . import faults, given, recovery, secret
from .audience import Audience
from .clock import Clock
from .codec import Json, decode, encode
from .driver import Driver, Interrupted, Loop, Straight
from .errors import LeaseLost
from .event import Event, RunFinished, RunStarted
from .host import StoreHost
from .interpreter import Ended, Interpreter
from .interrupt import Interrupt
from .journal import Journal
from .keeper import Keeper
from .meter import Meter
from .outcomes import Blocked, StepFailed, Suspended, failure
from .paths import step_id
from .patience import Patience
from .plan import Plan
from .redact import Redactor
from .reducing import reducers
from .results import Options, Result, exit_status, user
from .scope import Steps
from .standing import has_failed, in_finally, ran_before
from .step import StepError
from .store import Change, Lease, Record, Run, Status, Store

if TYPE_CHECKING:
    from .calling import Children
    from .diff import Difference

_CANCELLED = {"type": "cancelled", "message": "the run was cancelled"}


class Session:
    """One claim of one run: from the lease to the last commit."""

    def __init__(
        self,
        plan: Plan,
        run: Run,
        lease: Lease,
        records: Sequence[Record],
        store: Store,
        audience: Audience,
        options: Options,
        clock: Clock,
        secrets: Mapping[str, str],
        sent: float,
        children: Children | None = None,
        *,
        cancelling: bool = False,
    ) -> None:
        self.plan = plan
        self.before = run
        self.store = store
        self.clock = clock
        self.options = options
        self.audience = audience
        self.secrets = secrets
        self.children = children
        self.cancelling = cancelling  # nothing more is wanted of the run than its `finally`
        self.records = records
        hidden = tuple(secret.masked(secrets, plan.nodes.values()))
        self.redactor = audience.redactor = Redactor(hidden)
        if hidden and options.hide is not None:
            options.hide(hidden)
        self.interrupt: Interrupt = options.interrupt or Interrupt()
        self.hurry: Interrupt = options.hurry or Interrupt()
        base = run.retry_base
        if has_failed(run) or ((run.queued or run.status is Status.READY) and not in_finally(records)):
            # An operator said to go on: failed steps get new attempts. Whoever died in `finally` goes on in it.
            base = max((record.seq for record in records), default=base)
        declared = plan.workflow.state
        self.journal = Journal(
            store,
            lease,
            records,
            retry_base=base,
            now=clock.now,
            audience=audience,
            state={name: spec.initial for name, spec in declared.items()},
            kinds=reducers(declared),
        )
        for record in recovery.open_attempts(records):  # cut off with its runner: it has not failed
            past = self.journal.pasts[record.path]
            past.recent = max(past.recent - 1, 0)
        self.journal.executions = run.step_executions
        self.journal.tokens, self.journal.cost = run.tokens, run.cost_usd
        self.meter = Meter(plan.workflow.limits, self.journal, options.order and options.order.meter)
        beat = {"ttl": options.lease, "sent": sent}
        self.keeper = Keeper(store, lease, **beat, interrupt=self.interrupt, now=clock.now, audience=audience)
        self.change = Change(now=clock.now(), retry_base=base)

    def adopt(self, changed: tuple[Difference, ...]) -> None:
        """Go on with the changed definition, and say so in the event list."""
        self.journal.note(
            "definition.accepted", by=user(), data=encode({"changes": [difference.text for difference in changed]})
        )
        self.change = msgspec.structs.replace(self.change, definition=self.plan.definition())

    def carry(self, *, resumed: bool) -> Result:
        """Walk as far as the run goes, and record how it ended."""
        began = time.monotonic()
        driver = self._driver()
        try:
            if self.plan.spawns:
                self._guard_children(resumed=resumed)
            self.keeper.start()
            ended = self._in_line(resumed=resumed) or self._carried(driver, resumed=resumed)
        except BaseException as error:  # noqa: BLE001 - the edge of the engine
            raise self._fault(error) from None
        finally:
            self.keeper.stop()
        finished = RunFinished(
            run_id=ended.run_id,
            status=ended.status,
            exit_status=ended.exit_status,
            outputs=ended.outputs,
            error=ended.error,
            wake_at=ended.wake_at,
            duration=time.monotonic() - began,
        )
        self.audience.tell(finished)
        return ended

    def _in_line(self, *, resumed: bool) -> Result | None:
        """Say that the run begins or goes on, and come to its place if it has a group; how it stands without one."""
        line, begun = None, resumed and bool(self.records)
        if self.before.group is not None and not (self.cancelling or self.before.cancel_requested):
            from .queueing import Line

            rule = self.plan.workflow.concurrency
            watched = self.audience, self.clock, self.interrupt
            line = Line(self.store, self.before, self.journal, rule, *watched, begun=begun)
            line.begin()
        self.audience.tell(self._started(resumed))
        try:
            full = line.wait() if line is not None else None
        except Interrupted as stop:
            return self._left(stop.reason, begun)
        except LeaseLost:
            return self._stopped("lease_lost")
        if full is None:
            return None
        return msgspec.structs.replace(self._end("cancelled", error=full.error), exit_status=full.exit_status)

    def _left(self, reason: str, begun: bool) -> Result:
        """The end of a claim that had no place yet: the run stands as it stood before."""
        if reason == "cancelled" and begun:
            return self._stopped(self._tidy())
        if reason in ("cancelled", "lease_lost"):
            return self._stopped(reason)
        self.journal.note("run.interrupted")
        self.journal.write(Change(now=self.clock.now(), release=True))
        return Result(run_id=self.before.run_id, status="interrupted", exit_status=exit_status("interrupted", None))

    def _carried(self, driver: Driver, *, resumed: bool) -> Result:
        host = self._host(driver, time.monotonic())
        try:
            self.meter.enter(self.options.order.counted if self.options.order is not None else (0, 0, 0.0))
            return self._walk(driver, host, resumed=resumed)
        finally:
            self.meter.leave()

    def _walk(self, driver: Driver, host: StoreHost, *, resumed: bool) -> Result:
        try:
            if self.cancelling or self.before.cancel_requested:
                raise Interrupted("cancelled")
            if resumed:
                blocked = self._take_over()
                if blocked is not None:
                    return blocked
            patience = Patience(host, self.options.answer, user())
            ended = patience.carry(lambda: driver.run(self._steps(driver, host)))
            outputs = self.redactor.value(ended.outputs)
            self.journal.cost = round(self.journal.cost, 9)
            try:
                host.texts.caps.value(encode(outputs), outputs, "outputs")
            except StepError as error:
                raise failure("outputs", "outputs", error) from None
            return self._end("completed", outputs=outputs, error=ended.error)
        except StepFailed as failed:
            return self._end("failed", error=failed.error)
        except Blocked as blocked:
            return self._end("blocked", error=decode(blocked.error))
        except Suspended as suspended:
            status = "waiting" if suspended.waiting else "sleeping"
            return self._end(status, wake_at=suspended.until)
        except Interrupted as stop:
            return self._stopped(self._tidy() if stop.reason == "cancelled" else stop.reason)
        except LeaseLost:
            self.interrupt.set("lease_lost")
            return self._stopped("lease_lost")

    def _fault(self, error: BaseException) -> BaseException:
        """What is raised for an error that ends this claim; the run is given back, so that it can be resumed.

        An interruption goes on its way: somebody wants this process to stop.
        """
        self._give_up()
        if not isinstance(error, Exception):
            return error
        found = faults.public(error)
        faults.diagnose(found, self.options.diagnostics, self.redactor, self.before.run_id)
        return found

    async def _steps(self, driver: Driver, host: StoreHost) -> Ended:
        try:
            return await Interpreter(host, self.plan.workflow).run(self._scope(host))
        finally:
            if isinstance(driver, Loop):
                await self.journal.settle()

    def _tidy(self) -> str:
        """Run `finally` for a run that is being cancelled; why the claim ends: `cancelled`, or a lost lease.

        The wish to cancel has done its work: what comes now is stopped only by its own time limits, by a second
        Ctrl-C, or by the loss of the lease.
        """
        if self.plan.workflow.finally_ is None:
            return "cancelled"
        self.interrupt = Interrupt()
        self.keeper.guard(self.interrupt)
        driver = self._driver()
        host = self._host(driver, time.monotonic())
        try:
            driver.run(self._closing(driver, host))
        except Suspended:
            self.journal.note("finally.unfinished", comment="a step of `finally` would have had to wait")
        except Interrupted as stop:
            return stop.reason
        finally:
            self.interrupt.close()
        return "cancelled"

    async def _closing(self, driver: Driver, host: StoreHost) -> None:
        interpreter = Interpreter(host, self.plan.workflow)
        scope = {**self._scope(host), "steps": Steps()}
        try:
            await interpreter.restore(scope)
            failed = await interpreter.close(scope, "cancelled", dict(_CANCELLED))
            if failed is not None:
                self.journal.note("finally.failed", data=encode(self.redactor.error(failed.error)))
        finally:
            if isinstance(driver, Loop):
                await self.journal.settle()

    def _driver(self) -> Driver:
        if self.options.driver is not None:
            made: Driver = self.options.driver(self.plan, self.interrupt)
            return made
        return Loop(self.interrupt) if self.plan.needs_loop else Straight(self.interrupt)

    def _host(self, driver: Driver, began: float) -> StoreHost:
        limit = self.plan.workflow.limits.timeout
        deadline = None if limit is None else began + limit - ran_before(self.store, self.before, self.records)
        order = self.options.order
        if order is not None and order.deadline is not None:
            deadline = order.deadline if deadline is None else min(deadline, order.deadline)
        return StoreHost(
            plan=self.plan,
            run=self.before,
            journal=self.journal,
            driver=driver,
            clock=self.clock,
            interrupt=self.interrupt,
            hurry=self.hurry,
            audience=self.audience,
            redactor=self.redactor,
            env=given.env(self.plan, self._names()) if self.plan.workflow.env else {},
            logs=os.path.join(self.options.logs, self.before.run_id) if self.options.logs else None,
            wait=self.options.wait,
            asks=self.options.answer is not None,
            run_deadline=deadline,
            meter=self.meter,
            children=self.children,
            bounds=order.permits if order is not None else (),
            servers=self.options.servers or {},
            http=self.options.http or {},
            providers=self.options.providers or {},
        )

    def _names(self) -> dict[str, Any]:
        return given.names(self.before, self.secrets, attempt=self.journal.lease.fence)

    def _scope(self, host: StoreHost) -> dict[str, Any]:
        return {**self._names(), "env": host.env, "state": self.journal.state}

    def _started(self, resumed: bool) -> Event:
        run = self.before
        return RunStarted(
            run_id=run.run_id,
            workflow=run.workflow,
            version=self.plan.workflow.version,
            digest=self.plan.digest,
            resumed=resumed,
            file=run.file,
        )

    def _guard_children(self, *, resumed: bool) -> None:
        """Start the watchdog before any thread; end what an earlier runner of this run left behind."""
        from .steps import _process

        _process.ensure_watchdog()
        if resumed and _process.end_survivors(f"{self.before.run_id}:"):
            self.journal.note("children.ended", comment="children of an earlier runner were still alive")

    def _take_over(self) -> Result | None:
        """Settle what a dead runner left open; the run's end if that needs an operator."""
        run, lease = self.before, self.journal.lease
        self.journal.note("run.resumed", by=user(), data=encode({"from": run.status.value, "fence": lease.fence}))
        unknown = recovery.settle(
            self.records, now=self.clock.now(), fence=lease.fence, worker=lease.owner, plan=self.plan
        )
        for record in unknown:
            self.journal.add(record)
            id = step_id(record.path)
            self.audience.signal_of("step.unknown", id, record.path, record.attempt, {"verb": record.verb})
        if not unknown:
            self.journal.write(msgspec.structs.replace(self.change, error=None, wake_at=None))
            return None
        error = decode(unknown[0].error or "null")
        return self._end("blocked", error=error)

    def _end(
        self,
        status: str,
        *,
        outputs: Json = None,
        error: dict[str, Any] | None = None,
        wake_at: float | None = None,
        stored: Status | None = None,
    ) -> Result:
        """The last commit of this claim: how the run stands, and the lease given back."""
        now = self.clock.now()
        error = self.redactor.error(error) if error is not None else None
        kept = stored or Status(status)
        if kept is Status.COMPLETED:
            self._let_go(cancelled=False)
        self.journal.note(f"run.{status}")
        if kept is Status.FAILED and self.options.again is not None:
            kept, wake_at = self.options.again.judge(self.journal, error, now)
        change = msgspec.structs.replace(
            self.change,
            now=now,
            status=kept,
            outputs=encode(outputs) if status == "completed" else None,
            error=encode(error) if error is not None else None,
            wake_at=wake_at,
            finished=now if kept in (Status.COMPLETED, Status.FAILED, Status.CANCELLED) else None,
            release=True,
            unclaimed=True,  # who ends in order has not died of it: that is what claims are counted for
        )
        try:
            self.journal.write(change)
        except LeaseLost:
            return self._stopped("lease_lost")
        return Result(
            run_id=self.before.run_id,
            status=status,
            exit_status=exit_status(status, error),
            outputs=outputs,
            error=error,
            wake_at=wake_at,
        )

    def _stopped(self, reason: str) -> Result:
        if reason == "cancelled":
            self._let_go(cancelled=True)
            return self._end("cancelled", error=dict(_CANCELLED))
        if reason == "lease_lost":
            self.audience.signal("lease.conflict", owner=self.journal.lease.owner, code=LeaseLost.code)
            error = {"type": "lease_lost", "message": "the lease was lost: another runner may own the run now"}
            return Result(run_id=self.before.run_id, status="interrupted", exit_status=5, error=error)
        return self._end("interrupted", stored=Status.READY)

    def _let_go(self, *, cancelled: bool) -> None:
        open_ = [past.decided for past in self.journal.pasts.values() if past.decided and past.end is None]
        if self.children is not None and any(record.verb == "call" for record in open_):
            from .calling import let_go

            let_go(self.store, self.children, open_, cancelled=cancelled)

    def _give_up(self) -> None:
        """Release the lease if that is still possible; the error that led here matters more."""
        self.interrupt.set("failed")
        try:
            self.journal.write(Change(now=self.clock.now(), status=Status.READY, release=True))
        except Exception:  # noqa: BLE001, S110 - whatever the store says now
            pass
