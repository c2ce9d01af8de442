"""What an answer has cost: by the configuration's prices, else by the list that comes with pydantic-ai."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ..provider import Account, Answer
from ..step import StepError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

_MILLION = 1_000_000


def priced(answer: Answer, response: ModelResponse, account: Account) -> Answer:
    """The answer with its cost in US dollars; None where nobody knows it."""
    used = response.usage
    if account.price is not None:
        cached = used.cache_read_tokens if account.price.cached is not None else 0
        cost: float | None = (
            (used.input_tokens - cached) * account.price.input
            + cached * (account.price.cached or 0.0)
            + used.output_tokens * account.price.output
        ) / _MILLION
    else:
        cost = _listed(response) if used.input_tokens or used.output_tokens else None
    return structs.replace(answer, usage=structs.replace(answer.usage, cost_usd=cost))


def _listed(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def known(model: Model, account: Account) -> bool:
    """Whether the price of a model is known before it is asked."""
    if account.price is not None:
        return True
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

    one = RequestUsage(input_tokens=1, output_tokens=1)
    made = ModelResponse(
        parts=[], usage=one, model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
    )
    return _listed(made) is not None


def listed(kind: str, model: str) -> bool:
    """Whether the list has a price, by name alone; True where that cannot be told. No client is imported."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return True
    names = {"openai-responses": "openai", "google-cloud": "google"}
    try:
        calc_price(Usage(input_tokens=1, output_tokens=1), model, provider_id=names.get(kind, kind))
    except (LookupError, ValueError):
        return False
    return True


def unpriced(model: str) -> StepError:
    """What is said about a model whose cost cannot be held to a limit."""
    return StepError(
        "refused",
        f"nobody knows the price of {model}, and the run may cost no more than its limits.max_cost_usd",
        hint="give its `price` in tramai.toml ([providers.NAME]), or limit max_tokens instead",
    )
