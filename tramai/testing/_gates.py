"""What people say at the gates of a test's run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import deciding
from ..asking import APPROVED, REJECTED
from ..errors import TramaiError
from ..paths import without_rounds
from ._paths import Pattern
from ._script import Script
from .clock import FakeClock
from .suite import Decision

Answers = Sequence[tuple[Pattern, tuple[Decision, ...]]]


class People:
    """Everybody who is asked: each answer of a list is given once for each path, one after the other."""

    def __init__(self, answers: Answers, script: Script) -> None:
        self._answers = sorted(answers, key=lambda answer: answer[0].rank, reverse=True)
        self._script = script
        self._given: dict[str, int] = {}
        self._silent: set[str] = set()
        self.used: set[str] = set()

    def speak(self, store: Any, run_id: str, clock: FakeClock, before: str = "") -> bool:
        """Answer what is asked, as far as there are answers; whether anything was said.

        `before`: what stands before the paths of a run that another one calls.
        """
        said = False
        for one in deciding.look(store, run_id):
            while one.decision is None and not one.late(clock.now()):
                answer = self._next(before + one.path)
                if answer is None:
                    break
                pattern, decision = answer
                one = self._vote(store, run_id, one.path, pattern, decision, clock)
                said = True
        return said

    def waits(self, store: Any, run_id: str, instant: float, before: str = "") -> bool:
        """Whether an instant is the end of the time of a gate at which somebody might still say something."""
        ending = [one for one in deciding.look(store, run_id) if one.question.deadline == instant]
        return any(before + one.path not in self._silent for one in ending)

    def _next(self, path: str) -> tuple[Pattern, Decision] | None:
        for pattern, decisions in self._answers:
            if not pattern.fits(path):
                continue
            gate = without_rounds(path)  # one list for a question that is asked again
            number = self._given.get(gate, 0)
            if number >= len(decisions):
                return None
            self._given[gate] = number + 1
            self.used.add(pattern.text)
            if decisions[number].decision == "none":
                self._silent.add(path)
                return None
            self._silent.discard(path)
            return pattern, decisions[number]
        return None

    def _vote(self, store: Any, run_id: str, path: str, pattern: Pattern, said: Decision, clock: FakeClock) -> Any:
        try:
            decided = deciding.decide(
                store,
                run_id,
                path,
                decision=APPROVED if said.decision == "approve" else REJECTED,
                by=said.by,
                comment=said.comment,
                data=said.data,
                clock=clock,
            )
        except TramaiError as error:
            raise self._script.stop(error.code, str(error), pattern, error.hint, section="answers") from None
        return decided.open
