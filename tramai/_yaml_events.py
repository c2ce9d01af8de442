"""Parser events of a YAML text: from libyaml where it is installed, else from pure Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import _yaml_errors
from ._nodes import Lines, Stop


def events(text: str, lines: Lines, shown: str, *, pure: bool) -> Iterator[Any]:
    """Parser events, from libyaml where it is installed, else from pure Python."""
    try:
        yield from _libyaml(text) if not pure and has_libyaml() else _pure(text)
    except Exception as error:  # noqa: BLE001 - the edge to parsers that raise plain Python errors on some broken texts
        problem = _yaml_errors.explain(error, lines, shown)
        raise (OldRules if not pure and _yaml_errors.is_old_rule(error) else Stop)(problem) from None


class OldRules(Stop):
    """libyaml refused what YAML 1.2 allows inside { } and [ ], such as a URL without quotes."""


def has_libyaml() -> bool:
    try:
        import _ruamel_yaml  # noqa: F401
    except ImportError:
        return False
    return True


def _libyaml(text: str) -> Iterator[Any]:
    from _ruamel_yaml import CParser

    get: Callable[[], Any] = CParser(text).get_event
    while (event := get()) is not None:
        yield event


def _pure(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML

    yield from YAML(typ="safe", pure=True).parse(text)
