"""The observers that the setting `observers` names: ours or of installed packages, made before a run begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import kinds
from ..errors import ConfigurationError, Position

FAMILY = "observers"


def made(names: Mapping[str, Position | None]) -> list[Any]:
    """One of each; ConfigurationError for a name that no package brings, PluginUnusable for one that cannot be used.

    A class is called without arguments. A function is the observer itself.
    """
    return [_made(name, place) for name, place in names.items()]


def _made(name: str, place: Position | None) -> Any:
    if name in kinds.names(FAMILY):
        return kinds.find(FAMILY, name)()
    try:
        found = kinds.plugin(FAMILY, name)
    except KeyError:
        raise ConfigurationError(
            what=f"no installed package brings the observer `{name}`", hint=_near(name), position=place
        ) from None
    return instance(found)


def close(observers: Iterable[Any]) -> None:
    """Tell those who want to know it that nothing more comes; what they raise stays with them."""
    for observer in observers:
        try:
            getattr(observer, "close", _nothing)()
        except Exception:  # noqa: BLE001, S112 - observers are fail-open by promise
            continue


def _nothing() -> None:
    """What closes an observer that does not care."""


def instance(found: kinds.Plugin) -> Any:
    """Something that can be told of events or signals; PluginUnusable when it cannot be made, or be told."""
    observer = found.load()
    if isinstance(observer, type):
        try:
            observer = observer()
        except Exception as error:  # the edge to a foreign class
            raise found.unusable(f"cannot be made: {type(error).__name__}: {error}") from error
    if not callable(observer) and not callable(getattr(observer, "signal", None)):
        raise found.unusable("can neither be called with an event nor has a method `signal`")
    return observer


def _near(name: str) -> str:
    import difflib

    known = sorted({*kinds.names(FAMILY), *(one.name for one in kinds.added(FAMILY))})
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"installed are: {', '.join(known)}" if known else "install the package that brings it, where tramai is"
