"""Makes pydantic-ai's model for a service: its class, its key, its address."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.providers import Provider, infer_provider_class

from ..errors import ExtraMissing
from ..provider import Account
from ..step import StepError

# What a service does not take is left out by pydantic-ai, with a word for programmers on stderr.
warnings.filterwarnings("ignore", category=UserWarning, module=r"pydantic_ai\b.*")

_OLLAMA = "http://localhost:11434/v1"
_WHOLE = cast(ModelProfile, {"openai_chat_streaming_requires_finish_reason": True})
_NO_KEY = "none"
"""Servers without keys get this one: the libraries insist on one."""
_BASE = {"azure": "azure_endpoint", "azure-responses": "azure_endpoint"}
"""What the constructor calls the address, where it is not `base_url`."""


def load(kind: str) -> None:
    """Import the classes of a service, and ask nothing."""
    infer_provider_class(kind)
    family = kind if kind in ("anthropic", "google", "groq", "mistral", "bedrock", "cohere") else "openai"
    importlib.import_module(f"pydantic_ai.models.{family}")
    for part in ("_service_wire", "_service_faults"):
        importlib.import_module(f".{part}", __package__)


def make(name: str, account: Account, model: str) -> Model:
    """The model of a service. StepError or ExtraMissing where it cannot be had."""
    kind = "openai-chat" if account.kind == "openai" else account.kind
    try:
        made = infer_model(f"{kind}:{model}", provider_factory=lambda _: _provider(name, kind, account))
        # A stream without its last word was cut, whatever the service: half an answer is none.
        made.__dict__["profile"] = merge_profile(made.profile, _WHOLE)
        return made
    except ImportError as error:
        what = f"the model provider '{name}'"
        hint = f"pip install 'pydantic-ai-slim[{kind.partition('-')[0]}]'"
        raise ExtraMissing(what=what, extra=f"pydantic-ai-slim[{kind.partition('-')[0]}]", hint=hint) from error
    except UserError as error:
        said = str(error).splitlines()[0].partition(" To try Pydantic AI")[0]
        raise StepError("auth", f"the model provider '{name}' cannot be used: {said}") from None
    except TypeError as error:
        if "base_url" not in str(error):
            raise
        what = f"the model provider '{name}' cannot be used: {account.kind} has no address of its own choice"
        raise StepError(
            "refused", what, hint='give it `kind = "openai"` in tramai.toml, if it speaks like OpenAI'
        ) from None


def _provider(name: str, kind: str, account: Account) -> Provider[Any]:
    if kind in ("openai-chat", "openai-responses") and account.base_url is not None:
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        return OpenAICompatibleProvider(name, base_url=account.base_url, api_key=account.api_key or _NO_KEY)
    given: dict[str, Any] = {}
    if account.api_key is not None:
        given["api_key"] = account.api_key
    if account.base_url is not None:
        given[_BASE.get(kind, "base_url")] = account.base_url
        given.setdefault("api_key", _NO_KEY)
    if kind == "ollama":
        import os

        given.setdefault("base_url", os.environ.get("OLLAMA_BASE_URL") or _OLLAMA)
    return infer_provider_class(kind)(**given)
