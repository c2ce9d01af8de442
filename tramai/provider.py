"""What `ai` needs from a model service."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from . import kinds
from .errors import PluginUnusable
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
    priced: bool = False
    """The run has a limit of what it may cost: a model of which nobody knows the price is refused before it is asked.
    """


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


KEYS: dict[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "ollama": (),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "bedrock": (),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "alibaba": ("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "github": ("GITHUB_API_KEY",),
    "google-cloud": (),
    "heroku": ("HEROKU_INFERENCE_KEY",),
    "huggingface": ("HF_TOKEN",),
    "moonshotai": ("MOONSHOTAI_API_KEY",),
    "nebius": ("NEBIUS_API_KEY",),
    "ovhcloud": ("OVHCLOUD_API_KEY",),
    "sambanova": ("SAMBANOVA_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "vercel": ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "vllm": (),
    "xai": ("XAI_API_KEY",),
    "zai": ("ZAI_API_KEY",),
}
"""Model services that the extra `ai` brings, each with the variables of which one holds its key.

None: it has no key, or finds out by itself who asks.
"""
SERVICES = tuple(KEYS)
COMMON = SERVICES[:11]
"""Those that are named to people who wrote none of them."""
_SERVICE = "tramai.providers._service"


NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
"""What a service of the configuration may be called."""


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens. `cached`: of the prompt, where the service had them already."""

    input: float
    output: float
    cached: float | None = None


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A model service of the configuration: one of `SERVICES`, with an address, a key and a price of its own."""

    kind: str
    base_url: str | None = None
    api_key: str | None = None
    """The key itself, fetched."""
    price: Price | None = None


def split(model: str) -> tuple[str, str]:
    """`provider:name` in its two parts; ValueError when it is not spelled so."""
    service, colon, name = model.partition(":")
    if not service or not colon or not name.strip():
        raise ValueError("a model is written provider:name, such as demo:echo or openai:gpt-5-mini")
    return service, name.strip()


class _Foreign:
    """A model service of another package: whatever it raises is a failure of the step."""

    def __init__(self, name: str, kind: Any) -> None:
        from .translating import translated

        self._name = name
        with translated(name):
            self._service = kind()

    async def ask(self, question: Question) -> Answer:
        """Ask it once."""
        from .translating import translated

        with translated(self._name):
            answer = await self._service.ask(question)
        if not isinstance(answer, Answer):
            what = f"the model provider {self._name} gave {type(answer).__name__} in the place of an Answer"
            raise StepError("plugin.TypeError", what)
        return answer


def added(service: str) -> Any | None:
    """The class of a model service that an installed package brings: None for ours, and for one that nobody brings.

    PluginUnusable when it cannot be loaded or asked, or when two packages bring it.
    """
    if service in SERVICES or service in kinds.names("providers"):
        return None
    try:
        found = kinds.plugin("providers", service)
    except KeyError:
        return None
    kind = found.load()
    if not callable(getattr(kind, "ask", None)):
        raise found.unusable("has no method `ask`")
    return kind


def find(service: str, account: Account | None = None) -> Provider:
    """A model service by the first part of a model's name; `account` is what the configuration says about that name.

    Raises ExtraMissing for a service that needs an extra, StepError for one that is not known.
    """
    if account is None:
        try:
            return kinds.find("providers", service)()  # type: ignore[no-any-return]
        except KeyError:
            pass
    if account is not None or service in KEYS:
        # By name: providers stand above this module, and few runs need one.
        return importlib.import_module(_SERVICE).Service(service, account)  # type: ignore[no-any-return]
    try:
        kind = added(service)
    except PluginUnusable as error:
        raise StepError("refused", error.message, hint=error.hint) from error
    if kind is not None:
        return _Foreign(service, kind)
    hint = f"there are {', '.join(names())}; others are given in tramai.toml"
    raise StepError("refused", f"there is no model provider '{service}'", hint=hint)


def names() -> tuple[str, ...]:
    """The model services that are named to people: ours, the best known of the extra, those of installed packages."""
    ours = (*kinds.names("providers"), *COMMON)
    return (*ours, *sorted({one.name for one in kinds.added("providers")} - {*ours, *SERVICES}))
