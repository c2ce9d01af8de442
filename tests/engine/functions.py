"""Python functions that the engine's tests call from `local` steps."""

from __future__ import annotations

import datetime
import time
from collections import Counter
from typing import Any

from tramai.step import StepError

calls: Counter[str] = Counter()


def count(name: str) -> int:
    """How often it has been called under this name."""
    calls[name] += 1
    return calls[name]


def fail_until(name: str, times: int) -> str:
    """Fail the first `times` calls."""
    calls[name] += 1
    if calls[name] <= times:
        raise RuntimeError(f"call {calls[name]} of {name}")
    return f"succeeded at call {calls[name]}"


def give(what: str) -> Any:
    """Values that JSON cannot say, by name."""
    return {
        "bytes": b"x",
        "set": {1},
        "date": datetime.date(2024, 1, 15),
        "nan": float("nan"),
        "inf": float("inf"),
        "int_key": {1: "a"},
        "tuple": (1, 2),
        "object": object(),
        "nested": {"a": [{"b": b"x"}]},
        "big": 738529527931269425 * 10**20,
    }[what]


def large(size: int, deep: bool = False) -> Any:
    """A text of so many characters, or one in the middle of other things."""
    text = "x" * size
    return {"small": [1, 2], "rows": [{"id": 7}, {"id": 8, "body": text}]} if deep else text


def shout(size: int) -> None:
    """Fail with a long message and details."""
    raise StepError("exit.1", "a" * size, details={"body": "b" * size})


def nap(seconds: float) -> str:
    """Sleep and say so."""
    time.sleep(seconds)
    return "slept"


async def later(value: str) -> str:
    """An async function."""
    return value


def ask_to_wait(seconds: float) -> None:
    """Fail as a busy service does."""
    raise StepError("http.503", "busy", retry_after=seconds)


def refuse() -> None:
    """Fail for good."""
    raise StepError("refused", "never")


def grow(rows: list[Any]) -> int:
    """Change an argument, and say how long it is now."""
    rows.append(0)
    return len(rows)


remembered: list[Any] = []


def remember(item: Any) -> list[Any]:
    """The same list each time, longer each time."""
    remembered.append(item)
    return remembered
