"""Inputs as they are given on the command line: `KEY=VALUE`, `KEY:=JSON`, `KEY=@FILE`, and whole files."""

from __future__ import annotations

import errno
import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from ..errors import InvalidInput, Problem, UsageError

LONGEST = 256 << 20
"""Bytes of a file that inputs are read from."""
_PAIR = re.compile(r"([^=:@\s](?:[^=]*?[^=\s])??)(:?=)(.*)", re.DOTALL)
"""Fields of forms have names with blanks and colons, too."""


def gather(pairs: Iterable[str], file: str | None, *, flag: str = "-i") -> dict[str, Any]:
    """All inputs that were given; a pair wins over the file, a name given twice in pairs is an error.

    `flag` is what a pair is given with, for the words of errors.
    """
    found = _read_all(file) if file is not None else {}
    seen: set[str] = set()
    for pair in pairs:
        name, value = _one(pair, flag)
        if name in seen:
            raise InvalidInput(name=name, what="is given twice")
        seen.add(name)
        found[name] = value
    return found


def _one(pair: str, flag: str) -> tuple[str, Any]:
    matched = _PAIR.fullmatch(pair)
    if matched is None:
        hint = f"write {flag} KEY=VALUE, KEY:=JSON or KEY=@FILE"
        raise UsageError(
            what=f"'{_cut(pair)}' is no KEY=VALUE" if flag != "-i" else f"'{_cut(pair)}' is not an input", hint=hint
        )
    name, sign, value = matched.groups()
    if sign == ":=":
        return name, _json(name, value, flag)
    if value.startswith("@"):
        return name, _text_of(name, value[1:])
    return name, value


def _json(name: str, text: str, flag: str) -> Any:
    try:
        return _loads(text)
    except ValueError as error:
        raise InvalidInput(
            name=name, what=f"is not JSON: {error}", hint=f"text needs no JSON: {flag} {name}=…"
        ) from None


def _loads(text: str) -> Any:
    """JSON as the standard means it: no NaN, no number beyond all floats, no key twice. Else ValueError."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{_cut(text)} is larger than any number can be")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return found


def _text_of(name: str, path: str) -> str:
    try:
        return _read(path).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        hint = f"a text that begins with @ is given as {name}:='\"@…\"'"
        raise InvalidInput(name=name, what=f"cannot be read from {path}: {reason}", hint=hint) from None


def _read(path: str) -> bytes:
    """A file, unless it goes on and on, as some devices do."""
    with open(path, "rb") as file:
        found = file.read(LONGEST + 1)
    if len(found) > LONGEST:
        raise OSError(errno.EFBIG, f"it is larger than {LONGEST >> 20} MiB")
    return found


def _read_all(path: str) -> dict[str, Any]:
    """The inputs of a JSON, YAML or TOML file; `-` is JSON on standard input."""
    if path == "-":
        text = sys.stdin.buffer.read().decode("utf-8-sig", "replace")
    else:
        try:
            text = _read(path).decode("utf-8-sig")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise UsageError(what=f"the inputs file {path} cannot be read: {reason}") from None
    data = _data(path, text)
    if not isinstance(data, dict):
        raise UsageError(what=f"the inputs in {_name(path)} must be a mapping of names to values")
    return data


def _data(path: str, text: str) -> Any:
    if path.endswith((".yaml", ".yml", ".toml")):
        return _document(path, text)
    try:
        return _loads(text)
    except ValueError as error:
        hint = "a file that ends in .yaml or .toml is read as such" if path != "-" else None
        raise UsageError(what=f"the inputs in {_name(path)} are not JSON: {error}", hint=hint) from None


def _document(path: str, text: str) -> Any:
    """A YAML or TOML file, read with the rules for untyped data in workflows."""
    from .. import document, schema

    read = document.parse(text, file=path)
    _refuse_problems(read.problems)
    resolved = schema.resolve(read, {})
    _refuse_problems(resolved.problems)
    return resolved.data


def _refuse_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        if problem.severity == "error":
            raise UsageError(what=problem.message, hint=problem.hint, position=problem.position)


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
