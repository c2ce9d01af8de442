"""What a Link header says (RFC 8288): the way to the next page, and to others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_LINK = re.compile(
    r' ?<([^>]*)>((?: ?; ?[^ =;,"<>]+(?: ?=(?: ?"(?:[^"\\]|\\.)*"| ?[^ ;,"]+)?)?)*) ?(?:,|$)',
)
_PARAMETER = re.compile(r'; ?([^ =;,"<>]+)(?: ?=(?: ?"((?:[^"\\]|\\.)*)"| ?([^ ;,"]+))?)?')


def links(header: str, base: httpx.URL | None) -> dict[str, str | None]:
    """The targets of a Link header by their relation, whole; `next` is there in any case. The first of a kind counts.

    What is no link is passed over, and so is one that speaks of another page than this (`anchor`). Without a `base`
    they stay as they are.
    """
    found: dict[str, str | None] = {"next": None}
    text, at = re.sub(r"[ \t]+", " ", header), 0
    while at < len(text):
        link = _LINK.match(text, at)
        if link is None:
            comma = text.find(",", at)
            at = len(text) if comma < 0 else comma + 1
            continue
        at = link.end()
        parameters: dict[str, str] = {}
        for name, quoted, bare in _PARAMETER.findall(link[2]):
            parameters.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or bare)
        if "anchor" in parameters:
            continue
        for relation in parameters.get("rel", "").lower().split():
            if found.get(relation) is None:
                found[relation] = _whole(link[1], base)
    return found


def _whole(target: str, base: httpx.URL | None) -> str:
    if base is None:
        return target
    import httpx

    try:
        return str(base.join(target))
    except (httpx.InvalidURL, ValueError):
        return target
