"""The stores: one file a kind, named as the scheme of its URL."""

from __future__ import annotations

import re
from typing import cast

from .. import kinds
from ..errors import ConfigurationError, NotFound
from ..store import Store

_SCHEMES = {"postgresql": "postgres"}
"""Schemes that are not the name of their kind."""


def open_store(url: str, *, create: bool = True) -> Store:
    """The store of a URL: `memory:`, `sqlite:PATH` (`sqlite:` alone is `.tramai/tramai.db`), `postgresql://…`.

    With `create=False`, for verbs that only look: where nothing is stored yet, nothing is made, and the answer
    is an empty store in memory that takes no run. ConfigurationError for a scheme nobody knows.
    """
    scheme, colon, where = url.partition(":")
    try:
        if not colon:
            raise KeyError(scheme)
        kind = kinds.find("stores", _SCHEMES.get(scheme, scheme))
    except KeyError:
        known = ", ".join(f"{name}:" for name in kinds.names("stores"))
        shown = re.sub("//.*@", "//…@", url, flags=re.DOTALL)  # there may be a password
        raise ConfigurationError(what=f"no store goes by {shown!r}", hint=f"known stores: {known}") from None
    try:
        return cast(Store, kind(where, create=create))
    except NotFound as nothing:
        shown = str(nothing.details.get("url", url))
        return cast(Store, kinds.find("stores", "memory")(url=shown, sealed=True))
