"""The filters and tests an expression may use: every public function of these modules is one, under its own name."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from . import convert, lists, mappings, tests, text


class Signature(NamedTuple):
    """The arguments a filter or test takes beside its value; `rest`, `named`: any number more of that sort."""

    names: tuple[str, ...]
    required: int
    rest: bool
    named: bool


def _public(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions of a module by name; `list_` is `list`, which would hide Python's own."""
    return {
        name.rstrip("_"): function
        for name, function in vars(module).items()
        if isinstance(function, FunctionType) and function.__module__ == module.__name__ and not name.startswith("_")
    }


FILTERS: dict[str, Callable[..., Any]] = {
    **_public(convert),
    **_public(text),
    **_public(lists),
    **_public(mappings),
}
FILTERS |= {"count": lists.length, "d": convert.default, "e": text.escape}

TESTS: dict[str, Callable[..., Any]] = _public(tests)
TESTS |= {sign: TESTS[word] for sign, word in tests.SIGNS.items()}

LENIENT = frozenset({convert.default, tests.defined, tests.undefined})
"""Those that are given what is missing instead of an error."""


def signature(function: Callable[..., Any]) -> Signature:
    """The arguments of a filter or test."""
    code = function.__code__
    names = code.co_varnames[2 : code.co_argcount + code.co_kwonlyargcount]
    defaults = len(function.__defaults__ or ()) + len(function.__kwdefaults__ or ())
    return Signature(names, len(names) - defaults, bool(code.co_flags & 0x04), bool(code.co_flags & 0x08))


def misuse(function: Callable[..., Any], name: str, count: int, keywords: tuple[str, ...]) -> str | None:
    """What is wrong with a call of this many arguments and these keywords, if anything."""
    names, required, rest, named = signature(function)
    for position, keyword in enumerate(keywords):
        if keyword in keywords[:position]:
            return f"'{name}' is given '{keyword}' twice"
        if keyword not in names and not named:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            return f"'{name}' has no argument '{keyword}' ({takes})"
        if keyword in names[:count]:
            return f"'{name}' is given '{keyword}' twice"
    if count > len(names) and not rest:
        return f"'{name}' takes {len(names) or 'no'} argument{'s' * (len(names) != 1)}, not {count}"
    lacking = [wanted for wanted in names[count:required] if wanted not in keywords]
    return f"'{name}' needs the argument '{lacking[0]}'" if lacking else None


def result_kind(name: str) -> str | None:
    """What a filter always yields, from its annotation; None when that depends."""
    function = FILTERS.get(name)
    returns = str(function.__annotations__.get("return")) if function else ""
    kinds = {"str": "text", "int": "a number", "float": "a number", "int | float": "a number"}
    kinds |= {"list[Any]": "a list", "dict[str, Any]": "a mapping"}
    return kinds.get(returns)
