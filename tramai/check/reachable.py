"""Steps that never run, and conditions that are no question."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Pointer, Problem
from ..expression import Condition, ExpressionError, test
from ..step import Node
from .scene import Scene


def reached(scene: Scene) -> Iterator[Problem]:
    """A condition without any name in it decides nothing: what it shuts out never runs."""
    for entry in scene.entries:
        node = entry.node
        if node.when is not None and constant(node.when) is False:
            what = f"step `{node.id}` never runs: its `when` is always false"
            yield _told(scene, what, (*node.at, "when"), "take the step out, or turn it into a comment")
        condition = getattr(node.step, "check_", None)
        if isinstance(condition, Condition) and constant(condition) is False:
            at = scene.setting(node, ("check",))
            yield _told(scene, f"gate `{node.id}` never opens: no step behind it is reached", at, "write a condition")
        until = getattr(node.step, "until", None)
        if isinstance(until, Condition) and constant(until) is False:
            what = f"`{node.id}` always fails: its `until` never holds"
            yield _told(
                scene, what, (*node.at, node.verb, "until"), "write a condition, or leave it out for `max` turns"
            )
        if node.deadline is not None and node.timeout is not None and node.deadline < node.timeout:
            what = f"the `timeout` of `{node.id}` is never reached: its `deadline` comes first"
            yield _told(scene, what, (*node.at, "timeout"), "`timeout` is for one attempt, `deadline` for all of them")
        yield from _blocks(scene, node)


def _blocks(scene: Scene, node: Node) -> Iterator[Problem]:
    condition = getattr(node.step, "if_", None)
    decided = constant(condition) if isinstance(condition, Condition) else None
    if decided is None:
        return
    name, block = ("else", getattr(node.step, "else_", None)) if decided else ("then", getattr(node.step, "then", None))
    if block:
        what = f"the steps under `{name}` of `{node.id}` never run: its `if` is always {'true' if decided else 'false'}"
        yield _told(scene, what, (*node.at, node.verb, "if"), "write a condition, or keep only the block that runs")


def _told(scene: Scene, what: str, at: Pointer, hint: str) -> Problem:
    return scene.problem("TRM244", what, at, hint=hint, severity="warning")


def constant(condition: Condition) -> bool | None:
    """What a condition says of every run, None when that depends."""
    for site in condition.sites():
        if any(parsed.names for parsed in site.expressions):
            return None
    if next(condition.problems(), None) is not None:
        return None
    try:
        return test(condition, {})
    except ExpressionError:
        return None
