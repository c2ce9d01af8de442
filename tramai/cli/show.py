"""`tramai show`: one run with its steps, attempts and events."""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING, Any

import click

from .. import places
from ..errors import TramaiError
from ..store import Run, Store
from ._advice import short
from ._clockface import stamp, took
from ._glyphs import glyph, word
from ._group import verb
from ._session import Session
from ._terminal import cells, fit, pad, safe, safe_lines
from ._values import lines as value_lines

if TYPE_CHECKING:
    from ._documents import RunView, StepView


@verb("show", "tramai show k3f9q2mz", "tramai show @last --json")
@click.argument("run", metavar="RUN")
def command(session: Session, run: str) -> int:
    """Show a run: how it stands, its steps with their attempts, its events.

    RUN is an id, the end of one, @last, @last:WORKFLOW or @failed. With -v, also
    inputs, state and the output of every step.

    Exit status: 0 shown, 4 no such run, 7 store unusable.
    """
    from . import _documents, _select

    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    view = view_of(store, store.get(run_id))
    if session.json:
        session.emit(_documents.Run(run=view))
        return 0
    for line in _text(session, view):
        session.out.line(line)
    return 0


def view_of(store: Store, run: Run) -> RunView:
    """A run as its document shows it."""
    from .. import deciding
    from . import _fold, _questions
    from ._documents import GroupView, RunView
    from ._standing import Standing

    standing = Standing(run, time.time())
    records = store.journal(run.run_id)
    notes = store.notes(run.run_id)
    return RunView(
        run_id=run.run_id,
        workflow=run.workflow,
        version=run.version,
        digest=run.digest,
        status=run.status.value,
        file=run.file,
        cwd=run.cwd,
        inputs=json.loads(run.inputs),
        state=_fold.state(_declared(store, run), records),
        outputs=json.loads(run.outputs) if run.outputs is not None else None,
        error=json.loads(run.error) if run.error is not None else None,
        labels=[*run.labels],
        created=run.created,
        updated=run.updated,
        ended=run.finished,
        wake_at=run.wake_at,
        owner=run.lease.owner if run.lease is not None else None,
        step=run.step,
        rerun_of=run.rerun_of,
        stale=standing.word != run.status.value,
        group=GroupView(name=run.group.name, limit=run.group.limit) if run.group is not None else None,
        queued=places.in_line(run, time.time()),
        questions=_questions.of(deciding.opened(records, notes)) if not run.status.terminal else [],
        steps=_fold.steps(records, standing),
        events=_fold.events(notes),
    )


def _declared(store: Store, run: Run) -> dict[str, Any]:
    """The `state` of its definition; a run whose definition is damaged can still be shown."""
    try:
        return json.loads(store.definition(run.digest).canonical).get("state", {})  # type: ignore[no-any-return]
    except TramaiError:
        return {}


def _text(session: Session, view: RunView) -> list[str]:
    out = session.out
    stands = _stands(view)
    sign, said = glyph(out, stands), word(out, stands)
    lines = [
        f"run {out.paint(safe(view.run_id), 'bold')}",
        f"{sign} {said}  {safe(view.workflow)} v{safe(view.version)}",
    ]
    for name, text in _header(view, session.verbose):
        lines.append(f"  {name:<9} {safe(session.typed(text)) if name == 'next' else text}")
    if view.error is not None:
        lines += _error(view)
    if view.questions:
        lines += _waiting_for(session, view)
    if view.status not in ("moved", "removed"):
        lines += _steps(session, view)
    lines += ["", "events", *(_event(event) for event in view.events)]
    if view.outputs:
        lines += ["", "outputs", *value_lines(view.outputs, 2)]
    if session.verbose:
        lines += [line for name in ("inputs", "state") for line in _section(name, getattr(view, name))]
    return lines


def _waiting_for(session: Session, view: RunView) -> list[str]:
    """What gates wait with."""
    from . import _questions

    lines = ["", "questions"]
    for one in view.questions:
        lines += [f"  {safe(one.path)}", *_questions.described(session.out, one, 4, time.time())]
    return lines


def _stands(view: RunView) -> str:
    return "interrupted" if view.stale else view.status


def _steps(session: Session, view: RunView) -> list[str]:
    lines = ["", "steps"]
    width = min(max((cells(safe(step.path)) for step in view.steps), default=0), 40)
    for step in view.steps:
        lines += _step(session, step, width)
    if not view.steps:
        lines.append("  none has begun")
    return lines


def _header(view: RunView, verbose: bool) -> list[tuple[str, str]]:
    ended = f", took {took(max(view.ended - view.created, 0.0))}" if view.ended is not None else ""
    found = [("started", stamp(view.created) + ended), ("digest", view.digest if verbose else view.digest[:8])]
    if view.file:
        found.append(("file", safe(view.file)))
    if view.labels:
        found.append(("labels", safe(", ".join(view.labels))))
    if view.rerun_of:
        found.append(("rerun of", safe(short(view.rerun_of))))
    if view.group is not None:
        waits = ", waits for a place" if view.queued else ""
        found.append(("group", f"{safe(view.group.name)}, {view.group.limit} at a time{waits}"))
    if view.owner and (view.status == "running" or view.queued):
        gone = ", which is gone" if view.stale else ""
        found.append(("owner", safe(view.owner) + gone))
    if view.wake_at is not None:
        found.append(("wakes", stamp(view.wake_at)))
    run = short(view.run_id)
    found += [
        ("is in", safe(str(event.data["to"]))) for event in view.events if event.type == "run.moved" and event.data
    ]
    found += [("next", safe(command)) for command in _decisions(view)]
    if view.stale or (view.status in ("failed", "sleeping", "waiting", "ready", "arriving") and not view.queued):
        found.append(("next", f"tramai resume {safe(run)}"))
    for step in view.steps if view.status == "blocked" else []:
        if step.status == "unknown":
            path = shlex.quote(step.path)
            found.append(("next", f"tramai resolve {safe(run)} {safe(path)} --as completed|failed|retry|skipped"))
    return found


def _decisions(view: RunView) -> list[str]:
    """The commands that decide what is open."""
    if not view.questions or view.status == "failed":
        return []
    from . import _questions

    return _questions.commands(view.run_id, view.questions, time.time())


def _error(view: RunView) -> list[str]:
    assert view.error is not None
    said = str(view.error.get("message") or view.error.get("type") or "failed")
    where = f"step '{safe(str(view.error['path']))}': " if view.error.get("path") else ""
    first, *rest = safe_lines(said)
    return [f"  {'error':<9} {where}{first}", *(" " * 12 + line for line in rest)]


def _step(session: Session, step: StepView, width: int) -> list[str]:
    out = session.out
    head = f"  {glyph(out, step.status)} {pad(safe(step.path), width)}  {step.verb:<8} {word(out, step.status, 9)}"
    last = step.attempts[-1] if step.attempts else None
    if last is not None and last.started is not None and last.ended is not None:
        head += f" {took(max(last.ended - last.started, 0.0)):>6}"
    lines = [head.rstrip()]
    if len(step.attempts) > 1 or (last is not None and last.status not in ("succeeded", "running")):
        lines += [_attempt(session, attempt) for attempt in step.attempts]
    if session.verbose and step.output is not None:
        lines += value_lines({"output": step.output}, 6)
    return lines


def _attempt(session: Session, attempt: Any) -> str:
    said = ""
    if isinstance(attempt.error, dict):
        said = safe_lines(str(attempt.error.get("message", "")))[0]
    room = max(session.out.width - 30, 40)
    when = stamp(attempt.started)
    return (
        f"      attempt {attempt.attempt}: {attempt.status}  {when}  {fit(said, room, session.out.ellipsis)}".rstrip()
    )


def _event(event: Any) -> str:
    by = f" by {safe(event.by)}" if event.by else ""
    comment = f": {safe_lines(event.comment)[0]}" if event.comment else ""
    about = ""
    if event.type.startswith("gate.") and isinstance(event.data, dict):
        about = " ".join(["", *(safe(str(event.data[key])) for key in ("path", "decision") if key in event.data)])
    return f"  {stamp(event.at)}  {safe(event.type)}{about}{by}{comment}"


def _section(name: str, value: dict[str, Any]) -> list[str]:
    return ["", name, *value_lines(value, 2)] if value else []
