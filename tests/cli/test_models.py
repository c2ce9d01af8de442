"""`ai` steps with real clients through the command line: keys, addresses, prices, faults and streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import write
from tests.cli.test_startup import NEVER, imported
from tests.extras import loaded, needs
from tests.model_service import ModelService, led_there, one_authority, server

__all__ = ["led_there", "loaded", "one_authority", "server"]

EXTRA = needs("ai", "pydantic_ai")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

Tramai = Callable[..., Result]
SERVICES = [
    "openai:gpt-5-mini",
    "openai-responses:gpt-5-mini",
    "anthropic:claude-sonnet-4-5",
    "google:gemini-2.5-flash",
]


def each_once(names: tuple[str, ...], things: list[Any]) -> pytest.MarkDecorator:
    """Every service with the first thing, and everything with the first service; the other pairs are slow.

    What each service says of each fault is tried in tests/test_model_services.py, by its client alone.
    """
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(model, thing, marks=pytest.mark.slow if model != SERVICES[0] and thing != things[0] else ())
            for model in SERVICES
            for thing in things
        ],
    )


def asking(prompt: str = "Say it.", model: str = "openai:gpt-5-mini", more: str = "", top: str = "") -> str:
    head = f"tramai: 1\nname: asks\n{top}steps:\n  - id: ask\n    ai: {{model: '{model}', prompt: '{prompt}'}}\n{more}"
    return write("asks.yaml", f"{head}outputs:\n  said: ${{{{ steps.ask.output }}}}\n")


def ended(result: Result) -> dict[str, Any]:
    return dict(json.loads(result.stdout.splitlines()[-1]))


@pytest.mark.parametrize("model", SERVICES)
def test_a_run_asks_a_model_and_tells_what_it_cost(model: str, tramai: Tramai) -> None:
    result = tramai("run", asking(model=model))
    assert result.exit_code == 0, result.stderr
    assert "1,000 in / 200 out tokens, $0.00" in result.stderr
    assert "echo of what was asked" in result.stdout


def test_what_the_model_says_is_shown_as_it_comes(tramai: Tramai) -> None:
    result = tramai("run", "-v", asking("[[say One line.\n\n    And another.]]".replace("\n\n    ", " ")))
    assert "ask │ One line. And another." in result.stderr or "ask | One line. And another." in result.stderr


# Keys.


def test_a_missing_key_is_told_before_anything_runs(
    tramai: Tramai, monkeypatch: pytest.MonkeyPatch, server: ModelService
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    result = tramai("run", asking(model="anthropic:claude-sonnet-4-5"))
    assert result.exit_code == 6
    assert "TRM620" in result.stderr
    assert "ANTHROPIC_API_KEY is not set" in result.stderr
    assert "export ANTHROPIC_API_KEY=" in result.stderr
    assert server.asked == []
    assert json.loads(tramai("list", "--json").stdout)["runs"] == []


def test_a_key_that_only_a_condition_needs_is_missed_when_it_is_used(
    tramai: Tramai, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    path = asking(model="anthropic:claude-sonnet-4-5", more="    when: ${{ 1 == 1 }}\n")
    result = tramai("run", "--json", path)
    assert result.exit_code == 6
    assert ended(result)["error"]["type"] == "auth"
    assert "ANTHROPIC_API_KEY" in ended(result)["error"]["message"]


def test_validate_warns_of_a_missing_key(tramai: Tramai, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    result = tramai("validate", asking(model="anthropic:claude-sonnet-4-5"))
    assert result.exit_code == 0
    assert "TRM620" in result.stdout + result.stderr


# Services of the configuration.


def configured(server: ModelService, key: str = '{env = "LOCAL_KEY"}', more: str = "") -> None:
    write(
        "tramai.toml",
        f'[providers.local]\nkind = "openai"\nbase_url = "{server.url}/v1"\napi_key = {key}\n{more}',
    )


def test_a_service_of_the_configuration_answers(
    tramai: Tramai, server: ModelService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_KEY", "the-local-key")
    configured(server, more="price = {input = 1.0, output = 5.0}\n")
    result = tramai("run", asking(model="local:some-model"))
    assert result.exit_code == 0, result.stderr
    assert "$0.0020" in result.stderr
    assert server.asked[0][0]["authorization"] == "Bearer the-local-key"


def test_its_key_may_stand_in_a_file(tramai: Tramai, server: ModelService) -> None:
    Path("key.txt").write_text("the-key-of-a-file\n")
    Path("key.txt").chmod(0o600)
    configured(server, '{file = "key.txt"}')
    assert tramai("run", asking(model="local:some-model")).exit_code == 0
    assert server.asked[0][0]["authorization"] == "Bearer the-key-of-a-file"


def test_its_missing_key_is_told_before_anything_runs(tramai: Tramai, server: ModelService) -> None:
    configured(server)
    result = tramai("run", asking(model="local:some-model"))
    assert result.exit_code == 6
    assert "LOCAL_KEY" in result.stderr
    assert server.asked == []


def test_a_service_that_nobody_gave_is_told_before_anything_runs(tramai: Tramai) -> None:
    result = tramai("run", asking(model="local:some-model"))
    assert result.exit_code == 3
    assert "TRM621" in result.stderr
    assert "[providers.local]" in result.stderr


WRONG = [
    ('kind = "opnai"', "there is no kind 'opnai'"),
    ('kind = "openai"\nbase_url = "localhost:80"', "base_url is no address"),
    ('kind = "openai"\nkey = "x"', "key"),
    ('kind = "openai"\napi_key = "sk-1234"', "api_key"),
    ('kind = "openai"\napi_key = {}', "api_key names one source"),
    ('kind = "openai"\nprice = {input = -1, output = 1}', "a price is 0 or more"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_table_is_refused_in_its_place(text: str, said: str, tramai: Tramai) -> None:
    write("tramai.toml", f"[providers.local]\n{text}\n")
    result = tramai("run", asking(model="local:some-model"))
    assert result.exit_code == 3
    assert said in result.stderr
    assert "tramai.toml:1" in result.stderr
    assert "sk-1234" not in result.stderr


# Costs.


def test_a_price_that_nobody_knows_is_said(
    tramai: Tramai, server: ModelService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_KEY", "the-local-key")
    configured(server)
    result = tramai("run", asking(model="local:some-model"))
    assert "1,000 in / 200 out tokens, price unknown" in result.stderr


def test_a_limit_of_cost_refuses_a_model_without_a_price_before_it_is_asked(
    tramai: Tramai, server: ModelService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_KEY", "the-local-key")
    configured(server)
    path = asking(model="local:some-model", top="limits: {max_cost_usd: 1}\n")
    result = tramai("run", "--json", path)
    assert ended(result)["error"]["type"] == "refused"
    assert server.asked == []
    configured(server, more="price = {input = 0, output = 0}\n")
    assert tramai("run", path).exit_code == 0


def test_a_limit_of_cost_holds_for_what_a_real_model_costs(tramai: Tramai) -> None:
    text = "tramai: 1\nname: asks\nlimits: {max_cost_usd: 0.0005}\nsteps:\n"
    for name in ("one", "two"):
        text += f"  - {{id: {name}, ai: {{model: 'openai:gpt-5-mini', prompt: '{name}'}}}}\n"
    result = tramai("run", "--json", write("two.yaml", text))
    assert ended(result)["error"]["type"] == "limit"
    assert ended(result)["error"]["step"] == "two"


# Faults, and our own attempts.

RETRY = "    retry: {max_attempts: 2, delay: 10ms, on: [rate_limited, network]}\n"


@each_once(("model", "fault"), ["reset", "status 429", "status 500", "cut", "malformed"])
def test_our_retry_is_the_only_one_and_begins_a_fresh_answer(
    model: str, fault: str, tramai: Tramai, server: ModelService
) -> None:
    result = tramai("run", asking(f"[[first {fault}]]", model, RETRY))
    assert result.exit_code == 0, result.stderr
    assert "echo of what was asked" in result.stdout
    assert len(server.asked) == 2


def test_the_wait_that_a_service_asks_for_counts_before_our_own(tramai: Tramai, server: ModelService) -> None:
    retry = "    retry: {max_attempts: 2, delay: 1ms, max_delay: 2s}\n"
    result = tramai("run", "--json", asking("[[status 429]] [[wait 9]]", more=retry))
    assert ended(result)["error"]["type"] == "rate_limited"
    assert "asked to wait 9s, retry.max_delay is 2s" in ended(result)["error"]["message"]
    assert len(server.asked) == 1


@each_once(
    ("model", "fault"),
    [
        ("[[cut]]", "network"),
        ("[[truncated]]", "truncated"),
        ("[[refuse]]", "refused"),
        ("[[empty]]", "invalid_output"),
        ("[[status 401]]", "auth"),
    ],
)
def test_a_fault_fails_the_step_and_what_the_model_said_stays_out_of_it(
    model: str, fault: tuple[str, str], tramai: Tramai, server: ModelService
) -> None:
    prompt, type = fault
    result = tramai("run", "--json", asking(prompt, model))
    assert result.exit_code == (6 if type == "auth" else 1)
    assert ended(result)["error"]["type"] == type
    assert "echo" not in result.stdout
    assert "key-of-" not in result.stdout + result.stderr
    assert len(server.asked) == 1
    run = ended(result)["run_id"]
    assert "echo of" not in tramai("show", run, "--json").stdout


@pytest.mark.parametrize("model", SERVICES)
def test_an_answer_slower_than_the_timeout_of_its_step_fails_in_time(model: str, tramai: Tramai) -> None:
    result = tramai("run", "--json", asking("[[sleep 30]]", model, "    timeout: 500ms\n"))
    assert ended(result)["error"]["type"] == "timeout"


# Start-up.


def test_a_workflow_that_asks_only_the_demo_imports_no_client() -> None:
    assert not imported("run", asking(model="demo:echo")) & NEVER


def test_checking_a_workflow_with_a_real_model_imports_no_client() -> None:
    assert not imported("validate", asking()) & NEVER
    assert not imported("plan", "asks.yaml") & NEVER


@pytest.mark.parametrize("model", SERVICES)
def test_a_key_of_the_environment_is_masked_wherever_a_model_says_it(
    model: str, tramai: Tramai, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "sk-canary-0a1b2c3d4e5f"
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, key)
    result = tramai("run", "-v", asking("[[key]]", model=model))
    assert result.exit_code == 0, result.stderr
    assert "***" in result.stdout
    assert key not in result.stdout + result.stderr
    assert not [file for file in Path(".tramai").rglob("*") if file.is_file() and key.encode() in file.read_bytes()]
