"""Sizes as people write them: `512KiB`, `1MiB`, `10MB`, or a plain number of bytes."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
}
PATTERN = r"^[0-9]{1,12}(\.[0-9]{1,3})? ?(B|KB|MB|GB|KiB|MiB|GiB)?$"
"""What a size looks like as text."""


def parse(size: int | str) -> int:
    """Bytes of a size; ValueError with a hint when it is none."""
    if isinstance(size, int):
        if size < 0:
            raise ValueError("a size cannot be negative")
        return size
    if not re.fullmatch(PATTERN, size):
        raise ValueError("write a size as 64KiB, 1MiB or 10MB")
    number = size.rstrip("KMGiB ")
    return int(float(number) * _UNITS[size[len(number) :].strip()])


def spell(size: int) -> str:
    """The shortest exact spelling for people: `1MiB`, `10MB`, `1500 bytes`."""
    for unit in ("GiB", "MiB", "KiB", "GB", "MB", "KB"):
        if size >= _UNITS[unit] and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return f"{size} byte" if size == 1 else f"{size} bytes"
