"""Find a kind by the name its user types: a module of ours with a class of that name, or what a package has added."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from functools import lru_cache
from typing import Any, NamedTuple

from .errors import PluginUnusable

FAMILIES = ("steps", "stores", "providers")
ADDED = (*FAMILIES, "observers")
"""What packages may add, by the entry points `tramai.steps`, `tramai.stores` and so on."""
WORDS = {"steps": "step", "stores": "store", "providers": "model provider", "observers": "observer"}
"""What one of a family is called."""


class Plugin(NamedTuple):
    """A kind that an installed package brings: `value` is its `module:Class`."""

    family: str
    name: str
    value: str
    package: str
    version: str

    def load(self) -> Any:
        """Import it; PluginUnusable when that fails, whatever it raises.

        What it prints goes to standard error: standard output may be one JSON document.
        """
        module, _, attribute = self.value.partition(":")
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found: Any = importlib.import_module(module.strip())
            for part in attribute.partition("[")[0].strip().split(".") if attribute else ():
                found = getattr(found, part)
        except (Exception, SystemExit) as error:  # the edge to a foreign module, which may raise anything
            said = (str(error) or type(error).__name__).splitlines()[0][:300]
            raise self.unusable(f"cannot be loaded: {type(error).__name__}: {said}") from error
        return found

    def unusable(self, why: str) -> PluginUnusable:
        """The error that says why it cannot be used."""
        what = f"the {WORDS[self.family]} `{self.name}` of the package {self.package} {self.version} {why}"
        return PluginUnusable(what=what, hint=f"mend, update or remove the package {self.package} ({self.value})")


def names(family: str) -> tuple[str, ...]:
    """Our own kinds of a family (`steps`, `stores`, `providers`), in order of name."""
    folder = os.path.join(os.path.dirname(__file__), family)
    found = (entry[:-3] for entry in os.listdir(folder) if entry.endswith(".py"))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def find(family: str, name: str) -> Any:
    """Our own class `Name` in `tramai.<family>.<name>`; KeyError when there is no such kind."""
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


def added(family: str) -> tuple[Plugin, ...]:
    """What installed packages add to a family, in order of name. Nothing of them is imported."""
    return _added(family, tuple(sys.path))


@lru_cache(maxsize=32)
def _added(family: str, path: tuple[str, ...]) -> tuple[Plugin, ...]:
    """`path`: where packages are looked for; they do not change while a process runs."""
    found = set()
    for point in _points(f"tramai.{family}"):
        package, version = _package(point.dist)
        found.add(Plugin(family, point.name, point.value, package, version))
    return tuple(sorted(found))


def _points(group: str) -> list[Any]:
    """Entry points of a group. What is left of a package that was half removed takes those of no other with it."""
    # Slow to import: no run without a plugin comes by here.
    from importlib.metadata import distributions, entry_points

    try:
        return [*entry_points(group=group)]
    except Exception:  # noqa: BLE001 - files that anything may have written: one by one, without those
        found: list[Any] = []
    seen: set[str] = set()
    for one in distributions():
        try:
            points = [point for point in one.entry_points if point.group == group]
            name = _package(one)[0]
        except Exception:  # noqa: BLE001, S112 - as above
            continue
        if name not in seen:  # the first on the path is the one that is imported
            found.extend(points)
        seen.update({name} - {"?"})
    return found


def _package(installed: Any) -> tuple[str, str]:
    """Its name and version, as far as it says them."""
    try:
        return str(installed.name or "?"), str(installed.version or "?")
    except Exception:  # noqa: BLE001 - there may be no metadata
        return "?", "?"


def plugin(family: str, name: str) -> Plugin:
    """The kind that an installed package adds by this name: ask only where none of ours has it.

    KeyError when there is none, PluginUnusable when there are two.
    """
    found = [one for one in added(family) if one.name == name]
    if not found:
        raise KeyError(name)
    if len(found) > 1:
        packages = " and ".join(sorted(f"{one.package} {one.version} ({one.value})" for one in found))
        what = f"the {WORDS[family]} `{name}` is brought by {packages}: nobody can say which is meant"
        raise PluginUnusable(what=what, hint="uninstall one of the packages")
    return found[0]
