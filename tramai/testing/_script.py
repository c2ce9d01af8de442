"""What the stubs of one run answer, and what was asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct

from ..errors import Problem
from ..step import StepError, Usage
from ._paths import Pattern
from .suite import Answer, Failure, Spent

Answers = Answer | tuple[Answer, ...]


class Stop(BaseException):
    """Ends the run of a test at once, and no `catch` of its workflow can help it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


class Call(Struct, frozen=True, kw_only=True):
    """One attempt of a stubbed step: what it was given, as the file names it, and whether it was let succeed."""

    step: str
    path: str
    verb: str
    attempt: int
    given: dict[str, Any]
    succeeded: bool

    def names(self) -> dict[str, Any]:
        """What expressions see of it."""
        return {"step": self.step, "path": self.path, "attempt": self.attempt, "given": self.given}


class Script:
    """The answers of one run. `stubs` are tried in order; `again` lets the last answer of a list be given again."""

    def __init__(self, stubs: Sequence[tuple[Pattern, Answers]], *, again: bool = False) -> None:
        self._stubs = sorted(stubs, key=lambda stub: stub[0].rank, reverse=True)
        self._again = again
        self._turns: dict[str, dict[str, int]] = {}
        self.calls: list[Call] = []
        self.used: set[str] = set()
        self.void: dict[str, int] = {}
        """How many attempts of a path a crash has made nothing of."""
        self.stopped: Stop | None = None

    def meant(self, path: str) -> tuple[Pattern, Answers] | None:
        """The stub for a path."""
        return next((stub for stub in self._stubs if stub[0].fits(path)), None)

    @property
    def patterns(self) -> list[Pattern]:
        """Which steps it has answers for."""
        return [pattern for pattern, _ in self._stubs]

    def answer(self, path: str, attempt: int) -> Answer | None:
        """The answer to an attempt, None where no stub is meant for the path. Stop when there is none left."""
        stub = self.meant(path)
        if stub is None:
            return None
        pattern, answers = stub
        self.used.add(pattern.text)
        if not isinstance(answers, tuple) and answers.each:
            answers = self._turn(pattern, path, answers.each)
        if not isinstance(answers, tuple):
            return answers
        number = attempt - 1 - self.void.get(path, 0)
        if number >= len(answers) and self._again:
            number = len(answers) - 1
        if number >= len(answers):
            raise self.stop(
                "TRM775",
                f"the stub `{pattern.text}` has {_count(len(answers), 'answer')}, and `{path}` is attempted once more",
                pattern,
                "add an answer, or lower the step's `retry.max_attempts`",
            )
        return answers[number]

    def _turn(self, pattern: Pattern, path: str, each: tuple[Answers, ...]) -> Answers:
        """The answer for this turn: a path keeps the one that it was given first."""
        seen = self._turns.setdefault(pattern.text, {})
        number = seen.setdefault(path, len(seen))
        if number >= len(each):
            what = f"the stub `{pattern.text}` has answers for {_count(len(each), 'turn')}, and `{path}` is one more"
            raise self.stop("TRM775", what, pattern, "add an answer to `each`")
        return each[number]

    def stop(
        self, code: str, message: str, pattern: Pattern | None = None, hint: str | None = None, section: str = "stubs"
    ) -> Stop:
        """The end of the run; whatever runs after it is ended, too."""
        pointer = () if pattern is None else (section, pattern.text)
        self.stopped = Stop(Problem(code=code, message=message, hint=hint, pointer=pointer))
        return self.stopped


def failure(said: Failure) -> StepError:
    """The error of an attempt, with what an error of its type carries."""
    details: dict[str, Any] = {}
    kind, _, number = said.type.partition(".")
    if said.exit_code is not None or (kind == "exit" and number.isdigit()):
        details["exit_code"] = said.exit_code if said.exit_code is not None else int(number)
    if said.status is not None or (kind == "http" and number.isdigit()):
        details["status"] = said.status if said.status is not None else int(number)
    if said.body is not UNSET:
        details["body"] = said.body
    if said.output is not None:
        details["output"] = said.output
    return StepError(said.type, said.message, retry_after=said.retry_after, details=details)


def usage(spent: Spent | None) -> Usage | None:
    """What the journal counts."""
    if spent is None:
        return None
    return Usage(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=spent.cost_usd)


def merged(*layers: Mapping[str, Answers]) -> dict[str, Answers]:
    """The stubs of a file and of a test, the latter first."""
    found: dict[str, Answers] = {}
    for layer in layers:
        found.update(layer)
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
