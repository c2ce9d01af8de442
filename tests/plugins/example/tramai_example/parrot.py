"""`parrot:`: a model provider that says everything again."""

from __future__ import annotations

from tramai.provider import Answer, Question
from tramai.step import Usage


class Parrot:
    """Says the prompt again, as often as the name of the model tells."""

    async def ask(self, question: Question) -> Answer:
        """Say it."""
        times = int(question.model) if question.model.isdigit() else 1
        return Answer(text=" ".join([question.prompt] * times), usage=Usage(input_tokens=1, output_tokens=times))
