"""Carry out a run, new or resumed: what `run`, `resume` and `rerun` share once their arguments are known."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from .. import engine
from ..event import Event, RunFinished, RunStarted
from . import _ci, _people, render
from ._session import Session
from ._signals import Signals
from ._tally import Tally

if TYPE_CHECKING:
    from ..plan import Plan
    from ..store import Run, Store
    from ._answers import Answers
    from ._run_reports import Reports

LONGEST_KEY = 200
SUSPENDED = 11


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: one field per option of `run`, `resume` and `rerun`."""

    file: str | None = None
    inputs: tuple[str, ...] = ()
    inputs_file: str | None = None
    start_key: str | None = None
    labels: tuple[str, ...] = ()
    ok_if_suspended: bool = False
    run: str | None = None
    as_started: bool = False
    accept_changes: bool = False
    start_at: str | None = None
    approve: tuple[str, ...] = ()
    until: str | None = None
    reports: tuple[str, ...] = ()


def asked_for(session: Session, request: Request) -> tuple[Plan, dict[str, Any]]:
    """The plan of the file, and the inputs for it, bound."""
    from .. import inputs
    from . import _load

    assert request.file is not None
    plan = _load.plan_of(session, request.file)
    given: dict[str, Any] = {}
    if request.inputs or request.inputs_file is not None:
        from . import _given

        given = _given.gather(request.inputs, request.inputs_file)
    return plan, inputs.bind(plan.workflow.inputs, given)


def run(session: Session, request: Request) -> int:
    """Start a run of a workflow file; the exit status."""
    plan, bound = asked_for(session, request)
    store = session.store()
    answers = _people.answers(session, request.approve, plan, store)
    _check_until(request, plan, store)

    def go(options: engine.Options, observers: list[Any]) -> engine.Result:
        if any(node.verb == "ai" for node in plan.workflow.steps):
            from .. import accounts

            accounts.require(plan.workflow.steps, options.providers or {}, base=os.getcwd())
            accounts.warm(plan.workflow.steps, options.providers or {})
        return engine.run(plan, bound, store=store, observers=observers, options=options)

    return _carry(session, request, plan, store, go, answers)


def resume(session: Session, request: Request) -> int:
    """Go on with a run; the exit status."""
    from . import _select

    assert request.run is not None
    store = session.looking()
    run_id = session.run_id = _select.find(store, request.run)
    found = store.get(run_id)
    nothing_runs = found.status.terminal or engine.waits_for_somebody(store, found)
    plan = None if nothing_runs else _current(session, found, request, "resume")
    answers = _people.answers(session, request.approve, plan, store, found)
    if not nothing_runs:
        _check_until(request, plan, store, found, resumes=True)

    def go(options: engine.Options, observers: list[Any]) -> engine.Result:
        from ..errors import DefinitionChanged

        if answers is not None:
            answers.open(run_id)
        try:
            return engine.resume(
                run_id,
                store=store,
                plan=plan,
                accept_changes=request.accept_changes,
                observers=observers,
                options=options,
            )
        except DefinitionChanged as changed:
            from ._advice import other_file

            if (other := other_file(request.file, os.path.join(found.cwd, found.file or ""))) is not None:
                changed.details["other_file"] = other  # so that the ways on name it
            raise

    return _carry(session, request, plan, store, go, answers)


def rerun(session: Session, request: Request) -> int:
    """Start a new run with the inputs of an earlier one; the exit status."""
    from . import _select

    assert request.run is not None
    store = session.looking()
    run_id = session.run_id = _select.find(store, request.run)
    found = store.get(run_id)
    plan = None if found.status.tombstone else _current(session, found, request, "rerun")
    answers = _people.answers(session, request.approve, plan, store, found)
    if not found.status.tombstone:
        _check_until(request, plan, store, found)

    def go(options: engine.Options, observers: list[Any]) -> engine.Result:
        return engine.rerun(
            run_id,
            store=store,
            plan=plan,
            start_at=request.start_at,
            accept_changes=request.file is not None,
            observers=observers,
            options=options,
        )

    return _carry(session, request, plan, store, go, answers)


def _check_until(
    request: Request, plan: Plan | None, store: Store, found: Run | None = None, *, resumes: bool = False
) -> None:
    """Refuse a step at which the run cannot stop, before anything happens."""
    if request.until is None:
        return
    from . import _until

    if plan is None:
        assert found is not None
        plan = engine.restore(store, found)
    _until.check(request.until, plan, start_at=request.start_at)
    if found is not None and resumes:
        _until.check_open(request.until, store, found)


def _current(session: Session, found: Run, request: Request, verb: str) -> Plan | None:
    """The workflow file as it is now; None where the stored definition is to be used."""
    from ..errors import ConfigurationError
    from ._advice import short
    from ._load import plan_of

    if request.as_started:
        return None
    if request.file is not None:
        return plan_of(session, request.file)
    if found.file in (None, "-", "<stdin>"):
        return None
    path = os.path.relpath(os.path.join(found.cwd, found.file))
    if not os.path.isfile(path):
        hint = (
            f"tramai {verb} {short(found.run_id)} --file FILE     where it is now\n"
            f"tramai {verb} {short(found.run_id)} --as-started    the definition as it was, from the store"
        )
        raise ConfigurationError(what=f"the workflow file of this run is gone: {path}", hint=hint)
    return plan_of(session, path)


def _carry(
    session: Session,
    request: Request,
    plan: Plan | None,
    store: Store,
    go: Callable[[engine.Options, list[Any]], engine.Result],
    answers: Answers | None = None,
) -> int:
    from ..errors import SecretMissing
    from . import _ending

    tally, reports = Tally(), _reports(request)
    named = _watching(session)
    watching = [*([answers] if answers is not None else []), *named]
    with Signals() as signals:
        watching += _until(request, signals)
        final = _Final(request, signals)
        views = render.choose(session, _names(plan), final)
        signals.announce = next((view.announce for view in views if hasattr(view, "announce")), None)
        options = options_of(session, request, signals)
        reporter = _ci.reporter(session, plan)
        if reporter is not None:
            watching.append(reporter)
            options = msgspec.structs.replace(options, hide=reporter.hide)
        answer = _people.prompt(session, plan, store, signals, views)
        if answer is not None:
            options = msgspec.structs.replace(options, answer=answer)
        for line in session.settings.described() if session.verbose else ():
            session.note(line)
        _ = session.out  # ours is the real one, also when it is used for the first time in the middle of the run
        try:
            # What a function or a plugin prints is no document of ours.
            with contextlib.redirect_stdout(sys.stderr):
                result = go(options, [tally, _Remember(session), *views, *watching])
            if tally.started is None:
                _tell_how_it_stands(store, result, [tally, *views, *([reporter] if reporter is not None else [])])
        except SecretMissing:
            if signals.number is None:
                raise
            session.err.line("interrupted while a secret was fetched; nothing was begun")
            return signals.exit_status
        finally:
            for view in views:
                view.close()
            if named:
                _close(named)
    assert tally.finished is not None
    finished = final(tally.finished)
    if not session.json:
        if request.until is not None and signals.interrupt.reason == "until":
            session.note(f"stopped behind {request.until}, as --until says")
        _ending.show(session, finished, tally, plan, store)
    if reports is not None:
        reports.write(session, store, finished.run_id)
    if reporter is not None:
        reporter.finish(finished, tally)
    return finished.exit_status


def _tell_how_it_stands(store: Store, result: engine.Result, told: list[Callable[[Any], object]]) -> None:
    """Nothing ran: who shows a run is told of it as if it had."""
    from . import _nothing_ran

    for event in _nothing_ran.events(store, result):
        for each in told:
            each(event)


def _reports(request: Request) -> Reports | None:
    """The reports that are written in the end; UsageError for one that cannot be."""
    if not request.reports:
        return None
    from ._run_reports import Reports

    return Reports(request.reports)


def _until(request: Request, signals: Signals) -> list[Any]:
    """The observer that stops the run, if it is to be stopped."""
    if request.until is None:
        return []
    from ._until import Until

    return [Until(request.until, signals.interrupt)]


def _watching(session: Session) -> list[Any]:
    """The observers of this call, and those that the settings name."""
    if not session.settings.observers:
        return session.watching
    from . import _observers

    return [*session.watching, *_observers.made(session.settings.observers)]


def _close(observers: list[Any]) -> None:
    from ._observers import close

    close(observers)


class _Final:
    """The exit status of the command, from how the run ended, the flags and the signal that came."""

    def __init__(self, request: Request, signals: Signals) -> None:
        self._request = request
        self._signals = signals

    def __call__(self, event: RunFinished) -> RunFinished:
        """The event with the status this command will exit with."""
        status = event.exit_status
        if event.status == "interrupted" and self._signals.number is not None and event.error is None:
            status = self._signals.exit_status
        if event.status == "interrupted" and self._signals.interrupt.reason == "until":
            status = SUSPENDED
        if status == SUSPENDED and self._request.ok_if_suspended:
            status = 0
        return msgspec.structs.replace(event, exit_status=status)


class _Remember:
    """An observer that tells the session which run it is about, so that a later error can name it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, event: Event) -> None:
        """See one event."""
        if isinstance(event, RunStarted):
            self._session.run_id = event.run_id


def _names(plan: Plan | None) -> tuple[str, ...]:
    return tuple(node.id for node in plan.workflow.steps) if plan is not None else ()


def options_of(session: Session, request: Request, signals: Signals) -> engine.Options:
    """How the run is to be carried out, from flags and settings."""
    session.variables()
    settings = session.settings
    lease = settings.seconds("lease")
    if lease <= 0:
        from ..errors import UsageError

        raise UsageError(what=f"{settings.origin('lease')}: a lease must last longer than 0s")
    key = request.start_key
    if key is not None and not (key.strip() and key.isprintable() and len(key) <= LONGEST_KEY):
        from ..errors import UsageError

        raise UsageError(what=f"--start-key: a key has 1 to {LONGEST_KEY} printable characters")
    return engine.Options(
        wait=settings.seconds("wait"),
        lease=lease,
        start_key=request.start_key,
        labels=request.labels,
        logs=session.logs(),
        interrupt=signals.interrupt,
        hurry=signals.hurry,
        diagnostics=session.diagnose,
        warn=session.note,
        servers=settings.servers,
        http=settings.http,
        providers=settings.providers,
        trace=os.environ.get("TRACEPARENT"),
    )
