"""Carries out a `call`: the run of another workflow, inside the run that calls it.

The called run has a record of its own, with an id that follows from the caller's id and the path of the step, so that
whoever goes on with the caller finds it again: a run that had begun is gone on with, never started twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from .called import called_run
from .codec import Json, encode, sha256
from .errors import BugError, GroupFull, InvalidInput, LeaseHeld, NotFound, OutcomeUnknown, SecretMissing
from .inputs import bind
from .interrupt import Interrupt
from .meter import Meter, Used
from .outcomes import Blocked, Suspended
from .permits import Permits
from .plan import Plan
from .results import Result
from .step import Done, Outcome, StepError, Usage
from .store import Mark, Record, Run, Status, Store
from .target import Target

if TYPE_CHECKING:
    from .context import StepContext
    from .host import StoreHost


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine is asked to carry out for a `call`."""

    run_id: str
    caller: str
    """Id of the run that calls."""
    path: str
    """The step of it that does."""
    plan: Plan
    inputs: dict[str, Json]
    secrets: Mapping[str, str]
    """Those that the caller passes, by the names that the called workflow has for them."""
    first: bool
    """Nobody has asked for another attempt: a run that has failed is not tried again."""
    interrupt: Interrupt
    hurry: Interrupt
    meter: Meter
    counted: Used
    """What the caller's journal has of it already."""
    permits: tuple[Permits, ...]
    deadline: float | None
    cwd: str


class Children(Protocol):
    """Carries out called runs; the engine."""

    def carry(self, order: Order) -> tuple[Result, Run]:
        """Start it, or go on with it, as far as it goes."""
        ...

    def cancel(self, run_id: str) -> None:
        """Cancel a called run that nobody carries out."""
        ...


def child_id(caller: str, path: str) -> str:
    """The id of the run that a step calls: a UUID with the time of its caller's, the rest from the caller and path."""
    digest = sha256(f"call\0{caller}\0{path}")
    head = caller[:13] if len(caller) == 36 and caller[8:9] == caller[13:14] == "-" else f"{digest[:8]}-{digest[8:12]}"
    return f"{head}-7{digest[12:15]}-8{digest[15:18]}-{digest[18:30]}"


def open_calls(records: Iterable[Record]) -> tuple[str, ...]:
    """The called runs whose step has not ended."""
    found: dict[str, str] = {}
    for record in records:
        if (run_id := called_run(record)) is not None:
            found[record.path] = run_id
        elif record.mark is Mark.COMPLETED:
            found.pop(record.path, None)
        if found and (record.mark is Mark.COMPLETED or record.mark is Mark.FAILED):
            numbered = f"{record.path}@tool["  # those of an attempt that is over: no later one goes on with them
            for path in [path for path in found if path.startswith(numbered)]:
                del found[path]
    return tuple(found.values())


def let_go(store: Store, children: Children, decided: Iterable[Record], *, cancelled: bool) -> None:
    """Cancel the called runs that nobody will go on with: all that are open when their caller is `cancelled`; when it
    is completed, those that did not come to an end before a container around them had given up."""
    for run_id in open_calls(decided):
        with contextlib.suppress(NotFound):
            if cancelled or store.get(run_id).status is not Status.FAILED:
                children.cancel(run_id)


async def call(
    host: StoreHost, ctx: StepContext, target: Target, given: dict[str, Any], secrets: Mapping[str, str]
) -> Outcome:
    """Carry out one attempt of a `call`."""
    return await _call(host, ctx, ctx.path, target, given, secrets)


async def call_afresh(
    host: StoreHost, ctx: StepContext, target: Target, given: dict[str, Any], secrets: Mapping[str, str]
) -> Outcome:
    """Carry out one of several calls of an attempt, which must end here: nobody will go on with it later."""
    numbered = f"{ctx.path}@tool["
    before = [path for path in host.journal.pasts if path.startswith(numbered)]
    for path in before:
        if path not in ctx.called:  # an earlier attempt called it, and a crash may have left it as it was
            _cancel(host, path)
            ctx.called.append(path)
    path = f"{numbered}{len(before) + 1}]"
    ctx.called.append(path)
    try:
        return await _call(host, ctx, path, target, given, secrets)
    except Blocked as blocked:
        raise StepError("unknown_outcome", str(msgspec.json.decode(blocked.error)["message"])) from None
    except Suspended as suspended:
        _cancel(host, path)
        what = "waits for a decision" if suspended.waiting else "sleeps for longer than anybody waits here"
        hint = f"a workflow that is called as a tool has to end; call {target.path} by a step of its own"
        raise StepError("refused", f"{target.path} {what}", hint=hint) from None
    except StepError as error:
        if error.type == "cancelled":
            _cancel(host, path)
        raise
    except BaseException:  # the attempt is stopped
        _cancel(host, path)
        raise


def _cancel(host: StoreHost, path: str) -> None:
    if host.children is not None:
        host.children.cancel(child_id(host.run_id, path))


async def _call(
    host: StoreHost, ctx: StepContext, path: str, target: Target, given: dict[str, Any], secrets: Mapping[str, str]
) -> Outcome:
    if host.children is None or target.workflow is None:
        raise BugError(what="a call without a workflow, or without an engine to carry it out")
    try:
        inputs = bind(target.workflow.inputs, given)
    except InvalidInput as error:
        raise StepError("refused", f"{target.path}: {error.message}", hint=error.hint) from error
    run_id = child_id(host.run_id, path)
    await host.once(path, "call", lambda: {"run_id": run_id})
    await host.durable(pure=False)
    past = host.journal.past(path)
    order = Order(
        run_id=run_id,
        caller=host.run_id,
        path=ctx.path,
        plan=host.plan_of(target),
        inputs=inputs,
        secrets=secrets,
        first=ctx.attempt == 1 or path != ctx.path,
        interrupt=Interrupt(),
        hurry=host.hurry,
        meter=host.meter,
        counted=past.counted if past is not None else (0, 0, 0.0),
        permits=ctx.permits,
        deadline=ctx.deadline,
        cwd=host.cwd,
    )
    result, run = await _carried(host, ctx, order)
    used = run.step_executions - order.counted[0], run.tokens - order.counted[1], run.cost_usd - order.counted[2]
    usage = Usage(executions=used[0], input_tokens=used[1], cost_usd=used[2] or None)
    return _ended(host, target, result, usage)


async def _carried(host: StoreHost, ctx: StepContext, order: Order) -> tuple[Result, Run]:
    children, stop = host.children, order.interrupt
    assert children is not None

    def pass_on() -> None:
        stop.set(ctx.interrupt.reason or "signal")

    ctx.interrupt.on_set(pass_on)
    try:
        return await ctx.blocking(lambda: children.carry(order))
    except SecretMissing as missing:
        raise StepError("refused", missing.message, hint=missing.hint) from missing
    except GroupFull as full:
        raise StepError("refused", full.message, hint=full.hint) from full
    except LeaseHeld as held:
        # Somebody is at it, or was: of a runner that died elsewhere the lease of the caller ends before that of the
        # called run, or after it.
        raise Suspended(float(str(held.details["expires"]))) from held
    except OutcomeUnknown as unknown:
        raise _blocked(ctx.path, order.run_id, unknown.message) from unknown
    finally:
        ctx.interrupt.forget(pass_on)
        stop.close()


def _ended(host: StoreHost, target: Target, result: Result, usage: Usage) -> Outcome:
    """What the end of the called run means to the step."""
    error = result.error or {}
    if result.status == "completed":
        return Done({"outputs": result.outputs, "run_id": result.run_id}, usage)
    if result.status in ("sleeping", "waiting"):  # it has waited itself as long as anybody waits here
        raise Suspended(result.wake_at, waiting=result.status == "waiting")
    if result.status == "blocked":
        raise _blocked(str(error.get("path", "?")), result.run_id, str(error.get("message", "it is blocked")))
    if result.status == "interrupted" and not host.interrupt.is_set:
        # Its lease was lost: somebody else carries it out now.
        raise Suspended(host.clock.now() + 1.0)
    kind = "cancelled" if result.status in ("cancelled", "interrupted") else str(error.get("type", "exit"))
    said = f"step '{error.get('path', '?')}': {error.get('message', result.status)}"
    details: dict[str, Json] = {"run_id": result.run_id, "called": error}
    what = f"{target.path} (run {result.run_id[-8:]}) {result.status}: {said}"
    hint = f"look: tramai show {result.run_id[-8:]}"
    raise StepError(kind, what, hint=hint, details=details, usage=usage)


def _blocked(path: str, run_id: str, message: str) -> Blocked:
    error: dict[str, Json] = {
        "type": "unknown_outcome",
        "message": f"the called run {run_id} is blocked: {message}",
        "path": path,
        "step": path,
        "attempt": 1,
        "run_id": run_id,
        "hint": f"look: tramai show {run_id[-8:]}, then tramai resolve {run_id[-8:]} STEP --as …",
    }
    return Blocked(encode(error))
