"""A run as a page of Markdown, fit for a ticket: nothing in it that a user, a child or a model wrote is markup."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _called_runs
from ._advice import resolve_commands, short
from ._clockface import took
from ._terminal import safe, safe_lines

if TYPE_CHECKING:
    from ._documents import Attempt, StepView
    from ._export_documents import Export

LONGEST = 500
"""Characters of a text in a table."""


def page(whole: Export) -> str:
    """The page: how it stands, what went wrong, steps, attempts, events, values, journal, definition."""
    parts = [
        f"# Run {code(short(whole.run.run_id))} of {code(whole.run.workflow)}: {_stands(whole)}",
        _table(("", ""), _facts(whole)),
        *_wrong(whole),
        *_section("Steps", _table(("step", "verb", "status", "attempts", "took"), map(_step, whole.run.steps))),
        *_calls(whole),
        *_attempts(whole),
        *_section("Events", _table(("when", "event", "by", "comment"), _events(whole))),
    ]
    for name in ("inputs", "state", "outputs"):
        value = getattr(whole.run, name)
        if value:
            parts += _section(name.capitalize(), _json(value))
    parts += _section("Journal", _table(("#", "when", "path", "mark", "attempt", "worker"), _journal(whole)))
    if whole.definition is not None:
        parts += _section("Definition", fenced(whole.definition.text, whole.definition.format))
    parts.append(f"Made by tramai {whole.tramai}. Secrets are masked as `***`.")
    return "\n\n".join(parts) + "\n"


def code(text: str) -> str:
    """Text as code on one line, whatever it holds; in a table, too."""
    said = " ".join(safe_lines(text))
    if len(said) > LONGEST:
        said = said[:LONGEST] + "…"
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", said)), default=0))
    room = " " if said[:1] in ("`", "") or said[-1:] == "`" else ""
    return f"{ticks}{room}{said}{room}{ticks}".replace("|", "\\|")


def fenced(text: str, language: str = "") -> str:
    """Text as a block of code, whatever it holds."""
    lines = [safe(line) for line in text.rstrip("\n").split("\n")]
    ticks = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return "\n".join([f"{ticks}{language}", *lines, ticks])


def _json(value: Any) -> str:
    return fenced(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True), "json")


def _section(title: str, body: str) -> list[str]:
    return [f"## {title}", body] if body else []


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) if lines else ""


def instant(at: float | None) -> str:
    """A time that means the same to every reader."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _stands(whole: Export) -> str:
    return "interrupted" if whole.run.stale else whole.run.status


def _facts(whole: Export) -> Iterator[tuple[str, str]]:
    run = whole.run
    yield "run", code(run.run_id)
    yield "workflow", f"{code(run.workflow)} version {code(run.version)}, digest {code(run.digest)}"
    yield "status", _stands(whole)
    yield "started", instant(run.created)
    if run.ended is not None:
        yield "ended", f"{instant(run.ended)}, after {took(max(run.ended - run.created, 0.0))}"
    if run.wake_at is not None:
        yield "wakes", instant(run.wake_at)
    if run.file:
        yield "file", code(run.file)
    if run.labels:
        yield "labels", ", ".join(map(code, run.labels))
    if run.rerun_of:
        yield "rerun of", code(run.rerun_of)
    if whole.called:
        yield "called", ", ".join(map(code, whole.called))


def _wrong(whole: Export) -> list[str]:
    """What the run failed with, the last lines of the attempt, and the commands to go on with."""
    run = short(whole.run.run_id)
    if whole.run.status == "blocked":
        unknown = [step.path for step in whole.run.steps if step.status == "unknown"]
        ways = [fenced(resolve_commands(run, path)) for path in unknown]
        return ["## What went wrong", f"Nobody knows whether {', '.join(map(code, unknown))} happened.", *ways]
    error = whole.run.error
    if error is None:
        return []
    path = str(error.get("path") or "")
    said = str(error.get("message") or error.get("type") or "failed")
    place = f" in step {code(path)}, attempt {int(error.get('attempt') or 1)}" if path else ""
    parts = ["## What went wrong", f"{code(str(error.get('type', 'error')))}{place}:", fenced(said)]
    logs = [log for log in whole.logs if log.path == path and log.text]
    if logs:
        parts += ["The last lines of what it wrote:", fenced(logs[-1].text or "")]
    if whole.run.status == "failed":
        parts += ["Commands:", fenced(f"tramai show {run}\ntramai resume {run}")]
    return parts


def _step(step: StepView) -> tuple[str, ...]:
    seconds = _called_runs.took_of(step)
    return code(step.path), code(step.verb), step.status, str(len(step.attempts)), _took(seconds)


def _took(seconds: float | None) -> str:
    return took(seconds) if seconds is not None else ""


def _calls(whole: Export) -> list[str]:
    """The called runs, and how far each of them got."""
    runs = []
    for one in whole.calls:
        ended = one.ended - one.created if one.ended is not None and one.created is not None else None
        named = code(one.workflow) if one.workflow is not None else ""
        stands = "interrupted" if one.stale else one.status or "not in this store"
        runs.append((code(short(one.run_id)), named, stands, code(one.path), code(short(one.caller)), _took(ended)))
    steps = [
        (code(short(one.run_id)), code(step.path), code(step.verb), step.status, str(step.attempts), _took(step.took))
        for one in whole.calls
        for step in one.steps
    ]
    return [
        *_section("Called runs", _table(("run", "workflow", "status", "called by step", "of run", "took"), runs)),
        *_section("Steps of called runs", _table(("run", "step", "verb", "status", "attempts", "took"), steps)),
    ]


def _attempts(whole: Export) -> list[str]:
    """Each attempt of what did not succeed at once."""
    rows = [
        (code(step.path), str(one.attempt), one.status, instant(one.started), code(one.worker or "-"), _said(one))
        for step in whole.run.steps
        for one in step.attempts
        if len(step.attempts) > 1 or one.status != "succeeded"
    ]
    return _section("Attempts", _table(("step", "attempt", "status", "started", "by", "error"), rows))


def _said(one: Attempt) -> str:
    return code(str(one.error.get("message", ""))) if isinstance(one.error, dict) else ""


def _events(whole: Export) -> Iterator[tuple[str, ...]]:
    for event in whole.run.events:
        yield instant(event.at), code(event.type), code(event.by or "-"), code(event.comment) if event.comment else ""


def _journal(whole: Export) -> Iterator[tuple[str, ...]]:
    for record in whole.journal:
        who = code(record.worker) if record.worker else ""
        yield str(record.seq), instant(record.at), code(record.path), record.mark, str(record.attempt), who
