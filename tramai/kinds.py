"""Find a kind by the name its user types: a module of ours with a class of that name."""

from __future__ import annotations

import importlib
import os
from typing import Any

FAMILIES = ("steps", "stores", "providers")


def names(family: str) -> tuple[str, ...]:
    """The kinds of a family (`steps`, `stores`, `providers`), in order of name."""
    folder = os.path.join(os.path.dirname(__file__), family)
    found = (entry[:-3] for entry in os.listdir(folder) if entry.endswith(".py"))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def find(family: str, name: str) -> Any:
    """The class `Name` in `tramai.<family>.<name>`; KeyError when there is no such kind."""
    if not name.isidentifier() or name.startswith("_"):
        raise KeyError(name)
    full = f"tramai.{family}.{name}"
    try:
        module = importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name == full:
            raise KeyError(name) from None
        raise
    return getattr(module, name.capitalize())
