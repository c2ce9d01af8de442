"""Real clients of model services against a server on loopback: four languages, and everything that goes wrong."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tramai import provider
from tramai.provider import Account, Answer, Call, Price, Question, Tool, Turn
from tramai.step import StepError

from .extras import loaded, needs
from .model_formats import FORMATS, IN, OUT
from .model_service import ModelService, led_there, one_authority, server

__all__ = ["led_there", "loaded", "one_authority", "server"]

EXTRA = needs("ai", "pydantic_ai")

# Others' words for programmers, which users never see: models that a vendor will take away, settings left out.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

MODELS = {
    "openai": "gpt-5-mini",
    "openai-responses": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "google": "gemini-2.5-flash",
}
SCHEMA = {
    "type": "object",
    "properties": {"risk": {"type": "string", "enum": ["low", "high"]}},
    "required": ["risk"],
    "additionalProperties": False,
}
RECURSIVE = {"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}
TOOL = Tool(
    name="weather",
    description="The weather of a city.",
    schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@pytest.fixture(params=[each.service for each in FORMATS])
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def ask(service: str, prompt: str, *, account: Account | None = None, streamed: bool = False, **given: Any) -> Answer:
    given.setdefault("model", MODELS.get(service, "some-model"))
    if streamed:
        given.setdefault("on_text", lambda text: None)
    return asyncio.run(provider.find(service, account).ask(Question(prompt=prompt, **given)))


def failure(service: str, prompt: str, **given: Any) -> StepError:
    with pytest.raises(StepError) as caught:
        ask(service, prompt, **given)
    return caught.value


def test_an_answer_has_its_text_its_usage_and_its_cost(service: str, streamed: bool) -> None:
    answer = ask(service, "Say it.", streamed=streamed)
    assert answer.text == "echo of what was asked"
    assert answer.finish_reason == "stop"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (IN, OUT)
    assert answer.model == f"{service}:{MODELS[service]}"
    # 400 of the 1,000 tokens were cached, and cost a tenth (a quarter at Google's old prices).
    assert answer.usage.cost_usd is not None
    uncached = {"openai": 0.00065, "openai-responses": 0.00065, "anthropic": 0.006, "google": 0.0008}[service]
    assert 0.5 * uncached < answer.usage.cost_usd < uncached


def test_the_pieces_of_a_stream_are_handed_on_as_they_come(service: str) -> None:
    pieces: list[str] = []
    answer = ask(service, "Say it.", on_text=pieces.append)
    assert "".join(pieces) == answer.text
    assert len(pieces) == 5


def test_what_was_asked_reaches_the_service(service: str, server: ModelService) -> None:
    ask(service, "Say it.", system="Be brief.", temperature=0.5, max_output_tokens=77)
    ((headers, body),) = server.asked
    sent = json.dumps(body)
    assert "Say it." in sent
    assert "Be brief." in sent
    assert ": 77" in sent
    key = f"key-of-{service.partition('-')[0]}"
    assert any(key in value for value in headers.values())


FAULTS = [
    ("[[status 401]]", "auth"),
    ("[[status 403]]", "auth"),
    ("[[status 429]]", "rate_limited"),
    ("[[status 500]]", "network"),
    ("[[status 503]]", "network"),
    ("[[status 400]]", "refused"),
    ("[[status 404]]", "refused"),
    ("[[malformed]]", "network"),
]


@pytest.mark.parametrize(("prompt", "expected"), FAULTS)
def test_a_fault_has_its_type_and_is_one_request(
    service: str, streamed: bool, prompt: str, expected: str, server: ModelService
) -> None:
    error = failure(service, f"A secret thing. {prompt}", streamed=streamed)
    assert error.type == expected
    assert len(server.asked) == 1, "the library's own retries are off"
    told = f"{error.message} {error.hint}"
    assert service in told
    assert "key-of-" not in told
    assert "secret thing" not in told


def test_a_rate_limit_says_how_long_to_wait(service: str, streamed: bool) -> None:
    assert failure(service, "[[status 429]] [[wait 7]]", streamed=streamed).retry_after == 7.0


@pytest.mark.parametrize("how", ["[[cut]]", "[[reset]]"])
def test_a_stream_that_is_cut_is_no_answer(service: str, how: str, server: ModelService) -> None:
    error = failure(service, how, streamed=True)
    assert error.type == "network"
    assert "ended early" in error.message or "broke off" in error.message
    assert "echo" not in error.message
    assert len(server.asked) == 1


def test_a_stream_without_its_last_line_is_whole_once_its_end_was_said(service: str) -> None:
    assert ask(service, "[[late]]", streamed=True).text == "echo of what was asked"


def test_an_answer_that_was_cut_or_refused_or_is_empty_says_so(service: str, streamed: bool) -> None:
    assert ask(service, "[[truncated]]", streamed=streamed).finish_reason == "length"
    assert ask(service, "[[refuse]]", streamed=streamed).finish_reason == "refused"
    empty = ask(service, "[[empty]]", streamed=streamed)
    assert (empty.text, empty.finish_reason) == ("", "stop")


def test_a_slow_answer_ends_with_the_time_that_the_step_has(service: str) -> None:
    async def hurried() -> None:
        async with asyncio.timeout(0.3):
            await provider.find(service).ask(Question(model=MODELS[service], prompt="[[sleep 30]]"))

    ask(service, "So that everything is imported.")
    with pytest.raises(TimeoutError):
        asyncio.run(hurried())


def test_a_slow_drip_ends_with_the_time_that_the_step_has(service: str) -> None:
    pieces: list[str] = []

    async def hurried() -> None:
        async with asyncio.timeout(0.45):
            asked = Question(model=MODELS[service], prompt="[[drip]] " + "word " * 9, on_text=pieces.append)
            await provider.find(service).ask(asked)

    ask(service, "So that everything is imported.")
    with pytest.raises(TimeoutError):
        asyncio.run(hurried())
    assert len(pieces) < 5


# Data.


def test_data_is_asked_for_in_the_service_s_own_way(service: str, streamed: bool, server: ModelService) -> None:
    answer = ask(service, "How risky?", schema=SCHEMA, streamed=streamed)
    assert json.loads(answer.text) == {"risk": "low"}
    spoken = next(each for each in FORMATS if each.service == service)
    assert spoken.schema(server.asked[0][1])["properties"]["risk"]["enum"] == ["low", "high"]


def test_a_model_without_such_a_way_gives_data_as_the_arguments_of_a_tool(streamed: bool) -> None:
    answer = ask("anthropic", "x", model="claude-3-5-haiku-latest", schema=SCHEMA, streamed=streamed)
    assert answer.value == {"risk": "low"}
    assert json.loads(answer.text) == {"risk": "low"}
    assert answer.calls == ()
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("schema", [RECURSIVE, {"type": "array"}, {"type": "object", "not": {}}, {"enum": [1, 2]}])
def test_a_schema_that_services_refuse_is_told_in_words(
    service: str, schema: dict[str, Any], server: ModelService
) -> None:
    ask(service, "[[say 1]]", schema=schema)
    ((_, body),) = server.asked
    spoken = next(each for each in FORMATS if each.service == service)
    assert not spoken.schema(body)
    assert "JSON Schema" in json.dumps(body)


# Tools.


def test_a_model_asks_for_a_tool_and_goes_on_with_what_it_gave(
    service: str, streamed: bool, server: ModelService
) -> None:
    prompt = '[[tool weather {"city": "Oslo"}]]'
    asked = provider.find(service)
    first = Question(model=MODELS[service], prompt=prompt, tools=(TOOL,), on_text=print if streamed else None)
    wanted = asyncio.run(asked.ask(first))
    assert wanted.finish_reason == "tools"
    (call,) = wanted.calls
    assert (call.name, call.arguments) == ("weather", {"city": "Oslo"})
    spoken = next(each for each in FORMATS if each.service == service)
    assert spoken.tools(server.asked[0][1]) == ["weather"]
    turns = (
        Turn(role="user", text=prompt),
        Turn(role="assistant", calls=wanted.calls),
        Turn(role="tool", id=call.id, name="weather", text="Rain in Oslo."),
    )
    again = Question(model=MODELS[service], prompt="", tools=(TOOL,), history=turns)
    assert asyncio.run(asked.ask(again)).text == "echo of what was asked"
    assert "Rain in Oslo." in json.dumps(server.asked[1][1])


def test_a_conversation_of_another_process_is_gone_on_with(service: str, server: ModelService) -> None:
    calls = (Call(id="c1", name="weather", arguments={"city": "Oslo"}), Call(id="c2", name="weather", arguments="?"))
    turns = (
        Turn(role="user", text="What weather?"),
        Turn(role="assistant", text="Let me look.", calls=calls),
        Turn(role="tool", id="c1", name="weather", text="Rain."),
        Turn(role="tool", id="c2", name="weather", text="no such city", failed=True),
    )
    answer = ask(service, "", history=turns, tools=(TOOL,))
    assert answer.text == "echo of what was asked"
    sent = json.dumps(server.asked[0][1])
    for said in ("What weather?", "Let me look.", "Rain.", "no such city"):
        assert said in sent


# Keys, addresses and prices.

VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_without_a_key_nothing_is_asked(name: str, monkeypatch: pytest.MonkeyPatch, server: ModelService) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    for variable in provider.KEYS[name]:
        monkeypatch.delenv(variable, raising=False)
    error = failure(name, "hi")
    assert error.type == "auth"
    assert VARIABLES[name] in error.message
    assert error.hint == f"set it: export {VARIABLES[name]}=…"
    assert server.asked == []


def test_a_server_like_openai_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask("openai", "hi").finish_reason == "stop"


@pytest.mark.parametrize("kind", ["openai", "openai-responses", "anthropic", "google", "ollama", "vllm"])
def test_a_service_of_the_configuration_has_its_own_address_key_and_price(kind: str, server: ModelService) -> None:
    base = server.url if kind in ("anthropic", "google") else f"{server.url}/v1"
    own = Account(kind=kind, base_url=base, api_key="own-key", price=Price(input=2, output=10, cached=1))
    answer = ask("mine", "hi", model=MODELS.get(kind, "some-model"), account=own)
    assert answer.model.startswith("mine:")
    assert answer.usage.cost_usd == pytest.approx((600 * 2 + 400 * 1 + 200 * 10) / 1e6)
    assert any("own-key" in value for value in server.asked[0][0].values())


def test_a_key_that_the_service_quotes_is_not_told(server: ModelService) -> None:
    own = Account(kind="openai", base_url=f"{server.url}/v1", api_key="fake")
    error = failure("mine", "[[status 400]]", account=own)
    assert "***" in error.message
    assert "fake" not in error.message


def test_a_price_that_nobody_knows_is_not_nothing(server: ModelService) -> None:
    own = Account(kind="openai", base_url=f"{server.url}/v1")
    assert ask("mine", "hi", account=own).usage.cost_usd is None
    error = failure("mine", "hi", account=own, priced=True)
    assert error.type == "refused"
    assert "limits.max_cost_usd" in error.message
    assert len(server.asked) == 1, "it was refused before it was asked"
    assert ask("openai", "hi", priced=True).usage.cost_usd


def test_a_server_that_is_not_there_is_an_error_of_the_network() -> None:
    own = Account(kind="openai", base_url="http://127.0.0.1:9/v1")
    assert failure("mine", "hi", account=own).type == "network"


def test_a_service_with_an_address_of_its_own_that_it_cannot_have_says_what_to_write() -> None:
    error = failure("mine", "hi", account=Account(kind="deepseek", base_url="http://127.0.0.1:9/v1", api_key="k"))
    assert error.type == "refused"
    assert error.hint is not None
    assert 'kind = "openai"' in error.hint


def test_tools_and_data_go_together(service: str, streamed: bool, server: ModelService) -> None:
    asked = provider.find(service)
    prompt = '[[tool weather {"city": "Oslo"}]] [[say {"risk": "high"}]]'
    first = Question(model=MODELS[service], prompt=prompt, tools=(TOOL,), schema=SCHEMA)
    wanted = asyncio.run(asked.ask(first))
    assert [call.name for call in wanted.calls] == ["weather"]
    turns = (
        Turn(role="user", text=prompt),
        Turn(role="assistant", calls=wanted.calls),
        Turn(role="tool", id=wanted.calls[0].id, name="weather", text="Rain."),
    )
    again = Question(model=MODELS[service], prompt="", tools=(TOOL,), schema=SCHEMA, history=turns)
    assert json.loads(asyncio.run(asked.ask(again)).text) == {"risk": "high"}
    assert "JSON Schema" in json.dumps(server.asked[1][1]) or "enum" in json.dumps(server.asked[1][1])


def test_a_used_up_quota_is_not_tried_again() -> None:
    from pydantic_ai.exceptions import ModelQuotaExceededError

    from tramai.providers._service_faults import of

    error = of(ModelQuotaExceededError("m", "You exceeded your quota: sk-1"), "openai", "m", None)
    assert error.type == "refused"
    assert "sk-1" not in error.message
