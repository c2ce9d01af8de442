"""A place in a trace, in the words of W3C Trace Context: a version, two random numbers, and flags."""

from __future__ import annotations

import re

_PATTERN = r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"


def valid(text: object) -> str | None:
    """A `traceparent` that may be kept and handed on; None for anything else."""
    return text if isinstance(text, str) and re.fullmatch(_PATTERN, text) else None
