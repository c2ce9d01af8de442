"""Pages of an answer, taken one after another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..step import StepError
from ._http_exchange import Asked, Call, Reply, one, wire_of
from ._http_guard import parse, shown

if TYPE_CHECKING:
    import httpx

    from ..running import Context
    from ._http_settings import Paginate


async def pages(call: Call, how: Paginate, ctx: Context) -> tuple[Reply, list[Any], int, int]:
    """The last answer, the items of all pages, how many pages there were, and how many bytes.

    One exchange for all that limits it: time, size, hosts, and what another origin may see.
    """
    asked, items, left, seen = Asked(call), [], call.limit, set[str]()
    async with wire_of(call, asked) as wire:
        for number in range(1, how.max_pages + 1):
            seen.add(str(asked.url))
            reply = await one(asked, call, wire, ctx.now(), left=left)
            left -= len(reply.content)
            names = {"result": {**reply.record(), "body": reply.body(), "page": number}}
            found = ctx.value_with(how.items, names)
            if not isinstance(found, list):
                what = f"paginate.items is {_kind(found)} on page {number}, not a list"
                raise StepError("expression", what, hint="name the list of a page, as in ${{ result.body.items }}")
            items += found
            place = _next(ctx.value_with(how.next, names), asked.url, number)
            if place is None:
                return reply, items, number, call.limit - left
            if str(place) in seen:
                what = f"page {number} of {call.shown()} leads back to a page that was taken, {shown(place)}"
                raise StepError("invalid_output", what)
            asked.turn(place)
    hint = "set paginate.max_pages to what is needed"
    raise StepError("limit", f"{call.shown()} has more pages than max_pages ({how.max_pages})", hint=hint)


def _next(value: Any, base: httpx.URL, number: int) -> httpx.URL | None:
    """The URL of the next page, checked like the first one; None after the last page."""
    import httpx

    if value is None or value == "":
        return None
    if isinstance(value, dict):
        if None in value.values() or "" in value.values():
            return None
        given = {name: _parameter(name, item) for name, item in value.items()}
        try:
            merged = str(base.copy_merge_params(given))
        except httpx.InvalidURL:
            what = f"the URL of the page after page {number} cannot be made: its parameters are too long"
            raise StepError("refused", what) from None
        return parse(merged)
    if not isinstance(value, str):
        what = f"paginate.next is {_kind(value)} on page {number}, not a URL"
        hint = "it is the URL of the next page, parameters for its query, or null after the last one"
        raise StepError("expression", what, hint=hint)
    try:
        return parse(str(base.join(value)))
    except (httpx.InvalidURL, ValueError):
        raise StepError("refused", f"the next page {shown(value)} is no URL") from None


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise StepError("expression", f"paginate.next: {name} holds half of a surrogate pair")
        return value
    if isinstance(value, (list, dict)):
        raise StepError("expression", f"paginate.next: {name} is {_kind(value)}, not a text")
    return json.dumps(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {str: "a text", bool: "a boolean", dict: "a map", list: "a list"}
    return names.get(type(value), "a number")
