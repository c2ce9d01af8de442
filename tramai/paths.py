"""How the paths of a journal are spelled."""

from __future__ import annotations

import re

import msgspec

# Texts, which `re` compiles when the first path needs them: most runs have no such path.
_ASIDE = r"@(catch|outputs|deadline|until|pause|redo|when|collected|suspended|tool\[[0-9]+\])$"
SUSPENDED = "@suspended"
"""Behind the path of a step: its attempt, whose number it says, has not been cut off, but waits."""
_STEP = r"([a-z][a-z0-9_]*)(?:@[0-9]+)?$"
# A key, which may hold anything, or the number of a round.
_ROUND = r'\[(?:"(?:[^"\\]|\\.)*"|[^\]"]*)\]|@([0-9]+)(?=[.@\[]|$)'


def is_aside(path: str) -> bool:
    """Whether a path is no step's, but that of a decision about one."""
    return "@" in path and re.search(_ASIDE, path) is not None


def spell(key: str) -> str:
    """A key inside a path: as it is when plain, else quoted, so that paths never collide."""
    if key and len(key) <= 64 and all(char.isalnum() or char in "_-./:@+" for char in key) and key.isascii():
        return key
    try:
        return msgspec.json.encode(key).decode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, as JSON of others may hold it
        import json

        return json.dumps(key)


def step_id(path: str) -> str:
    """The id of the step at a path, whatever round it is in; the path itself where there is none."""
    found = re.search(_STEP, path)
    return found[1] if found is not None else path


def in_round(path: str, number: int) -> str:
    """The path of a step that is done for the `number`th time, because a gate has sent the walk back to it."""
    return path if number == 1 else f"{path}@{number}"


def redone(path: str) -> int:
    """How often the walk was sent back on the way to this path."""
    return sum(int(number) - 1 for number in re.findall(_ROUND, path) if number) if "@" in path else 0


def without_rounds(path: str) -> str:
    """The path as it was the first time."""
    return re.sub(_ROUND, lambda found: found[0] if found[1] is None else "", path) if "@" in path else path
