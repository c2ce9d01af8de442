"""The value of a field in a scope, and what msgspec asks about fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .fields import Template, Text, Value
from .values import ExpressionError, Refused, Run, kind, text_of


def evaluate(thing: Template | Value, scope: Mapping[str, Any]) -> Any:
    """The value of a field: native for a text that is one `${{ … }}`, text otherwise; a Value in all its depth.

    Parts that hold no expression are returned as they are, not copied. Raises ExpressionError.
    """
    run = Run(scope)
    value = _value(thing, run)
    if type(value) is str or not isinstance(thing, Text):
        return value
    return _outside(thing, text_of, value, run)


def render_text(template: Template, scope: Mapping[str, Any], *, clean: Callable[[str], str] | None = None) -> str:
    """The text of a field, whatever its value is; null is an error. Raises ExpressionError.

    `clean` is given the text of every `${{ … }}` that is inserted, and nothing of what the author wrote around it.
    """
    run = Run(scope, clean)
    value = _value(template, run)
    text = value if type(value) is str else str(_outside(template, text_of, value, run))
    return clean(text) if clean is not None and template.sole else text


def test(condition: Template, scope: Mapping[str, Any]) -> bool:
    """Whether a condition holds; an error unless its value is a real boolean. Raises ExpressionError."""
    run = Run(scope)
    value = _value(condition, run)
    if value is True or value is False:
        return value
    raise ExpressionError(
        f"a condition must be true or false; this is {kind(value)}",
        text=condition.text,
        end=len(condition.text),
        hint="there is no truthiness: compare it with something",
    )


def dec_hook(type: type, obj: Any) -> Any:
    """For msgspec: make a field of this type from plain data."""
    if issubclass(type, Template):
        if not isinstance(obj, str):
            raise TypeError(f"expected text, got {kind(obj)}")
        return type(obj)
    if issubclass(type, Value):
        return type(obj)
    raise NotImplementedError(type)


def enc_hook(obj: Any) -> Any:
    """For msgspec: the plain data of a field."""
    if isinstance(obj, Template):
        return obj.text
    if isinstance(obj, Value):
        return obj.data
    raise NotImplementedError(type(obj))


def schema_hook(type: type) -> dict[str, Any]:
    """For msgspec: the JSON Schema of a field."""
    if issubclass(type, Template | Value):
        return type.json_schema()
    raise NotImplementedError(type)


def _value(thing: Template | Value, run: Run) -> Any:
    try:
        return (thing._program or thing.program())(run)
    except RecursionError:
        raise ExpressionError("the values are nested too deeply") from None


def _outside(thing: Template | Value, use: Callable[[Any, Run], Any], value: Any, run: Run) -> Any:
    """Use a value for the field as a whole; what is refused then concerns the whole text."""
    try:
        return use(value, run)
    except Refused as error:
        text = thing.text if isinstance(thing, Template) else ""
        raise ExpressionError(error.message, text=text, end=len(text), hint=error.hint) from None
