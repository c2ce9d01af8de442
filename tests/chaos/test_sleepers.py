"""The measure of sleepers that wake together, in small: all of them go on, and once each."""

from __future__ import annotations

from .sleepers import measure


def test_sleepers_that_wake_together_go_on_once_each() -> None:
    found = measure(300, concurrency=2, patience=180.0)
    assert (found.completed, found.twice) == (300, 0)
    assert 0 < found.late_p50 <= found.late_p99 <= found.late_most <= found.drained + 0.01  # rounded apart
