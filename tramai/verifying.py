"""Asks a step's `verify` what became of an attempt that had started and whose end was not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from .codec import Json, encode
from .context import StepContext
from .driver import Interrupted
from .duration import Duration
from .expression import ExpressionError, test
from .finishing import finish, meet
from .outcomes import Blocked
from .scope import View
from .step import Done, Node, Replay, StepError
from .store import Mark, Record

if TYPE_CHECKING:
    from .host import StoreHost

TIME = Duration(60.0)
"""How long an answer may take when `verify` does not say."""


def in_doubt(node: Node, last: Record | None) -> bool:
    """Whether the last that is known of a step is an attempt without an end, which its `verify` may settle."""
    if node.verify is None or last is None or last.policy != Replay.NON_REPLAYABLE:
        return False
    return last.mark in (Mark.STARTED, Mark.UNKNOWN)


async def settle(host: StoreHost, node: Node, path: str, doubt: Record, scope: dict[str, Any]) -> View | None:
    """The step's end if it had happened, None if it had not and may be tried again.

    Blocked when there is no answer: the outcome stays unknown, and waits for an operator or for the next resume.
    """
    try:
        happened, output = await _ask(host, node, path, doubt, scope)
        value = host.texts.value(output, "verify.output")
        if happened and node.schema is not None:
            meet(output, node.schema, "verify.output")
    except (StepError, ExpressionError) as error:
        _unless_interrupted(host)
        raise await _undecided(host, node, path, doubt, error) from None
    if happened:
        return await _completed(host, node, path, doubt, output, value)
    said = _record(node, path, doubt, "`verify` says that it had not happened")
    host.journal.add(host.record(node.verb, path, Mark.CANCELLED, doubt.attempt, started=doubt.started, error=said))
    _note(host, node, path, doubt, "not_happened")
    await host.durable(pure=False)
    return None


async def _ask(host: StoreHost, node: Node, path: str, doubt: Record, scope: dict[str, Any]) -> tuple[bool, Json]:
    """What the condition or the verb says."""
    _unless_interrupted(host)
    about = {"attempt": {"number": doubt.attempt, "started": doubt.started}, **scope}
    asked = node.verify
    if not isinstance(asked, Node):
        assert asked is not None
        return test(asked, about), None
    asked = replace(asked, timeout=asked.timeout or TIME)
    ctx = StepContext(host, asked, f"{path}@verify", doubt.attempt, about)
    try:
        outcome = await host.timed(asked, ctx)
        if not isinstance(outcome, Done):
            raise StepError("invalid_output", "it gave no answer")
        return _answer(finish(asked, outcome.result, about, {})[0])
    finally:
        ctx.close()


def _answer(value: Any) -> tuple[bool, Json]:
    if isinstance(value, bool):
        return value, None
    if isinstance(value, dict) and isinstance(value.get("happened"), bool) and value.keys() <= {"happened", "output"}:
        return value["happened"], value.get("output")
    wanted = "true, false, or a map with `happened` and perhaps `output`"
    raise StepError("invalid_output", f"its answer is not {wanted}")


def _unless_interrupted(host: StoreHost) -> None:
    if host.interrupt.is_set:
        raise Interrupted(host.interrupt.reason or "signal")


async def _completed(host: StoreHost, node: Node, path: str, doubt: Record, output: Json, value: str) -> View:
    ended = host.record(
        node.verb, path, Mark.COMPLETED, doubt.attempt, started=doubt.started, value=value, log=doubt.log
    )
    host.journal.add(ended)
    _note(host, node, path, doubt, "happened")
    await host.durable(pure=False)
    duration = ended.at - ended.started if ended.started is not None else 0.0
    host.audience.over(node, path, doubt.attempt, "succeeded", duration, note="verify says that it had happened")
    return View("succeeded", host.redactor.value(output), doubt.attempt, duration)


async def _undecided(
    host: StoreHost, node: Node, path: str, doubt: Record, error: StepError | ExpressionError
) -> Blocked:
    said = error.message if isinstance(error, StepError) else str(error)
    text = _record(node, path, doubt, f"the step's end was not seen, and `verify` cannot tell: {said}")
    text = host.redactor.json(text)
    if doubt.mark is not Mark.UNKNOWN:
        host.journal.add(
            host.record(
                node.verb,
                path,
                Mark.UNKNOWN,
                doubt.attempt,
                started=doubt.started,
                policy=doubt.policy,
                error=text,
                log=doubt.log,
            )
        )
    _note(host, node, path, doubt, "undecided", comment=host.redactor.text(said))
    await host.durable(pure=False)
    host.audience.signal_of("step.unknown", node.id, path, doubt.attempt, {"verb": node.verb})
    return Blocked(text)


def _record(node: Node, path: str, doubt: Record, message: str) -> str:
    return encode(
        {"type": "unknown_outcome", "message": message, "step": node.id, "path": path, "attempt": doubt.attempt}
    )


def _note(host: StoreHost, node: Node, path: str, doubt: Record, answer: str, comment: str | None = None) -> None:
    data = encode({"path": path, "attempt": doubt.attempt, "answer": answer})
    host.journal.note("step.verified", comment=comment, data=data)
    host.audience.signal_of("step.verified", node.id, path, doubt.attempt, {"verb": node.verb, "answer": answer})
