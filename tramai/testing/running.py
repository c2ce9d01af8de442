"""Runs the tests of test files: for each what it found, and which steps no test came to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ..document import Document
from ..errors import Position, Problem, Related, TramaiError
from ._moment import moment
from ._paths import INTO, Steps, id_of
from ._verdict import verdict
from .ran import Ran
from .reading import Loaded
from .suite import Case, Suite
from .workflow_test import WorkflowTest


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One test that was run. `seconds` are real ones. `reached`: the steps that it came to, by id. `used`: the
    stubs of the file, not of the test, that it has used.
    """

    file: str
    name: str
    position: Position
    problems: tuple[Problem, ...]
    seconds: float
    reached: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    crashes: int = 0

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return not self.problems


def cases(loaded: Loaded, words: Iterable[str] = ()) -> list[tuple[int, Case]]:
    """The tests of a file whose names, or the file's, hold one of these words; all, if there are none."""
    assert loaded.suite is not None
    wanted = [word.lower() for word in words]
    return [
        (index, case)
        for index, case in enumerate(loaded.suite.tests)
        if not wanted or any(word in f"{loaded.file}::{case.name}".lower() for word in wanted)
    ]


def run(loaded: Loaded, index: int) -> Outcome:
    """Run one test of a file that is sound."""
    assert loaded.suite is not None
    case = loaded.suite.tests[index]
    began = time.perf_counter()
    runner = _Runner(loaded, case, ("tests", index))
    try:
        problems = tuple(runner.problems())
    except TramaiError as error:
        problems = (_placed(Problem(code=error.code, message=str(error), hint=error.hint), loaded, ("tests", index)),)
    ran = runner.ran
    return Outcome(
        file=loaded.file,
        name=case.name,
        position=loaded.document.position(("tests", index, "name")),
        problems=problems,
        seconds=time.perf_counter() - began,
        reached=reached(ran) if ran is not None else frozenset(),
        used=runner.used - case.stubs.keys(),
        crashes=runner.crashes,
    )


def reached(ran: Ran) -> frozenset[str]:
    """The steps that a run came to, by id."""
    return frozenset(id_of(path) for path, step in ran.steps.items() if step.status != "skipped")


def unused(loaded: Loaded, outcomes: Iterable[Outcome]) -> tuple[Problem, ...]:
    """Stubs for all tests of a file that none of them has used; only known once all have passed."""
    assert loaded.suite is not None
    found = list(outcomes)
    if not all(outcome.passed for outcome in found):
        return ()  # a run that ended early has used less than it would
    used = frozenset().union(*(outcome.used for outcome in found))
    return tuple(_unused(key, loaded, ("stubs", key)) for key in loaded.suite.stubs if key not in used)


def missed(loaded: Loaded, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """The steps of the workflow that no test came to, in order of the file."""
    assert loaded.plan is not None
    seen = frozenset().union(*(outcome.reached for outcome in outcomes))
    return tuple(id for id in loaded.plan.nodes if id not in seen)


class _Runner:
    """One test: the run, or several with crashes, and what is wrong with them."""

    def __init__(self, loaded: Loaded, case: Case, at: tuple[str | int, ...]) -> None:
        self.loaded = loaded
        self.case = case
        self.at = at
        self.ran: Ran | None = None
        self.used: frozenset[str] = frozenset()
        self.crashes = 0

    def problems(self) -> Iterator[Problem]:
        suite, case = self.loaded.suite, self.case
        assert suite is not None
        assert self.loaded.plan is not None
        test = made(suite, case, self.loaded)
        ran = self.ran = test.attempt(case.crash_after)
        self.used |= ran.used
        if ran.problem is not None:
            yield self._stopped(ran.problem)
            return
        if case.crash_after is not None and not ran.was_cut:
            what = f"the run was not cut off: the end of step `{case.crash_after}` was never saved"
            yield _placed(Problem(code="TRM777", message=what), self.loaded, (*self.at, "crash_after"))
        unmet = list(verdict(case, ran, Steps(self.loaded.plan), self.at))
        yield from (_placed(problem, self.loaded, problem.pointer) for problem in unmet)
        if unmet:
            return  # what follows from it is not told, too
        if case.crash_everywhere:
            yield from self._crashes(test, ran)
        for section, keys, used in (("stubs", case.stubs, self.used), ("answers", case.answers, ran.answered)):
            for key in keys:
                if key not in used:
                    yield _unused(key, self.loaded, (*self.at, section, key))

    def _crashes(self, test: WorkflowTest, clean: Ran) -> Iterator[Problem]:
        for where, cut, wrong in test.crash_everywhere(clean):
            self.crashes += 1
            self.used |= cut.used
            if wrong:
                what = f"a run that was cut off {where} of {clean.writes} did not end the same:\n" + "\n".join(wrong)
                yield _placed(Problem(code="TRM776", message=what), self.loaded, (*self.at, "crash_everywhere"))
                return

    def _stopped(self, problem: Problem) -> Problem:
        """A problem that ended the run, at the stub it is about or at the test."""
        key = problem.pointer[1] if problem.pointer else None
        assert self.loaded.suite is not None
        if key is not None:
            own = key in getattr(self.case, str(problem.pointer[0]))
            at = (*self.at, *problem.pointer) if own else problem.pointer
            return _placed(problem, self.loaded, at)
        return _placed(problem, self.loaded, (*self.at, "name"))


def made(suite: Suite, case: Case, loaded: Loaded) -> WorkflowTest:
    """A test of a file as the Python API has it: what the file gives to all its tests, and what the test gives."""
    assert loaded.plan is not None
    folder = None
    if suite.folder is not None:
        folder = os.path.join(os.path.dirname(os.path.abspath(loaded.file)), suite.folder)
    merged: dict[str, Any] = {
        name: {**getattr(suite, name), **getattr(case, name)}
        for name in ("inputs", "env", "secrets", "stubs", "answers")
    }
    now = moment(case.now if case.now is not None else suite.now)
    assert now is not None  # the rules have seen to it
    return WorkflowTest(
        loaded.plan,
        **merged,
        allow=(*suite.allow, *case.allow),
        now=now,
        folder=folder,
        resume=case.resume,
        wake=case.wake,
    )


def _unused(key: str, loaded: Loaded, at: tuple[str | int, ...]) -> Problem:
    what = f"the {'stub' if 'stubs' in at[:3] else 'answer'} `{key}` was never used"
    hint = "remove it, or see why the run did not come to its step"
    problem = Problem(code="TRM774", message=what, hint=hint, pointer=at)
    return msgspec.structs.replace(problem, position=loaded.document.position(at, key=True))


def _placed(problem: Problem, loaded: Loaded, at: tuple[str | int, ...]) -> Problem:
    """The problem with its place; a refused step also says where it stands in the workflow."""
    position = _position(loaded.document, at)
    related: tuple[Related, ...] = ()
    assert loaded.plan is not None
    if problem.code == "TRM772":
        path = problem.message.partition("`")[2].partition("`")[0]
        node = Steps(loaded.plan).at(path.partition(INTO)[0])
        source = loaded.plan.workflow.document
        if node is not None and source is not None:
            related = (Related(source.position(node.at), f"step `{node.id}` is here"),)
    return msgspec.structs.replace(problem, position=position, pointer=at, related=related)


def _position(document: Document, at: tuple[str | int, ...]) -> Position:
    if len(at) == 2 and at[0] == "tests":
        return document.position((*at, "name"))
    return document.position(at)
