"""Who shares a commit and is interrupted while he waits keeps nobody else waiting."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tramai.stores import _postgres_shared
from tramai.stores._postgres_shared import Shared, Waiting
from tramai.stores._postgres_write import Write


def write(key: int) -> Write:
    return cast(Write, SimpleNamespace(head=SimpleNamespace(key=key)))


def sent(writes: Sequence[Write]) -> set[int]:
    return {one.head.key for one in writes}


class Interrupted(threading.Event):
    """Its wait ends as one does that Ctrl-C comes into: `early` before it is called, else just when it is."""

    def __init__(self, *, early: bool) -> None:
        super().__init__()
        self._early = early

    def wait(self, timeout: float | None = None) -> bool:
        if not self._early:
            super().wait(timeout)
        raise KeyboardInterrupt


@pytest.mark.parametrize("early", [True, False])
def test_the_next_takes_over_from_one_who_was_interrupted(monkeypatch: pytest.MonkeyPatch, early: bool) -> None:
    shared, entered, ends = Shared(), threading.Semaphore(0), []

    def waiting(write: Write) -> Waiting:
        made = Waiting(write)
        if write.head.key == 1:
            made.turn = Interrupted(early=early)
        entered.release()
        return made

    monkeypatch.setattr(_postgres_shared, "Waiting", waiting)
    assert shared.enter(write(0), sent) is None

    def enter(key: int) -> None:
        try:
            place: Any = shared.enter(write(key), sent)
            ends.append((key, place.done))
        except KeyboardInterrupt:
            ends.append((key, "interrupted"))

    threads = [threading.Thread(target=enter, args=(key,), daemon=True) for key in (1, 2)]
    for thread in threads:
        thread.start()
        entered.acquire()
    if early:
        threads[0].join(20)
    shared.leave()
    for thread in threads:
        thread.join(20)
    assert sorted(ends, key=lambda end: end[0]) == [(1, "interrupted"), (2, True)]
    assert shared.enter(write(3), sent) is None
