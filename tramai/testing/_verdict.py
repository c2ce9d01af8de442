"""What of an expectation a run does not meet; each with its place in the test file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from ..codec import encode
from ..error_types import matches
from ..errors import Pointer, Problem
from ..event import GateAsked
from ..expression import ExpressionError
from ..expression import test as holds
from ._paths import Pattern, Steps
from .ran import Ran, StepRan
from .suite import Case, ExpectedCall, ExpectedError, ExpectedStep

_LONGEST = 400
_MOST = 12
"""Differences that are told of one value."""


def verdict(case: Case, ran: Ran, steps: Steps, at: Pointer) -> Iterator[Problem]:
    """Every expectation that is not met. `at` leads to the test; the problems have pointers and no positions yet."""
    expect = case.expect
    place = (*at, "expect")
    wanted = expect.status or ("failed" if expect.error is not None else "completed")
    if ran.status != wanted:
        yield _status(ran, wanted, (*place, "status") if expect.status else at)
        if ran.status == "failed" and expect.error is None:
            return  # the rest would only follow from it
    if expect.exit_status is not None and expect.exit_status != ran.exit_status:
        yield _wrong("the exit status", expect.exit_status, ran.exit_status, (*place, "exit_status"))
    if expect.error is not None:
        yield from _error(expect.error, ran.error, "the run", (*place, "error"))
    values = (
        ("outputs", expect.outputs, ran.outputs, True),
        ("outputs_include", expect.outputs_include or UNSET, ran.outputs, False),
        ("state", expect.state, ran.state, True),
        ("state_includes", expect.state_includes or UNSET, ran.state, False),
    )
    for key, want, found, exact in values:
        if want is not UNSET:
            yield from _value(key.partition("_")[0], want, found, (*place, key), exact=exact)
    for key, step in expect.steps.items():
        yield from _steps(key, step, ran, steps, (*place, "steps", key))
    yield from _calls(expect.calls, ran, steps, (*place, "calls"))
    for index, condition in enumerate(expect.that):
        yield from _condition(condition, ran, (*place, "that", index))


def _status(ran: Ran, wanted: str, at: Pointer) -> Problem:
    why = ""
    if ran.error is not None:
        why = f"\nstep {ran.error.get('path')} failed: {ran.error.get('type')}: {ran.error.get('message')}"
    hint = str(ran.error["hint"]) if ran.error is not None and ran.error.get("hint") else None
    if ran.status == "waiting":
        asked = [event.path for event in ran.events if isinstance(event, GateAsked)]
        hint = f"answer it: answers: {{{asked[-1] if asked else 'STEP'}: {{decision: approve}}}}"
    elif ran.status == "sleeping":
        hint = "without `wake: false` pauses pass"
    return _problem(f"the run is {ran.status}, expected {wanted}{why}", at, hint)


def _value(name: str, want: Any, found: Any, at: Pointer, *, exact: bool) -> Iterator[Problem]:
    """The places at which two values differ, the innermost that can be named."""
    for number, (where, what) in enumerate(differences(want, found, exact=exact)):
        if number == _MOST:
            yield _problem(f"{name} differs in more places", at)
            return
        place = _spell(where) if not name.endswith(" ") else _spell(where).lstrip(".")
        yield _problem(f"{name}{place} {what}".replace(":  ", ": "), (*at, *where))


def differences(want: Any, found: Any, *, exact: bool, where: Pointer = ()) -> Iterator[tuple[Pointer, str]]:
    """Where and how a value is not what is wanted; without `exact` it may have more keys."""
    if isinstance(want, dict) and isinstance(found, dict):
        for key, value in want.items():
            if key not in found:
                yield (*where, key), f"is missing, expected {_show(value)}"
            else:
                yield from differences(value, found[key], exact=exact, where=(*where, key))
        for key in found if exact else ():
            if key not in want:
                yield where, f"has `{key}`, which is not expected: {_show(found[key])}"
    elif isinstance(want, list) and isinstance(found, list) and len(want) == len(found):
        for index, (value, other) in enumerate(zip(want, found, strict=True)):
            yield from differences(value, other, exact=exact, where=(*where, index))
    elif not _same(want, found):
        yield where, _both(want, found)


def _both(want: Any, found: Any) -> str:
    """Expected and actual; long texts line by line."""
    if isinstance(want, str) and isinstance(found, str) and ("\n" in want or "\n" in found):
        import difflib

        lines = difflib.unified_diff(want.splitlines(), found.splitlines(), "expected", "actual", lineterm="", n=2)
        return "is another text:\n" + "\n".join(list(lines)[:60])
    return f"is {_show(found)}, expected {_show(want)}"


def _same(left: Any, right: Any) -> bool:
    # As JSON: 1.0 is 1, true is not 1.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _steps(key: str, wanted: ExpectedStep, ran: Ran, steps: Steps, at: Pointer) -> Iterator[Problem]:
    pattern = steps.find(key)
    assert isinstance(pattern, Pattern)  # the rules have seen to it
    found = {path: step for path, step in ran.steps.items() if pattern.fits(path)}
    if not found:
        if wanted.status != "not_reached":
            yield _problem(f"step {key} was not reached, expected {wanted.status or 'that it ran'}", at)
        return
    for path, step in found.items():
        yield from _step(path, step, wanted, at)


def _step(path: str, step: StepRan, wanted: ExpectedStep, at: Pointer) -> Iterator[Problem]:
    if wanted.status is not None and wanted.status != step.status:
        yield _wrong(f"step {path}", wanted.status, step.status, (*at, "status"))
    if wanted.attempts is not None and wanted.attempts != step.attempts:
        yield _wrong(f"the number of attempts of step {path}", wanted.attempts, step.attempts, (*at, "attempts"))
    if wanted.output is not UNSET:
        yield from _value(f"the output of step {path}", wanted.output, step.output, (*at, "output"), exact=True)
    if wanted.output_includes is not UNSET:
        place = (*at, "output_includes")
        yield from _value(f"the output of step {path}", wanted.output_includes, step.output, place, exact=False)
    if wanted.error is not None:
        yield from _error(wanted.error, step.error, f"step {path}", (*at, "error"))


def _error(wanted: ExpectedError, found: dict[str, Any] | None, who: str, at: Pointer) -> Iterator[Problem]:
    if found is None:
        yield _problem(f"{who} has no error, expected one of type {wanted.type or 'any'}", at)
        return
    if wanted.type is not None and not matches(str(found.get("type")), (wanted.type,)):
        said = f"{who} failed with {found.get('type')} ({found.get('message')}), expected {wanted.type}"
        yield _problem(said, (*at, "type"))
    for name in ("step", "path", "attempt"):
        want = getattr(wanted, name)
        if want is not None and want != found.get(name):
            yield _wrong(f"the {name} of the error", want, found.get(name), (*at, name))
    if wanted.message is not None and wanted.message not in str(found.get("message")):
        what = f"the message of the error is {_show(found.get('message'))}, expected {_show(wanted.message)} in it"
        yield _problem(what, (*at, "message"))


def _calls(wanted: Any, ran: Ran, steps: Steps, at: Pointer) -> Iterator[Problem]:
    if wanted is UNSET:
        return
    if isinstance(wanted, dict):
        for key, count in wanted.items():
            pattern = steps.find(key)
            assert isinstance(pattern, Pattern)  # the rules have seen to it
            found = sum(pattern.fits(call.path) for call in ran.calls)
            if found != count:
                yield _wrong(f"the number of calls of {key}", count, found, (*at, key))
        return
    keys = [call if isinstance(call, str) else call.step for call in wanted]
    same = len(keys) == len(ran.calls) and all(
        key in (call.step, call.path) or _fits(steps, key, call.path) for key, call in zip(keys, ran.calls, strict=True)
    )
    if not same:
        import difflib

        names = [call.path for call in ran.calls]
        lines = list(difflib.ndiff(keys, names))
        yield _problem("other calls were made:\n" + "\n".join(line for line in lines if line[0] in " +-"), at)
        return
    for index, (want, call) in enumerate(zip(wanted, ran.calls, strict=True)):
        if not isinstance(want, ExpectedCall):
            continue
        place = (*at, index)
        if want.attempt is not None and want.attempt != call.attempt:
            yield _wrong(f"the attempt of call {index + 1}", want.attempt, call.attempt, (*place, "attempt"))
        if want.given:
            yield from _value(
                f"call {index + 1} of {call.path}: ", want.given, call.given, (*place, "given"), exact=False
            )


def _fits(steps: Steps, key: str, path: str) -> bool:
    pattern = steps.find(key)
    return isinstance(pattern, Pattern) and pattern.fits(path)


def _condition(condition: Any, ran: Ran, at: Pointer) -> Iterator[Problem]:
    names = ran.names()
    try:
        if holds(condition, names):
            return
    except ExpressionError as error:
        yield _problem(f"it cannot be decided: {error}", at, error.hint)
        return
    yield _problem("it does not hold" + _read(condition, names), at)


def _read(condition: Any, names: dict[str, Any]) -> str:
    """What the names in a condition stood for."""
    from ..expression import Expression, evaluate

    found: dict[str, str] = {}
    for site in condition.sites():
        for use in (use for one in site.expressions for use in one.names):
            text = condition.text[use.start : use.end]
            try:
                found[text] = _show(evaluate(Expression("${{ " + text + " }}"), names))
            except ExpressionError:
                continue
    return "".join(f"\n{text} is {value}" for text, value in found.items())


def _wrong(name: str, want: Any, found: Any, at: Pointer) -> Problem:
    return _problem(f"{name} is {_plain(found)}, expected {_plain(want)}", at)


def _problem(message: str, at: Pointer, hint: str | None = None) -> Problem:
    return Problem(code="TRM771", message=message, hint=hint, pointer=at)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _show(value)


def _show(value: Any) -> str:
    text = encode(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _spell(where: Pointer) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
