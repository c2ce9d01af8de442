"""Model services of the configuration: `[providers.NAME]`, with an address, a key or a price of its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from . import kinds, secret
from .definition import SecretSource
from .errors import KeyMissing, ProviderUnknown, TramaiError
from .provider import COMMON, KEYS, NAME, Account, Price
from .step import Node, StepError


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the configuration; `kind` is one of the services that are known, by its language."""

    kind: str
    base_url: str | None = None
    api_key: SecretSource | None = None
    price: Price | None = None


def wrong(name: str, data: Any) -> tuple[str, str | None] | None:
    """What is wrong with a table and how it is mended; None when nothing is."""
    try:
        found = msgspec.convert(data, Entry)
    except msgspec.ValidationError as error:
        return str(error), "the keys are kind, base_url, api_key and price"
    return next(_wrong(name, found), None)


def _wrong(name: str, found: Entry) -> Iterator[tuple[str, str | None]]:
    if not NAME.fullmatch(name) or name in kinds.names("providers"):
        yield "a provider's name is small letters, digits, `_` and `-`, and none that is built in", None
    if found.kind not in KEYS:
        yield f"there is no kind '{found.kind}'", f"the kinds are {', '.join(COMMON)} and more; most servers are openai"
    if found.base_url is not None and not _is_address(found.base_url):
        yield "base_url is no address", 'write it like base_url = "http://127.0.0.1:8080/v1"'
    if found.api_key is not None and len(found.api_key.given()) != 1:
        yield "api_key names one source", 'write api_key = {env = "NAME"}'
    price = found.price
    if price is not None and min(price.input, price.output, price.cached or 0.0) < 0:
        yield "a price is 0 or more", "write US dollars for a million tokens"


def _is_address(text: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it is what refuses one that cannot be
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", text)


def account(name: str, data: Any, *, base: str) -> Account:
    """A service with its key fetched, relative to the folder `base`; StepError where that is not to be had."""
    found = msgspec.convert(data, Entry)
    key = None
    if found.api_key is not None:
        try:
            key = secret.resolve({name: found.api_key}, base=base)[name]
        except TramaiError as error:
            message = f"the model provider '{name}' has no key: {secret.source_of(found.api_key)} does not give one"
            raise StepError("auth", message, hint=error.hint) from None
    return Account(kind=found.kind, base_url=found.base_url, api_key=key, price=found.price)


def lack(model: str, configured: Mapping[str, Any], *, base: str) -> TramaiError | None:
    """Why a model (`provider:name`) cannot be asked here, as far as can be told without fetching a key."""
    service = model.partition(":")[0].strip()
    if service in kinds.names("providers"):
        return None
    if service in configured or service in KEYS:
        found = _missing(service, configured.get(service), base)
        return KeyMissing(name=service, what=found[0], hint=found[1]) if found is not None else None
    if any(one.name == service for one in kinds.added("providers")):
        return None
    hint = f"add [providers.{service}] to tramai.toml, or use one of {', '.join(COMMON)}"
    return ProviderUnknown(name=service, hint=hint)


def _missing(service: str, data: Any, base: str) -> tuple[str, str] | None:
    from .providers._service import missing_key

    if data is None:
        return missing_key(service, None)
    found = msgspec.convert(data, Entry)
    if found.api_key is None:
        return missing_key(service, Account(kind=found.kind, base_url=found.base_url))
    if secret.present(found.api_key, base=base):
        return None
    return f"{secret.source_of(found.api_key)} is not set", f"[providers.{service}] names it: give it a value"


def models(nodes: Iterable[Node]) -> Iterator[tuple[Node, str]]:
    """The `ai` steps among these that name their model, not compute it."""
    for node in nodes:
        model = getattr(node.step, "model", None)
        if node.verb == "ai" and model is not None and "${{" not in model.text:
            yield node, model.text.strip()


def unpriced(model: str, configured: Mapping[str, Any]) -> bool:
    """Whether nobody knows the price of a real model, as far as can be told where the extra is installed."""
    service, _, name = model.partition(":")
    data = configured.get(service)
    if data is None and service not in KEYS:
        return False
    if data is not None and data.get("price") is not None:
        return False
    from .providers._service_cost import listed

    return not listed(data["kind"] if data is not None else service, name.strip())


def warm(nodes: Iterable[Node], configured: Mapping[str, Any]) -> threading.Thread | None:
    """Import on a thread what the first real model will need, while the steps before it run; None where none does.

    It takes a second or more, and a step that waits for a child or a server leaves that time free.
    """
    for node, model in models(nodes):
        service = model.partition(":")[0]
        data = configured.get(service)
        kind = data["kind"] if data is not None else service
        if kind in KEYS and node.when is None:
            from .providers._service import ready

            thread = threading.Thread(target=ready, args=(kind,), name="tramai-models", daemon=True)
            thread.start()
            return thread
    return None


def require(nodes: Iterable[Node], configured: Mapping[str, Any], *, base: str) -> None:
    """KeyMissing or ProviderUnknown, before anything runs, for a model that one of these steps will ask for sure."""
    for node, model in models(nodes):
        found = lack(model, configured, base=base) if node.when is None else None
        if found is not None:
            raise found
