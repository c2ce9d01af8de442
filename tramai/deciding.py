"""Decisions of people: which questions of a run are open, and a vote on one of them, stored once and for good.

A vote is a line of the run's event list, added beside whoever holds the run and only after exactly what was read: of
two who decide at once, the second sees what the first has said before anything of its own is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from . import asking
from .asking import APPROVED, REJECTED, Decision, Question, Vote
from .clock import Clock
from .codec import Json, NotJson, check, decode, encode
from .errors import CheckpointConflict, NotFound, NotInThatState, TramaiError, UsageError
from .expression import suggest
from .inputs import from_text
from .paths import is_aside, step_id
from .shape import Mismatch, Shape, conform
from .store import CALLED, Mark, Note, Record, Run, Status, Store

TURNS = 200
"""How often a vote is judged anew because something else was written to the run meanwhile."""
LONGEST_COMMENT = 1 << 16


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """A question that its step still waits for: what was said so far, and what follows from it."""

    path: str
    question: Question
    votes: tuple[Vote, ...] = ()
    decision: Decision | None = None

    @property
    def approvals(self) -> int:
        """How many different people have approved."""
        return len({vote.by for vote in self.votes if vote.decision == APPROVED})

    def late(self, now: float) -> bool:
        """Whether the time to decide has passed."""
        return self.question.deadline is not None and now >= self.question.deadline


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A vote that was stored: the question with it, and the run after it."""

    run: Run
    vote: Vote
    open: Open


class NothingAsked(TramaiError):
    """no gate of run {run_id} waits for a decision"""

    code = "TRM440"
    exit_status = 5


class AlreadyDecided(TramaiError):
    """gate '{path}' is decided already: {decision}{whom}"""

    code = "TRM441"
    exit_status = 5


class AlreadyVoted(TramaiError):
    """{by} has {decision} gate '{path}' already"""

    code = "TRM442"
    exit_status = 5


class NotAnApprover(TramaiError):
    """{by} may not decide on gate '{path}'"""

    code = "TRM443"
    exit_status = 5


class TooLate(TramaiError):
    """the time to decide on gate '{path}' ended at {deadline}"""

    code = "TRM444"
    exit_status = 5


class InvalidAnswer(TramaiError):
    """the data for gate '{path}' cannot be taken: {what}"""

    code = "TRM445"
    exit_status = 2


Answer = Callable[[tuple[Open, ...]], None]
"""Somebody who can be asked; decides by `decide`, or leaves the questions open."""


def opened(records: Iterable[Record], notes: Sequence[Note]) -> tuple[Open, ...]:
    """The questions whose steps have not ended, in the order in which they were asked."""
    asked: dict[str, Record] = {}
    over: set[str] = set()
    for record in records:
        if record.mark is Mark.DECIDED and record.verb == "gate" and not is_aside(record.path):
            asked.pop(record.path, None)
            asked[record.path] = record
        elif record.mark is Mark.DECIDED and record.path.endswith("@redo"):
            over.add(record.path.removesuffix("@redo"))  # left by a walk that was sent back
        elif record.mark in (Mark.FAILED, Mark.COMPLETED, Mark.SKIPPED):
            asked.pop(record.path, None)
            if record.mark is not Mark.FAILED:
                over.add(record.path)
    found, votes = [], asking.all_votes(notes)
    for path, record in asked.items():
        if any(path[:at] in over for at, sign in enumerate(path) if sign == "["):
            continue  # what it stands in went on without it
        question = msgspec.convert(decode(record.value or "null"), Question)
        said = tuple(votes.get((path, question.number), ()))
        found.append(Open(path=path, question=question, votes=said, decision=asking.outcome(question, said)))
    return tuple(found)


def look(store: Store, run_id: str) -> tuple[Open, ...]:
    """The questions of a run that are open."""
    return opened(store.journal(run_id), store.notes(run_id))


def asked(records: Iterable[Record], path: str, number: int) -> Question | None:
    """One of the questions that a step has asked."""
    for record in records:
        if record.mark is Mark.DECIDED and record.path == path and record.verb == "gate" and record.value is not None:
            question = msgspec.convert(decode(record.value), Question)
            if question.number == number:
                return question
    return None


def due(store: Store, run: Run, by: float) -> bool:
    """Whether a run that waits can go on, now or by an instant: a question is decided, or a time has come."""
    if run.wake_at is not None and run.wake_at <= by:
        return True
    return any(one.decision is not None or one.late(by) for one in look(store, run.run_id))


def find(run: Run, waiting: Sequence[Open], step: str | None) -> Open:
    """The question that is meant: the only one, or that of a path, or of an id that stands at the end of one path."""
    if not waiting:
        raise NothingAsked(run_id=run.run_id, hint=f"it is {run.status.value}")
    if step is None:
        undecided = [one for one in waiting if one.decision is None] or list(waiting)
        if len(undecided) > 1:
            listed = ", ".join(one.path for one in undecided)
            raise UsageError(what=f"several gates wait for a decision: {listed}", hint="say which one")
        return undecided[0]
    named = [one for one in waiting if one.path == step] or [one for one in waiting if step_id(one.path) == step]
    if len(named) == 1:
        return named[0]
    if named:
        listed = ", ".join(one.path for one in named)
        raise UsageError(what=f"several gates are called '{step}': {listed}", hint="give the whole path")
    near = suggest(step, [*(one.path for one in waiting), *(step_id(one.path) for one in waiting)])
    listed = ", ".join(one.path for one in waiting)
    raise NotFound(
        kind="gate that waits for a decision", name=step, hint=f"did you mean {near}?" if near else f"waiting: {listed}"
    )


def decide(
    store: Store,
    run_id: str,
    step: str | None,
    *,
    decision: str,
    by: str,
    comment: str | None = None,
    data: Mapping[str, Json] | None = None,
    clock: Clock,
) -> Decided:
    """Approve or reject what a gate of a run asks, in the name of `by`; stored once, and only if it still counts.

    `data` is what the gate's form asks for; texts in it are read as the declared types. Refused, with nothing stored:
    NothingAsked, AlreadyDecided, AlreadyVoted, NotAnApprover, TooLate, InvalidAnswer; NotFound for no such run or
    gate; NotInThatState when the run is over or failed.
    """
    if decision not in (APPROVED, REJECTED):
        raise ValueError(f"a decision is {APPROVED} or {REJECTED}")
    _check_words(by, comment)
    for _ in range(TURNS):
        run = store.get(run_id)
        if run.status.terminal or run.status in (Status.FAILED, Status.ARRIVING):
            what = "nothing in it waits for a decision"
            hint = (
                f"tramai resume {run_id}    asks again, if a gate is what failed"
                if run.status.value == "failed"
                else None
            )
            raise NotInThatState(run_id=run_id, status=run.status.value, what=what, hint=hint)
        # The journal first: an end of the question that it does not show yet is in the list that is read after it.
        records = store.journal(run_id)
        notes = store.notes(run_id)
        meant = find(run, opened(records, notes), step)
        now = clock.now()
        if meant.decision is not None:
            _wake_callers(store, run, now)  # whoever decided may have been killed before that
        taken = _judge(meant, decision, by, data, now)
        vote = Vote(decision=decision, by=by, at=now, comment=comment or None, data=taken)
        after = _with(meant, vote)
        try:
            run = store.post(run_id, _note(meant, vote), after=len(notes), due=after.decision is not None, now=now)
        except CheckpointConflict:
            continue  # something was written meanwhile, perhaps what makes this vote void
        if after.decision is not None:
            _wake_callers(store, run, now)
        return Decided(run=run, vote=vote, open=after)
    raise CheckpointConflict


def read_data(form: dict[str, Any] | None, given: Mapping[str, Json], path: str) -> dict[str, Json]:
    """Data as a form wants them: texts read as the declared types, defaults filled in; InvalidAnswer otherwise."""
    if form is None:
        if given:
            raise InvalidAnswer(path=path, what="it has no form and takes no data", hint="say it with --comment")
        return {}
    shape = msgspec.convert(form, Shape)
    properties = shape.properties or {}
    for name in given:
        if name not in properties:
            near = suggest(name, properties)
            hint = f"did you mean '{near}'?" if near else "its form has: " + ", ".join(properties)
            raise InvalidAnswer(path=path, what=f"its form has no '{name}'", hint=hint)
    made: dict[str, Json] = {}
    try:
        for name, value in given.items():
            inner = properties[name]
            made[name] = _converted(inner, name, value)
        fits: dict[str, Json] = conform(shape, made)
        check(fits)
    except Mismatch as error:
        where = f"'{error.where}' " if error.where else "it "
        raise InvalidAnswer(path=path, what=where + error.what, hint=error.hint) from None
    except NotJson as error:
        raise InvalidAnswer(path=path, what=str(error)) from None
    return fits


def _converted(shape: Shape, name: str, value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return from_text(shape, value)
    except Mismatch as error:
        raise Mismatch(name, error.what, error.hint) from None


def _judge(meant: Open, decision: str, by: str, data: Mapping[str, Json] | None, now: float) -> Json:
    """Refuse a vote that does not count; else its data."""
    path, question = meant.path, meant.question
    if meant.decision is not None:
        last = meant.decision.last
        whom = f" by {last.by}" if last.by else ""
        raise AlreadyDecided(path=path, decision=meant.decision.decision, by=last.by, whom=whom)
    earlier = next((vote for vote in meant.votes if vote.by == by), None)
    if earlier is not None:
        hint = f"{meant.approvals} of {question.min} have approved; somebody else must decide too"
        raise AlreadyVoted(by=by, decision=earlier.decision, path=path, hint=hint)
    if question.approvers and by not in question.approvers:
        may = ", ".join(question.approvers)
        raise NotAnApprover(by=by, path=path, approvers=list(question.approvers), hint=f"who may: {may}")
    if meant.late(now):
        assert question.deadline is not None
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(question.deadline))
        raise TooLate(path=path, deadline=at, hint="tramai resume goes on as the gate says for that case")
    if decision == REJECTED and not data:
        return None  # what a form asks for is asked of those who approve
    return read_data(question.form, data or {}, path) or None


def _with(meant: Open, vote: Vote) -> Open:
    said = (*meant.votes, vote)
    return msgspec.structs.replace(meant, votes=said, decision=asking.outcome(meant.question, said))


def _note(meant: Open, vote: Vote) -> Note:
    data = {**asking.subject(meant.path, meant.question.number), "decision": vote.decision, "data": vote.data}
    return Note(at=vote.at, type=asking.DECIDED, by=vote.by, comment=vote.comment, data=encode(data))


def _wake_callers(store: Store, run: Run, now: float) -> None:
    """Whoever waits for a called run to go on is due as well: it is the caller that carries the called run."""
    above: Run | None = run
    while above is not None and above.started_by.startswith(CALLED):
        above = _woken(store, above.started_by.removeprefix(CALLED), now)


def _woken(store: Store, run_id: str, now: float) -> Run | None:
    """A caller, due if it waits; None where it is over, or not here."""
    for _ in range(TURNS):
        try:
            run = store.get(run_id)
            if run.status not in (Status.WAITING, Status.RUNNING):
                return run
            note = Note(at=now, type="call.decided")
            return store.post(run_id, note, after=len(store.notes(run_id)), due=True, now=now)
        except CheckpointConflict:
            continue  # something else was written to it, perhaps that it waits now
        except (NotFound, NotInThatState):
            return None
    return None


def _check_words(by: str, comment: str | None) -> None:
    if not by.strip() or not by.isprintable() or len(by) > 200:
        raise UsageError(what="whoever decides has a name of 1 to 200 printable characters", hint="give it with --as")
    if comment is not None and len(comment) > LONGEST_COMMENT:
        raise UsageError(what=f"a comment has at most {LONGEST_COMMENT} characters, not {len(comment)}")
