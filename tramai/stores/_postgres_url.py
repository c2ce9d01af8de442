"""The URL of the PostgreSQL store: its server, the place of its tables there, and what people may see of it."""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from ..errors import ConfigurationError

_FORM = "postgresql://user@host:port/database?schema=NAME&prefix=NAME"
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_PREFIX = re.compile(r"[A-Za-z0-9_]{0,40}")
_SECRET = {"password", "sslpassword"}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the tables are and how to get there."""

    conninfo: str
    """The URL as libpq takes it; the password may stand in it."""
    shown: str
    """The URL of the store as people may see it."""
    schema: str = "public"
    prefix: str = "tramai_"
    pooled: bool = False
    """Whether a pooler may give every statement another session of the server."""


def place_of(where: str) -> Place:
    """Read what follows `postgresql:`; ConfigurationError, which quotes nothing of it, when it makes no sense."""
    where = where or "//"
    if not where.startswith("//") or "\0" in where:
        raise ConfigurationError(what="the URL of the store has another form", hint=f"write it as {_FORM}")
    address, _, query = where[2:].partition("?")
    authority = re.match("[^/#]*", address)[0]  # type: ignore[index]  # it matches anything
    if where.count("@") > ("@" in authority):
        hint = "in a user, a password or a value write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23"
        raise ConfigurationError(what="the URL of the store cannot be read", hint=hint)
    ours: dict[str, str] = {}
    theirs: list[str] = []
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name in ("schema", "prefix", "pooler"):
            ours[name] = unquote(value)
        else:
            theirs.append(pair)
    _check(ours)
    user, at, host = authority.rpartition("@")
    open_query = [pair for pair in query.split("&") if pair.partition("=")[0] not in _SECRET and pair]
    return Place(
        conninfo=_join(address, theirs),
        shown=_join(user.partition(":")[0] + at + host + address[len(authority) :], open_query),
        schema=ours.get("schema", "public"),
        prefix=ours.get("prefix", "tramai_"),
        pooled="pooler" in ours,
    )


def _check(ours: dict[str, str]) -> None:
    rules = {
        "schema": (_SCHEMA, "letters, digits and _, at most 40"),
        "prefix": (_PREFIX, "letters, digits and _, at most 40"),
        "pooler": (re.compile("transaction"), "transaction, or leave it out"),
    }
    for name, value in ours.items():
        form, hint = rules[name]
        if not form.fullmatch(value):
            raise ConfigurationError(what=f"the store's {name} cannot be {value!r}", hint=f"write {hint}")


def _join(address: str, pairs: list[str]) -> str:
    return f"postgresql://{address}" + ("?" + "&".join(pairs) if pairs else "")
