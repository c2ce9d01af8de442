"""Answers for whoever writes what another tool takes: our key for a word, or what to do instead."""

from __future__ import annotations

import json
import re
from typing import Any

from ._habit_words import ALSO, HINTS, NAMED, STEPS, TYPES, VERBS
from ._shape import Schema


def title_of(schema: Schema) -> str:
    """Whose schema it is."""
    return str(schema.get("title", "")).removeprefix("defaults of ")


def also(key: str, schema: Schema) -> str | None:
    """The property that another tool calls so."""
    ours = same(title_of(schema), key)
    return listed(key, schema) or (ours if ours in schema.get("properties", {}) else None)


def listed(key: str, schema: Schema) -> str | None:
    """The property whose `x-also` lists this key: another name for the very same."""
    for name, below in schema.get("properties", {}).items():
        if isinstance(below, dict) and key in below.get("x-also", ()):
            return str(name)
    return None


def hint(title: str, key: str, value: Any = None) -> str | None:
    """What to do instead of a key that another tool has; `retries: {…}` is only a misspelling."""
    if key.startswith(("x_", "X-", "_")) and title in ("step", "tramai workflow", "inputspec"):
        return "keys of your own begin with x-"
    if key == "retries" and isinstance(value, dict):
        return None
    return HINTS.get(title, {}).get(key)


def same(title: str, key: str) -> str | None:
    """Our key for another tool's word."""
    for ours, words in ALSO.get(title, {}).items():
        if key in words.split():
            return ours
    return None


def explains(title: str, key: str) -> str | None:
    """The missing key of ours that a word stands for."""
    if title == "tramai workflow" and HINTS[title].get(key) is STEPS:
        return "steps"
    return "id" if title == "step" and key == "name" else None


def verb(unknown: list[str]) -> tuple[str, str] | None:
    """Of unknown keys in a step without a verb: the one that was meant as it, and what to write."""
    for key in unknown:
        if key in NAMED:
            return key, NAMED[key]
    for key in unknown:
        if key in VERBS:
            return key, VERBS[key]
    return None


def value(options: list[Any], given: Any) -> str | None:
    """The allowed value that another tool calls so."""
    if not isinstance(given, str):
        return None
    return next((ours for ours, words in TYPES.items() if ours in options and given.lower() in words.split()), None)


def wrong_type(pointer: tuple[Any, ...], value: Any) -> str | None:
    """What to write for a value of a wrong type that other tools take."""
    key = pointer[-1] if pointer else None
    if key == "retry" and isinstance(value, int) and not isinstance(value, bool):
        return f"write retry: {{max_attempts: {value}}}"
    if isinstance(value, list) and (named := _named(key, value)) is not None:
        return named
    if key in _WORDS and isinstance(value, str) and (words := split(value)):
        return f"write a list: {json.dumps(words, ensure_ascii=False)}"
    if key in ("when", "until", "check", "if") and isinstance(value, bool):
        return f'write "${{{{ {str(value).lower()} }}}}"'
    if key == "tramai":
        return "write tramai: 1"
    if key == "save" and isinstance(value, str):
        return f"write save: {{{value}: ${{{{ result }}}}}}"
    if key == "outputs" and isinstance(value, str):
        return f"give it a name: outputs: {{result: {value}}}"
    if key == "body" and isinstance(value, (dict, list)):
        return "data is sent by `json`"
    if key == "backoff":
        return "write a number: each delay is the one before, times this"
    if key == "required" and pointer[0] == "inputs" and len(pointer) == 3:
        return "an input without a `default` is required; for one that may be left out write optional: true"
    return None


def mended(pointer: tuple[Any, ...], value: Any) -> list[Any]:
    """The value that `wrong_type` tells to write, in a list of at most one, where a machine may put it."""
    if pointer[-1] == "retry":
        return [{"max_attempts": value}]
    if pointer[-1] == "tramai":
        return [1] if str(value).strip() == "1" else []
    if pointer[-1] == "save":
        return [{value: "${{ result }}"}]
    if pointer[-1] in _WORDS and isinstance(value, str):
        return [split(value)]
    return [str(value).lower()] if isinstance(value, bool) and pointer[-1] != "required" else []


_WORDS = ("argv", "command")
"""Keys that take a program and its arguments, one by one."""


def split(text: str) -> list[str] | None:
    """The words of a command line; None where a shell would be needed to tell them."""
    import shlex

    try:
        return shlex.split(text) if not re.search(r"[|&;<>$`*?~]", text) else None
    except ValueError:
        return None


_ENTRY = {"inputs": "{type: string}", "state": "{initial: 0}", "outputs": "${{ … }}", "env": "…", "headers": "…"}


def _named(key: Any, values: list[Any]) -> str | None:
    """How a list of names, of `NAME=value` or of `{name: …}` is written as a mapping."""
    if key not in _ENTRY and key != "secrets":
        return None
    first = values[0] if values else "name"
    if isinstance(first, dict):
        first = first.get("name") or next(iter(first), "name")
    if str(first).startswith("${{"):
        return f"give it a name: {key}: {{name: {first}}}"
    name = re.split(r"[=:]", str(first))[0].strip() or "name"
    entry = f"{{env: {name}}}" if key == "secrets" else _ENTRY[key]
    return f"write {key}: {{{name}: {entry}}}"


_BACK = ("again", "retry", "redo", "back", "repeat", "restart", "revise")
"""What people write for going back, without saying where to."""


def form(pointer: tuple[Any, ...], value: Any) -> str | None:
    """How a text that does not have the right form could be written: an id is said to be a name."""
    if "expect_status" in pointer:
        return "write a status such as 200, or a class such as 2xx"
    if pointer and pointer[-1] == "on_reject" and isinstance(value, str):
        step = value if re.fullmatch("[a-z][a-z0-9_]*", value) and value not in _BACK else "draft"
        return f"to go back to an earlier step, write on_reject: {{redo: {step}, max: 3}}"
    if not pointer or pointer[-1] != "id" or not isinstance(value, str):
        return None
    if "${{" in value:
        return "an id is never templated: give the step a name"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", value)
    better = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    if better[:1].isdigit():
        better = f"step_{better}"
    return f"write {better}" if better else None
