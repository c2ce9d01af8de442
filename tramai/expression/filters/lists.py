"""Filters on lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..lookup import follow
from ..operators import add
from ..values import Missing, Refused, Run, dump, is_number, kind, text_of
from . import arguments as _arguments

_ABSENT = Missing("")


def length(run: Run, value: Any) -> int:
    """The number of items, keys or characters."""
    if isinstance(value, list | tuple | str | Mapping):
        return len(value)
    raise Refused(f"{kind(value)} has no length")


def first(run: Run, value: Any) -> Any:
    """The first item; missing when there is none."""
    return next(iter(_some(value)), Missing("there is no first item, the list is empty"))


def last(run: Run, value: Any) -> Any:
    """The last item; missing when there is none."""
    found = _some(value)
    if isinstance(found, Mapping):
        found = list(found)
    return found[-1] if len(found) else Missing("there is no last item, the list is empty")


def reverse(run: Run, value: Any) -> Any:
    """A list or a text from its end to its start."""
    if isinstance(value, str):
        run.wrote(len(value))
        return value[::-1]
    return _arguments.items(value, run)[::-1]


def join(run: Run, value: Any, d: str = "", attribute: str | int | None = None) -> str:
    """The items (or an attribute of each) as one text, with `d` between them."""
    texts = [text_of(item, run) for item in _values(run, value, attribute)]
    between = text_of(d, run)
    run.wrote(sum(map(len, texts)) + len(between) * max(0, len(texts) - 1))
    return between.join(texts)


def sort(
    run: Run, value: Any, reverse: bool = False, case_sensitive: bool = False, attribute: str | int | None = None
) -> list[Any]:
    """The items in order, of themselves or of an attribute (several: `"name,age"`); all numbers or all texts."""
    items = _arguments.items(value, run)
    paths: list[str | int | None] = [attribute]
    if isinstance(attribute, str):
        paths = list(attribute.split(","))
    _arguments.flag(case_sensitive, "case_sensitive")
    columns = [_sortable(run, _values(run, items, path), case_sensitive) for path in paths]
    order = sorted(
        range(len(items)),
        key=lambda at: [column[at] for column in columns],
        reverse=_arguments.flag(reverse, "reverse"),
    )
    run.spend(len(items) * len(paths) * 2)
    return [items[at] for at in order]


def unique(run: Run, value: Any, case_sensitive: bool = False, attribute: str | int | None = None) -> list[Any]:
    """The items without repetition; the first of equal ones stays."""
    items = _arguments.items(value, run)
    folded = not _arguments.flag(case_sensitive, "case_sensitive")
    kept: dict[object, Any] = {}
    for item, by in zip(items, _values(run, items, attribute), strict=True):
        kept.setdefault(_identity(run, by, folded), item)
    return list(kept.values())


def min_(run: Run, value: Any, case_sensitive: bool = False, attribute: str | int | None = None) -> Any:
    """The smallest item (or the item with the smallest attribute); missing when there is none."""
    return _extreme(run, value, case_sensitive, attribute, min)


def max_(run: Run, value: Any, case_sensitive: bool = False, attribute: str | int | None = None) -> Any:
    """The largest item (or the item with the largest attribute); missing when there is none."""
    return _extreme(run, value, case_sensitive, attribute, max)


def sum_(run: Run, value: Any, attribute: str | int | None = None, start: int | float = 0) -> int | float:
    """The sum of numbers (or of an attribute of each item)."""
    total = _arguments.number(start, "the start of sum")
    for item in _values(run, value, attribute):
        total = add(run, total, _arguments.number(item, "sum"))
    return total  # type: ignore[no-any-return]


def map_(run: Run, value: Any, *arguments: Any, **named: Any) -> list[Any]:
    """An attribute of each item (`attribute="a.b"`, with `default=` for what is missing), or a filter on each."""
    items = _arguments.items(value, run)
    if "attribute" in named:
        unknown = set(named) - {"attribute", "default"}
        if arguments or unknown:
            raise Refused("map takes attribute= and default=, or the name of a filter with its arguments")
        return _values(run, items, named["attribute"], named.get("default", _ABSENT))
    apply = _by_name(run, "filter", arguments, named)
    return [_present(apply(item)) for item in items]


def select(run: Run, value: Any, *arguments: Any) -> list[Any]:
    """The items that pass a test: `select("gt", 3)`; without one, a list of items that are true."""
    return [item for item, passed in _tested(run, value, None, arguments) if passed]


def reject(run: Run, value: Any, *arguments: Any) -> list[Any]:
    """The items that do not pass a test."""
    return [item for item, passed in _tested(run, value, None, arguments) if not passed]


def selectattr(run: Run, value: Any, attribute: str | int, *arguments: Any) -> list[Any]:
    """The items with an attribute that passes a test: `selectattr("risk", "eq", "high")`."""
    return [item for item, passed in _tested(run, value, attribute, arguments) if passed]


def rejectattr(run: Run, value: Any, attribute: str | int, *arguments: Any) -> list[Any]:
    """The items with an attribute that does not pass a test."""
    return [item for item, passed in _tested(run, value, attribute, arguments) if not passed]


def groupby(run: Run, value: Any, attribute: str | int, default: Any = None, case_sensitive: bool = False) -> list[Any]:
    """Pairs of a value of the attribute and the list of items that have it, in order of that value."""
    items = _arguments.items(value, run)
    otherwise = _ABSENT if default is None else default
    by = _values(run, items, attribute, otherwise)
    keys = _sortable(run, by, _arguments.flag(case_sensitive, "case_sensitive"))
    groups: list[list[Any]] = []
    previous: Any = None
    for at in sorted(range(len(items)), key=lambda at: keys[at]):
        if not groups or keys[at] != previous:
            groups.append([by[at], []])
        groups[-1][1].append(items[at])
        previous = keys[at]
    return list(groups)


def batch(run: Run, value: Any, linecount: int, fill_with: Any = None) -> list[Any]:
    """Lists of `linecount` items each; the last is shorter, or filled up with `fill_with`."""
    items = _arguments.items(value, run)
    size = _arguments.whole(linecount, "the size of batch", least=1)
    rows = [items[at : at + size] for at in range(0, len(items), size)]
    if rows and fill_with is not None:
        run.spend(size)
        rows[-1] += [fill_with] * (size - len(rows[-1]))
    return list(rows)


def slice_(run: Run, value: Any, slices: int, fill_with: Any = None) -> list[Any]:
    """The items dealt into `slices` lists, the longer ones first."""
    items = _arguments.items(value, run)
    run.spend(_arguments.whole(slices, "the number of slices", least=1))
    each, more = divmod(len(items), slices)
    rows, start = [], 0
    for number in range(slices):
        end = start + each + (number < more)
        rows.append(items[start:end] + ([fill_with] if fill_with is not None and number >= more else []))
        start = end
    return list(rows)


def flatten(run: Run, value: Any) -> list[Any]:
    """The items of lists inside a list, one level down."""
    flat: list[Any] = []
    for item in _arguments.items(value, run):
        flat += _arguments.items(item, run) if isinstance(item, list) else [item]
    return flat


def _some(value: Any) -> Any:
    if isinstance(value, list | tuple | str | Mapping):
        return value
    raise Refused(f"{kind(value)} has no items")


def _values(run: Run, value: Any, attribute: Any, default: Any = _ABSENT) -> list[Any]:
    """The items, or an attribute of each; what is missing is an error unless there is a default."""
    items = _arguments.items(value, run)
    if attribute is None:
        return items
    path = _arguments.path(attribute)
    run.spend(len(items))
    found = [follow(item, path, f"item {at}") for at, item in enumerate(items)]
    for at, item in enumerate(found):
        if isinstance(item, Missing):
            found[at] = _present(item) if isinstance(default, Missing) else default
    return found


def _present(value: Any) -> Any:
    if isinstance(value, Missing):
        raise value.refuse()
    return value


def _sortable(run: Run, values: list[Any], case_sensitive: bool) -> list[Any]:
    """Keys that have an order, or an error: all numbers, all texts or all booleans."""
    sorts = {bool if isinstance(item, bool) else float if is_number(item) else type(item) for item in values}
    if len(sorts) > 1 or sorts - {bool, float, str}:
        kinds = sorted({kind(item) for item in values})
        raise Refused(f"these items have no order: {' and '.join(kinds)}", 'name what to compare: attribute="…"')
    if case_sensitive or sorts != {str}:
        return values
    run.spend(sum(map(len, values)) >> 6)
    return [item.lower() for item in values]


def _identity(run: Run, value: Any, folded: bool) -> object:
    """Something that is equal for equal values, and hashable."""
    if isinstance(value, str):
        run.spend(len(value) >> 8)
        return ("text", value.lower() if folded else value)
    if isinstance(value, bool) or value is None:
        return (kind(value), value)
    return ("number", value) if is_number(value) else ("data", dump(value, run))


def _extreme(run: Run, value: Any, case_sensitive: bool, attribute: Any, choose: Callable[..., Any]) -> Any:
    items = _arguments.items(value, run)
    if not items:
        return Missing("there is no smallest or largest item, the list is empty")
    keys = _sortable(run, _values(run, items, attribute), _arguments.flag(case_sensitive, "case_sensitive"))
    return items[choose(range(len(items)), key=lambda at: keys[at])]


def _tested(run: Run, value: Any, attribute: Any, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, bool]]:
    """Each item and whether it (or its attribute) passes the test that the arguments name."""
    items = _arguments.items(value, run)
    path = None if attribute is None else _arguments.path(attribute)
    apply = _by_name(run, "test", arguments, {}) if arguments else _strictly
    for at, item in enumerate(items):
        yield item, apply(item if path is None else follow(item, path, f"item {at}"))


def _strictly(value: Any) -> bool:
    if isinstance(_present(value), bool):
        return bool(value)
    raise Refused(f"without a test the items must be booleans, not {kind(value)}", 'name a test: select("ne", "")')


def _by_name(run: Run, sort: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Callable[[Any], Any]:
    """The filter or test that the first argument names, with the others filled in."""
    from . import FILTERS, LENIENT, TESTS, misuse

    known = FILTERS if sort == "filter" else TESTS
    name = arguments[0] if arguments else None
    function = known.get(name) if isinstance(name, str) else None
    if function is None:
        raise Refused(f"there is no {sort} {name!r}" if isinstance(name, str) else f"name a {sort}")
    rest = arguments[1:]
    if wrong := misuse(function, str(name), len(rest), tuple(named)):
        raise Refused(wrong)
    chosen, lenient = function, function in LENIENT

    def apply(item: Any) -> Any:
        run.spend(2)
        return chosen(run, item if lenient else _present(item), *rest, **named)

    return apply
