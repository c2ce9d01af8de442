"""Answers of model services as their client gives them: tools of any name, ids that repeat, arguments of any depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.extras import loaded, needs
from tramai.provider import Turn

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

__all__ = ["loaded"]

EXTRA = needs("ai", "pydantic_ai.messages")


@pytest.fixture
def wire(loaded: None) -> Any:
    """What is tried here; it loads the client."""
    from tramai.providers import _service_wire

    return _service_wire


def response(name: str, args: str, *, id: str = "call_0", text: str = "") -> ModelResponse:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    return ModelResponse(parts=[TextPart(text), ToolCallPart(tool_name=name, args=args, tool_call_id=id)])


def test_a_tool_that_is_called_answer_is_a_tool_where_tools_are_offered(wire: Any) -> None:
    found = wire.answer(response("answer", '{"q": 1}'), "m", {}, offered=True)
    assert found.value is None
    assert [(call.name, call.arguments) for call in found.calls] == [("answer", {"q": 1})]
    found = wire.answer(response("answer", '{"q": 1}'), "m", {})
    assert (found.value, found.calls) == ({"q": 1}, ())


@pytest.mark.parametrize("second", ['{"q": 2}', '{"q": 1}'], ids=["other", "same"])
def test_a_server_that_gives_every_call_the_same_id_gets_each_answer_back_in_its_place(wire: Any, second: str) -> None:
    from pydantic_ai.messages import ModelResponse

    said: dict[str, Any] = {}
    given = [response("find", '{"q": 1}', text="first"), response("find", second, text="second")]
    history: list[Turn] = []
    for one in given:
        found = wire.answer(one, "m", said, offered=True)
        history.append(Turn(role="assistant", text=found.text, calls=found.calls))
        history.append(Turn(role="tool", text="r", id="call_0", name="find"))
    sent = [one for one in wire._messages("", history, said) if isinstance(one, ModelResponse)]
    assert [one is other for one, other in zip(sent, given, strict=True)] == [True, True]


def test_arguments_that_are_nested_without_end_are_no_arguments(wire: Any) -> None:
    deep = "[" * 100_000
    found = wire.answer(response("find", deep), "m", {}, offered=True)
    assert found.calls[0].arguments == deep
