"""What `ai` needs from a model service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from . import kinds
from .errors import ExtraMissing
from .step import StepError, Usage


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """What a model may ask us to do. `schema`: the JSON Schema of its arguments, an object."""

    name: str
    description: str
    schema: dict[str, Any]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A model wants a tool used. `id` is the service's own, by which it knows the answer again."""

    id: str
    name: str
    arguments: Any


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation: `user` and `assistant` say something, `tool` answers the call of that `id`."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    """What the assistant wanted done in this turn."""
    id: str = ""
    name: str = ""
    failed: bool = False
    """The tool answered with an error."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One model call. `schema`: the answer must be JSON of this shape."""

    model: str
    prompt: str
    """The newest turn of the user; empty when the newest turn is the answer of a tool, the last of `history`."""
    system: str | None = None
    schema: dict[str, Any] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    history: tuple[Turn, ...] = ()
    """Earlier turns, oldest first. `prompt` is the turn after them."""
    tools: tuple[Tool, ...] = ()
    on_text: Callable[[str], None] | None = None
    """Gets the pieces of the answer as they come, where the service streams; nobody depends on it."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `value` only if the provider parsed it itself.

    `finish_reason`: stop, length, refused, error, or tools: `calls` are to be answered before the model goes on.
    """

    text: str
    finish_reason: str = "stop"
    value: Any = None
    usage: Usage = Usage()
    """What this one call consumed. `cost_usd` None: nobody knows the price."""
    model: str = ""
    calls: tuple[Call, ...] = ()


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
