"""How the paths of a journal are spelled."""

from __future__ import annotations

import re

import msgspec

_ASIDE = re.compile(r"@(catch|deadline|until|pause)$")


def is_aside(path: str) -> bool:
    """Whether a path is no step's, but that of a decision about one."""
    return _ASIDE.search(path) is not None


def spell(key: str) -> str:
    """A key inside a path: as it is when plain, else quoted, so that paths never collide."""
    if key and len(key) <= 64 and all(char.isalnum() or char in "_-./:@+" for char in key) and key.isascii():
        return key
    return msgspec.json.encode(key).decode("utf-8", "surrogatepass")
