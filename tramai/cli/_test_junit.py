"""`test --report junit=FILE`: a test suite per file, a test case per test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._xml import attribute, content

if TYPE_CHECKING:
    from ..errors import Problem
    from ..testing.running import Outcome
    from .test import Report


def document(reports: list[Report]) -> str:
    """The report as XML."""
    outcomes = [outcome for one in reports for outcome in one.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    broken = sum(not one.sound for one in reports) + sum(bool(one.late) for one in reports)
    seconds = sum(outcome.seconds for outcome in outcomes)
    head = f'tests="{len(outcomes) + broken}" failures="{failed}" errors="{broken}" time="{seconds:.3f}"'
    suites = [line for one in reports for line in _suite(one)]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="tramai test" {head}>',
            *suites,
            "</testsuites>",
            "",
        ]
    )


def _suite(one: Report) -> list[str]:
    failed = sum(not outcome.passed for outcome in one.outcomes)
    seconds = sum(outcome.seconds for outcome in one.outcomes)
    errors = _errors(one)
    count = len(one.outcomes) + (1 if errors else 0)
    name = attribute(one.file)
    head = f'tests="{count}" failures="{failed}" errors="{1 if errors else 0}" time="{seconds:.3f}"'
    lines = [f"  <testsuite name={name} {head}>"]
    for outcome in one.outcomes:
        lines += _case(outcome)
    if errors:
        lines += [f'    <testcase name={name} classname={name} time="0">', *errors, "    </testcase>"]
    return [*lines, "  </testsuite>"]


def _errors(one: Report) -> list[str]:
    """What is wrong with the file itself."""
    if one.error is not None:
        return [f"      <error type={attribute(one.error.code)} message={attribute(one.error.message)}/>"]
    problems = one.late if one.loaded is None or one.loaded.sound else one.loaded.problems
    return [_element("error", problem) for problem in problems]


def _case(outcome: Outcome) -> list[str]:
    place = f'file={attribute(outcome.file)} line="{outcome.position.line}"'
    head = f"    <testcase name={attribute(outcome.name)} classname={attribute(outcome.file)} {place}"
    if outcome.passed:
        return [f'{head} time="{outcome.seconds:.3f}"/>']
    failures = [_element("failure", problem) for problem in outcome.problems]
    return [f'{head} time="{outcome.seconds:.3f}">', *failures, "    </testcase>"]


def _element(tag: str, problem: Problem) -> str:
    at = problem.position
    place = f"{at.file}:{at.line}:{at.column}: " if at is not None else ""
    text = f"{place}{problem.message}" + (f"\nhelp: {problem.hint}" if problem.hint else "")
    first = problem.message.partition("\n")[0]
    return f"      <{tag} type={attribute(problem.code)} message={attribute(first)}>{content(text)}</{tag}>"
