"""A model service for tests that answers by script, with calls of tools among its answers."""

from __future__ import annotations

from typing import Any

from tramai.provider import Answer, Call, Question, Turn
from tramai.step import Usage

SPENT = Usage(input_tokens=10, output_tokens=5, cost_usd=0.25)


class Scripted:
    """Gives its answers one after another, and keeps what it was asked."""

    def __init__(self, *answers: Answer | BaseException) -> None:
        self.answers = answers
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def turns(self) -> list[Turn]:
        """What the tools answered, as the model saw it last."""
        return [turn for turn in self.asked[-1].history if turn.role == "tool"]


def wants(*calls: tuple[str, Any], text: str = "") -> Answer:
    """An answer that wants tools used."""
    made = tuple(Call(id=f"c{index}", name=name, arguments=given) for index, (name, given) in enumerate(calls))
    return Answer(text=text, finish_reason="tools", calls=made, usage=SPENT)


def says(text: str) -> Answer:
    """An answer without calls."""
    return Answer(text=text, usage=SPENT)
