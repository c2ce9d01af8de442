"""What `ai` needs from a model service."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from .step import Usage


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One model call. `schema`: the answer must be JSON of this shape."""

    model: str
    prompt: str
    system: str | None = None
    schema: dict[str, Any] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of a re-ask: (role, text)."""


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
