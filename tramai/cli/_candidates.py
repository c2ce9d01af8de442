"""What may be typed for a parameter: runs, steps, files, topics and the like, as the store and the folder have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import click

from ..store import Mark, Store
from ._advice import short
from ._group import SUMMARIES, GlobalFlag
from ._session import Session

NEWEST = 50
"""Runs that are offered."""


class Candidate(NamedTuple):
    """A value with a word about it. Kinds `file`, `dir` and `workflow` are left to the shell, which knows files."""

    value: str
    help: str = ""
    kind: str = "plain"


Found = Iterable[Candidate]
FILES, FOLDERS, WORKFLOWS = (Candidate("", "", kind) for kind in ("file", "dir", "workflow"))
_STORES = ("sqlite:", "file:", "markdown:", "postgresql://", "memory:")


def of(parameter: click.Parameter, context: click.Context, stem: str, session: Session) -> Found | None:
    """The candidates for a parameter; None where click knows as much: choices, and what nobody can know."""
    if isinstance(parameter.type, click.Choice):
        return None
    metavar = (parameter.metavar or "").strip("[].")
    name = parameter.name or ""
    if name in ("start_at", "until"):
        return _top_steps(context, session)
    known = _OF_NAME.get(name) if isinstance(parameter, click.Option) else None
    maker = known or _OF_METAVAR.get(metavar)
    if maker is None and metavar in ("FILE", "FILES", "PATH", "PATHS"):
        written = isinstance(parameter, click.Option) and (isinstance(parameter, GlobalFlag) or name != "file")
        return [FILES if written or context.info_name == "export" else WORKFLOWS]
    return maker(context, stem, session) if maker is not None else None


def _runs(context: click.Context, stem: str, session: Session) -> Iterator[Candidate]:
    """Endings of ids, newest first; whole ids for who has begun one; the words with @."""
    runs, _ = session.looking().page(limit=NEWEST)
    for run in runs:
        about = f"{run.workflow}, {run.status.value}"
        yield Candidate(short(run.run_id), about)
        if len(stem) > 8:
            yield Candidate(run.run_id, about)
    if runs:
        yield Candidate("@last", "the newest run")
    if any(run.status.value == "failed" for run in runs):
        yield Candidate("@failed", "the newest that failed")
    if stem.startswith("@"):
        for workflow in dict.fromkeys(run.workflow for run in runs):
            yield Candidate(f"@last:{workflow}", "the newest of this workflow")


def _runs_or_files(context: click.Context, stem: str, session: Session) -> Iterator[Candidate]:
    yield WORKFLOWS
    yield from _runs(context, stem, session)


def _steps(context: click.Context, stem: str, session: Session) -> Found:
    """Paths of the run that is named before: for `resolve` the open ones, for a decision those that ask."""
    from . import _select

    selector = context.params.get("run")
    if not selector:
        return []
    store = session.looking()
    run_id = _select.find(store, selector)
    name = context.info_name
    if name in ("approve", "reject"):
        from .. import deciding

        return [Candidate(one.path, one.question.ask) for one in deciding.look(store, run_id) if one.decision is None]
    return _paths(store, run_id, unknown=name == "resolve")


def _paths(store: Store, run_id: str, *, unknown: bool) -> list[Candidate]:
    from ..paths import is_aside

    last = {record.path: record for record in store.journal(run_id) if not is_aside(record.path)}
    wanted = (Mark.UNKNOWN, Mark.STARTED) if unknown else tuple(Mark)
    return [Candidate(path, f"{one.verb}, {one.mark.value}") for path, one in last.items() if one.mark in wanted]


def _top_steps(context: click.Context, session: Session) -> list[Candidate]:
    """The steps of the workflow itself: of a run, or of a file."""
    selector, file = context.params.get("run"), context.params.get("file")
    if selector:
        from . import _select

        store = session.looking()
        run = store.get(_select.find(store, selector))
        steps = json.loads(store.definition(run.digest).canonical)["steps"]
        return [Candidate(step["id"]) for step in steps]
    if file:
        from ._load import plan_of

        return [Candidate(node.id, node.verb) for node in plan_of(session, file).workflow.steps.nodes]
    return []


def _inputs(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    """Names of the inputs of the file that is named before, each with its sign."""
    file = context.params.get("file")
    if not file:
        return []
    from ._load import plan_of

    declared = plan_of(session, file).workflow.inputs
    return [Candidate(f"{name}=", str(spec.type or ""), "part") for name, spec in declared.items()]


def _workflows(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    runs, _ = session.looking().page(limit=200)
    return [Candidate(name) for name in dict.fromkeys(run.workflow for run in runs)]


def _labels(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    runs, _ = session.looking().page(limit=200)
    return [Candidate(label) for label in dict.fromkeys(label for run in runs for label in run.labels)]


def _workers(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    import time

    from ..pool import pooled

    found = pooled(session.looking()).workers(now=time.time())
    return [Candidate(one.id, f"{one.running} of {one.concurrency} slots at work") for one in found]


def _schedules(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    import time

    from ..timetable import timetabled

    found = timetabled(session.looking()).roster(now=time.time()).entries
    return [Candidate(one.id, f"{one.cron}, {one.zone}{', paused' if one.paused is not None else ''}") for one in found]


def _topics(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    from . import help

    words = context.params.get("words") or ()
    if not words:
        topics = [Candidate(name, title) for name, title in help.topics().items()]
        return [*topics, *(Candidate(name, summary) for name, summary in SUMMARIES.items())]
    from ._group import group

    found = group.get_command(context, words[0])
    verbs = found.commands if isinstance(found, click.Group) else {}
    return [Candidate(name, one.short_help or "") for name, one in verbs.items()]


def _codes(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    from . import explain

    if stem[:1] in ("T", "t"):
        return [Candidate(code, title) for code, title in explain.titles().items()]
    from . import _reference

    return [Candidate(name) for name in sorted(set(_reference.names()))]


def _schemas(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    import os

    from . import schema

    names = sorted(
        one.removesuffix(schema.ENDING) for one in os.listdir(schema.folder()) if one.endswith(schema.ENDING)
    )
    return [Candidate("step", "the reference of a verb"), *map(Candidate, names)]


def _verbs(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    from .. import kinds

    return [Candidate(name) for name in kinds.names("steps")] if context.params.get("name") == "step" else []


def _gates(context: click.Context, stem: str, session: Session) -> list[Candidate]:
    """Gates of the file that ask people, with both answers."""
    file = context.params.get("file")
    if context.info_name != "run" or not file:
        return []
    from ._load import plan_of

    nodes = plan_of(session, file).nodes.values()
    asking = [node.id for node in nodes if getattr(node.step, "ask", None) is not None]
    return [Candidate(f"{id}={answer}") for id in asking for answer in ("yes", "no")]


def _fixed(*values: str, kind: str = "plain") -> Callable[[click.Context, str, Session], Found]:
    return lambda context, stem, session: [Candidate(value, "", kind) for value in values]


_Maker = Callable[[click.Context, str, Session], Found]
_OF_NAME: dict[str, _Maker] = {
    "color": _fixed("auto", "always", "never"),
    "progress": _fixed("auto", "live", "plain", "none", "github", "gitlab", "azure"),
    "store": _fixed(*_STORES, kind="part"),
    "to": _fixed(*_STORES, kind="part"),
    "workflow": _workflows,
    "label": _labels,
    "labels": _labels,
    "reports": _fixed("junit=", "json=", "md=", kind="part"),
    "report": _fixed("junit=", kind="part"),
    "pairs": _inputs,
    "approve": _gates,
}
_OF_METAVAR: dict[str, _Maker] = {
    "RUN": _runs,
    "FILE|RUN": _runs_or_files,
    "STEP": _steps,
    "DIR": lambda context, stem, session: [FOLDERS],
    "FOLDER": lambda context, stem, session: [FOLDERS],
    "WORKER": _workers,
    "SCHEDULE": _schedules,
    "TOPIC|COMMAND": _topics,
    "CODE|KEY": _codes,
    "NAME": lambda context, stem, session: _schemas(context, stem, session) if context.info_name == "schema" else [],
    "VERB": _verbs,
}
