"""What a violated keyword of JSON Schema is called by people, and what they can do about it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ._illustrations import quotable
from ._shape import Schema, Shape, type_of
from .errors import Pointer

_LONGEST = 60
_TYPES = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "a mapping",
}
_YES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_BOUNDS = {
    "minimum": "must be at least {0}",
    "maximum": "must be at most {0}",
    "exclusiveMinimum": "must be more than {0}",
    "exclusiveMaximum": "must be less than {0}",
    "multipleOf": "must be a multiple of {0}",
    "minLength": "must have at least {0} characters",
    "maxLength": "must have at most {0} characters",
    "minItems": "must have at least {0} items",
    "maxItems": "must have at most {0} items",
    "minProperties": "must have at least {0} keys",
    "maxProperties": "must have at most {0} keys",
    "uniqueItems": "must not hold one item twice",
    "contains": "holds no item of the wanted kind",
    "not": "is a value that is not allowed here",
    "format": "must be a valid {0}",
}


def near(word: str, names: Iterable[str]) -> str | None:
    """The one name that a misspelt word most likely means."""
    folded = {name.lower().replace("-", "_"): name for name in names}
    asked = word.lower().replace("-", "_")[:100]
    if asked in folded:
        return folded[asked]
    # A long word that has a little more than half in common with another was hardly meant as that.
    found = difflib.get_close_matches(asked, folded, n=1, cutoff=0.6 if len(asked) < 6 else 0.74)
    return folded[found[0]] if found else None


def is_clear(word: str, names: Iterable[Any], best: str) -> bool:
    """Whether no other of the names is about as near to a misspelt word, so that a machine may put the best one."""
    asked = word.lower().replace("-", "_")[:100]
    others = [name.lower().replace("-", "_") for name in names if isinstance(name, str) and name != best]
    meant = best.lower().replace("-", "_")
    if asked == meant:
        return asked not in others
    return all(_ratio(asked, other) + 0.05 < _ratio(asked, meant) for other in others)


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, other, one).ratio()


def shown(value: Any) -> str:
    """A value in a message, cut when it is long."""
    kind = type_of(value)
    if kind in ("object", "array"):
        return _TYPES[kind]
    if value is None:
        return "null"
    text = str(value).lower() if kind == "boolean" else str(value)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f'"{text}"' if kind == "string" else text


def types(wanted: Iterable[str]) -> str:
    """`text, a list or a mapping`."""
    *before, last = list(dict.fromkeys(_TYPES.get(kind, kind) for kind in wanted)) or ["something else"]
    return f"{', '.join(before)} or {last}" if before else last


def listed(values: Iterable[Any], most: int = 12) -> str:
    """A few values, comma-separated."""
    names = [value if isinstance(value, str) else shown(value) for value in values]
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def path(pointer: Pointer) -> str:
    """`inputs.repo`, `steps[2].shell`."""
    text = ""
    for part in pointer:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def place(pointer: Pointer, data: Any) -> str:
    """A place as people call it: `shell.env` of step `build`, inputs.repo, the top level."""
    rest, step = _from_step(pointer, data)
    if step is None:
        return f"`{path(pointer)}`" if pointer else "the top level"
    return f"`{path(rest)}` of step `{step}`" if rest else f"step `{step}`"


def within(pointer: Pointer, data: Any) -> str:
    """The place, after `unknown key` and the like."""
    return f"in {place(pointer, data)}" if pointer else "at the top level"


def _from_step(pointer: Pointer, data: Any) -> tuple[Pointer, str | None]:
    """What of the pointer lies below the innermost item of a list that has an `id`, and that id."""
    name, rest = None, pointer
    for depth, part in enumerate(pointer):
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            break
        in_schedules = depth == 1 and pointer[0] == "schedules"
        if isinstance(part, int) and isinstance(data, dict) and isinstance(data.get("id"), str) and not in_schedules:
            name, rest = data["id"], pointer[depth + 1 :]
    return rest, name


def wrong_type(wanted: list[str], value: Any, *, duration: bool = False) -> str:
    """What a value must be instead, without naming it."""
    if value is None:
        return "is empty"
    if duration:
        return f"must be a duration such as 90s, not {shown(value)}"
    return f"must be {types(wanted)}, not {shown(value)}"


def wrong_value(keyword: str, wanted: Any, value: Any) -> str:
    """How a value of the right type breaks a keyword, without naming it."""
    if keyword in ("enum", "const"):
        options = wanted if keyword == "enum" else [wanted]
        of = "one of " if len(options) > 1 else ""
        return f"must be {of}{listed(options)}, not {shown(value)}"
    if keyword in ("minLength", "minItems", "minProperties") and wanted == 1:
        return "must not be empty"
    if keyword == "pattern":
        return f"does not have the right form: {shown(value)}"
    return _BOUNDS.get(keyword, f"does not fit `{keyword}`").format(wanted)


def advice(wanted: list[str], value: Any, schema: Schema) -> tuple[str | None, list[Any]]:
    """How to mend a wrong type, and the value that would do so mechanically, in a list of at most one."""
    if value is None:
        return "write a value, or remove the key", []
    if schema.get("title") == "duration":
        number = shown(value).strip('"')
        return f"{number} what? write {number}s or {number}m", []
    return next(_habits(wanted, value), (None, []))


def fitting(better: list[Any], value: Any, schema: Schema) -> list[Any]:
    """A value that would mend a wrong type, only if it is one that the place takes."""
    if not better or isinstance(value, (dict, list)):
        return []
    text = better[0]
    if isinstance(text, str):
        examples = quotable(schema)
        if isinstance(value, bool) and examples and all(str(one).startswith("${{") for one in examples):
            return [f"${{{{ {text} }}}}"]  # the place of a condition
        if (pattern := schema.get("pattern")) and not re.search(pattern, text):
            return []
    return better


def _habits(wanted: list[str], value: Any) -> Iterator[tuple[str, list[Any]]]:
    kind = type_of(value)
    if kind == "string":
        text = value.strip()
        word = _YES.get(text.lower(), text.lower())
        if "boolean" in wanted and word in ("true", "false"):
            yield f"write {word}", [word == "true"]
        if "integer" in wanted or "number" in wanted:
            number = text.lstrip("-")
            if number.isascii() and number.isdigit() and len(number) < 400:
                yield f"write {int(text)}, without quotes", [int(text)]
            elif "number" in wanted and re.fullmatch(r"\d{1,15}\.\d{1,15}", number, re.A):
                yield f"write {text}, without quotes", [float(text)]
    if kind in ("integer", "number", "boolean") and "string" in wanted:
        yield f'quote it: "{shown(value)}"', [shown(value)]
    if kind == "number" and wanted == ["integer"] and value == int(value):
        yield f"write {int(value)}", [int(value)]
    if "array" in wanted and kind != "array":
        yield "write a list: [" + (shown(value) if kind != "object" else "{…}") + "]", [[value]]
    if kind == "array" and "object" in wanted:
        yield "write `key: value` lines, without `-`", []


def best_value(options: list[Any], value: Any) -> str | None:
    """The allowed text that a wrong one most likely means."""
    return near(value, [option for option in options if isinstance(option, str)]) if isinstance(value, str) else None


def example(key: str, schema: Schema) -> str | None:
    """How a missing key is written."""
    below = schema.get("properties", {}).get(key, {})
    if examples := quotable(below):
        return f"for example `{key}: {examples[0]}`"
    return f"add `{key}`"


def forms(shape: Shape, at: Pointer, value: Any) -> str | None:
    """How a mapping is written, and the short form where there is one."""
    if value is None or not at or "object" not in shape.types or not shape.names():
        return None
    inner = f"{{{shape.names()[0]}: …}}"
    if isinstance(at[-1], int):
        return f"write `- {inner}`"
    short = f"`{at[-1]}: text`, or " if "string" in shape.types else ""
    return f"write {short}`{at[-1]}: {inner}`"


def duration_hint(text: str) -> str:
    """Why a text is no duration."""
    from .duration import parse

    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return "write 90s, 5m, 1h30m or 2d"


_ENTRIES = {"inputs": "an input", "secrets": "a secret", "state": "a value of the state"}


def not_a_key_of(pointer: Pointer, document: str) -> str:
    """What stands behind the caret under an unknown key. `document` is the title of its schema."""
    tests = document == "tramai workflow test"
    if not pointer:
        return "not a key of a test file" if tests else "not a key of a workflow"
    if isinstance(pointer[-1], int):
        return "not a key of a step" if not tests else "not a key of a test" if len(pointer) == 2 else "not a key here"
    if len(pointer) == 2 and pointer[0] in _ENTRIES:
        return f"not a key of {_ENTRIES[pointer[0]]}"
    return f"not a key of `{pointer[-1]}`"


def hint(schema: Schema) -> str | None:
    """Examples, or what the key is for."""
    if examples := quotable(schema):
        return f"for example {listed(examples, 3)}"
    return schema.get("description")
