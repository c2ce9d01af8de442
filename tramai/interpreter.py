"""The walk through a workflow: plain async code without I/O, over a Host that touches the world.

Resume is nothing but walking again from the start: a path whose end is in the journal is answered from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from .codec import Json
from .definition import StateSpec, Workflow
from .errors import TramaiError
from .expression import Condition, Expression, ExpressionError, Missing, Template, Value, evaluate, test
from .step import Block, Control, Job, Node, StepError


class StepFailed(TramaiError):
    """step '{path}' failed: {reason}"""

    # `error` is the record that `catch`, `show` and the JSON documents carry.
    code = "TRM401"
    exit_status = 1

    error: dict[str, Json]


class Suspended(Exception):
    """The run cannot go on before `until` (epoch seconds; None: until somebody decides).

    `waiting`: somebody may let it go on earlier, by a decision.
    """

    def __init__(self, until: float | None, *, waiting: bool = False) -> None:
        self.until = until
        self.waiting = waiting or until is None
        super().__init__("suspended")


class Blocked(Suspended):
    """The run cannot go on before somebody says what became of a step; `error` is the record, as JSON text."""

    def __init__(self, error: str) -> None:
        self.error = error
        super().__init__(None)


class View(msgspec.Struct):
    """What expressions and the journal know of a step that is over."""

    status: str
    output: Any
    attempts: int = 0
    duration: float = 0.0
    error: dict[str, Json] | None = None

    def names(self) -> dict[str, Any]:
        """The `steps.<id>` of expressions."""
        return {
            "output": self.output,
            "status": self.status,
            "attempts": self.attempts,
            "duration": self.duration,
            "error": self.error,
        }


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

    async def within(self, seconds: float, work: Awaitable[Any]) -> Any:
        """Await with a limit; StepError of type `timeout` when it passes."""
        ...


class Steps(Mapping[str, Any]):
    """The `steps` of one block: its own, then those of the blocks around it."""

    __slots__ = ("outer", "own")

    def __init__(self, outer: Steps | None = None) -> None:
        self.own: dict[str, dict[str, Any]] = {}
        self.outer = outer

    def __getitem__(self, name: str) -> dict[str, Any]:
        found: Steps | None = self
        while found is not None:
            if name in found.own:
                return found.own[name]
            found = found.outer
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        if self.outer is not None:
            yield from (name for name in self.outer if name not in self.own)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Interpreter:
    """Walks one run of one workflow."""

    def __init__(self, host: Host, workflow: Workflow) -> None:
        self.host = host
        self.workflow = workflow

    async def run(self, scope: dict[str, Any]) -> dict[str, Json]:
        """Walk all steps; the workflow's outputs. Raises StepFailed or Suspended."""
        scope = {**scope, "steps": Steps()}
        await self.block(self.workflow.steps, "", scope)
        try:
            return {name: evaluate(value, scope) for name, value in self.workflow.outputs.items()}
        except ExpressionError as error:
            raise failure(
                "outputs", "outputs", StepError("expression", f"the outputs cannot be computed: {error}")
            ) from error

    async def block(self, block: Block, prefix: str, scope: dict[str, Any]) -> dict[str, Json]:
        """Run steps in order; `{id: output}` of those that were not skipped."""
        outputs: dict[str, Json] = {}
        own = scope["steps"].own
        for node in block.nodes:
            view = await self.step(node, prefix + node.id, scope)
            own[node.id] = view.names()
            if view.status != "skipped":
                outputs[node.id] = view.output
        return outputs

    async def step(self, node: Node, path: str, scope: dict[str, Any]) -> View:
        """Run one step, or answer it from the journal."""
        view = self.host.replayed(node, path)
        if view is not None and not (isinstance(node.step, Control) and node.step.visible()):
            return view
        if view is not None and view.status == "skipped":
            skip_inside(node, scope)
            return view
        if view is None and node.when is not None and not self.host.begun(path):
            try:
                go = test(node.when, scope)
            except ExpressionError as error:
                raise self._failed(node, path, StepError("expression", f"`when` cannot be decided: {error}")) from error
            if not go:
                await self.host.skip(node, path)
                skip_inside(node, scope)
                return View("skipped", Missing(f"step '{node.id}' was skipped"))
        if isinstance(node.step, Control):
            return await self._control(node, node.step, path, scope, view)
        return await self.host.leaf(node, path, scope)

    async def _control(self, node: Node, step: Control, path: str, scope: dict[str, Any], done: View | None) -> View:
        walk = _Walk(self, node, path, scope)
        skip_inside(node, scope)  # the block taken will say otherwise
        if done is not None:  # only to put the steps inside back into scope
            await step.walk(walk)
            return done
        self.host.opened(node, path)
        try:
            work = step.walk(walk)
            result = await (work if node.timeout is None else self.host.within(node.timeout, work))
            output, saves = finish(node, result, scope, self.workflow.state)
            return await self.host.closed(node, path, output, saves)
        except StepError as error:
            raise self._failed(node, path, error) from error
        except ExpressionError as error:
            raise self._failed(node, path, StepError("expression", str(error))) from error
        except StepFailed as error:
            self.host.failed(node, path, error.error)
            raise

    def _failed(self, node: Node, path: str, error: StepError) -> StepFailed:
        failed = failure(node.id, path, error)
        self.host.failed(node, path, failed.error)
        return failed


class _Walk:
    """A control verb's view of the walk."""

    def __init__(self, interpreter: Interpreter, node: Node, path: str, scope: dict[str, Any]) -> None:
        self._interpreter = interpreter
        self._node = node
        self._scope = scope
        self.path = path
        self.limit = interpreter.host.limit

    def value(self, source: Expression | Template | Value) -> Any:
        return evaluate(source, self._scope)

    def value_with(self, source: Expression | Template | Value, names: Mapping[str, Any]) -> Any:
        return evaluate(source, {**self._scope, **names})

    def test(self, condition: Condition) -> bool:
        return test(condition, self._scope)

    async def once(self, make: Callable[[], Json]) -> Any:
        return await self._interpreter.host.once(self.path, self._node.verb, make)

    async def block(self, block: Block, *, key: str, names: Mapping[str, Json], visible: bool) -> dict[str, Json]:
        inner = Steps(self._scope["steps"])
        scope = {**self._scope, **names, "steps": inner}
        outputs = await self._interpreter.block(block, f"{self.path}[{spell(key)}].", scope)
        if visible:
            self._scope["steps"].own.update(inner.own)
        return outputs

    async def fan_out(
        self, jobs: Sequence[Job], *, window: int, fail_fast: bool, collect: bool, in_order: bool = False
    ) -> tuple[list[dict[str, Json]], int]:
        def start(job: Job) -> Callable[[], Awaitable[dict[str, Json]]]:
            return lambda: self.block(job.block, key=job.key, names=job.names, visible=False)

        starts = [start(job) for job in jobs]
        ended = await self._interpreter.host.gather(starts, window=window, fail_fast=fail_fast, in_order=in_order)
        for end in ended:
            if isinstance(end, Blocked):
                raise end
        failures = [end for end in ended if isinstance(end, StepFailed)]
        if failures and fail_fast and not collect:
            raise failures[0]
        asleep = [end for end in ended if isinstance(end, Suspended)]
        if asleep:
            instants = [end.until for end in asleep if end.until is not None]
            raise Suspended(min(instants, default=None), waiting=any(end.waiting for end in asleep))
        if failures and not collect:
            raise failures[0]
        return [{"error": end.error} if isinstance(end, StepFailed) else end for end in ended], len(failures)


def finish(
    node: Node, result: Any, scope: Mapping[str, Any], state: Mapping[str, StateSpec]
) -> tuple[Json, dict[str, Json]]:
    """Reshape a step's full record: its output (`output`, checked by `schema`) and the state it saves."""
    if node.output is None:
        output = node.step.output(result)
    else:
        output = evaluate(node.output, {**scope, "result": result})
    if node.schema is not None:
        meet(output, node.schema, "output")
    if not node.save:
        return output, {}
    names = {**scope, "result": result}
    saves = {name: evaluate(value, names) for name, value in node.save.items()}
    for name, value in saves.items():
        spec = state.get(name)
        if spec is not None and spec.schema is not None:
            meet(value, spec.schema, f"state.{name}")
    return output, saves


def meet(value: Json, schema: dict[str, Any], what: str) -> None:
    """Fail the step when a value does not meet the schema declared for it."""
    from .schema import schema_problems

    problems = schema_problems(value, schema)
    if problems:
        where, why = problems[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
        raise StepError("invalid_output", f"{what} does not meet its schema: {what}{place} {why}")


def failure(id: str, path: str, error: StepError, attempt: int = 1) -> StepFailed:
    """The failure of a step, with the record that expressions and documents see."""
    record: dict[str, Json] = {
        "type": error.type,
        "message": error.message,
        "step": id,
        "path": path,
        "attempt": attempt,
        **error.details,
    }
    if error.hint is not None:
        record["hint"] = error.hint
    return StepFailed(path=path, reason=error.message, error=record, hint=error.hint)


def spell(key: str) -> str:
    """A key inside a path: as it is when plain, else quoted, so that paths never collide."""
    if key and len(key) <= 64 and all(char.isalnum() or char in "_-./:@+" for char in key) and key.isascii():
        return key
    return msgspec.json.encode(key).decode("utf-8", "surrogatepass")


def skip_inside(node: Node, scope: Mapping[str, Any]) -> None:
    """Let the steps inside a skipped container be read as skipped, where they may be read at all."""
    if isinstance(node.step, Control) and node.step.visible():
        for _, _, block in node.step.blocks():
            skip_block(block, scope)


def skip_block(block: Block, scope: Mapping[str, Any]) -> None:
    """Put the steps of a block that did not run into scope as skipped."""
    for node in block.nodes:
        scope["steps"].own[node.id] = View("skipped", Missing(f"step '{node.id}' was skipped")).names()
        skip_inside(node, scope)
