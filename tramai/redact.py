"""Takes secret values out of everything that is kept or shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

MASK = "***"
SHORTEST = 4
"""A shorter value would be found in half of all words; it is not masked, and the loader warns about it."""


class Redactor:
    """Masks the values it was made with, also as JSON and URLs spell them; without values it costs nothing."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        found = {part for value in values for part in (value, *value.splitlines()) if len(part) >= SHORTEST}
        plain = sorted({spelled for part in found for spelled in _in_urls(part)}, key=len, reverse=True)
        self._plain = tuple(plain)
        self._json = tuple(dict.fromkeys(json.dumps(value)[1:-1] for value in plain))
        self.active = bool(plain)
        self.hidden = tuple(value.encode("utf-8", "surrogateescape") for value in plain)
        """The values as bytes, the longest first."""

    def text(self, text: str) -> str:
        """The text with every value masked."""
        for value in self._plain:
            text = text.replace(value, MASK)
        return text

    def json(self, text: str) -> str:
        """A canonical JSON text with every value masked."""
        for value in self._json:
            text = text.replace(value, MASK)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it masked."""
        if not self.active:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value


def _in_urls(value: str) -> tuple[str, ...]:
    """A value, and how it stands in a URL: servers like to quote the URL that they were asked for."""
    from urllib.parse import quote, quote_plus

    spellings = (value, quote(value, safe="", errors="replace"), quote_plus(value, errors="replace"))
    return (*spellings, quote(value, errors="replace"))
