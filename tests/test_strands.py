"""Calls that take turns in one thread: what each parks is sent with what the others have parked meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from tramai.cli._strands import Strands


def stepping(strands: Strands, said: list[Any], name: str, turns: int) -> None:
    for turn in range(turns):
        said.append((name, turn))
        assert strands.park((name, turn))
    said.append((name, "over"))


def sending(strands: Strands) -> list[list[Any]]:
    sent: list[list[Any]] = []

    def send(items: Sequence[Any]) -> None:
        sent.append(list(items))

    strands.send = send
    return sent


def test_all_go_as_far_as_they_can_before_anything_is_sent() -> None:
    strands, said = Strands(), []  # type: ignore[var-annotated]
    sent = sending(strands)
    for name, turns in (("a", 2), ("b", 1), ("c", 0)):
        strands.begin(partial(stepping, strands, said, name, turns))
    assert (said, sent) == ([("a", 0), ("b", 0), ("c", "over")], [])
    strands.turn()
    assert (said[3:], sent) == ([("a", 1), ("b", "over")], [[("a", 0), ("b", 0)]])
    strands.turn()
    strands.turn()
    assert (said[5:], sent[1:]) == ([("a", "over")], [[("a", 1)]])


def test_one_who_comes_later_goes_along() -> None:
    strands, said = Strands(), []  # type: ignore[var-annotated]
    sent = sending(strands)
    strands.begin(partial(stepping, strands, said, "a", 2))
    strands.turn()
    strands.begin(partial(stepping, strands, said, "b", 1))
    strands.turn()
    assert sent == [[("a", 0)], [("a", 1), ("b", 0)]]


def test_nobody_parks_who_takes_no_turns() -> None:
    strands = Strands()
    found: list[bool] = []
    assert strands.park("here") is False
    thread = threading.Thread(target=lambda: found.append(strands.park("there")))
    thread.start()
    thread.join(20)
    assert found == [False]


def test_a_call_that_one_makes_for_itself_in_another_thread_parks_nothing() -> None:
    strands, found = Strands(), []  # type: ignore[var-annotated]

    def work() -> None:
        thread = threading.Thread(target=lambda: found.append(strands.park("there")))
        thread.start()
        thread.join(20)

    strands.begin(work)
    assert found == [False]


@pytest.mark.parametrize("after", [0, 1])
def test_what_one_raises_comes_out_and_the_others_can_go_on(after: int) -> None:
    strands, said = Strands(), []  # type: ignore[var-annotated]

    def breaks() -> None:
        stepping(strands, [], "x", after)
        raise SystemExit(3)

    def begin_and_turn(work: Callable[[], None]) -> None:
        strands.begin(work)
        strands.turn()

    with pytest.raises(SystemExit):
        begin_and_turn(breaks)
    begin_and_turn(partial(stepping, strands, said, "a", 1))
    assert said == [("a", 0), ("a", "over")]
