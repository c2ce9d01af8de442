"""Which error types `retry.on` and `catch.on` cover."""

import pytest

from tramai.error_types import matches


@pytest.mark.parametrize(
    ("error_type", "pattern"),
    [
        ("timeout", "timeout"),
        ("http.404", "http.404"),
        ("http.404", "http.4xx"),
        ("http.404", "http"),
        ("http.503", "http.5xx"),
        ("http.429", "rate_limited"),
        ("rate_limited", "rate_limited"),
        ("http.401", "auth"),
        ("http.403", "auth"),
        ("exit.3", "exit"),
        ("exit.3", "exit.3"),
        ("plugin.ImportError", "plugin.*"),
        ("plugin.a.b", "plugin.*"),
    ],
)
def test_a_pattern_covers_its_type_and_what_refines_it(error_type: str, pattern: str) -> None:
    assert matches(error_type, ("cancelled", pattern))


@pytest.mark.parametrize(
    ("error_type", "pattern"),
    [
        ("http.404", "http.5xx"),
        ("http.500", "http.4xx"),
        ("http.4", "http.4xx"),
        ("http.429", "timeout"),
        ("exit.3", "exit.30"),
        ("exit.30", "exit.3"),
        ("exit", "exit.3"),
        ("plugin", "plugin.*"),
        ("network", "net"),
        ("timeout", "time.*"),
    ],
)
def test_a_pattern_covers_nothing_else(error_type: str, pattern: str) -> None:
    assert not matches(error_type, (pattern,))


def test_no_pattern_covers_nothing() -> None:
    assert not matches("timeout", ())
