"""The walk through a workflow: plain async code without I/O, over a Host that touches the world.

Resume is nothing but walking again from the start: a path whose end is in the journal is answered from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .codec import Json
from .definition import Workflow
from .error_types import matches
from .expression import ExpressionError, Missing, Value, evaluate, test
from .finishing import finish, meet
from .outcomes import Blocked, GoBack, StepFailed, Suspended, allowed, failure
from .rounds import Course
from .scope import Steps, View, absent, failed_view, skip_inside
from .step import Block, Catch, Control, Node, StepError

if TYPE_CHECKING:
    from .port import Host


class Ended(msgspec.Struct, frozen=True):
    """How a walk came to its end: the outputs, and the error that the workflow's `catch` took care of."""

    outputs: dict[str, Json]
    error: dict[str, Json] | None = None


_CATCH = "@catch"
"""Where the journal keeps which clause of the workflow's own `catch` was entered."""


class Interpreter:
    """Walks one run of one workflow."""

    def __init__(self, host: Host, workflow: Workflow) -> None:
        self.host = host
        self.workflow = workflow

    async def run(self, scope: dict[str, Any]) -> Ended:
        """Walk all steps, then `finally`. Raises StepFailed or Suspended."""
        scope = {**scope, "steps": Steps()}
        try:
            ended = await self._main(scope)
        except StepFailed as failed:
            unclean = await self.close(scope, "failed", failed.error)
            if unclean is not None:
                failed.error = {**failed.error, "finally": unclean.error}
            raise
        unclean = await self.close(scope, "completed", ended.error)
        if unclean is not None:
            raise unclean
        return ended

    async def _main(self, scope: dict[str, Any]) -> Ended:
        caught = self.host.decided(_CATCH)
        if caught is None:
            try:
                await self.block(self.workflow.steps, "", scope)
                return Ended(await self._last(self.workflow.outputs, scope))
            except StepFailed as failed:
                caught = await self._catch(self.workflow.catch, _CATCH, "catch", failed, scope)
        else:
            await self.restore(scope, caught["error"])
        inner, _ = await self._handle(self.workflow.catch, _CATCH, caught, scope)
        clause, error = self.workflow.catch[caught["clause"]], caught["error"]
        source = self.workflow.outputs if clause.output is None else clause.output
        return Ended(await self._last(source, inner), error)

    async def _last(self, source: Mapping[str, Value] | Value, scope: dict[str, Any]) -> dict[str, Json]:
        """The outputs; journaled before a `finally`, which may save other values to the state they read."""
        if self.workflow.finally_ is None:
            return self._outputs(source, scope)
        made: dict[str, Json] = await self.host.once("@outputs", "outputs", lambda: self._outputs(source, scope))
        return made

    def _outputs(self, source: Mapping[str, Value] | Value, scope: dict[str, Any]) -> dict[str, Json]:
        try:
            if not isinstance(source, Value):
                return {name: evaluate(value, scope) for name, value in source.items()}
            made = evaluate(source, scope)
        except ExpressionError as error:
            what = StepError("expression", f"the outputs cannot be computed: {error}")
            raise failure("outputs", "outputs", what) from error
        if not isinstance(made, dict):
            raise failure("outputs", "outputs", StepError("invalid_output", "the outputs of a run are a map"))
        return made

    async def restore(self, scope: dict[str, Any], error: dict[str, Json] | None = None) -> None:
        """Put the steps that have ended back into scope, and the one that failed; nothing runs."""
        own = scope["steps"].own
        course = Course(self.workflow.steps, "")
        while (node := course.node) is not None:
            path = course.path
            view = self.host.replayed(node, path)
            sent = self.host.decided(f"{path}@redo")
            if view is None and sent is None:
                if error is not None:
                    own[node.id] = failed_view(node, error).names()
                return
            if view is not None:
                if isinstance(node.step, Control) and node.step.visible():
                    view = await self.step(node, path, scope)
                own[node.id] = view.names()
            if sent is None or course.back(sent["to"]) is None:
                course.on()

    async def close(self, scope: dict[str, Any], status: str, error: dict[str, Json] | None) -> StepFailed | None:
        """Run every step of `finally`, also after one that failed; the first failure.

        What never ran can be read as skipped.
        """
        block = self.workflow.finally_
        if block is None:
            return None
        prefix = f"@finally[{self.host.closing()}]."
        steps = Steps(scope["steps"])
        scope = {**scope, "steps": steps, "error": error, "run": {**scope["run"], "status": status}}
        absent(self.workflow.steps, steps)
        first: StepFailed | None = None
        for node in block.nodes:
            try:
                view = await self.step(node, prefix + node.id, scope)
            except StepFailed as failed:
                view = failed_view(node, failed.error)
                first = first or failed
            steps.own[node.id] = view.names()
        return first

    async def block(self, block: Block, prefix: str, scope: dict[str, Any]) -> dict[str, Json]:
        """Run steps in order; `{id: output}` of those that were not skipped."""
        outputs: dict[str, Json] = {}
        own = scope["steps"].own
        course = Course(block, prefix)
        while (node := course.node) is not None:
            try:
                view = await self.step(node, course.path, scope)
                own[node.id] = view.names()
                self._send_back(node, course.path)
            except StepFailed as failed:
                own[node.id] = failed_view(node, failed.error).names()
                raise
            except GoBack as sent:
                again = course.back(sent.to)
                if again is None:
                    raise
                for id in again:
                    outputs.pop(id, None)
                continue
            if view.status != "skipped":
                outputs[node.id] = view.output
            course.on()
        return outputs

    def _send_back(self, node: Node, path: str) -> None:
        """Go back, if that is what this step has said."""
        if node.step.back() is not None and (sent := self.host.decided(f"{path}@redo")) is not None:
            raise GoBack(sent["to"])

    async def step(self, node: Node, path: str, scope: dict[str, Any]) -> View:
        """Run one step, or answer it from the journal."""
        view = self.host.replayed(node, path)
        if view is not None and not (isinstance(node.step, Control) and node.step.visible()):
            return view
        if view is not None and view.status != "succeeded":  # it was skipped, or failed and was caught
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
            if isinstance(node.step, Control):  # what happens inside may make it false
                await self.host.once(f"{path}@when", node.verb, lambda: True)
        if node.catch and view is None:
            return await self._guarded(node, path, scope)
        return await self._attempt(node, path, scope, view)

    async def _attempt(self, node: Node, path: str, scope: dict[str, Any], done: View | None = None) -> View:
        if isinstance(node.step, Control):
            return await self._control(node, node.step, path, scope, done)
        return await self.host.leaf(node, path, scope)

    async def _guarded(self, node: Node, path: str, scope: dict[str, Any]) -> View:
        """Run a step that has a `catch`; once a clause has been entered, the step itself is not tried again."""
        place = f"{path}@catch"
        caught = self.host.decided(place)
        if caught is None:
            try:
                return await self._attempt(node, path, scope)
            except StepFailed as failed:
                caught = await self._catch(node.catch, place, node.verb, failed, scope)
        skip_inside(node, scope)
        inner, outputs = await self._handle(node.catch, place, caught, scope)
        clause = node.catch[caught["clause"]]
        try:
            output = evaluate(clause.output, inner) if clause.output is not None else outputs
            if node.schema is not None:
                meet(output, node.schema, "output")
            return await self.host.recovered(node, path, output, caught["error"])
        except (ExpressionError, StepError) as error:
            what = error if isinstance(error, StepError) else StepError("expression", str(error), hint=error.hint)
            what.message = f"the output of its `catch`: {what.message}"
            raise failure(node.id, path, what) from error

    async def _catch(
        self, clauses: Sequence[Catch], place: str, verb: str, failed: StepFailed, scope: dict[str, Any]
    ) -> Any:
        """Choose the clause for a failure, and journal the choice; the failure goes on when there is none."""
        names = {**scope, "error": failed.error}
        kind = str(failed.error["type"])
        for index, clause in enumerate(clauses if not failed.final else ()):
            if not (matches(kind, clause.on) if clause.on else kind != "rejected"):
                continue
            try:
                fits = clause.when is None or test(clause.when, names)
            except ExpressionError as error:
                about = failed.error["message"]
                text = f"`catch[{index}].when` cannot be decided: {error}; it was asked about: {about}"
                what = StepError("expression", text, hint=error.hint)
                raise failure(str(failed.error["step"]), str(failed.error["path"]), what) from failed
            if fits:
                return await self._enter(place, verb, index, failed.error)
        raise failed

    async def _enter(self, place: str, verb: str, index: int, error: dict[str, Json]) -> Any:
        return await self.host.once(place, verb, lambda: {"clause": index, "error": error})

    async def _handle(
        self, clauses: Sequence[Catch], place: str, caught: Any, scope: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Json] | None]:
        """Run the steps of the chosen clause: the scope at their end, and their outputs."""
        index = caught["clause"]
        inner = {**scope, "error": caught["error"], "steps": Steps(scope["steps"])}
        if place == _CATCH:
            absent(self.workflow.steps, inner["steps"])
        block = clauses[index].do
        outputs = await self.block(block, f"{place}[{index}].", inner) if block is not None else None
        return inner, outputs

    async def _control(self, node: Node, step: Control, path: str, scope: dict[str, Any], done: View | None) -> View:
        from .walking import BlockWalk

        walk = BlockWalk(self.host, self.block, node, path, scope)
        skip_inside(node, scope)  # the block taken will say otherwise
        if done is not None:  # only to put the steps inside back into scope
            await step.walk(walk)
            return done
        if (sent := self.host.decided(f"{path}@redo")) is not None:  # left by an earlier round, for good
            raise GoBack(sent["to"])
        self.host.opened(node, path)
        try:
            result = await self._in_time(node, path, step.walk(walk))
            output, saves = finish(node, result, scope, self.workflow.state)
            return await self.host.closed(node, path, output, saves)
        except StepError as error:
            raise self._failed(node, path, error) from error
        except ExpressionError as error:
            raise self._failed(node, path, StepError("expression", str(error))) from error
        except StepFailed as error:
            self.host.failed(node, path, error.error)
            raise
        except GoBack as gone:
            to = gone.to
            await self.host.once(f"{path}@redo", node.verb, lambda: {"to": to})
            self.host.failed(node, path, {"type": "rejected", "message": f"sent back to '{to}'"})
            raise

    async def _in_time(self, node: Node, path: str, work: Awaitable[Any]) -> Any:
        """What the walk gives, within the time of its step. The `deadline` counts from the step's first beginning, and
        whoever sleeps or waits wakes when it has come."""
        ends = None
        if node.deadline is not None:
            began: float = await self.host.once(f"{path}@deadline", node.verb, self.host.now)
            ends = began + node.deadline
        left = None if ends is None else max(ends - self.host.now(), 0.0)
        limits = [seconds for seconds in (node.timeout, left) if seconds is not None]
        try:
            if not limits:
                return await work
            return await self.host.within(min(limits), work, allowed(node.timeout, left) or "time")
        except Blocked:
            raise
        except Suspended as asleep:
            if ends is None:
                raise
            raise asleep.by(ends, self.host.now(), f"deadline of {node.deadline:g}s") from None

    def _failed(self, node: Node, path: str, error: StepError) -> StepFailed:
        failed = failure(node.id, path, error)
        self.host.failed(node, path, failed.error)
        return failed
