"""Takes secret values out of everything that is kept or shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any

MASK = "***"
SHORTEST = 4
"""Characters. A shorter value would be found in half of all words; it is not masked."""
FEW = 1000
"""Up to so many spellings are looked for one by one, which is the fastest; more all at once, by how they begin."""
WRAPPED = 60
"""Characters after which the earliest of programs begins a new line of hex or base64."""
_STRUCTURE = ("type", "step", "path", "attempt")
"""Keys of an error whose values are names that the definition has, and that others rely on."""


class Finder:
    """Where in a text one of some spellings stands."""

    def __init__(self, spellings: tuple[str, ...]) -> None:
        """`spellings` have SHORTEST characters or more, the longest first."""
        self.spellings = spellings
        self.longest = len(spellings[0]) if spellings else 0
        self._wraps = WRAPPED <= self.longest <= 1 << 16
        """Whether programs break one of them into lines when they encode it."""

    @cached_property
    def _heads(self) -> dict[str, tuple[str, ...]]:
        """The spellings by their first characters."""
        heads: dict[str, list[str]] = {}
        for spelling in self.spellings:
            heads.setdefault(spelling[:SHORTEST], []).append(spelling)
        return {head: tuple(group) for head, group in heads.items()}

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """What is shorter than a head, and may become one."""
        return frozenset(head[:size] for head in self._heads for size in range(1, SHORTEST))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The places to mask, in order; those that overlap are one."""
        found = self._search(text)
        if self._wraps:
            from . import _wrapped

            for run in _wrapped.runs(text):
                found += [run.place(start, end) for start, end in self._search(run.text)]
        return _merged(found)

    def _search(self, text: str) -> list[tuple[int, int]]:
        return self._one_by_one(text) if len(self.spellings) <= FEW else self._at_once(text)

    def _one_by_one(self, text: str) -> list[tuple[int, int]]:
        found = []
        for spelling in self.spellings:
            at = text.find(spelling)
            while at >= 0:
                found.append((at, at + len(spelling)))
                at = text.find(spelling, at + 1)
        return found

    def _at_once(self, text: str) -> list[tuple[int, int]]:
        heads, found = self._heads, []
        for at in [at for at in range(len(text) - SHORTEST + 1) if text[at : at + SHORTEST] in heads]:
            longest = next((one for one in heads[text[at : at + SHORTEST]] if text.startswith(one, at)), None)
            if longest is not None:
                found.append((at, at + len(longest)))
        return found

    def unfinished(self, text: str) -> int:
        """Where the end of a text begins that may be the beginning of a spelling; the text's length when nowhere."""
        size = len(text)
        least = max(0, size - self.longest + 1)
        if self._wraps:
            from . import _wrapped

            # The words with which it ends wait in any case: they may be a line that is long enough.
            size = _wrapped.tail(text, self.longest + self.longest // _wrapped.LINE * 2)
        for at in range(least, size):
            head = text[at : at + SHORTEST]
            if len(head) < SHORTEST:
                if head in self._beginnings:
                    return at
            elif head in self._heads:
                rest = text[at:]
                if any(len(one) > len(rest) and one.startswith(rest) for one in self._heads[head]):
                    return at
        return size

    def mask(self, text: str) -> str:
        """The text with every place masked."""
        spans = self.spans(text)
        return _masked(text, spans) if spans else text


class Stream:
    """Masks bytes that come in pieces: an end that may be the beginning of a value waits for what follows."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._held = ""
        self._covered = 0
        """Characters of what is held that belong to a place which has been masked already."""

    def feed(self, data: bytes) -> bytes:
        """What can be told now."""
        text = self._held + data.decode("latin-1")
        return self._told(text, self._finder.unfinished(text))

    def close(self) -> bytes:
        """What had to wait."""
        return self._told(self._held, len(self._held))

    def _told(self, text: str, until: int) -> bytes:
        spans = self._finder.spans(text)
        if self._covered:
            spans = _merged([(0, self._covered), *spans])
        told: list[str] = []
        at, over = 0, 0 if until else self._covered
        for start, end in spans:
            if start >= until:
                break
            told += (text[at:start], "" if start == 0 and self._covered else MASK)
            at, over = min(end, until), max(end - until, 0)
        told.append(text[at:until])
        self._held, self._covered = text[until:], over
        return "".join(told).encode("latin-1")


class Redactor:
    """Masks the values it was made with, in all their spellings; without values it costs nothing."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        given = tuple(value for value in values if len(value) >= SHORTEST)
        self.active = bool(given)
        self._given = frozenset(given)
        self._finder = _finder_of(self._given) if given else Finder(())

    @cached_property
    def hidden(self) -> tuple[bytes, ...]:
        """All spellings as bytes, the longest first: for `stream`."""
        found = {_encoded(text) for text in self._finder.spellings}
        return tuple(sorted(found, key=lambda data: (-len(data), data)))

    def text(self, text: str) -> str:
        """The text with every value masked."""
        return self._finder.mask(text) if self.active else text

    def json(self, text: str) -> str:
        """A canonical JSON text with every value masked; it is JSON after that, too."""
        if not self.active or not self._finder.spans(text):
            return text
        from .codec import decode, encode

        return encode(self.value(decode(text)))

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it masked, its keys too, and every number that is a value."""
        if not self.active:
            return value
        if isinstance(value, str):
            return self._finder.mask(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return self._keyed(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and self._is_number(value):
            return MASK
        return value

    def error(self, error: dict[str, Any]) -> dict[str, Any]:
        """An error with what it tells masked; what it is, and of which step, stays as it is."""
        if not self.active:
            return error
        return {
            name: value if name in _STRUCTURE else self.text(value) if isinstance(value, str) else self.value(value)
            for name, value in error.items()
        }

    def _is_number(self, value: float) -> bool:
        if str(value) in self._given:
            return True
        return isinstance(value, float) and value.is_integer() and str(int(value)) in self._given

    def _keyed(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A map with its keys masked; two that are the same then stay two."""
        found: dict[str, Any] = {}
        for key, item in value.items():
            masked, number = name = self._finder.mask(key), 1
            while masked in found:
                number += 1
                masked = f"{name[0]} ({number})"
            found[masked] = self.value(item)
        return found


def stream(hidden: tuple[bytes, ...]) -> Stream | None:
    """A stream that masks these spellings; None when there are none."""
    return Stream(_finder(hidden)) if hidden else None


def unfinished(hidden: tuple[bytes, ...], data: bytes) -> int:
    """Where the end of some bytes begins that may be the beginning of a spelling; their number when nowhere."""
    return _finder(hidden).unfinished(data.decode("latin-1")) if hidden else len(data)


def behind(hidden: tuple[bytes, ...], data: bytes, at: int) -> int:
    """The place itself, or the end of the spelling in whose middle it is."""
    spans = _finder(hidden).spans(data.decode("latin-1"))
    return next((end for start, end in spans if start < at < end), at)


@lru_cache(maxsize=8)
def _finder_of(values: frozenset[str]) -> Finder:
    from . import _spellings

    return Finder(_spellings.of(values, SHORTEST))


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=8)
def _finder(hidden: tuple[bytes, ...]) -> Finder:
    return Finder(tuple(value.decode("latin-1") for value in hidden))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, and those that overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], MASK)
        at = end
    parts.append(text[at:])
    return "".join(parts)
