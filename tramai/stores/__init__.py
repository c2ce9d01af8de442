"""The stores: one file a kind, named as the scheme of its URL; others come by the entry point `tramai.stores`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any, cast

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..store import Store

_SCHEMES = {"postgresql": "postgres"}
"""Schemes that are not the name of their kind."""


def open_store(url: str, *, create: bool = True) -> Store:
    """The store of a URL: `memory:`, `sqlite:PATH` (`sqlite:` alone is `.tramai/tramai.db`), `postgresql://…`.

    `?retention=30d` in any of them: runs that were over for so long are removed when another one ends.
    With `create=False`, for verbs that only look: where nothing is stored yet, nothing is made, and the answer
    is an empty store in memory that takes no run. ConfigurationError for a scheme nobody knows.
    """
    kind, where, rule = _kind(url)
    try:
        store = cast(Store, kind(where, create=create))
    except NotFound as nothing:
        shown = str(nothing.details.get("url", url))
        return cast(Store, kinds.find("stores", "memory")(url=shown, sealed=True))
    if rule is None:
        return store
    from ..retention import Retaining

    try:
        return cast(Store, Retaining(store, rule))
    except BaseException:
        store.close()
        raise


def peek(url: str) -> int | None:
    """The format of what lies at a URL, without changing it; None where nothing does, or nobody can say."""
    kind, where, _ = _kind(url)
    look = getattr(kind, "peek", None)
    return None if look is None else cast(int | None, look(where))


def older(url: str) -> tuple[int, int] | None:
    """The format of what lies at a URL, and the present one to which the first who opens it brings it; None for others.

    Nothing is changed.
    """
    kind, where, _ = _kind(url)
    look, newest = getattr(kind, "peek", None), getattr(kind, "newest", None)
    if look is None or newest is None:
        return None
    found, present = look(where), newest()
    return (found, present) if found is not None and found < present else None


def ddl(url: str) -> str:
    """The SQL that makes an empty store at a URL, without connecting to it; Unsupported where there is no SQL."""
    kind, where, _ = _kind(url)
    say = getattr(kind, "ddl", None)
    if say is None:
        from ..portable import Unsupported

        raise Unsupported(url=shown(url), what="be made by SQL")
    return cast(str, say(where))


def _kind(url: str) -> tuple[Any, str, str | None]:
    """The class of a URL, the rest of the text, and how long runs are kept there."""
    rule = None
    if "retention=" in url:
        from .. import retention

        url, rule = retention.split(url)
        retention.seconds(rule or "")
    scheme, colon, where = url.partition(":")
    try:
        if not colon:
            raise KeyError(scheme)
        kind = _SCHEMES.get(scheme, scheme)
        found = kinds.find("stores", kind), where, rule
        if "?" in where and kind not in _SCHEMES.values():
            _refuse_parameters(where, getattr(found[0], "PARAMETERS", ()))
        return found
    except KeyError:
        return _elsewhere(url), where, rule


def _refuse_parameters(where: str, known: Collection[str]) -> None:
    """ConfigurationError for what would be taken for a part of a path, unless there is one: `?retentoin=30d`."""
    found = re.search(r"\?(\w+)=", where)
    if found is not None and found[1] not in known and not os.path.lexists(where):
        what = f"the URL of the store has a parameter that nothing knows: {found[1]}"
        raise ConfigurationError(what=what, hint="after a path there can be ?retention=DURATION")


def _elsewhere(url: str) -> Any:
    """The class of a scheme that is not ours: what an installed package has registered for it."""
    scheme, colon, _ = url.partition(":")
    try:
        if not colon:
            raise KeyError(scheme)
        return kinds.plugin("stores", scheme).load()
    except KeyError:
        others = {one.name for one in kinds.added("stores")}
        known = ", ".join(f"{name}:" for name in sorted({*kinds.names("stores"), *others}))
        what = f"no store goes by {shown(url)!r}"
        raise ConfigurationError(what=what, hint=f"known stores: {known}") from None


def shown(url: str) -> str:
    """The URL as people may see it: without the password that may stand in it."""
    url = re.sub("(//[^:@]*):.*@", r"\1@", url, flags=re.DOTALL)
    return re.sub("(password=)[^&]*", r"\1…", url)
