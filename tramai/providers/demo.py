"""`demo:`: the built-in models, which need no network, no key and no money, and always answer the same."""

from __future__ import annotations

import json

from ..codec import Json
from ..provider import Answer, Question
from ..step import StepError, Usage
from . import _demo_tools

MODELS = ("echo", "invalid", "truncate", "empty", "refuse", "fail", "tools")
_WRONG: tuple[Json, ...] = ({"demo": "this does not fit"}, "this does not fit", None, 0)


class Demo:
    """`demo:echo` answers with the prompt, or with data that fits the schema; `demo:tools` with what its tools gave.
    The others go wrong on purpose."""

    async def ask(self, question: Question) -> Answer:
        """Answer at once. Every word counts as a token, and costs nothing."""
        if question.model not in MODELS:
            known = ", ".join(f"demo:{name}" for name in MODELS)
            raise StepError("refused", f"there is no model demo:{question.model}", hint=f"there are {known}")
        if question.model == "fail":
            raise StepError("network", "the model demo:fail fails on every call, as its name says")
        if question.model == "tools" and (wanted := _demo_tools.calls(question)):
            spent = _usage(question, " ".join(call.name for call in wanted))
            return Answer(text="", finish_reason="tools", usage=spent, model="demo:tools", calls=wanted)
        text = "" if question.model in ("empty", "refuse") else _text(question)
        limit = question.max_output_tokens
        if question.model == "truncate":
            limit = max(1, len(text.split()) // 2)
        cut = limit is not None and (len(text.split()) > limit or question.model == "truncate")
        if cut:
            text = _first(text, limit)
        reason = "refused" if question.model == "refuse" else "length" if cut else "stop"
        return Answer(text=text, finish_reason=reason, usage=_usage(question, text), model=f"demo:{question.model}")


def _text(question: Question) -> str:
    prompt = question.history[0].text if question.history else question.prompt
    given = _demo_tools.answers(question) if question.model == "tools" else []
    if question.schema is None:
        return "\n".join(given) if given else prompt.strip()
    if given and _fits(given[-1], question.schema):
        return given[-1]
    if question.model == "invalid" and not question.history:
        return _wrong(question.schema)
    from ._sample import NoSample, sample

    try:
        value = sample(question.schema, prompt)
    except NoSample as error:
        hint = "give the part an `enum`, a `default` or `examples`, or use a real model"
        raise StepError("invalid_output", f"demo:{question.model} cannot make up {error.where}", hint=hint) from None
    return json.dumps(value, ensure_ascii=False)


def _fits(text: str, schema: dict[str, object]) -> bool:
    from ..schema import schema_problems

    try:
        return not schema_problems(json.loads(text), schema)
    except ValueError:
        return False


def _wrong(schema: dict[str, object]) -> str:
    """Data that does not fit; no JSON at all where everything fits."""
    from ..schema import schema_problems

    return next((json.dumps(value) for value in _WRONG if schema_problems(value, schema)), "this is no JSON")


def _first(text: str, words: int | None) -> str:
    return " ".join(text.split()[:words])


def _usage(question: Question, text: str) -> Usage:
    asked = [question.system or "", question.prompt, *(turn.text for turn in question.history)]
    return Usage(input_tokens=sum(len(part.split()) for part in asked), output_tokens=len(text.split()), cost_usd=0.0)
