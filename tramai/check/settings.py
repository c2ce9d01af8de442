"""Settings that no schema can judge: what verbs say of themselves, times, retries, names of loops, cases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .. import caps, size
from ..error_types import ERROR_TYPES
from ..errors import Pointer, Problem
from ..expression import Expression
from ..step import Control, Node
from . import _rewrites, algebra, shapes
from .references import ROOTS
from .scene import Entry, Field, Scene

_RESERVED = frozenset({*ROOTS, "result", "error", "loop"})
_UNTIMED = {
    "delay": "it ends at its instant, which is fixed when it begins; `limits.timeout` counts running time only",
    "gate": "a condition is decided at once, and `gate.timeout` says how long people may take",
}
"""Verbs that a `timeout` would say nothing about."""
_WORDS = frozenset(("true", "false", "none", "null", "not", "and", "or", "in", "is", "if", "else", "for"))


def of_verbs(scene: Scene) -> Iterator[Problem]:
    """What a verb finds wrong with its own settings."""
    for node, finding in scene.findings:
        yield scene.problem(
            finding.code,
            finding.message,
            scene.setting(node, finding.pointer),
            hint=finding.hint,
            range=finding.range,
            severity=finding.severity,
            fix=_rewrites.of_settings(scene, node, finding.fix) if finding.fix else None,
        )


def times(scene: Scene) -> Iterator[Problem]:
    """A timeout leaves some time."""
    places: list[tuple[Pointer, float | None]] = [(("limits", "timeout"), scene.workflow.limits.timeout)]
    places.extend(((*entry.node.at, "timeout"), entry.node.timeout) for entry in scene.running)
    places.extend(((*entry.node.at, "deadline"), entry.node.deadline) for entry in scene.entries)
    for at, seconds in places:
        if seconds is not None and seconds <= 0:
            yield scene.problem("TRM350", f"a {at[-1]} of 0 leaves no time", at, hint="take it out for no limit")
    for entry in scene.entries:
        verb = entry.node.verb
        for name in ("timeout", "deadline"):
            if getattr(entry.node, name) is not None and verb in _UNTIMED:
                message, hint = f"a `{verb}` takes no `{name}`", f"take it out: {_UNTIMED[verb]}"
                yield scene.problem("TRM360", message, (*entry.node.at, name), hint=hint, key=True)


def sizes(scene: Scene) -> Iterator[Problem]:
    """A limit of size that a store can keep."""
    limits = scene.workflow.limits
    for name in ("max_value", "max_state"):
        given = getattr(limits, name)
        if given is not None and not caps.LEAST <= size.parse(given) <= caps.MOST:
            message = f"`{name}` is between {size.spell(caps.LEAST)} and {size.spell(caps.MOST)}"
            yield scene.problem("TRM361", message, ("limits", name), hint="write it as 64KiB or 100MiB")


def retries(scene: Scene) -> Iterator[Problem]:
    """Numbers that can be meant, and error types that exist."""
    for entry in scene.entries:
        retry, at = entry.node.retry, (*entry.node.at, "retry")
        if retry is None:
            continue
        if isinstance(entry.node.step, Control):
            message = f"a `{entry.node.verb}` takes no `retry`: what has ended inside it would have to run again"
            hint = "put it on the steps inside, or put them into a `repeat`"
            yield scene.problem("TRM365", message, at, hint=hint, key=True)
            continue
        bounds: tuple[tuple[str, float, float, float, str], ...] = (
            ("max_attempts", retry.max_attempts, 1, 1000, "it counts every attempt, the first included"),
            ("backoff", retry.backoff, 1, 100, "each delay is the one before, times this"),
            ("jitter", retry.jitter, 0, 1, "a fraction of the delay"),
        )
        for name, value, least, most, hint in bounds:
            if not least <= value <= most:
                message = f"`{name}` is between {least:g} and {most:g}, not {value:g}"
                yield scene.problem("TRM351", message, (*at, name), hint=hint)
        if retry.max_attempts == 1:
            yield scene.problem(
                "TRM359",
                "one attempt in all: nothing is tried again",
                at,
                hint="add `max_attempts`, which counts every attempt",
                severity="warning",
            )
        for index, name in enumerate(retry.on):
            if not _is_error_type(name):
                yield _unknown_type(scene, name, (*at, "on", index))


def catches(scene: Scene) -> Iterator[Problem]:
    """Clauses that catch errors there are, and say what is done about them."""
    places = [((*entry.node.at, "catch"), entry.node.catch) for entry in scene.entries]
    for at, clauses in (*places, (("catch",), scene.workflow.catch)):
        everything = None
        for index, clause in enumerate(clauses):
            here = (*at, index)
            if clause.do is None and clause.output is None:
                message = "a `catch` that neither does nor gives anything"
                hint = "add `output` (the value in place of the failed one; `${{ none }}` for none) or `do`"
                yield scene.problem("TRM366", message, here, hint=hint)
            if clause.do is not None and not clause.do.nodes:
                yield scene.problem("TRM346", "`do` has no steps", (*here, "do"), hint="add a step, or remove it")
            for place, name in enumerate(clause.on):
                if not _is_error_type(name):
                    yield _unknown_type(scene, name, (*here, "on", place))
            if everything is not None:
                message = "this `catch` is never asked: the one before it takes every error"
                related = (((*at, everything), "takes every error"),)
                yield scene.problem("TRM367", message, here, hint="put it first, or remove it", related=related)
            elif not clause.on and clause.when is None:
                everything = index


_REFINED = re.compile(r"http\.([1-5]xx|[1-5]\d\d)|exit\.(\d{1,3})|plugin\.(\*|[\w.]+)", re.ASCII)


def _is_error_type(name: str) -> bool:
    return name in ERROR_TYPES or _REFINED.fullmatch(name) is not None


_ANY_TYPE = frozenset(("error", "any", "all", "*", "exception", "failure", "failed", "always"))


def _unknown_type(scene: Scene, name: str, at: Pointer) -> Problem:
    if re.fullmatch(r"[1-5](xx|\d\d)", name):
        return scene.problem("TRM352", f"unknown error type `{name}`", at, hint=f"write http.{name}")
    if name.lower() in _ANY_TYPE:
        return scene.problem("TRM352", f"unknown error type `{name}`", at, hint="leave `on` out: all are meant then")
    near = scene.suggest(name, [*ERROR_TYPES, "http.4xx", "http.5xx", "http.429", "exit.1", "plugin.*"])
    hint = (
        f"did you mean `{near}`?" if near else "error types: " + ", ".join(ERROR_TYPES) + ", http.5xx, exit.3, plugin.*"
    )
    return scene.problem("TRM352", f"unknown error type `{name}`", at, hint=hint)


def loop_names(scene: Scene) -> Iterator[Problem]:
    """The name of an item can be read in expressions, and hides nothing."""
    for entry in scene.entries:
        step = entry.node.step
        # The last name is that of `loop`, which is ours.
        for name in step.binds()[:-1] if isinstance(step, Control) else ():
            why = None if "${{" in name else _bad_name(name, entry)
            if why is not None:
                at = (*entry.node.at, entry.node.verb, "as")
                yield scene.problem(
                    "TRM353", f"an item cannot be called `{name}`: {why}", at, hint="choose another name"
                )


def _bad_name(name: str, entry: Entry) -> str | None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return "it could not be written in an expression"
    if name in _RESERVED or name == "loop" or name.lower() in _WORDS:
        return "the name is taken"
    for link in entry.chain:
        step = link.container.step
        if isinstance(step, Control) and not link.caught and name in step.binds():
            return f"it would hide the item of `{link.container.id}`"
    return None


def cases(scene: Scene) -> Iterator[Problem]:
    """A branch over known values has a case for each or a default, and no case that none of them meets."""
    for entry in scene.entries:
        node = entry.node
        keys = getattr(node.step, "cases", None)
        select = getattr(node.step, "select", None)
        if node.verb != "branch" or not keys or not isinstance(select, Expression):
            continue
        known = _known_values(scene, entry, select)
        if known is None:
            yield from _named_default(scene, node, tuple(keys))
            continue
        at = (*node.at, node.verb)
        missing = [value for value in known if value not in keys]
        misspelt = {near for key in keys if key not in known and (near := scene.suggest(key, missing)) is not None}
        missing = [value for value in missing if value not in misspelt]
        if missing and not _is_status(select) and getattr(node.step, "default", None) is None:
            shown = ", ".join(f"`{value}`" for value in missing)
            hint = "add the case, or a `default` (which may be [])"
            yield scene.problem(
                "TRM354", f"branch `{node.id}` has no case for {shown}", (*at, "cases"), hint=hint, key=True
            )
        yield from _never(scene, node, known, (*at, "cases"), tuple(keys), misspelt)


_OTHERWISE = ("default", "else", "otherwise", "_", "*")


def _named_default(scene: Scene, node: Node, keys: tuple[str, ...]) -> Iterator[Problem]:
    """A case that was meant for any other value."""
    for key in keys:
        if key in _OTHERWISE and getattr(node.step, "default", None) is None:
            message = f"the case `{key}` of branch `{node.id}` is met by the text `{key}` only"
            at = (*node.at, node.verb, "cases", key)
            hint = "for any other value write `default` beside `cases`"
            yield scene.problem("TRM355", message, at, hint=hint, key=True, severity="warning")


def _is_status(select: Expression) -> bool:
    """Whether it is the status of a step: which of them there can be is said by more than its place."""
    return any(
        use.path[0] == "steps" and use.path[2:3] == ("status",)
        for site in select.sites()
        for parsed in site.expressions
        for use in parsed.names
    )


def _never(
    scene: Scene, node: Node, known: list[str], at: Pointer, keys: tuple[str, ...], misspelt: set[str]
) -> Iterator[Problem]:
    for key in keys:
        if key not in known:
            hint = scene.did_you_mean(key, known) or f"values: {', '.join(known)}"
            message = f"case `{key}` of branch `{node.id}` can never be chosen"
            severity = "error" if scene.suggest(key, known) in misspelt else "warning"
            yield scene.problem("TRM355", message, (*at, key), hint=hint, key=True, severity=severity)


def _known_values(scene: Scene, entry: Entry, select: Expression) -> list[str] | None:
    """The texts of all values that `select` can have, if the file says so."""
    field = Field(select, (*entry.node.at, "branch", "select"), "branch", "select", entry)
    sites = list(select.sites())
    if len(sites) != 1 or len(sites[0].expressions) != 1:
        return None
    parsed = sites[0].expressions[0]
    if scene.is_blamed(field.pointer, parsed.start, parsed.end):
        return None
    found = algebra.values(shapes.known(scene).expression(parsed, field)[0])
    if found is None or any(isinstance(value, (list, dict, float)) for value in found):
        return None
    return [value if isinstance(value, str) else json.dumps(value) for value in found]
