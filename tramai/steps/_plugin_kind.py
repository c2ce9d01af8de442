"""The class of a step that a package adds: found by its name, looked at before it is trusted, described as a schema."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from .. import kinds, schema
from ..errors import PluginUnusable
from ..step import Control, Step

FAMILY = "steps"
_OURS = frozenset(name for name in dir(Step) if not name.startswith("__"))


class Described(NamedTuple):
    """The schema of a step's settings. `structs`: every Struct in them, with the name of its definition."""

    top: str
    definitions: dict[str, schema.Schema]
    structs: dict[type, str]


def load(name: str) -> type[Step]:
    """The class that a package adds by a name. KeyError when there is none, PluginUnusable when it is no step."""
    found = kinds.plugin(FAMILY, name)
    kind = found.load()
    why = _unfit(kind)
    if why is None:
        try:
            described(kind)
        except Exception as error:  # noqa: BLE001 - the edge to foreign annotations: a name in them may be nowhere
            why = f"has settings that no schema can describe: {error}"
    if why is not None:
        raise found.unusable(why)
    return kind  # type: ignore[no-any-return]


def _unfit(kind: Any) -> str | None:
    """Why something is no step that a workflow may use."""
    if not (isinstance(kind, type) and issubclass(kind, Step)):
        return "is no subclass of tramai.step.Step"
    if issubclass(kind, Control):
        return "holds steps, which a plugin cannot"
    if kind.called is not Step.called or kind.back is not Step.back:
        return "calls a workflow or sends the walk back, which a plugin cannot"
    config = kind.__struct_config__
    if not config.frozen or not config.forbid_unknown_fields:
        return "is not frozen, or takes unknown settings: class …(Step, frozen=True, kw_only=True)"
    if type(kind.edition) is not int or kind.edition < 1:
        return "has an `edition` that is no whole number from 1 on"
    if not _is_names(kind.sinks):
        return "has `sinks` that are no set of names of settings"
    hidden = [name for name in kind.__struct_fields__ if name in _OURS]
    if hidden:
        return f"has a field `{hidden[0]}` that hides a part of Step: call it `{hidden[0]}_`, and rename it"
    if kind.run is Step.run:
        return "has no method `run`"
    return None


def _is_names(said: Any) -> bool:
    if isinstance(said, property):
        return True
    return isinstance(said, frozenset | set | tuple) and all(isinstance(name, str) for name in said)


@lru_cache(maxsize=128)
def described(kind: type[Step]) -> Described:
    """The schema of the settings; TypeError when a type in them has none."""
    from .._generate import Generator

    generator = Generator()
    reference = generator.schema(kind)
    return Described(reference["$ref"].rpartition("/")[2], generator.definitions, generator.structs)


def unusable(name: str) -> PluginUnusable | None:
    """Why an installed step cannot be used; None when it can, or is not installed."""
    try:
        load(name)
    except KeyError:
        return None
    except PluginUnusable as error:
        return error
    return None
