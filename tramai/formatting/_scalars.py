"""Single values as YAML and TOML spell them, with as few quotes as leave no doubt."""

from __future__ import annotations

import json
import re

# Plain text that no reader, of YAML 1.1 or 1.2, takes for anything but text.
_FIRST = re.compile(r"(?:--?(?=[A-Za-z]))?[^\W\d_]|[/$_(^]")
_MEASURE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+|\d+(?:\.\d+)?[KMG]i?B|[1-5]xx", re.ASCII)
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"))
_NOT_PLAIN = re.compile(r": | #|:$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]|^\s|\s$")
_NOT_IN_FLOW = re.compile(r"""[,\[\]{}:?"'#|<>&*!%@`\\]""")
_KEY = re.compile(r"\$?[A-Za-z_][\w.-]*|[1-9]\d{0,8}|0", re.ASCII)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
LONGEST_KEY = 1000


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a text may stand without quotes in YAML, and is text to every reader."""
    if _MEASURE.fullmatch(text):
        return True
    if not text or not _FIRST.match(text) or text.lower() in _WORDS or _NOT_PLAIN.search(text):
        return False
    return not (flow and _NOT_IN_FLOW.search(text))


def yaml(value: object, *, flow: bool = False) -> str:
    """A text, number, boolean or null on one line of YAML."""
    if not isinstance(value, str):
        return _number(value)
    return value if is_plain(value, flow=flow) else quoted(value)


def yaml_key(key: str) -> str:
    """A key of a YAML mapping: always text, and so rarely quoted."""
    return key if _KEY.fullmatch(key) and key.lower() not in ("null", "nan", "inf") else quoted(key)


def quoted(text: str) -> str:
    """A text in quotes, which YAML reads as it stands."""
    if ('"' in text or "\\" in text) and not _CONTROL.search(text):
        return "'" + text.replace("'", "''") + "'"
    return _double(text)


def toml(value: object) -> str:
    """A text, number or boolean on one line of TOML."""
    if not isinstance(value, str):
        return _number(value)
    if ('"' in value or "\\" in value) and "'" not in value and not _CONTROL.search(value.replace("\t", "")):
        return f"'{value}'"
    if '"' in value and "\n" not in value and _is_literal(value):
        return f"'''{value}'''"
    return _double(value)


def toml_key(key: str) -> str:
    """One part of a key in TOML."""
    return key if _BARE.fullmatch(key) else _double(key)


def toml_block(text: str) -> str:
    """A text of several lines in TOML, its lines as they are where that is possible."""
    if _is_literal(text):
        return f"'''\n{text}'''"
    lines = (_double(line)[1:-1].replace("\\t", "\t") for line in text.split("\n"))
    return '"""\n' + "\n".join(lines) + '"""'


def has_steps(value: object) -> bool:
    """Whether a value is, or holds, a list of steps."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) and "id" in item for item in value)
    return isinstance(value, dict) and any(map(has_steps, value.values()))


def _is_literal(text: str) -> bool:
    """Whether a text may stand between three quotes as it is."""
    bare = text.replace("\n", "").replace("\t", "")
    return "'''" not in text and not text.startswith("'") and not text.endswith("'") and not _CONTROL.search(bare)


def is_small(value: object, depth: int = 0) -> bool:
    """Whether a value reads well on one line."""
    if isinstance(value, str):
        return "\n" not in value
    if isinstance(value, dict):
        return depth < 3 and len(value) <= 6 and all(is_small(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        return depth < 3 and all(is_small(item, depth + 1) for item in value)
    return True


def _number(value: object) -> str:
    if isinstance(value, float):
        shown = repr(value)
        return shown if "e" not in shown or "." in shown.split("e")[0] else shown.replace("e", ".0e")
    return json.dumps(value)


def _double(text: str) -> str:
    shown = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", shown)
