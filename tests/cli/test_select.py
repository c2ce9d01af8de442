"""Which run a selector means."""

from __future__ import annotations

import pytest

from tramai.cli._select import find
from tramai.errors import NotFound, UsageError
from tramai.store import Change, Definition, Holder, NewRun, Status
from tramai.stores.memory import Memory

FIRST = "0193a000-0000-7000-8000-00000000abcd"
SECOND = "0193a000-0000-7000-8000-11111111abcd"
THIRD = "0193a000-0000-7000-8000-222222222222"


@pytest.fixture
def store() -> Memory:
    made = Memory("")
    for number, (run_id, name) in enumerate([(FIRST, "review"), (SECOND, "deploy"), (THIRD, "review")]):
        add(made, run_id, name, float(number))
    return made


def add(store: Memory, run_id: str, name: str, now: float, status: Status = Status.READY) -> None:
    definition = Definition(digest="0" * 64, name=name, version="1", canonical="{}", text="", format="yaml")
    new = NewRun(run_id=run_id, definition=definition, inputs="{}", cwd="/", created=now)
    _, lease = store.create(new, owner="me", holder=Holder.here(), ttl=30.0, now=now)
    assert lease is not None
    store.commit(lease, Change(now=now, status=status, release=True))


def test_a_full_id_is_itself(store: Memory) -> None:
    assert find(store, FIRST) == FIRST


def test_a_unique_ending_is_enough(store: Memory) -> None:
    assert find(store, "0000abcd") == FIRST
    assert find(store, "2") == THIRD


def test_an_ending_of_several_lists_them(store: Memory) -> None:
    with pytest.raises(UsageError) as caught:
        find(store, "abcd")
    assert FIRST in str(caught.value)
    assert SECOND in str(caught.value)


def test_a_whole_id_wins_over_longer_ones_that_end_in_it(store: Memory) -> None:
    add(store, "x", "odd", 9.0)
    add(store, "yx", "odd", 10.0)
    assert find(store, "x") == "x"


def test_last_is_the_newest(store: Memory) -> None:
    assert find(store, "@last") == THIRD
    assert find(store, "@last:deploy") == SECOND


def test_failed_is_the_newest_failed(store: Memory) -> None:
    with pytest.raises(NotFound):
        find(store, "@failed")
    add(store, "f1", "deploy", 5.0, Status.FAILED)
    add(store, "f2", "deploy", 6.0, Status.COMPLETED)
    assert find(store, "@failed") == "f1"


def test_a_near_miss_is_suggested(store: Memory) -> None:
    with pytest.raises(NotFound) as caught:
        find(store, "22222223")
    assert caught.value.exit_status == 4
    assert caught.value.hint == "did you mean 22222222 (review)?"


def test_a_near_workflow_is_suggested(store: Memory) -> None:
    with pytest.raises(NotFound) as caught:
        find(store, "@last:reviews")
    assert caught.value.hint == "did you mean @last:review?"


def test_an_empty_store_says_so() -> None:
    with pytest.raises(NotFound) as caught:
        find(Memory(""), "abc")
    assert "has no runs" in (caught.value.hint or "")


@pytest.mark.parametrize("selector", ["", " ", "@first", "@last:"])
def test_what_cannot_be_a_selector_is_a_usage_error(store: Memory, selector: str) -> None:
    with pytest.raises(UsageError):
        find(store, selector)


@pytest.mark.parametrize("file", ["review.yaml", "flows/Review.YML", "x.toml"])
def test_a_file_is_said_to_be_no_run(store: Memory, file: str) -> None:
    with pytest.raises(NotFound) as caught:
        find(store, file)
    assert "not by its file" in str(caught.value.hint)
