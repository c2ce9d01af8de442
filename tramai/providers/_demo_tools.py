"""What `demo:tools` does with tools: it uses them as the prompt says, else each of them once."""

from __future__ import annotations

import json
import re
from typing import Any

from ..provider import Call, Question
from ..step import StepError

_USE = re.compile(r"^[ \t]*use ([A-Za-z0-9_-]{1,64})[ \t]*(\{.*\})?[ \t\r]*$", re.MULTILINE)


def calls(question: Question) -> tuple[Call, ...]:
    """What is called next; nothing when all has been.

    `use NAME {"argument": 1}` on a line of its own is one round; without such lines there is one round of everything.
    """
    if not question.tools:
        return ()
    prompt = question.history[0].text if question.history else question.prompt
    done = sum(bool(turn.calls) for turn in question.history)
    said = _USE.findall(prompt)
    rounds = [[(name, _given(text))] for name, text in said] or [[(tool.name, None) for tool in question.tools]]
    if done >= len(rounds):
        return ()
    found = []
    for index, (name, given) in enumerate(rounds[done], start=1):
        call = Call(id=f"call-{done + 1}-{index}", name=name, arguments=given)
        found.append(call if given is not None else _sampled(call, question, prompt))
    return tuple(found)


def answers(question: Question) -> list[str]:
    """What the tools have answered, in order."""
    return [turn.text for turn in question.history if turn.role == "tool"]


def _given(text: str) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise StepError("invalid_output", f"demo:tools cannot read the arguments {text[:80]}") from None


def _sampled(call: Call, question: Question, prompt: str) -> Call:
    from ._sample import NoSample, sample

    schema: dict[str, Any] = next(
        (tool.schema for tool in question.tools if tool.name == call.name), {"type": "object"}
    )
    try:
        arguments = sample(schema, prompt)
    except NoSample as error:
        hint = f'say in the prompt what to use: use {call.name} {{"argument": "value"}}'
        raise StepError(
            "invalid_output", f"demo:tools cannot make up {error.where} of {call.name}", hint=hint
        ) from None
    return Call(id=call.id, name=call.name, arguments=arguments)
