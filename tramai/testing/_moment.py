"""Instants as test files write them."""

from __future__ import annotations

from datetime import UTC, datetime

NOW = 1_800_000_000.0
"""2027-01-15T08:00:00Z: when runs start that are not told when."""


def moment(text: str | None) -> float | None:
    """Epoch seconds of an ISO 8601 text, UTC without an offset; NOW for none, None for what is no instant."""
    if text is None:
        return NOW
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
