"""The name that an id has in a path: itself where that is safe everywhere, else an encoding of it."""

from __future__ import annotations

import re

from ..hashing import sha256

_PLAIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ENCODED = re.compile(r"~[a-z2-7]+|~~[0-9a-f]{64}")
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}
_LONGEST = 120


def segment(text: str) -> str:
    """The path segment of an id: `order/a`, `order?a`, `Daily`, `daily`, `..` and `CON` never meet.

    Lower case only, for file systems that do not tell case; no names that Windows keeps for itself, no dot at the end.
    """
    if _PLAIN.fullmatch(text) and text[-1] != "." and text.split(".", 1)[0] not in _RESERVED:
        return text
    import base64

    data = text.encode("utf-8", "surrogatepass")
    encoded = "~" + base64.b32encode(data).decode("ascii").rstrip("=").lower()
    return encoded if len(encoded) <= _LONGEST else "~~" + sha256(data)


def is_segment(name: str) -> bool:
    """Whether `segment` may have made this name."""
    return _ENCODED.fullmatch(name) is not None or segment(name) == name


def text_of(name: str) -> str | None:
    """The id behind a segment; None when only the content of what it names can tell."""
    if not name.startswith("~"):
        return name
    if name.startswith("~~"):
        return None
    import base64

    encoded = name[1:].upper()
    try:
        return base64.b32decode(encoded + "=" * (-len(encoded) % 8)).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
