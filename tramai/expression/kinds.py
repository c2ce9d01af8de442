"""What a tree is bound to yield, as far as that can be told before a run."""

from __future__ import annotations

from typing import Any


def never_boolean(tree: tuple[Any, ...]) -> str | None:
    """What a tree always yields if that is no boolean; None when it may be one."""
    return None
