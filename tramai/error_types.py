"""The closed types of errors, and what the words of `retry.on` and `catch.on` cover."""

from __future__ import annotations

from collections.abc import Sequence

ERROR_TYPES = [
    "timeout",
    "network",
    "rate_limited",
    "auth",
    "exit",
    "invalid_output",
    "limit",
    "cancelled",
    "rejected",
    "unknown_outcome",
    "expression",
    "refused",
    "truncated",
    "http",
]
"""First words of the closed error types; `http.404`, `http.4xx`, `exit.3` refine them, plugins add `plugin.*`."""


def matches(error_type: str, patterns: Sequence[str]) -> bool:
    """Whether an error type is one of these (`retry.on`, `catch.on`).

    A word covers what refines it (`exit`: `exit.3`; `http`: `http.404`), `http.4xx` a class of statuses, `plugin.*`
    whatever follows. `rate_limited` covers `http.429`, `auth` covers `http.401` and `http.403`.
    """
    return any(_covers(pattern, error_type) for pattern in patterns)


_ALSO = {"rate_limited": ("http.429",), "auth": ("http.401", "http.403")}


def _covers(pattern: str, error_type: str) -> bool:
    if pattern == error_type or error_type in _ALSO.get(pattern, ()):
        return True
    if pattern.endswith(".*"):
        return error_type.startswith(pattern[:-1])
    if pattern.startswith("http.") and pattern.endswith("xx"):
        return error_type.startswith(pattern[:-2]) and len(error_type) == len(pattern)
    return error_type.startswith(pattern + ".")
