"""One step into a value: keys of mappings first and only, items of lists and texts; data has no methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import Missing, kind, suggest


def look(value: Any, key: Any, what: str) -> Any:
    """The value under a key or at an index, or a Missing that says why there is none. `what` names the value."""
    if isinstance(value, Missing):
        return value
    if isinstance(value, Mapping):
        if not isinstance(key, str):
            return Missing(f"no key {_spell(key)} in {what}", 'keys are text: write ["1"], not [1]')
        try:
            return value[key]
        except KeyError:
            return Missing("", explain=lambda: _no_key(value, key, what))
    if isinstance(value, list | tuple | str) and type(key) is int:
        try:
            return value[key]
        except IndexError:
            return Missing(f"no item {key} in {what}, which has {len(value)}")
    if value is None:
        return Missing(f"{what} is null, so it has no {_spell(key)}", 'give another value with default("…")')
    return Missing(f"{what} is {kind(value)}, so it has no {_spell(key)}", _filter_hint(key))


def name(scope: Mapping[str, Any], wanted: str) -> Missing:
    """Why a name is not in scope."""
    near = suggest(wanted, scope)
    return Missing(f"unknown name '{wanted}'", f"did you mean '{near}'?" if near else None)


def follow(value: Any, path: str | int, what: str) -> Any:
    """The value at a path such as `"author.name"` or `"labels.0"`, as `attribute=` takes it."""
    if isinstance(path, int):
        return look(value, path, what)
    for part in path.split("."):
        key = int(part) if part.isascii() and part.isdigit() and len(part) < 10 else part
        if isinstance(value, Mapping):
            key = part
        value = look(value, key, what)
        what = f"{what}.{part}"
    return value


def _spell(key: Any) -> str:
    if isinstance(key, str):
        return f"'{key if len(key) <= 60 else key[:60] + '…'}'"
    if isinstance(key, int) and not isinstance(key, bool) and abs(key) < 10**12:
        return f"item {key}"
    return f"item under {kind(key)}"


def _no_key(value: Mapping[str, Any], key: str, what: str) -> tuple[str, str | None]:
    near = suggest(key, value)
    message = f"no key {_spell(key)} in {what}"
    if near:
        return f"{message} (did you mean '{near}'?)", None
    names = [str(name) for name, _ in zip(value, range(9), strict=False)]
    if not names:
        return f"{message}, which is empty", _filter_hint(key)
    return message, _filter_hint(key) or f"it has {', '.join(names[:8])}{' …' if len(names) > 8 else ''}"


def _filter_hint(key: Any) -> str | None:
    from .filters import FILTERS

    return f"data has no methods: write `… | {key}`" if isinstance(key, str) and key in FILTERS else None
