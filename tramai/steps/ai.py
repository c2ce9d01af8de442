"""`ai`: ask a model once."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .. import kinds, provider
from ..attached import PromptFile
from ..codec import Json, sha256
from ..errors import Pointer
from ..expression import Prompt, Text, suggest
from ..provider import Answer, Provider, Question, Turn
from ..running import Context, Known
from ..step import Done, Finding, Outcome, Replay, Step, StepError, Usage
from . import _answer, _asks

_SHOWN = 5


class Ai(Step, frozen=True, kw_only=True):
    """Ask a model one question. An answer that is cut, empty, refused or does not fit `schema` fails the step."""

    default_replay: ClassVar[Replay] = Replay.REPLAYABLE
    straight: ClassVar[bool] = False

    model: Annotated[Text, Meta(description="The model as `provider:name`.", examples=["demo:echo", "openai:gpt-5"])]
    prompt: Annotated[Prompt | None, Meta(description="The question.")] = None
    prompt_file: Annotated[
        PromptFile | None,
        Meta(
            description="A file with the question, from the folder of the workflow file; its text is a template too.",
            examples=["prompts/review.md"],
        ),
    ] = None
    system: Annotated[Prompt | None, Meta(description="Instructions that stand before the question.")] = None
    schema: Annotated[
        dict[str, Any] | None, Meta(description="A JSON Schema: the answer is data of this shape, not text.")
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="How freely the model chooses its words.")
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The longest answer; a longer one fails the step.")
    ] = None
    reask: Annotated[
        int, Meta(ge=0, le=10, description="How often to ask again when the answer does not fit `schema`.")
    ] = 2

    def needs_loop(self) -> bool:
        """A real service is waited for; the built-in one answers at once."""
        return not self.model.text.startswith("demo:") or "${{" in self.model.text

    def output(self, result: Any) -> Json:
        """The data with `schema`, the text without."""
        return _asks.output(result)

    def shape(self, known: Known) -> dict[str, Any] | None:
        """What `schema` says, or text."""
        return _asks.shape(self.schema)

    def record(self, known: Known) -> dict[str, Any] | None:
        """The answer, what it cost and how it ended."""
        text = {"type": "string"}
        return _asks.record(self.schema, model=text, finish_reason=text)

    def check(self) -> tuple[Finding, ...]:
        """A literal model that is spelled as one, of a provider that exists."""
        wrong = _asks.one_prompt("ai", self.prompt, self.prompt_file, "say what the model is asked")
        if wrong:
            return tuple(wrong)
        if "${{" in self.model.text:
            return ()
        try:
            service, _ = provider.split(self.model.text.strip())
        except ValueError as error:
            return (Finding(("model",), "TRM330", f"`{self.model.text[:80]}` is no model", str(error)),)
        known = (*kinds.names("providers"), *provider.SERVICES)
        if service in known:
            return ()
        near = suggest(service, known)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
        return (Finding(("model",), "TRM331", f"there is no model provider `{service[:80]}`", hint),)

    def attached(self) -> tuple[tuple[Pointer, PromptFile], ...]:
        """The file of the prompt."""
        return _asks.attached(self.prompt_file)

    def note(self, result: Any) -> str | None:
        """What it consumed."""
        return _asks.note(result)

    async def run(self, ctx: Context) -> Outcome:
        """Ask, and with a schema ask again until the answer fits."""
        model = ctx.text(self.model).strip()
        try:
            service, name = provider.split(model)
        except ValueError as error:
            raise StepError("refused", str(error)) from None
        question = Question(
            model=name,
            prompt=ctx.text(_asks.prompt_of(self.prompt, self.prompt_file)),
            system=ctx.text(self.system) if self.system is not None else None,
            schema=self.schema,
            temperature=self.temperature,
            max_output_tokens=self.max_output_tokens,
        )
        if not question.prompt.strip():
            raise StepError("expression", "the prompt is empty")
        return await _Talk(provider.find(service), model, question, self.reask, ctx).run()


class _Talk:
    """One question and its re-asks, and what all of them cost together."""

    def __init__(self, service: Provider, model: str, question: Question, reask: int, ctx: Context) -> None:
        self._service = service
        self._model = model
        self._question = question
        self._reask = reask
        self._usage: Usage | None = None
        self._signal = ctx.signal
        self._asked = 0

    async def run(self) -> Done:
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
            answer = await self._ask(question)
            if question.schema is None:
                return self._done(answer)
            value, problems = _judge(answer, question.schema)
            if not problems:
                return self._done(answer, value=value)
            if left:
                self._signal("ai.reasked", asked=self._asked, problems=len(problems))
                question = _again(question, answer, problems)
        times = f"{self._reask + 1} times" if self._reask else "once"
        raise self._error(
            "invalid_output", f"the model was asked {times} and did not answer as the schema wants: {problems[0]}"
        )

    async def _ask(self, question: Question) -> Answer:
        """One answer that is whole; its usage is counted, also when it is not."""
        try:
            answer = await self._service.ask(question)
        except StepError as error:
            error.usage = _sum(self._usage, error.usage)
            raise
        self._usage = _sum(self._usage, answer.usage)
        self._asked += 1
        if answer.finish_reason == "length":
            limit = question.max_output_tokens
            where = f"max_output_tokens={limit}" if limit is not None else "the model's own limit of output tokens"
            raise self._error("truncated", f"the answer was cut at {where}", "raise max_output_tokens, or ask for less")
        if answer.finish_reason == "refused":
            raise self._error("refused", "the model refused to answer")
        if answer.finish_reason == "error":
            raise self._error("network", "the model service broke off its answer")
        if answer.value is None and not answer.text.strip():
            raise self._error("invalid_output", f"the model returned nothing (finish reason: {answer.finish_reason})")
        return answer

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
        told = {"usage": spent, "model": model, "finish_reason": answer.finish_reason}
        return Done({"text": answer.text, **value, **told}, usage=usage)


def _sum(left: Usage | None, right: Usage | None) -> Usage | None:
    """Both together; the price is known only if both are."""
    if left is None or right is None:
        return left or right
    known = left.cost_usd is not None and right.cost_usd is not None
    return Usage(
        input_tokens=left.input_tokens + right.input_tokens,
        output_tokens=left.output_tokens + right.output_tokens,
        cost_usd=(left.cost_usd or 0.0) + (right.cost_usd or 0.0) if known else None,
    )


def _judge(answer: Answer, schema: dict[str, Any]) -> tuple[Any, list[str]]:
    """The answer's data, and what is wrong with it."""
    value = answer.value
    if value is None:
        try:
            value = _answer.parse(answer.text)
        except ValueError as error:
            return None, [str(error)]
    return value, _answer.problems(value, schema)


def _again(question: Question, answer: Answer, problems: list[str]) -> Question:
    """The same conversation, one turn longer."""
    listed = "\n".join(f"- {problem}" for problem in problems[:_SHOWN])
    prompt = (
        f"Your last answer cannot be used:\n{listed}\n"
        "Answer again with the corrected JSON only: no text around it, no code fence."
    )
    said = answer.text or json.dumps(answer.value)
    turns = (*question.history, Turn(role="user", text=question.prompt), Turn(role="assistant", text=said))
    return msgspec.structs.replace(question, prompt=prompt, history=turns)
