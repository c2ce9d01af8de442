"""`test --report junit=FILE`: a test suite per file, a test case per test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from ..errors import Problem
    from ..testing.running import Outcome
    from .test import Report

_UNSAID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
    name = _attribute(one.file)
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
        return [f"      <error type={_attribute(one.error.code)} message={_attribute(one.error.message)}/>"]
    problems = one.late if one.loaded is None or one.loaded.sound else one.loaded.problems
    return [_element("error", problem) for problem in problems]


def _case(outcome: Outcome) -> list[str]:
    place = f'file={_attribute(outcome.file)} line="{outcome.position.line}"'
    head = f"    <testcase name={_attribute(outcome.name)} classname={_attribute(outcome.file)} {place}"
    if outcome.passed:
        return [f'{head} time="{outcome.seconds:.3f}"/>']
    failures = [_element("failure", problem) for problem in outcome.problems]
    return [f'{head} time="{outcome.seconds:.3f}">', *failures, "    </testcase>"]


def _element(tag: str, problem: Problem) -> str:
    at = problem.position
    place = f"{at.file}:{at.line}:{at.column}: " if at is not None else ""
    text = f"{place}{problem.message}" + (f"\nhelp: {problem.hint}" if problem.hint else "")
    first = problem.message.partition("\n")[0]
    return f"      <{tag} type={_attribute(problem.code)} message={_attribute(first)}>{escape(_clean(text))}</{tag}>"


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Text that XML 1.0 can hold."""
    return _UNSAID.sub("\ufffd", text)
