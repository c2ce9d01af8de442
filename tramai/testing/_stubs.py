"""Puts stubs in the place of the steps of a plan. The engine runs them as it runs any step."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from ..calling import child_id
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
from ._paths import INTO, Pattern, blocks_of, id_of
from ._script import Call, Script, failure, usage
from .suite import Answer

SLACK = 0.5
"""Seconds that the test itself may have taken since the attempt began."""
PASSIVE = frozenset(("local", "delay", "gate"))
"""Verbs that compute, wait, or ask: they run as they are."""


class Live(msgspec.Struct):
    """What the stubs of one run, and of those that it calls, share: the script, the driver that lets time pass."""

    script: Script
    driver: Instant | None = None
    callers: dict[str, str] = {}
    """For each called run: what stands before its paths."""
    shown: Json = None
    """The output of the stub that ran last; it is asked for at once."""

    def path(self, ctx: Context) -> str:
        """The path of a step, through all that call its workflow."""
        assert isinstance(ctx, StepContext)
        return self.callers.get(ctx.run_id, "") + ctx.path


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
        path = live.path(ctx)
        answer = live.script.answer(path, ctx.attempt)
        if answer is None:
            return await self._itself(node, ctx)
        call = Call(
            step=INTO.join([*map(id_of, path.split(INTO)[:-1]), node.id]),
            path=path,
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
            raise refusal(self.live.script, node, self.live.path(ctx))
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


class Passing(Step, frozen=True, kw_only=True):
    """A `call` that really calls: its own workflow, with stubs in it."""

    straight: ClassVar[bool] = True
    answers: ClassVar[bool] = False

    node: Any
    live: Any
    plan: Any

    def replay(self) -> Replay:
        """As the step itself."""
        policy: Replay = self.node.replay
        return policy

    def output(self, result: Any) -> Json:
        """As the step itself."""
        return self.node.step.output(result)  # type: ignore[no-any-return]

    async def run(self, ctx: Context) -> Outcome:
        """Call it, and know the run that it is by its caller's path."""
        assert isinstance(ctx, StepContext)
        live, step = self.live, self.node.step
        live.callers[child_id(ctx.run_id, ctx.path)] = live.path(ctx) + INTO
        ctx.plans[id(step.workflow)] = self.plan
        driver = live.driver
        try:
            return await step.run(ctx)  # type: ignore[no-any-return]
        finally:
            live.driver = driver


def refusal(script: Script, node: Node, path: str) -> BaseException:
    """The end of a run that has come to a step which reaches outside, and has no stub."""
    what = f"`{path}` would reach outside: it is a step of `{node.verb}` without a stub"
    name = INTO.join([*map(id_of, path.split(INTO)[:-1]), node.id])
    hint = f"add `{name}` to `stubs`, or let it really run with `allow: [{node.verb}]`"
    if node.verb == "call":
        hint += f"; `{name}{INTO}STEP` in `stubs` stands for a step of the workflow that it calls"
    return script.stop("TRM772", what, None, hint)


def stubbed(plan: Plan, live: Live, *, allow: Iterable[str], env: Mapping[str, str]) -> Plan:
    """The same plan, with the same digest, in which stubs stand for steps that have one or would reach outside."""
    return _stubbed(plan, _Means(live, frozenset(allow), live.script.patterns), env)


class _Means(msgspec.Struct, frozen=True):
    """What stands for the steps of one workflow, its callers aside."""

    live: Live
    allowed: frozenset[str]
    patterns: list[Pattern]

    def named(self, id: str, *, asked: bool) -> bool:
        """Whether any stub is for a step, or for what its `verify` asks."""
        return any(one.inner is None and one.id == id and one.asked is asked for one in self.patterns)

    def inside(self, id: str) -> list[Pattern]:
        """Which stubs are for the steps of the workflow that a step calls."""
        return [one.inner for one in self.patterns if one.inner is not None and one.id == id]


def _stubbed(plan: Plan, means: _Means, env: Mapping[str, str]) -> Plan:
    fresh = restore(plan.canonical, plan.workflow.version).workflow
    for block in top(fresh):
        _replace(block, means)
    own = {name: Template(text.replace("${{", "$${{")) for name, text in env.items()}
    workflow = msgspec.structs.replace(
        fresh,
        document=plan.workflow.document,
        description=plan.workflow.description,
        env={**fresh.env, **own},
        secrets=plan.workflow.secrets,
    )
    made = Plan(workflow, canonical=plan.canonical)
    inner = [node.step.plan for node in made.nodes.values() if isinstance(node.step, Passing)]
    real = [node for node in made.nodes.values() if not isinstance(node.step, (Control, Stub, Passing))]
    really = [node.step.node.step for node in made.nodes.values() if isinstance(node.step, Stub) and node.step.free]
    steps = [*(node.step for node in real), *(step for step in really if not isinstance(step, Control))]
    made.__dict__["needs_loop"] = any(step.needs_loop() for step in steps)
    made.__dict__["spawns"] = any(step.spawning() for step in steps) or any(plan.spawns for plan in inner)
    return made


def top(workflow: Workflow) -> tuple[Block, ...]:
    """Every block at the top of a workflow."""
    return tuple(block for _, _, block in workflow.blocks())


def _replace(block: Block, means: _Means) -> None:
    block.nodes = tuple(_replaced(node, means) for node in block.nodes)


def _replaced(node: Node, means: _Means, *, asked: bool = False) -> Node:
    for inner in blocks_of(node):
        _replace(inner, means)
    if node.retry is not None:  # without chance: a test is the same each time
        node = msgspec.structs.replace(node, retry=msgspec.structs.replace(node.retry, jitter=0.0))
    if isinstance(node.verify, Node):
        node = msgspec.structs.replace(node, verify=_replaced(node.verify, means, asked=True))
    free, named = runs(node, means.allowed), means.named(node.id, asked=asked)
    within = means.inside(node.id) if node.verb == "call" and not named and not asked else []
    if within:
        ((_, target),) = node.step.called()
        assert target.workflow is not None  # a plan is made only of files whose calls could be read
        plan = _stubbed(Plan(target.workflow), _Means(means.live, means.allowed, within), {})
        return msgspec.structs.replace(node, step=Passing(node=node, live=means.live, plan=plan), replay_as=node.replay)
    if free and not named:
        return node
    stub = Stub(node=node, live=means.live, free=free)
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
