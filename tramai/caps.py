"""How much a run may keep: the size of one value, and of the state, as the canonical JSON that the store is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import size
from .codec import Json, encode
from .definition import Limits
from .errors import InvalidInput
from .step import StepError

MAX_VALUE = 32 << 20
"""Bytes of one value, unless `limits.max_value` says otherwise."""
MAX_STATE = 64 << 20
"""Bytes of all values of the state together, unless `limits.max_state` says otherwise."""
LEAST, MOST = 1 << 10, 512 << 20
"""What either limit may be: beyond the upper bound stores cannot keep a value in one piece."""
_DEEPEST = 8


class Caps:
    """The limits of one run, and how large its state is."""

    def __init__(self, limits: Limits, state: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
        """`kinds`: the keys of the state with a `reduce`."""
        self._kinds = kinds
        self._value = allowed(limits.max_value, MAX_VALUE)
        self._state = allowed(limits.max_state, MAX_STATE)
        self._sizes = {name: len(encode(value)) for name, value in state.items()}
        self._total = sum(self._sizes.values())

    def value(self, text: str, value: Any, what: str) -> None:
        """Refuse a value whose JSON is too long; `what` it is, as expressions would spell it."""
        if len(text) > self._value:
            where, held = biggest(value, what, len(text))
            said = f"`{what}` is {about(len(text))} as JSON"
            raise _refused(said, "max_value", self._value, where, held, elsewhere=where != what)

    def grown(self, name: str, size: int) -> int:
        """At most how large a key of the state is once a value of this size was saved."""
        kind = self._kinds.get(name)
        return size if kind not in ("append", "merge") else self._sizes.get(name, 0) + size + 1

    def state(self, news: Mapping[str, int] | None = None) -> None:
        """Refuse the state as it is, or as it would be with values of these sizes: before anything is written."""
        total = self._total + sum(count - self._sizes.get(name, 0) for name, count in (news or {}).items())
        if total > self._state:
            sizes = {**self._sizes, **(news or {})}
            key = max(sizes, key=sizes.__getitem__)
            what = f"the state {'would be' if news else 'is'} {about(total)} as JSON"
            raise _refused(what, "max_state", self._state, f"state.{key}", sizes[key])

    def saved(self, news: Mapping[str, int]) -> None:
        """Remember the sizes of values that are saved now."""
        self._sizes.update(news)
        self._total = sum(self._sizes.values())


def allowed(limit: int | str | None, otherwise: int) -> int:
    """A limit in bytes."""
    return otherwise if limit is None else size.parse(limit)


def check_inputs(limits: Limits, inputs: Mapping[str, Json], text: str) -> None:
    """Refuse inputs that are too large to be kept, before anything is started."""
    most = allowed(limits.max_value, MAX_VALUE)
    if len(text) <= most:
        return
    name = max(inputs, key=lambda name: len(encode(inputs[name])))
    what = f"is {about(len(encode(inputs[name])))} as JSON; `limits.max_value` allows {about(most)} for all inputs"
    raise InvalidInput(name=name, what=what, hint="give the path of a file instead of its content")


def biggest(value: Any, what: str, held: int) -> tuple[str, int]:
    """Where most of a value is: the path of the part that holds at least half of it, and its size."""
    for _ in range(_DEEPEST):
        if isinstance(value, dict):
            parts: Any = value.items()
        elif isinstance(value, list):
            parts = enumerate(value)
        else:
            break
        found = max(((len(encode(part)), key, part) for key, part in parts), key=_first, default=None)
        if found is None or found[0] * 2 < held:
            break
        held, key, value = found
        what += f"[{key}]" if isinstance(key, int) else f".{key[:60]}"
    return what, held


def about(count: int) -> str:
    """A size for people: `60.2 MiB`."""
    for unit, bytes in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= bytes:
            return f"{count / bytes:.4g} {unit}"
    return f"{count} bytes"


def _first(found: tuple[int, Any, Any]) -> int:
    return found[0]


def _refused(what: str, limit: str, most: int, where: str, held: int, *, elsewhere: bool = True) -> StepError:
    place = f"; most of it is `{where}` ({about(held)})" if elsewhere else ""
    return StepError(
        "limit",
        f"{what}, more than `limits.{limit}` allows ({about(most)}){place}",
        hint=f"keep a path or a count instead of the data, or raise limits.{limit}",
        details={"limit": f"limits.{limit}", "key": where, "bytes": held},
    )
