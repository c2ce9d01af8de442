"""`tramai diff`: what has changed since a run was started, or between two runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from ..errors import ConfigurationError, DefinitionChanged
from ._advice import accepting, other_file, short
from ._group import verb
from ._session import Session
from ._terminal import cells, pad, safe

if TYPE_CHECKING:
    from ..plan import Plan
    from ..store import Run, Store
    from ._diff_documents import Changed, Difference, Differences, Standing


@verb("diff", "tramai diff @last", "tramai diff k3f9q2mz review.yaml", "tramai diff k3f9q2mz @last:review")
@click.argument("run", metavar="RUN")
@click.argument("other", metavar="[FILE|RUN]", required=False)
def command(session: Session, run: str, other: str | None) -> int:
    """Show what has changed between the definition of a run and its file now.

    FILE is another file to compare with. For each change: whether its step has
    begun in the run; at the end: how the run can go on.

    With a second RUN the two are compared: their definitions, inputs, outputs,
    and how each step ended.

    Exit status: 0 the same, 1 different, 3 invalid file, 4 no such run.
    """
    from . import _select

    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    found = store.get(run_id)
    if other is not None and not _is_file(other):
        document = _two_runs(store, found, store.get(_select.find(store, other)))
    else:
        document = _with_file(session, store, found, other)
    if session.json:
        session.emit(document)
    else:
        own = os.path.join(found.cwd, found.file or "")
        named = other_file(other, own) if document.new.run_id is None else None
        for line in _text(session, document, named):
            session.out.line(line)
    return 0 if document.same else 1


def _is_file(name: str) -> bool:
    from ._errors import exists

    return name == "-" or exists(name) or os.sep in name or name.endswith((".yaml", ".yml", ".toml"))


def _with_file(session: Session, store: Store, run: Run, file: str | None) -> Differences:
    from .. import engine
    from ._diff_documents import Differences, Standing
    from ._load import plan_of

    path = file if file is not None else _recorded(run)
    stored, now = engine.restore(store, run), plan_of(session, path)
    changes = _changes(store, run, stored, now)
    flow = now.workflow
    new = Standing(
        run_id=None, file=path, workflow=flow.name, version=flow.version, digest=now.digest, status=None
    )  # fmt: skip
    return Differences(same=not changes, old=_standing(run), new=new, changes=changes, resume=_ways(run, changes))


def _recorded(run: Run) -> str:
    """The file that the run was started with."""
    hint = f"tramai diff {short(run.run_id)} FILE    compares with another"
    if run.file in (None, "-", "<stdin>"):
        raise ConfigurationError(what="the run was not started with a file", hint=hint)
    path = os.path.relpath(os.path.join(run.cwd, run.file))
    if not os.path.isfile(path):
        raise ConfigurationError(what=f"the workflow file of this run is gone: {path}", hint=hint)
    return path


def _changes(store: Store, run: Run, stored: Plan, now: Plan) -> list[Difference]:
    """Each change, whether it is of a step that has begun, and whether the run can take it over."""
    from .. import engine
    from ..changes import judge
    from ._diff_documents import Difference

    found = engine.compare(stored, now)
    if not found:
        return []
    ran: Any = ()
    blocking: Any = ()
    try:
        judge(run, stored, now, found, store.journal(run.run_id), accept=False)
    except DefinitionChanged as changed:
        ran, blocking = changed.details["ran"], changed.details["blocking"]
    return [
        Difference(
            kind=one.kind,
            step=one.step,
            what=one.what,
            old=one.old,
            new=one.new,
            text=one.text,
            ran=one in ran,
            blocking=one in blocking,
        )
        for one in found
    ]


def _ways(run: Run, changes: list[Difference]) -> list[Any]:
    """How the run can go on."""
    from ..store import Status

    if run.status.terminal or run.status is Status.COMPLETED or run.status.tombstone:
        return []
    if not changes:
        return ["plain"]
    return ["as_started"] + ([] if any(change.blocking for change in changes) else ["accept_changes"])


def _two_runs(store: Store, first: Run, second: Run) -> Differences:
    from .. import engine
    from ._diff_documents import Differences
    from ._diff_values import values

    changes = _changes(store, first, engine.restore(store, first), engine.restore(store, second))
    found = values(store, first, second)
    return Differences(
        same=not changes and not found, old=_standing(first), new=_standing(second), changes=changes, values=found
    )


def _standing(run: Run) -> Standing:
    from ._diff_documents import Standing

    return Standing(
        run_id=run.run_id,
        file=run.file,
        workflow=run.workflow,
        version=run.version,
        digest=run.digest,
        status=run.status.value,
    )


def _text(session: Session, document: Differences, file: str | None) -> list[str]:
    paint = session.out.paint
    sides = [_side(session, side) for side in (document.old, document.new)]
    width = max(cells(name) for name, _ in sides)
    lines = [f"{paint(pad(name, width), 'bold')}  {rest}" for name, rest in sides]
    if document.same:
        return [*lines, "the same"]
    texts = [safe(change.text) for change in document.changes]
    room = min(max((cells(text) for text in texts), default=0), 90)
    for change, text in zip(document.changes, texts, strict=True):
        lines.append(f"  {pad(text, room)}  {paint('has begun', 'yellow') if change.ran else ''}".rstrip())
    for value in _list(document.values):
        lines.append(f"  {_value(value)}")
    return [*lines, *(safe(session.typed(line)) for line in _help(document, file))]


def _side(session: Session, side: Standing) -> tuple[str, str]:
    digest = side.digest if session.verbose else side.digest[:8]
    rest = f"{safe(side.workflow)} v{safe(side.version)}  digest {digest}"
    if side.run_id is not None:
        return f"run {safe(short(side.run_id))}", f"{rest}  {side.status}"
    return safe(side.file or ""), rest


def _value(value: Changed) -> str:
    from ._values import scalar

    texts = [scalar(one) for one in (value.old, value.new)]
    old, new = (safe(text if len(text) <= 60 else text[:57] + "...") for text in texts)
    return f"{value.what} {safe(value.path)}: {old} → {new}"


def _help(document: Differences, file: str | None) -> list[str]:
    """How the run can go on with this file; `file`: one that was named, in the place of its own."""
    ways = _list(document.resume)
    if not ways:
        return _over(document)
    run = short(document.old.run_id or "")
    lines = [f"tramai resume {run} --as-started        goes on with the definition it was started with"]
    if "accept_changes" in ways:
        lines.append(f"{accepting(run, file)}    goes on with the file as it is now")
    else:
        lines.append("the changes reach back to what was done already, so --accept-changes is refused")
    return lines


def _over(document: Differences) -> list[str]:
    if document.new.run_id is not None:
        return []
    return [f"the run is {document.old.status}: it does not go on"]


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []
