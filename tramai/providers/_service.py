"""A model service outside, over pydantic-ai: one request, one answer. Retries, tools and re-asks are ours."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING, Any

from ..errors import ExtraMissing
from ..provider import KEYS, Account, Answer, Question
from ..step import StepError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from ._service_wire import Said


class Service:
    """One of the services of the extra `ai`, or one that the configuration names."""

    def __init__(self, name: str, account: Account | None = None) -> None:
        """`account`: what the configuration says about it, its key fetched."""
        if importlib.util.find_spec("pydantic_ai") is None:
            raise ExtraMissing(what=f"the model provider '{name}'", extra="ai", hint="pip install 'tramai[ai]'")
        self._name = name
        self._account = account or Account(kind=name)
        self._said: Said = {}
        """Answers with calls, as they came: some services want their own thoughts back, to go on from them."""

    async def ask(self, question: Question) -> Answer:
        """Ask once. Nothing of pydantic-ai is imported before, and then on a thread: it takes a second or more."""
        import asyncio

        self._refuse_without_key()
        model = await asyncio.to_thread(self._model, question.model)
        from . import _service_cost, _service_faults, _service_wire

        if question.priced and not _service_cost.known(model, self._account):
            raise _service_cost.unpriced(f"{self._name}:{question.model}")
        asked = _service_wire.request(question, model, self._said)
        try:
            async with model.provider:  # type: ignore[union-attr]
                response = await self._response(model, question, *asked)
        except Exception as error:  # noqa: BLE001 - the edge to a foreign library, which may raise anything
            raise _service_faults.of(error, self._name, question.model, self._account.api_key) from None
        offered = bool(question.tools)
        answer = _service_wire.answer(response, f"{self._name}:{question.model}", self._said, offered=offered)
        return _service_cost.priced(answer, response, self._account)

    async def _response(
        self,
        model: Model,
        question: Question,
        messages: list[Any],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        if question.on_text is None:
            return await model.request(messages, settings, parameters)
        from ._service_faults import early
        from ._service_wire import piece

        async with model.request_stream(messages, settings, parameters) as stream:
            async for event in stream:
                text = piece(event)
                if text:
                    question.on_text(text)
            response = stream.get()
        if response.state != "complete" or (response.finish_reason is None and not response.tool_calls):
            raise early(self._name, question.model)
        return response

    def _refuse_without_key(self) -> None:
        missing = missing_key(self._name, self._account)
        if missing is not None:
            raise StepError("auth", f"the model provider '{self._name}' has no key: {missing[0]}", hint=missing[1])

    def _model(self, name: str) -> Model:
        """The service's model of this name; everything heavy is imported here."""
        from . import _service_models

        return _service_models.make(self._name, self._account, name)


def ready(kind: str) -> None:
    """Import what a service of this kind needs; whatever is wrong with that is told when it is asked."""
    with contextlib.suppress(Exception):
        from . import _service_models

        _service_models.load(kind)


def missing_key(name: str, account: Account | None) -> tuple[str, str] | None:
    """What is missing and how it is mended, where a service has no key here; nothing is imported or asked."""
    import os

    kind = account.kind if account is not None else name
    if account is not None and (account.api_key or account.base_url):
        return None
    wanted = KEYS.get(kind, ())
    if not wanted or any(os.environ.get(variable) for variable in wanted):
        return None
    if kind in ("openai", "openai-chat", "openai-responses") and os.environ.get("OPENAI_BASE_URL"):
        return None
    return f"{' or '.join(wanted)} is not set", f"set it: export {wanted[0]}=…"
