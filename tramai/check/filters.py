"""What filters and tests take and give, as far as a schema can say it."""

from __future__ import annotations

from . import algebra
from .algebra import LIST, MAP, NUMBER, TEXT, WHOLE, Schema

_TEXT = frozenset(("string",))
_NUMBER = frozenset(("number",))
_MAP = frozenset(("object",))
_LISTED = frozenset(("array", "object"))
_SIZED = frozenset(("array", "object", "string"))

TAKES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("upper", "lower", "capitalize", "title", "trim", "replace", "truncate", "indent"), _TEXT),
    **dict.fromkeys(("wordcount", "split", "lines", "format", "basename", "dirname", "sha256"), _TEXT),
    **dict.fromkeys(("b64encode", "b64decode", "fromjson"), _TEXT),
    **dict.fromkeys(("abs", "round"), _NUMBER),
    **dict.fromkeys(("items", "keys", "values", "dictsort", "combine"), _MAP),
    **dict.fromkeys(("length", "count", "first", "last", "list", "reverse"), _SIZED),
    **dict.fromkeys(("join", "sort", "unique", "min", "max", "sum", "map", "select", "reject"), _LISTED),
    **dict.fromkeys(("selectattr", "rejectattr", "groupby", "batch", "slice", "flatten", "fromitems"), _LISTED),
    **dict.fromkeys(("int", "float", "date"), frozenset(("string", "number"))),
    "bool": frozenset(("string", "boolean")),
}
"""The kinds that a filter works on; another one is an error whenever it is evaluated."""

TESTED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("upper", "lower", "startswith", "endswith", "like"), _TEXT),
    **dict.fromkeys(("odd", "even", "divisibleby"), _NUMBER),
}
"""The same for tests."""

_GIVES: dict[str, Schema] = {
    **dict.fromkeys(("upper", "lower", "capitalize", "title", "trim", "replace", "truncate", "indent", "format"), TEXT),
    **dict.fromkeys(("basename", "dirname", "sha256", "b64encode", "b64decode", "quote", "urlencode"), TEXT),
    **dict.fromkeys(("escape", "e", "string", "tojson", "join", "date"), TEXT),
    **dict.fromkeys(("length", "count", "wordcount", "int"), WHOLE),
    **dict.fromkeys(("abs", "round", "float", "sum"), NUMBER),
    "split": {"type": "array", "items": TEXT},
    "lines": {"type": "array", "items": TEXT},
    **dict.fromkeys(("items", "dictsort", "values", "groupby", "batch", "slice", "flatten", "map", "list"), LIST),
    **dict.fromkeys(("combine", "fromitems"), MAP),
    "keys": {"type": "array", "items": TEXT},
    "bool": algebra.BOOLEAN,
}
_SAME_ITEMS = frozenset(("select", "reject", "selectattr", "rejectattr", "unique", "sort"))
_ONE_ITEM = frozenset(("first", "last", "min", "max"))


def gives(name: str, value: Schema) -> Schema:
    """What a filter makes of a value of this shape; `default` and `map(attribute=…)` depend on their arguments."""
    if name in _SAME_ITEMS:
        return {"type": "array", "items": algebra.item(value)} if algebra.kinds(value) == {"array"} else LIST
    if name in _ONE_ITEM:
        return algebra.item(value) if algebra.kinds(value) == {"array"} else algebra.ANY
    return _GIVES.get(name, algebra.ANY)


def attribute(schema: Schema, path: str | int) -> tuple[Schema, str | None]:
    """The shape of an attribute (`"a.b"`) of an item, and the first part that no schema declares."""
    for part in path.split(".") if isinstance(path, str) else (path,):
        key = int(part) if isinstance(part, str) and part.isdigit() and "array" in algebra.kinds(schema) else part
        known = algebra.keys(schema)
        if isinstance(key, str) and known is not None and key not in known and algebra.kinds(schema) == _MAP:
            return algebra.ANY, key
        schema = algebra.member(schema, key)
    return schema, None
