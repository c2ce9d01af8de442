"""Model services of the configuration, and what is known of them before anything runs."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.reading import HEAD
from tramai import accounts, provider, surroundings, workflow
from tramai.errors import KeyMissing, ProviderUnknown
from tramai.provider import Account
from tramai.step import StepError

LOCAL = {"kind": "openai", "base_url": "http://127.0.0.1:1/v1"}


def made(folder: Path, text: str) -> workflow.Workflow:
    file = folder / "flow.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    return workflow.load(str(file))


def asking(*models: str) -> str:
    return "steps:\n" + "".join(
        f"  - {{id: s{number}, ai: {{model: '{model}', prompt: x}}}}\n" for number, model in enumerate(models)
    )


def test_every_service_is_said_by_its_variables_or_needs_none() -> None:
    assert set(provider.COMMON) < set(provider.KEYS)
    assert all(provider.NAME.fullmatch(name) for name in provider.KEYS)
    assert "demo" not in provider.KEYS


@pytest.mark.parametrize("text", ["http://[bad", "http://a:99999", "http://", "http://a b", "ftp://a", "a"])
def test_an_address_that_leads_nowhere_is_told_with_the_settings(text: str) -> None:
    found = accounts.wrong("local", {**LOCAL, "base_url": text})
    assert found is not None
    assert found[0] == "base_url is no address"


def test_an_address_may_have_a_port_a_path_and_brackets() -> None:
    for text in ("http://127.0.0.1:8080/v1", "https://x.example", "http://[::1]:80/v1"):
        assert accounts.wrong("local", {**LOCAL, "base_url": text}) is None


def test_a_key_is_fetched_from_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "value-of-the-key")
    found = accounts.account("local", {**LOCAL, "api_key": {"env": "SOME_KEY"}}, base=str(tmp_path))
    assert found == Account(kind="openai", base_url="http://127.0.0.1:1/v1", api_key="value-of-the-key")
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(StepError, match="environment variable SOME_KEY") as caught:
        accounts.account("local", {**LOCAL, "api_key": {"env": "SOME_KEY"}}, base=str(tmp_path))
    assert caught.value.type == "auth"


def test_what_is_lacking_is_told_without_fetching_anything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    base = str(tmp_path)
    assert accounts.lack("demo:echo", {}, base=base) is None
    assert accounts.lack("ollama:llama3.2", {}, base=base) is None
    assert isinstance(accounts.lack("openai:gpt-5", {}, base=base), KeyMissing)
    assert isinstance(accounts.lack("local:x", {}, base=base), ProviderUnknown)
    assert accounts.lack("local:x", {"local": LOCAL}, base=base) is None
    assert accounts.lack("openai:x", {"openai": LOCAL}, base=base) is None
    keyed = {"local": {**LOCAL, "api_key": {"file": "no-such-file"}}}
    assert isinstance(accounts.lack("local:x", keyed, base=base), KeyMissing)


def test_a_name_that_is_nearly_one_we_know_stays_a_mistake() -> None:
    from tests.step_context import made as step
    from tramai.steps.ai import Ai

    assert [found.code for found in step(Ai, model="opnai:gpt-5", prompt="x").check()] == ["TRM331"]
    assert step(Ai, model="local:smollm", prompt="x").check() == ()
    assert [found.code for found in step(Ai, model="Lo cal:smollm", prompt="x").check()] == ["TRM331"]


def test_what_a_real_model_needs_is_imported_beside_the_steps_before_it(tmp_path: Path) -> None:
    assert accounts.warm(made(tmp_path, asking("demo:echo")).steps, {}) is None
    assert accounts.warm(made(tmp_path, asking("${{ run.id }}")).steps, {}) is None
    thread = accounts.warm(made(tmp_path, asking("demo:echo", "local:x")).steps, {"local": LOCAL})
    assert thread is not None
    assert thread.daemon
    thread.join(60)
    assert not thread.is_alive()
    if find_spec("pydantic_ai") is not None:
        assert "pydantic_ai.models.openai" in sys.modules


def test_a_model_without_a_price_under_a_limit_of_cost_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("genai_prices", reason="the extra `ai` is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-tests")
    text = "limits: {max_cost_usd: 1}\n" + asking("demo:echo", "openai:gpt-5-mini", "openai:nobody-has-it", "local:x")
    found = surroundings.problems(made(tmp_path, text), providers={"local": LOCAL})
    assert [(problem.code, problem.path) for problem in found] == [
        ("TRM328", "/steps/2/ai/model"),
        ("TRM328", "/steps/3/ai/model"),
    ]
    free = {**LOCAL, "price": {"input": 0, "output": 0}}
    found = surroundings.problems(made(tmp_path, text), providers={"local": free})
    assert [problem.path for problem in found] == ["/steps/2/ai/model"]
    assert surroundings.problems(made(tmp_path, asking("openai:nobody-has-it"))) == ()


def test_the_page_of_prices_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genai_prices", reason="the extra `ai` is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-tests")
    page = (Path(surroundings.__file__).parent / "explain" / "TRM328.md").read_text(encoding="utf-8")
    wrong, right = re.findall(r"```yaml\n(.*?)```", page, re.S)
    for text, wanted in ((wrong, ["TRM328"]), (right, [])):
        found = surroundings.problems(made(tmp_path, text.partition("name: example\n")[2]))
        assert [problem.code for problem in found] == wanted
