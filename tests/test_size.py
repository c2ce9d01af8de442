"""Sizes: what people write, in bytes."""

import pytest

from tramai import size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (0, 0),
        (1048576, 1048576),
        ("0", 0),
        ("500", 500),
        ("500B", 500),
        ("64KiB", 65536),
        ("64 KiB", 65536),
        ("1MiB", 1048576),
        ("1.5MiB", 1572864),
        ("10MB", 10_000_000),
        ("2GiB", 2 * 1024**3),
    ],
)
def test_a_size_is_a_number_with_a_unit(text: int | str, expected: int) -> None:
    assert size.parse(text) == expected


@pytest.mark.parametrize("text", ["", "MiB", "1mib", "-1", "1 M", "1e3", "1MiBB", "١MiB", "1\n"])
def test_anything_else_is_refused_with_a_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="write a size as"):
        size.parse(text)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        size.parse(-1)


@pytest.mark.parametrize(
    ("number", "text"), [(1048576, "1MiB"), (10_000_000, "10MB"), (1500, "1500 bytes"), (1, "1 byte")]
)
def test_a_size_is_spelled_in_its_largest_exact_unit(number: int, text: str) -> None:
    assert size.spell(number) == text
