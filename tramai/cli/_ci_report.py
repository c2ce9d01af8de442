"""What a CI system is told of a run: what to hide, which run it is, how it ended, and a page about it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..event import Event, GateAsked, RunFinished, RunStarted, StepFinished, StepRetrying
from ._advice import short
from ._ci import Annotation, Dialect, masks, near, root, told
from ._tally import Tally

if TYPE_CHECKING:
    from ..plan import Plan
    from ._session import Session

LARGEST = 1024 * 1024
"""Bytes that GitHub takes of the page of one step."""
KEPT = 200
"""Ends of steps that are remembered, beyond those of the steps at the top."""
_ENDED = ("failed", "blocked", "interrupted")


class Reporter:
    """An observer of one run; `finish` tells what is told at its end."""

    def __init__(self, session: Session, system: str, dialect: Dialect, plan: Plan | None) -> None:
        self._session = session
        self._system = system
        self._dialect = dialect
        self._plan = plan
        self._hidden: set[str] = set()
        self.run: RunStarted | None = None
        self.ends: dict[str, StepFinished] = {}
        self.retried: dict[str, StepRetrying] = {}

    def __call__(self, event: Event) -> None:
        """See one event."""
        if isinstance(event, RunStarted):
            self.run = event
            self._output("run-id", event.run_id)
        elif isinstance(event, StepFinished):
            few = len(self.ends) < KEPT
            if few or event.status == "failed" or not ("[" in event.path or "." in event.path):
                self.ends.pop(event.path, None)
                self.ends[event.path] = event
        elif isinstance(event, StepRetrying) and len(self.retried) < KEPT:
            self.retried[event.path] = event

    def hide(self, values: tuple[str, ...]) -> None:
        """Let the system hide these values, before anything of the run is told."""
        fresh = set(values) - self._hidden
        self._hidden |= fresh
        for line in masks(self._dialect, fresh):
            self._session.err.line(line)

    def finish(self, finished: RunFinished, tally: Tally) -> None:
        """Annotations, the outputs of the step, and its page."""
        if not self._session.json:
            for line in told(self._dialect, told_of(finished, tally, self._plan, self.ends)):
                if not self._session.quiet or line.startswith(("::error", "##vso[task.logissue type=error")):
                    self._session.err.line(line)
        from ._encode import dump

        self._output("status", finished.status)
        written = dump(finished.outputs if finished.outputs is not None else {})
        if len(written) < LARGEST // 2:
            self._output("outputs", written)
        self._page(finished, tally)

    def _output(self, name: str, value: str) -> None:
        """An output of the step, for the steps after it."""
        if self._system == "azure" and name != "outputs" and not self._session.json:
            from ._azure import command

            variable = name.replace("-", "_")
            self._session.err.line(command("task.setvariable", value, variable=variable, isOutput="true"))
        file = os.environ.get("GITHUB_OUTPUT") if self._system == "github" else None
        if file:
            self._append(file, f"{name}={value}\n")

    def _page(self, finished: RunFinished, tally: Tally) -> None:
        if self._system == "gitlab" or (self.run is None and tally.started is None):
            return
        from ._ci_page import page

        text = page(self, finished, tally, self._plan, graph=self._system == "github")
        if self._system == "github":
            file = os.environ.get("GITHUB_STEP_SUMMARY")
            if file and _size(file) + len(text.encode("utf-8", "replace")) < LARGEST:
                self._append(file, text)
            return
        if not self._session.json:
            self._upload(text)

    def _upload(self, text: str) -> None:
        """Azure takes a page as a file, read after the command was seen."""
        from ._azure import command

        try:
            folder = os.environ.get("AGENT_TEMPDIRECTORY") or None
            handle, path = tempfile.mkstemp(prefix="tramai-", suffix=".md", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError as error:
            self._session.note(f"no summary: {error.strerror}")
            return
        self._session.err.line(command("task.uploadsummary", path))

    def _append(self, path: str, text: str) -> None:
        try:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except (OSError, ValueError) as error:
            self._session.note(f"{path} cannot be written: {error}")


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def told_of(
    finished: RunFinished, tally: Tally, plan: Plan | None, ends: Mapping[str, StepFinished]
) -> Iterator[Annotation]:
    """What stopped the run first, then what else failed; what was tolerated as warnings; what it waits for."""
    from ._ending import message

    error = finished.error or {}
    path = str(error.get("path") or error.get("step") or "")
    run = short(finished.run_id)
    if finished.status in _ENDED and error:
        more = "" if not error.get("hint") else f"\n{error['hint']}"
        yield _at(plan, path, "error", message(error, path) + f"{more}\ntramai resume {run}")
    for other, end in tally.failed.items():
        if other != path and not path.startswith((f"{other}.", f"{other}[")) and end.error is not None:
            severity = "warning" if _tolerated(other, ends) else "error"
            yield _at(plan, other, severity, message(end.error, other))
    for other, asked in tally.questions.items():
        yield _at(plan, other, "notice", f"waits for a decision: {asked.ask}\n{_decide(finished, asked)}")
    if finished.status == "sleeping":
        yield _at(plan, "", "notice", f"the run sleeps; tramai resume {run} goes on with it when its time has come")


def _tolerated(path: str, ends: Mapping[str, StepFinished]) -> bool:
    """Whether a step around the failed one went well all the same."""
    return any(end.status != "failed" and path.startswith((f"{around}.", f"{around}[")) for around, end in ends.items())


def _decide(finished: RunFinished, asked: GateAsked) -> str:
    from ._ending import approval

    return approval(finished.run_id, asked)


def _at(plan: Plan | None, path: str, severity: str, text: str) -> Annotation:
    from ._ending import place

    at = place(plan, path)
    name = f"tramai: {path}" if path else "tramai"
    if at is None:
        return Annotation(severity=severity, title=name, text=text)
    file = near(at.file, root())
    return Annotation(
        severity=severity, title=name, text=text, file=file, line=at.line, column=at.column, end_line=at.end_line
    )
