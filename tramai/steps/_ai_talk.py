"""The conversation of an `ai` step: asked, let use its tools, and asked again until the answer fits."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ..codec import Json, sha256
from ..provider import Answer, Provider, Question, Turn
from ..running import Context
from ..step import Done, StepError, Usage
from . import _answer
from ._ai_calls import Desk
from ._guard import Watch

_SHOWN = 5


class Talk:
    """One question, its tools and re-asks, and what all of them cost together."""

    def __init__(
        self,
        service: Provider,
        model: str,
        question: Question,
        reask: int,
        ctx: Context,
        desk: Desk | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._service = service
        self._model = model
        self._question = question
        self._reask = reask
        self._ctx = ctx
        self._desk = desk
        self._watch = watch
        self._usage: Usage | None = None
        self._signal = ctx.signal
        self._asked = 0

    async def run(self) -> Done:
        """The answer; every failure has what it cost."""
        service, _, name = self._model.partition(":")
        told = len(self._question.prompt.encode("utf-8", "surrogatepass"))
        self._signal("ai.started", provider=service, model_digest=sha256(name)[:16], prompt_bytes=told)
        try:
            return await self._converse()
        except StepError as error:
            self._signal("ai.failed", error_type=error.type)
            raise

    async def _converse(self) -> Done:
        question, problems = self._question, [""]
        for left in range(self._reask, -1, -1):
            question, answer = await self._answered(question)
            if question.schema is None:
                self._look(answer)
                return self._done(answer)
            value, problems = judge(answer, question.schema)
            self._look(answer, value)
            if not problems:
                return self._done(answer, value=value)
            if left:
                self._signal("ai.reasked", asked=self._asked, problems=len(problems))
                question = _again(question, answer, problems)
        times = f"{self._reask + 1} times" if self._reask else "once"
        raise self._error(
            "invalid_output", f"the model was asked {times} and did not answer as the schema wants: {problems[0]}"
        )

    async def _answered(self, question: Question) -> tuple[Question, Answer]:
        """An answer without calls, and the question that it is the answer to."""
        answer = await self._ask(question)
        while self._desk is not None and answer.calls:
            turns = await self._used(self._desk, answer)
            question = msgspec.structs.replace(question, prompt="", history=(*_said(question, answer), *turns))
            answer = await self._ask(question)
        return question, answer

    async def _used(self, desk: Desk, answer: Answer) -> list[Turn]:
        """What the tools answer, one after another."""
        turns = []
        try:
            desk.room(len(answer.calls))
            for call in answer.calls:
                self._go_on()
                turn, usage = await desk.carry_out(call)
                self._usage = add(self._usage, usage)
                turns.append(turn)
        except StepError as error:
            error.usage = add(self._usage, error.usage)
            raise
        return turns

    def _go_on(self) -> None:
        """Nothing more is begun when the run has used what it may use."""
        if self._usage is not None:
            self._ctx.spent(self._usage)

    async def _ask(self, question: Question) -> Answer:
        """One answer that is whole; its usage is counted, also when it is not."""
        try:
            self._go_on()
            answer = await self._service.ask(question)
        except StepError as error:
            error.usage = add(self._usage, error.usage)
            raise
        self._usage = add(self._usage, answer.usage)
        self._asked += 1
        if answer.finish_reason == "length":
            limit = question.max_output_tokens
            where = f"max_output_tokens={limit}" if limit is not None else "the model's own limit of output tokens"
            raise self._error("truncated", f"the answer was cut at {where}", "raise max_output_tokens, or ask for less")
        if answer.finish_reason == "refused":
            raise self._error("refused", "the model refused to answer")
        if answer.finish_reason == "error":
            raise self._error("network", "the model service broke off its answer")
        if self._desk is not None and answer.calls:
            return answer
        if answer.value is None and not answer.text.strip():
            raise self._error("invalid_output", f"the model returned nothing (finish reason: {answer.finish_reason})")
        return answer

    def _look(self, answer: Answer, value: Any = None) -> None:
        """Let the guard see what nobody else sees before."""
        if self._watch is None:
            return
        try:
            self._watch.judge(answer.text, value)
        except StepError as error:
            error.usage = self._usage
            raise

    def _error(self, type: str, message: str, hint: str | None = None) -> StepError:
        return StepError(type, message, hint=hint, usage=self._usage)

    def _done(self, answer: Answer, **value: Json) -> Done:
        usage = self._usage or Usage()
        spent = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
        }
        model = answer.model or self._model
        self._signal(
            "ai.completed",
            asked=self._asked,
            finish_reason=answer.finish_reason,
            response_bytes=len(answer.text.encode("utf-8", "surrogatepass")),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
        )
        told: dict[str, Json] = {"usage": spent, "model": model, "finish_reason": answer.finish_reason}
        if self._desk is not None:
            told["calls"] = self._desk.calls
        return Done({"text": answer.text, **value, **told}, usage=usage)


def add(left: Usage | None, right: Usage | None) -> Usage | None:
    """Both together; the price is known only if both are."""
    if left is None or right is None:
        return left or right
    known = left.cost_usd is not None and right.cost_usd is not None
    return Usage(
        input_tokens=left.input_tokens + right.input_tokens,
        output_tokens=left.output_tokens + right.output_tokens,
        cost_usd=(left.cost_usd or 0.0) + (right.cost_usd or 0.0) if known else None,
        executions=left.executions + right.executions,
    )


def judge(answer: Answer, schema: dict[str, Any]) -> tuple[Any, list[str]]:
    """The answer's data, and what is wrong with it."""
    value = answer.value
    if value is None:
        try:
            value = _answer.parse(answer.text)
        except ValueError as error:
            return None, [str(error)]
    return value, _answer.problems(value, schema)


def _said(question: Question, answer: Answer) -> tuple[Turn, ...]:
    """The conversation up to and with an answer."""
    asked = (Turn(role="user", text=question.prompt),) if question.prompt else ()
    text = answer.text if answer.text or answer.value is None else json.dumps(answer.value)
    return (*question.history, *asked, Turn(role="assistant", text=text, calls=answer.calls))


def _again(question: Question, answer: Answer, problems: list[str]) -> Question:
    """The same conversation, one turn longer."""
    listed = "\n".join(f"- {problem}" for problem in problems[:_SHOWN])
    prompt = (
        f"Your last answer cannot be used:\n{listed}\n"
        "Answer again with the corrected JSON only: no text around it, no code fence."
    )
    answer = msgspec.structs.replace(answer, calls=())
    return msgspec.structs.replace(question, prompt=prompt, history=_said(question, answer))
