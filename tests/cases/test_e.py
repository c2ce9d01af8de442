"""Steps that ask a model, with a service that answers by script."""

from __future__ import annotations

from typing import Any

import pytest

from tramai import provider
from tramai.provider import Answer, Question

from .support import attempts, call, save, shown

FENCE = "```"
SCHEMA = "schema: {type: object, required: [a], properties: {a: {type: string}}}"


class Script:
    """Gives its answers one after another, the last one for ever, and counts the questions."""

    def __init__(self, *answers: Answer | str) -> None:
        self.answers = [Answer(text=item) if isinstance(item, str) else item for item in answers]
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*answers: Answer | str) -> Script:
        service = Script(*answers)
        monkeypatch.setattr(provider, "find", lambda name: service)
        return service

    return install


def asking(settings: str = "", common: str = "") -> str:
    """A workflow of one question."""
    return save(
        f"- {{id: ask, ai: {{model: 'demo:script', prompt: Why?, {settings}}}, {common}}}",
        "outputs: {it: '${{ steps.ask.output }}'}",
    )


# E01


@pytest.mark.parametrize("text", ['{"a": "secret te', '{"a": "secret text"}', "secret text that is c"])
@pytest.mark.parametrize("schema", [SCHEMA, ""])
def test_a_cut_answer_fails_with_the_limit_and_is_asked_once(script: Any, text: str, schema: str) -> None:
    service = script(Answer(text=text, finish_reason="length"))
    ended = call("run", asking(f"max_output_tokens: 5, {schema}"))
    assert (ended.status, ended.error["type"]) == (1, "truncated")
    assert ended.error["message"] == "the answer was cut at max_output_tokens=5"
    assert "secret" not in str(ended) + str(shown())
    assert len(service.asked) == 1


# E02


@pytest.mark.parametrize(
    "text",
    [
        f'{FENCE}json\n{{"a": "x"}}\n{FENCE}',
        f'Here it is:\n\n{FENCE}json\n{{"a": "x"}}\n{FENCE}\nGood luck!',
        '{"a": "x"}',
    ],
)
def test_fenced_json_is_the_payload(script: Any, text: str) -> None:
    service = script(text)
    assert call("run", asking(SCHEMA)).outputs == {"it": {"a": "x"}}
    assert len(service.asked) == 1


def test_backticks_inside_a_value_survive(script: Any) -> None:
    script(f'{FENCE}json\n{{"a": "{FENCE}py\\nprint()\\n{FENCE}"}}\n{FENCE}')
    assert call("run", asking(SCHEMA)).outputs == {"it": {"a": f"{FENCE}py\nprint()\n{FENCE}"}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{FENCE}json\n{FENCE}", "empty"),
        (f'{FENCE}json\n{{"a": "1"}}\n{FENCE}\nor\n{FENCE}json\n{{"a": "2"}}\n{FENCE}', "2 JSON fences"),
    ],
)
@pytest.mark.parametrize(("reask", "questions"), [("", 3), ("reask: 0", 1)])
def test_no_candidate_or_two_fail_after_the_re_asks(
    script: Any, text: str, reason: str, reask: str, questions: int
) -> None:
    service = script(text)
    ended = call("run", asking(f"{SCHEMA}, {reask}"))
    assert (ended.status, ended.error["type"]) == (1, "invalid_output")
    assert reason in ended.error["message"]
    assert len(service.asked) == questions


# E06


def test_a_limit_holds_over_retries_and_resumes_and_nothing_is_paid_twice(script: Any) -> None:
    service = script("fine", *[Answer(text="x", finish_reason="error")] * 3, "fine")
    steps = """
        - {id: paid, ai: {model: "demo:script", prompt: One.}}
        - {id: two, local: 2}
        - id: ask
          ai: {model: "demo:script", prompt: Two.}
          retry: {max_attempts: 2, delay: 0s}
        - {id: last, local: 4}
        """
    save(steps, "limits: {max_step_executions: 5}")
    assert call("run", "case.yaml").status == 1  # executions 1 to 4
    first = call("resume", "@last")  # the fifth fails, and there is none for its retry
    second = call("resume", "@last")
    for ended in (first, second):
        assert (ended.status, ended.error["type"], ended.error["step"]) == (1, "limit", "ask")
        assert "5 step executions" in ended.error["message"]
    assert attempts(shown())["ask"] == ["failed"] * 3
    assert len(service.asked) == 4
    save(steps, "limits: {max_step_executions: 8}")
    ended = call("resume", "@last", "--accept-changes")
    assert ended.status == 0
    assert ended.step_ends() == [("paid", "replayed"), ("two", "replayed"), ("ask", "succeeded"), ("last", "succeeded")]
    assert len(service.asked) == 5
    assert [question.prompt for question in service.asked].count("One.") == 1
