"""What `ai` needs from a model service."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from . import kinds
from .errors import ExtraMissing
from .step import StepError, Usage


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One model call. `schema`: the answer must be JSON of this shape."""

    model: str
    prompt: str
    system: str | None = None
    schema: dict[str, Any] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of a re-ask, oldest first: (`user` or `assistant`, text). `prompt` is the turn after them."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `finish_reason`: stop, length, refused, error. `value` only if the provider parsed it itself."""

    text: str
    finish_reason: str = "stop"
    value: Any = None
    usage: Usage = Usage()
    model: str = ""


class Provider(Protocol):
    """A model service. Failures are StepError of types rate_limited, auth, timeout, network, refused."""

    async def ask(self, question: Question) -> Answer:
        """Ask once: no retries of its own."""
        ...


SERVICES = ("openai", "anthropic", "google", "ollama", "azure", "bedrock", "groq", "mistral", "deepseek", "openrouter")
"""Model services that the extra `ai` brings."""


def split(model: str) -> tuple[str, str]:
    """`provider:name` in its two parts; ValueError when it is not spelled so."""
    service, colon, name = model.partition(":")
    if not service or not colon or not name.strip():
        raise ValueError("a model is written provider:name, such as demo:echo or openai:gpt-5-mini")
    return service, name.strip()


def find(service: str) -> Provider:
    """A model service by the first part of a model's name.

    Raises ExtraMissing for a service that needs an extra, StepError for one that is not known.
    """
    try:
        return kinds.find("providers", service)()  # type: ignore[no-any-return]
    except KeyError:
        pass
    if service in SERVICES:
        raise ExtraMissing(what=f"the model provider '{service}'", extra="ai", hint="pip install 'tramai[ai]'")
    known = ", ".join((*kinds.names("providers"), *SERVICES))
    raise StepError("refused", f"there is no model provider '{service}'", hint=f"there are {known}")
