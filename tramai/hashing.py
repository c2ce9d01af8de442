"""SHA-256 without OpenSSL: to load that takes longer than all the hashing of a short run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LARGE = 1 << 20
"""From here on the library, several times as fast, is worth its loading."""


def sha256(data: bytes) -> str:
    """Lower-case hex SHA-256."""
    digest: str = (_small if len(data) < LARGE else _large())(data).hexdigest()
    return digest


def _large() -> Callable[[bytes], Any]:
    import hashlib

    return hashlib.sha256


def _built_in() -> Callable[[bytes], Any]:
    """Python's own; its module has had two names, and a build may be without it."""
    for name in ("_sha2", "_sha256"):
        try:
            found: Callable[[bytes], Any] = __import__(name).sha256
        except (ImportError, AttributeError):
            continue
        return found
    return _large()


_small = _built_in()
