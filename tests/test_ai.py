"""`ai` with services that answer by script."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tramai import engine, inputs, plan, provider, workflow
from tramai.errors import ExtraMissing
from tramai.provider import Answer, Question, Turn
from tramai.step import Done, Replay, StepError, Usage
from tramai.steps._answer import parse
from tramai.steps.ai import Ai
from tramai.stores import open_store

from .step_context import StepContext, made, run

EXAMPLE = Path(__file__).parent.parent / "workflows" / "ai.yaml"
SCHEMA = {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}
FITS = '{"risk": "low"}'


class Scripted:
    """Gives its answers one after another, and keeps what it was asked."""

    def __init__(self, *answers: Answer | str | StepError) -> None:
        self.answers = [Answer(text=item) if isinstance(item, str) else item for item in answers]
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, StepError):
            raise answer
        return answer


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*answers: Answer | str | StepError) -> Scripted:
        service = Scripted(*answers)
        monkeypatch.setattr(provider, "find", lambda name: service)
        return service

    return install


def ask(scope: dict[str, Any] | None = None, **settings: Any) -> Any:
    return run(made(Ai, **{"model": "fake:one", "prompt": "Why?", **settings}), StepContext(scope))


def failure(**settings: Any) -> StepError:
    with pytest.raises(StepError) as caught:
        ask(**settings)
    return caught.value


def test_the_answer_comes_with_its_usage_and_its_model(script: Any) -> None:
    service = script(Answer(text=" Because. ", usage=Usage(input_tokens=3, output_tokens=2), model="one-2026"))
    step = made(
        Ai,
        model="fake:${{ inputs.m }}",
        system="Be brief.",
        prompt="{% for q in inputs.qs %}${{ q }};{% endfor %}",
        temperature=0,
        max_output_tokens=9,
    )
    result = run(step, StepContext({"inputs": {"m": "one", "qs": ["a", "b"]}}))
    assert result == {
        "text": " Because. ",
        "usage": {"input_tokens": 3, "output_tokens": 2, "cost_usd": None},
        "model": "one-2026",
        "finish_reason": "stop",
    }
    assert step.output(result) == " Because. "
    (asked,) = service.asked
    assert asked.on_text is not None
    assert msgspec.structs.replace(asked, on_text=None) == Question(
        model="one", prompt="a;b;", system="Be brief.", temperature=0.0, max_output_tokens=9
    )


def test_with_a_schema_the_output_is_the_data(script: Any) -> None:
    service = script(FITS)
    result = ask(schema=SCHEMA)
    assert result["value"] == {"risk": "low"}
    assert result["model"] == "fake:one"
    assert made(Ai, model="a:b", prompt="x").output(result) == {"risk": "low"}
    assert service.asked[0].schema == SCHEMA


def test_data_that_the_service_parsed_itself_is_judged_too(script: Any) -> None:
    script(Answer(text="", value={"risk": "low"}))
    assert ask(schema=SCHEMA)["value"] == {"risk": "low"}
    script(Answer(text="", value={"risk": "none"}))
    assert failure(schema=SCHEMA, reask=0).type == "invalid_output"


@pytest.mark.parametrize("schema", [{"type": "null"}, {"const": None}])
def test_null_is_a_value(script: Any, schema: dict[str, Any]) -> None:
    script("null")
    result = ask(schema=schema)
    assert result["value"] is None
    assert made(Ai, model="a:b", prompt="x").output(result) is None


# Answers that are not whole.


@pytest.mark.parametrize("text", ['{"risk": "lo', FITS, "Because the"])
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_cut_answer_is_truncated_even_if_it_can_be_read(script: Any, text: str, schema: Any) -> None:
    service = script(Answer(text=text, finish_reason="length", usage=Usage(output_tokens=5)))
    settings = {"schema": schema} if schema else {}
    error = failure(max_output_tokens=5, **settings)
    assert error.type == "truncated"
    assert error.message == "the answer was cut at max_output_tokens=5"
    assert error.usage == Usage(output_tokens=5)
    assert len(service.asked) == 1


def test_a_cut_without_a_limit_of_ours_names_the_models(script: Any) -> None:
    script(Answer(text="x", finish_reason="length"))
    assert "model's own limit" in failure().message


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_an_empty_answer_is_an_error_and_not_asked_again(script: Any, schema: Any) -> None:
    service = script(Answer(text=" \n", finish_reason="tool_calls"))
    error = failure(**({"schema": schema} if schema else {}))
    assert error.type == "invalid_output"
    assert error.message == "the model returned nothing (finish reason: tool_calls)"
    assert len(service.asked) == 1


def test_a_refusal_is_an_error(script: Any) -> None:
    script(Answer(text="I cannot help.", finish_reason="refused"))
    assert failure().type == "refused"


def test_a_broken_answer_can_be_tried_again(script: Any) -> None:
    script(Answer(text="half", finish_reason="error"))
    assert failure().type == "network"


def test_an_empty_prompt_is_not_sent(script: Any) -> None:
    service = script("x")
    assert failure(prompt="${{ inputs.p }}\n", scope={"inputs": {"p": ""}}).type == "expression"
    assert service.asked == []


# Asking again.


def test_an_answer_that_does_not_fit_is_asked_again_with_the_problems(script: Any) -> None:
    used = Usage(input_tokens=10, output_tokens=1, cost_usd=0.5)
    service = script(
        Answer(text='{"risk": "none"}', usage=used), Answer(text="sorry", usage=used), Answer(text=FITS, usage=used)
    )
    outcome = asyncio.run(made(Ai, model="fake:one", prompt="Why?", schema=SCHEMA).run(StepContext()))
    assert isinstance(outcome, Done)
    assert outcome.result["value"] == {"risk": "low"}
    assert outcome.usage == Usage(input_tokens=30, output_tokens=3, cost_usd=1.5)
    assert outcome.result["usage"] == {"input_tokens": 30, "output_tokens": 3, "cost_usd": 1.5}
    second, third = service.asked[1:]
    assert "/risk" in second.prompt
    assert second.history == (Turn(role="user", text="Why?"), Turn(role="assistant", text='{"risk": "none"}'))
    assert "not JSON" in third.prompt
    assert third.history[2:] == (Turn(role="user", text=second.prompt), Turn(role="assistant", text="sorry"))
    assert third.schema == SCHEMA


@pytest.mark.parametrize(("reask", "calls"), [(0, 1), (1, 2), (2, 3)])
def test_the_number_of_re_asks_is_exact(script: Any, reask: int, calls: int) -> None:
    service = script(*["no"] * 9)
    error = failure(schema=SCHEMA, reask=reask)
    assert error.type == "invalid_output"
    assert len(service.asked) == calls
    assert ("once" if calls == 1 else f"{calls} times") in error.message


def test_an_unknown_price_makes_the_sum_unknown(script: Any) -> None:
    script(Answer(text="no", usage=Usage(cost_usd=0.1)), Answer(text=FITS, usage=Usage(input_tokens=1)))
    assert ask(schema=SCHEMA)["usage"]["cost_usd"] is None


def test_a_failure_of_the_service_keeps_what_was_spent_before(script: Any) -> None:
    script(Answer(text="no", usage=Usage(input_tokens=7)), StepError("rate_limited", "slow down", retry_after=3.0))
    error = failure(schema=SCHEMA)
    assert (error.type, error.retry_after, error.usage) == ("rate_limited", 3.0, Usage(input_tokens=7))


def test_errors_do_not_repeat_a_long_answer(script: Any) -> None:
    script(json.dumps({"risk": "x" * 5000}))
    assert len(failure(schema=SCHEMA, reask=0).message) < 500


# Reading an answer.


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x"}',
        '\ufeff {"a": "x"}\n',
        '```json\n{"a": "x"}\n```',
        '```JSON \n{"a": "x"}\n``` ',
        'Here you are:\n\n```json\n{\n  "a": "x"\n}\n```\nAnything else?',
        '  ```json\r\n{"a": "x"}\r\n  ```',
    ],
)
def test_json_is_found_whole_or_in_its_only_fence(text: str) -> None:
    assert parse(text) == {"a": "x"}


def test_backticks_inside_a_text_do_no_harm() -> None:
    payload = {"code": "```python\nprint(1)\n```", "more": ["```json", "```"]}
    assert parse(json.dumps(payload)) == payload
    assert parse(f"Sure.\n```json\n{json.dumps(payload, indent=2)}\n```\n") == payload


def test_integers_stay_exact() -> None:
    assert parse("[18446744073709551617]") == [2**64 + 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Sorry, no.", "not JSON"),
        ("```json\n```", "empty"),
        ("```json\n\n```", "empty"),
        ('```json\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```', "2 JSON fences"),
        ('```python\n{"a": 1}\n```', "not JSON"),
        ('```\n{"a": 1}\n```', "not JSON"),
        ('{"a": 1} {"a": 2}', "not JSON"),
        ("```json\n{oops}\n```", "fence in the answer is not JSON"),
        ("NaN", "not JSON"),
        ('{"a": Infinity}', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_anything_else_is_no_answer(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)


# What a file may say.


@pytest.mark.parametrize(
    ("model", "codes"),
    [
        ("demo:echo", []),
        ("openai:gpt-5", []),
        ("openai:org/model:tag", []),
        ("${{ inputs.model }}", []),
        ("demo:${{ inputs.model }}", []),
        ("gpt-5", ["TRM330"]),
        ("demo:", ["TRM330"]),
        (":echo", ["TRM330"]),
        ("dmeo:echo", ["TRM331"]),
    ],
)
def test_a_literal_model_is_checked(model: str, codes: list[str]) -> None:
    assert [finding.code for finding in made(Ai, model=model, prompt="x").check()] == codes


@pytest.mark.parametrize(
    "settings",
    [
        {"prompt": "x"},
        {"model": "a:b", "prompt": "x", "reask": 11},
        {"model": "a:b", "prompt": "x", "max_output_tokens": 0},
        {"model": "a:b", "prompt": "x", "temperature": 3},
        {"model": "a:b", "prompt": "x", "prompt_text": "y"},
    ],
)
def test_settings_of_a_wrong_shape_are_no_step(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        made(Ai, **settings)


@pytest.mark.parametrize(
    ("model", "needed"),
    [("demo:echo", False), ("openai:gpt-5", True), ("${{ inputs.model }}", True), ("demo:${{ inputs.model }}", True)],
)
def test_only_the_built_in_models_do_without_an_event_loop(model: str, needed: bool) -> None:
    step = made(Ai, model=model, prompt="x")
    assert step.needs_loop() is needed
    assert step.replay() is Replay.REPLAYABLE


def test_the_built_in_models_never_wait() -> None:
    step = made(Ai, model="demo:echo", prompt="x", schema=SCHEMA)
    with pytest.raises(StopIteration) as ended:
        step.run(StepContext()).send(None)
    assert ended.value.value.result["value"] == {"risk": "low"}


# Finding a provider.


def test_a_model_from_an_input_is_checked_when_it_is_used() -> None:
    error = failure(model="${{ inputs.m }}", scope={"inputs": {"m": "gpt"}})
    assert error.type == "refused"
    assert "provider:name" in error.message
    error = failure(model="nobody:x")
    assert error.type == "refused"
    assert error.hint is not None
    assert "demo" in error.hint


def test_a_service_of_an_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match="'openai' needs the extra 'ai'"):
        ask(model="openai:x")


# The example.


def test_the_example_sorts_a_message_offline() -> None:
    made_plan = plan.of(workflow.load(str(EXAMPLE)))
    result = engine.run(made_plan, inputs.bind(made_plan.workflow.inputs, {}), store=open_store("memory:"))
    assert result.status == "completed"
    assert result.outputs == {
        "urgency": "high",
        "summary": "The export has been broken for all customers since Monday. How urgent",
    }


def test_a_failed_question_fails_the_run() -> None:
    made_plan = plan.of(workflow.load(str(EXAMPLE)))
    given = inputs.bind(made_plan.workflow.inputs, {"model": "demo:truncate"})
    result = engine.run(made_plan, given, store=open_store("memory:"))
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["type"] == "truncated"
