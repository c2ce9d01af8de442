"""`validate --format junit`: a test case per file, a failure per problem, for GitLab, Jenkins and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._xml import attribute, content

if TYPE_CHECKING:
    from ._documents import File, Finding


def document(files: list[File], *, strict: bool) -> str:
    """The report as XML."""
    cases = [_case(report, strict) for report in files]
    failures = sum(text.count("\n      <failure ") for text in cases)
    errors = sum(text.count("\n      <error ") for text in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="tramai validate" {counts} time="0">',
            f'  <testsuite name="tramai validate" {counts} skipped="0" time="0">',
            *cases,
            "  </testsuite>",
            "</testsuites>",
        ]
    )


def _case(report: File, strict: bool) -> str:
    head = f'    <testcase name={attribute(report.file)} classname="tramai.validate" file={attribute(report.file)}'
    failing = [one for one in report.problems if one.severity == "error" or strict]
    others = [one for one in report.problems if one not in failing]
    parts = [_failure(report.file, one) for one in failing]
    if others:
        parts.append(f"      <system-out>{content(''.join(_told(report.file, one) for one in others))}</system-out>")
    if not parts:
        return head + ' time="0"/>'
    return "\n".join([head + ' time="0">', *parts, "    </testcase>"])


def _failure(file: str, one: Finding) -> str:
    tag = "failure" if one.line is not None else "error"  # without a place: the file could not be read
    kind, message = attribute(one.code), attribute(one.message)
    return f"      <{tag} type={kind} message={message}>{content(_told(file, one))}</{tag}>"


def _told(file: str, one: Finding) -> str:
    place = f"{file}:{one.line}:{one.column}" if one.line is not None else file
    lines = [f"{place}: {one.severity}[{one.code}]: {one.message}"]
    lines += [f"{other.file}:{other.line}:{other.column}: note: {other.message}" for other in one.related]
    lines += [f"help: {one.hint}"] if one.hint else []
    return "\n".join(lines) + "\n"
