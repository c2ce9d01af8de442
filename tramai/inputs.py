"""What a run is given: declared inputs, and the values bound to them."""

# No annotations from the future here: msgspec would have to compile their texts in every short run.

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from .codec import Json, NotJson, check
from .errors import InvalidInput
from .expression import suggest
from .shape import Mismatch, Shape, conform, kind_of, short

Meta = msgspec.Meta


class InputSpec(Shape, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One declared input. Without `default` it must be given, unless it is `optional`."""

    optional: Annotated[bool, Meta(description="It may be left out; reading it then needs `default(…)`.")] = False

    @property
    def needed(self) -> bool:
        """Whether a run cannot start without it."""
        return self.default is msgspec.UNSET and not self.optional


def bind(specs: Mapping[str, InputSpec], given: Mapping[str, Json]) -> dict[str, Json]:
    """The inputs of a run: given values converted and checked, defaults filled in.

    A text for an input of another declared type is read as that type (`42`, `true`, JSON for lists and objects).
    Raises InvalidInput for an unknown, missing or wrong one, in the order of the declarations.
    """
    for name in given:
        if name not in specs:
            near = suggest(name, specs)
            hint = f"did you mean '{near}'?" if near else _known(specs)
            raise InvalidInput(name=name, what="is not declared by this workflow", hint=hint)
    bound: dict[str, Json] = {}
    for name, spec in specs.items():
        if name in given:
            bound[name] = _accept(name, spec, given[name])
        elif spec.default is not msgspec.UNSET:
            bound[name] = conform(spec, spec.default)
        elif not spec.optional:
            raise InvalidInput(name=name, what="is required", hint=f"give it with -i {name}=…")
    return bound


def _known(specs: Mapping[str, InputSpec]) -> str:
    return "declared inputs: " + ", ".join(specs) if specs else "this workflow takes no inputs"


def _accept(name: str, spec: InputSpec, value: Json) -> Json:
    try:
        if isinstance(value, str):
            value = from_text(spec, value)
        fits: Json = conform(spec, value)
        check(fits)
    except Mismatch as error:
        where = f"at {error.where} " if error.where else ""
        raise InvalidInput(name=name, what=where + error.what, hint=error.hint) from None
    except NotJson as error:
        where = f"at {short(error.where)} " if error.where else ""
        raise InvalidInput(name=name, what=where + error.what) from None
    return fits


def from_text(shape: Shape, text: str) -> Json:
    """A text read as the declared type; text for a string, or when no type is declared."""
    convert = _FROM_TEXT.get(shape.type or "string")
    return text if convert is None else convert(text)


def _integer(text: str) -> Json:
    if not re.fullmatch(r"-?\d{1,4000}", text, re.ASCII):
        raise Mismatch("", f"must be an integer, not '{short(text)}'", "write digits only, such as 42")
    return int(text)


def _number(text: str) -> Json:
    if re.fullmatch(r"-?\d{1,4000}", text, re.ASCII):
        return int(text)
    value = float(text) if re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", text, re.ASCII) else float("inf")
    if value in (float("inf"), float("-inf")):
        raise Mismatch("", f"must be a number, not '{short(text)}'", "write it as 42 or 2.5")
    return value


def _boolean(text: str) -> Json:
    if text not in ("true", "false"):
        raise Mismatch("", f"must be true or false, not '{short(text)}'")
    return text == "true"


def _structure(kind: str) -> Callable[[str], Json]:
    wanted, article = (list, "a JSON list") if kind == "array" else (dict, "a JSON object")

    def convert(text: str) -> Json:
        try:
            value: Json = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise Mismatch("", f"must be {article}, not '{short(text)}'") from None
        if not isinstance(value, wanted):
            raise Mismatch("", f"must be {article}, not {kind_of(value)}")
        return value

    return convert


def _refuse_constant(text: str) -> Json:
    raise ValueError(text)


_FROM_TEXT: dict[str, Callable[[str], Json]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _structure("array"),
    "object": _structure("object"),
}
