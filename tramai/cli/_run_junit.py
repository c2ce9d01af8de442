"""A run as JUnit XML: a test case for each step that ended or began, for GitLab, Jenkins and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._xml import attribute, content

if TYPE_CHECKING:
    from ._documents import StepView
    from ._export_documents import Export

_FAILED = ("failed", "cancelled", "unknown")
_LEFT_OUT = ("skipped", "started", "running", "waiting", "sleeping", "interrupted", "ready")


def document(whole: Export) -> str:
    """The report as XML. A step whose failure was caught has passed; one that has not ended is skipped."""
    run = whole.run
    logs = {(log.path, log.attempt): log.text or "" for log in whole.logs}
    cases = [line for step in run.steps for line in _case(step, run.workflow, logs)]
    failures = sum(step.status in _FAILED for step in run.steps)
    skipped = sum(step.status in _LEFT_OUT for step in run.steps)
    count = len(run.steps)
    broken = run.error if run.status == "failed" and not failures else None
    if broken is not None:  # it failed beside its steps: at its outputs, or at a limit
        cases += _broken(run.workflow, str(broken.get("type", "error")), str(broken.get("message", "")))
        count, failures = count + 1, failures + 1
    seconds = max((run.ended if run.ended is not None else run.updated) - run.created, 0.0)
    head = f'tests="{count}" failures="{failures}" errors="0" skipped="{skipped}" time="{seconds:.3f}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="tramai run" {head}>',
            f"  <testsuite name={attribute(run.workflow)} id={attribute(run.run_id)} {head}>",
            "    <properties>",
            *(f"      <property name={attribute(name)} value={attribute(value)}/>" for name, value in _facts(whole)),
            "    </properties>",
            *cases,
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def _facts(whole: Export) -> list[tuple[str, str]]:
    run = whole.run
    return [("run", run.run_id), ("status", run.status), ("version", run.version), ("digest", run.digest)]


def _case(step: StepView, workflow: str, logs: dict[tuple[str, int], str]) -> list[str]:
    head = f"    <testcase name={attribute(step.path)} classname={attribute(f'{workflow}.{step.verb}')}"
    head += f' time="{_seconds(step):.3f}"'
    last = step.attempts[-1] if step.attempts else None
    if step.status in _LEFT_OUT:
        return [f"{head}>", f"      <skipped message={attribute(step.status)}/>", "    </testcase>"]
    if step.status not in _FAILED or last is None:
        return [f"{head}/>"]
    error = last.error if isinstance(last.error, dict) else {}
    kind, message = str(error.get("type", step.status)), str(error.get("message", step.status))
    return [f"{head}>", *_failure(kind, message, logs.get((step.path, last.attempt), "")), "    </testcase>"]


def _seconds(step: StepView) -> float:
    spans = (one.ended - one.started for one in step.attempts if one.started is not None and one.ended is not None)
    return sum(max(span, 0.0) for span in spans)


def _failure(kind: str, message: str, output: str) -> list[str]:
    first = message.partition("\n")[0]
    text = message + (f"\n\n{output}" if output else "")
    return [f"      <failure type={attribute(kind)} message={attribute(first)}>{content(text)}</failure>"]


def _broken(workflow: str, kind: str, message: str) -> list[str]:
    head = f'    <testcase name="the run" classname={attribute(workflow)} time="0">'
    return [head, *_failure(kind, message, ""), "    </testcase>"]
