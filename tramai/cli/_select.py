"""Which run is meant: a full id, a unique ending of one, `@last`, `@last:WORKFLOW` or `@failed`."""

from __future__ import annotations

from ..errors import NotFound, UsageError
from ..results import CALLED
from ..store import Run, Status, Store
from ._advice import short

NEAR = 200
"""Runs that are looked at for a did-you-mean."""


def find(store: Store, selector: str) -> str:
    """The id of the run that is meant. NotFound with a near miss; UsageError when several fit."""
    if selector.startswith("@"):
        return _newest(store, selector)
    if not selector.strip():
        raise UsageError(what="a run is named by its id, the end of its id, @last or @failed")
    matches = store.match(selector, limit=10)
    if selector in matches or (not matches and _is_whole(store, selector)):
        return selector
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = "\n".join(matches)
        raise UsageError(what=f"several runs end in '{selector}':\n{listed}", hint="give more of the id")
    raise _missing(store, selector)


def _is_whole(store: Store, selector: str) -> bool:
    """Some stores may match endings by an index that long ids are not in."""
    try:
        store.get(selector)
    except NotFound:
        return False
    return True


def _newest(store: Store, selector: str) -> str:
    word, colon, workflow = selector.partition(":")
    if word == "@last" and (workflow or not colon):
        found = _last(store, workflow or None)
        if found is not None:
            return found
        what = f"run of '{workflow}'" if workflow else "run"
        raise NotFound(kind=what, name=selector, hint=_workflows(store, workflow))
    if selector == "@failed":
        runs, _ = store.page(limit=1, status=Status.FAILED)
        if runs:
            return runs[0].run_id
        raise NotFound(kind="failed run", name=selector)
    raise UsageError(what=f"'{selector}' names no run", hint="write @last, @last:WORKFLOW or @failed")


def _last(store: Store, workflow: str | None) -> str | None:
    """The newest run; unless its workflow is named, not one that another run has called."""
    cursor: str | None = None
    while True:
        runs, cursor = store.page(limit=20, after=cursor, workflow=workflow)
        for run in runs:
            if workflow is not None or not run.started_by.startswith(CALLED):
                return run.run_id
        if cursor is None:
            return None


def _workflows(store: Store, wanted: str) -> str | None:
    import difflib

    names = sorted({run.workflow for run in _recent(store)})
    near = difflib.get_close_matches(wanted, names, n=1)
    if near:
        return f"did you mean @last:{near[0]}?"
    return "tramai list shows what there is" if names else "this store has no runs; tramai run FILE starts one"


def _missing(store: Store, selector: str) -> NotFound:
    import difflib

    if selector.lower().endswith((".yaml", ".yml", ".toml")):
        hint = "a run is named by the end of its id, not by its file: tramai list shows them, @last is the newest"
        return NotFound(kind="run", name=selector, hint=hint)
    endings = {short(run.run_id): run for run in _recent(store)}
    near = difflib.get_close_matches(selector[-8:].lower(), endings, n=1)
    if near:
        hint = f"did you mean {near[0]} ({endings[near[0]].workflow})?"
    else:
        hint = "tramai list shows what there is" if endings else f"the store {store.url} has no runs"
    return NotFound(kind="run", name=selector, hint=hint)


def _recent(store: Store) -> tuple[Run, ...]:
    return store.page(limit=NEAR)[0]
