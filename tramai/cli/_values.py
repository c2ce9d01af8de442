"""JSON values as people read them: YAML-like, one key a line, and never mistaken for anything else."""

from __future__ import annotations

import json
import re
from typing import Any

from ._terminal import safe

_PLAIN = re.compile(r"[^\W\d_][\w ./+@=()<>,;!?%'-]*", re.UNICODE)
_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}


def lines(value: Any, indent: int = 0) -> list[str]:
    """The value as lines of YAML 1.2; text that could be read as something else is quoted."""
    blank = " " * indent
    if isinstance(value, dict) and value:
        return [line for key, item in value.items() for line in _entry(f"{blank}{scalar(key)}:", item, indent)]
    if isinstance(value, list) and value:
        return [line for item in value for line in _item(item, indent)]
    return [blank + scalar(value)]


def scalar(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value == value.strip() and value.lower() not in _WORDS
        return safe(value) if plain else quoted(value)
    return json.dumps(value)


def quoted(text: str) -> str:
    """The text as JSON, readable, with every control character spelled out."""
    written = json.dumps(text, ensure_ascii=False)
    if safe(written) == written:
        return written
    # What `safe` minds together, as `##[`, is no longer together when one of it is spelled out.
    parts = written.replace("##", "#\\u0023")
    return "".join(char if safe(char) == char else f"\\u{ord(char):04x}" for char in parts)


def _entry(head: str, item: Any, indent: int) -> list[str]:
    if isinstance(item, (dict, list)) and item:
        return [head, *lines(item, indent + 2)]
    if isinstance(item, str) and _is_block(item):
        keep = "|" if item.endswith("\n") else "|-"
        blank = " " * (indent + 2)
        return [f"{head} {keep}", *(blank + part if part else "" for part in item.rstrip("\n").split("\n"))]
    return [f"{head} {scalar(item)}"]


def _item(item: Any, indent: int) -> list[str]:
    blank = " " * indent
    if isinstance(item, (dict, list)) and item:
        first, *rest = lines(item, indent + 2)
        return [f"{blank}- {first[indent + 2 :]}", *rest]
    return [f"{blank}- {scalar(item)}"]


def _is_block(text: str) -> bool:
    """Several lines that a literal block can hold as they are."""
    parts = text.rstrip("\n").split("\n")
    if len(parts) < 2 or text.count("\n") - len(parts) > 0 or text[0] in " \n":
        return False
    return all(safe(part) == part for part in parts)
