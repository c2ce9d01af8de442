"""`tramai config show`: every setting with its value and, if asked, where it comes from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from ..redact import MASK
from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ..errors import Position
    from ._config_documents import SettingView
    from ._settings import Settings

_URL = re.compile(r"(://[^/@\s:]*):[^/@\s]*@")
_NAMED = re.compile(r"((?:token|secret|password|passwd|api[-_]?key|signature)[\w-]*[=:]\s*)(?!\$\{\{)[^\s&\"']+", re.I)
_HIDDEN = frozenset({"env", "headers", "proxy_auth"})
"""Tables whose texts are values of variables, of headers, or credentials."""
_OURS = frozenset({"TRAMAI_DIAGNOSTICS", "TRAMAI_RUN_ID", "TRAMAI_STEP", "TRAMAI_ATTEMPT", "TRAMAI_COOKIE"})
"""Variables of ours that are no settings."""


@verb(
    "show",
    "tramai config show",
    "tramai config show --origin",
    "tramai config show --json",
    summary="Show every setting that holds here.",
)
@click.option("--origin", is_flag=True, help="Also where each comes from: a flag, a variable, a file, the default.")
def show(session: Session, origin: bool) -> int:
    """Show every setting that holds here, as tramai.toml would say it.

    Passwords in URLs, values of variables and headers are shown as ***; secrets
    themselves never stand in a configuration. With --origin (or -v) each line
    says which flag, variable or line of a file it comes from.

    Exit status: 0 shown, 2 a flag or variable means nothing, 3 a file does.
    """
    from . import _config_documents

    settings = session.settings
    found, notes = [*_views(settings)], _strangers(os.environ)
    if session.json:
        root, files = os.path.abspath(settings.root), list(settings.files)
        session.emit(_config_documents.Configuration(root=root, files=files, settings=found, notes=notes))
        return 0
    origin = origin or session.verbose
    for line in _text(session, found, origin=origin):
        session.out.line(line)
    if origin:
        for file in settings.files:
            session.note(f"read: {safe(file)}")
        if not settings.files:
            session.note("read: no configuration file")
    for note in notes:
        session.err.line(f"warning: {safe(note)}")
    return 0


def _views(settings: Settings) -> Iterator[SettingView]:
    from ..stores import shown
    from ._settings import HTTP, KEYS, OBSERVERS, PROVIDERS, SERVERS

    for key in ("wait", "lease", "retention"):
        if settings.found(key)[0] is not None:
            settings.seconds(key)  # a variable that means nothing is an error here too
    for key in KEYS:
        value, origin, place = settings.found(key)
        if key == "store":
            value = masked(shown(settings.store))
        yield _view(key, value, origin, place)
    if settings.observers:
        yield _view(OBSERVERS, list(settings.observers), *settings.found(OBSERVERS)[1:])
    for name, table in ((HTTP, settings.http), (PROVIDERS, settings.providers), (SERVERS, settings.servers)):
        for key in sorted(table):
            value = masked(table[key], hide=key in _HIDDEN)
            yield _view(f"{name}.{key}", value, *settings.found(f"{name}.{key}")[1:])


def _view(key: str, value: Any, origin: str, place: Position | None) -> SettingView:
    from ._config_documents import SettingView

    said = f"{place.file}:{place.line}" if place is not None else origin
    file, line = (place.file, place.line) if place is not None else (None, None)
    return SettingView(key=key, value=value, source=_source(origin), origin=said, file=file, line=line)  # type: ignore[arg-type]


def _source(origin: str) -> str:
    if origin.startswith("--"):
        return "flag"
    if origin.startswith("TRAMAI_"):
        return "variable"
    if ": " not in origin:
        return "default"
    file = os.path.basename(origin.rpartition(": ")[0])
    return "user" if file == "config.toml" else "project"


def masked(value: Any, *, hide: bool = False) -> Any:
    """The value without what may be a secret: passwords in URLs, and with `hide` every text that is no expression."""
    if isinstance(value, Mapping):
        return {name: masked(one, hide=hide or _holds_values(name, one)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [masked(one, hide=hide) for one in value]
    if not isinstance(value, str):
        return value
    if hide and not re.fullmatch(r"[\w ]*\$\{\{[^{}]*\}\}", value):
        return MASK
    return _NAMED.sub(rf"\1{MASK}", _URL.sub(rf"\1:{MASK}@", value))


def _holds_values(name: str, value: Any) -> bool:
    return name in _HIDDEN and not isinstance(value, str)  # `api_key: {env: NAME}` names a variable


def _strangers(env: Mapping[str, str]) -> list[str]:
    """Variables that begin as ours do and are near a setting: a misspelt one is silently nothing."""
    import difflib

    from ._settings import KEYS

    known = {f"TRAMAI_{key.upper()}" for key in KEYS}
    found = []
    for name in sorted(env):
        if name.startswith("TRAMAI_") and name not in known | _OURS:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            found += [f"{name} is no setting; did you mean {near[0]}?"] if near else []
    return found


def _text(session: Session, found: list[SettingView], *, origin: bool) -> list[str]:
    out = session.out
    said = [
        safe(f"{_name(one.key)} = {_toml(one.value)}" if one.value is not None else f"# {one.key} is not set")
        for one in found
    ]
    if not origin:
        return said
    width = min(max(map(len, said)), 60)
    return [
        f"{text.ljust(width)}  {out.paint(f'# {safe(one.origin)}', 'dim')}" if one.value is not None else text
        for one, text in zip(found, said, strict=True)
    ]


def _name(key: str) -> str:
    table, dot, name = key.partition(".")
    return key if not dot or re.fullmatch(r"[\w-]+", name, re.ASCII) else f"{table}.{json.dumps(name)}"


def _toml(value: Any) -> str:
    """The value on one line, as TOML says it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_bare(name)} = {_toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
