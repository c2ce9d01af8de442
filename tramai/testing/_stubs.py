"""Puts stubs in the place of the steps of a plan. The engine runs them as it runs any step."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from ..codec import Json
from ..context import StepContext
from ..definition import Workflow
from ..duration import Duration
from ..expression import Condition, Expression, ExpressionError, Template, Text, Value
from ..plan import Plan, restore
from ..running import Context
from ..step import Block, Control, Done, Node, Outcome, Replay, Step, StepError
from ..target import Target
from ._instant import Instant
from ._paths import blocks_of
from ._script import Call, Script, failure, usage
from .suite import Answer

SLACK = 0.5
"""Seconds that the test itself may have taken since the attempt began."""
PASSIVE = frozenset(("local", "delay", "gate"))
"""Verbs that compute, wait, or ask: they run as they are."""


class Live(msgspec.Struct):
    """What the stubs of one run share: the script, and the driver that lets time pass."""

    script: Script
    driver: Instant | None = None
    shown: Json = None
    """The output of the stub that ran last; it is asked for at once."""


class Stub(Step, frozen=True, kw_only=True):
    """Answers in the place of a step."""

    straight: ClassVar[bool] = True

    node: Any
    live: Any
    free: bool
    """Where no stub is meant for its path, the step itself runs."""

    def replay(self) -> Replay:
        """As the step itself."""
        policy: Replay = self.node.replay
        return policy

    def pure(self) -> bool:
        """As the step itself."""
        return bool(self.node.step.pure())

    def output(self, result: Any) -> Json:
        """The output that the answer gave, or that the step makes of the answer's full record."""
        return self.live.shown  # type: ignore[no-any-return]

    async def run(self, ctx: Context) -> Outcome:
        """Note the call, and answer it."""
        live: Live = self.live
        if live.script.stopped is not None:
            raise live.script.stopped
        node: Node = self.node
        answer = live.script.answer(ctx.path, ctx.attempt)
        if answer is None:
            return await self._itself(node, ctx)
        call = Call(
            step=node.id,
            path=ctx.path,
            verb=node.verb,
            attempt=ctx.attempt,
            given=given(node.step, ctx),
            succeeded=answer.error is None,
        )
        live.script.calls.append(call)
        self._wait(answer, live, ctx)
        if answer.error is not None:
            error = failure(answer.error)
            error.usage = usage(answer.usage)
            raise error
        result = answer.result if answer.result is not UNSET else None if answer.output is UNSET else answer.output
        live.shown = self._shown(answer.output, result, ctx)
        return Done(result, usage(answer.usage))

    async def _itself(self, node: Node, ctx: Context) -> Outcome:
        """The step's own work, where it reaches nothing outside or is allowed to."""
        if not (self.free or _is_offline(node.step, ctx)):
            raise refusal(self.live.script, node, ctx.path)
        outcome = await node.step.run(ctx)
        if isinstance(outcome, Done):
            self.live.shown = self._shown(UNSET, outcome.result, ctx)
        return outcome

    def _shown(self, said: Any, result: Any, ctx: Context) -> Json:
        if said is not UNSET:
            return said  # type: ignore[no-any-return]
        if self.node.output is None:
            try:
                return self.node.step.output(result)  # type: ignore[no-any-return]
            except (KeyError, TypeError):
                what = f"the stub's `result` is no full record of `{self.node.verb}`"
                hint = f"its keys are on the page of `{self.node.verb}`; `output` gives the output itself"
                raise StepError("invalid_output", what, hint=hint) from None
        assert isinstance(ctx, StepContext)
        return ctx.value_with(self.node.output, {"result": result})  # type: ignore[no-any-return]

    def _wait(self, answer: Answer, live: Live, ctx: Context) -> None:
        """Let the time of the attempt pass, up to the end of its `timeout`, of the `deadline` or of the run's limit."""
        if answer.takes is None or live.driver is None:
            return
        limit = self.node.timeout
        left = None if ctx.deadline is None else ctx.deadline - time.monotonic() + SLACK
        if limit is not None and answer.takes > limit and (left is None or limit <= left):
            live.driver.pass_time(limit)
            raise StepError("timeout", f"the step took longer than its timeout of {limit:g}s")
        if left is not None and answer.takes > left:
            live.driver.pass_time(max(left, 0.0))
            raise StepError("timeout", "the step took longer than there was time left")
        live.driver.pass_time(answer.takes)


def refusal(script: Script, node: Node, path: str) -> BaseException:
    """The end of a run that has come to a step which reaches outside, and has no stub."""
    what = f"`{path}` would reach outside: it is a step of `{node.verb}` without a stub"
    hint = f"add `{node.id}` to `stubs`, or let it really run with `allow: [{node.verb}]`"
    return script.stop("TRM772", what, None, hint)


def stubbed(plan: Plan, live: Live, *, allow: Iterable[str], env: Mapping[str, str]) -> Plan:
    """The same plan, with the same digest, in which stubs stand for steps that have one or would reach outside."""
    fresh = restore(plan.canonical, plan.workflow.version).workflow
    allowed = frozenset(allow)
    for block in top(fresh):
        _replace(block, live, allowed)
    own = {name: Template(text.replace("${{", "$${{")) for name, text in env.items()}
    workflow = msgspec.structs.replace(
        fresh,
        document=plan.workflow.document,
        description=plan.workflow.description,
        env={**fresh.env, **own},
        secrets=plan.workflow.secrets,
    )
    made = Plan(workflow, canonical=plan.canonical)
    real = [node for node in made.nodes.values() if not isinstance(node.step, (Control, Stub))]
    really = [node.step.node.step for node in made.nodes.values() if isinstance(node.step, Stub) and node.step.free]
    steps = [*(node.step for node in real), *(step for step in really if not isinstance(step, Control))]
    made.__dict__["needs_loop"] = any(step.needs_loop() for step in steps)
    made.__dict__["spawns"] = any(step.spawning() for step in steps)
    return made


def top(workflow: Workflow) -> tuple[Block, ...]:
    """Every block at the top of a workflow."""
    return tuple(block for _, _, block in workflow.blocks())


def _replace(block: Block, live: Live, allowed: frozenset[str]) -> None:
    block.nodes = tuple(_replaced(node, live, allowed) for node in block.nodes)


def _replaced(node: Node, live: Live, allowed: frozenset[str], *, asked: bool = False) -> Node:
    for inner in blocks_of(node):
        _replace(inner, live, allowed)
    if node.retry is not None:  # without chance: a test is the same each time
        node = msgspec.structs.replace(node, retry=msgspec.structs.replace(node.retry, jitter=0.0))
    if isinstance(node.verify, Node):
        node = msgspec.structs.replace(node, verify=_replaced(node.verify, live, allowed, asked=True))
    free = runs(node, allowed)
    if free and not live.script.names(node.id, asked=asked):
        return node
    stub = Stub(node=node, live=live, free=free)
    return msgspec.structs.replace(node, step=stub, output=None, replay_as=node.replay)


def runs(node: Node, allowed: frozenset[str]) -> bool:
    """Whether a step without a stub runs as it is."""
    return isinstance(node.step, Control) or node.verb in PASSIVE or node.verb in allowed or node.id in allowed


def _is_offline(step: Step, ctx: Context) -> bool:
    """Whether it asks the built-in model, which answers at once and knows nothing of the world; not so its tools."""
    model = getattr(step, "model", None)
    if getattr(step, "tools", ()):
        return False
    return isinstance(model, Text) and ctx.text(model).strip().startswith("demo:")


def given(step: Step, ctx: Context) -> dict[str, Any]:
    """The settings of a step as they are rendered, those that are not there, or as they are by default, left out."""
    found = {}
    for field in msgspec.structs.fields(type(step)):
        value = getattr(step, field.name)
        if value is None or value is UNSET or isinstance(value, Condition) or value == field.default:
            continue
        if not value and not field.required:
            continue
        if field.encode_name in getattr(step, "sees", ()):
            continue  # what it looks at is there only while the step itself is at work
        try:
            found[field.encode_name] = _rendered(value, ctx)
        except ExpressionError:
            if not isinstance(step, Control):
                raise
            # A container's `key` and the like are for its turns, which there are none of.
    return found


def _rendered(value: Any, ctx: Context) -> Any:
    if isinstance(value, Text):
        return ctx.text(value)
    if isinstance(value, (Expression, Template, Value)):
        return ctx.value(value)
    if isinstance(value, Target):
        return value.path
    if isinstance(value, Duration):
        return float(value)
    if isinstance(value, Block):
        return [node.id for node in value]
    if isinstance(value, msgspec.Struct):
        return given(value, ctx)  # type: ignore[arg-type]
    if isinstance(value, dict):
        return {key: _rendered(item, ctx) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rendered(item, ctx) for item in value]
    return value
