"""How much a run may keep: refused at the step that made it, by name; what is written does not grow with the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai import caps, engine
from tramai.errors import InvalidInput
from tramai.store import Change, Lease, Mark, Status, Store
from tramai.stores import open_store
from tramai.stores.memory import Memory
from tramai.testing.clock import FakeClock

from .support import RUN, call, make, run

MIB = 1 << 20


def growing(count: int, *extra: dict[str, Any], size: int = 10_000) -> Any:
    """A workflow whose steps each add a value of this size to the state."""
    steps = [
        {"id": f"s{n}", "local": call("large", size=size), "save": {f"k{n}": "${{ result }}"}} for n in range(count)
    ]
    state = {f"k{n}": {"initial": None} for n in range(count)} | {"blob": {"initial": None}}
    return make([*steps, *extra], state=state, limits={"max_step_executions": 10_000})


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            {"local": call("large", size=36_000_000)},
            ["`output` is 34.33 MiB as JSON", "`limits.max_value` allows (32 MiB)"],
        ),
        (
            {"local": call("large", size=36_000_000, deep=True)},
            ["more than `limits.max_value` allows", "most of it is `output.rows[1].body` (34.33 MiB)"],
        ),
        (
            {"local": call("large", size=36_000_000), "output": "${{ 1 }}", "save": {"blob": "${{ result }}"}},
            ["`state.blob` is 34.33 MiB as JSON", "`limits.max_value` allows (32 MiB)"],
        ),
    ],
)
def test_a_value_that_is_too_large_fails_its_step_by_name(step: dict[str, Any], words: list[str]) -> None:
    store = Memory()
    made = growing(2, {"id": "huge", **step}, size=1000)
    result = run(store, made)
    assert (result.status, result.exit_status) == ("failed", 1)
    assert result.error is not None
    assert (result.error["type"], result.error["step"]) == ("limit", "huge")
    for word in words:
        assert word in result.error["message"]
    assert result.error["limit"] == "limits.max_value"
    assert [record.path for record in store.journal(RUN) if record.mark is Mark.COMPLETED] == ["s0", "s1"]


def test_a_state_that_is_too_large_fails_the_step_that_would_make_it_so() -> None:
    store = Memory()
    huge = {"id": "huge", "local": call("large", size=30 * MIB), "save": {"blob": "${{ result }}"}}
    made = growing(2, huge, size=20 * MIB)
    result = run(store, made)
    assert result.error is not None
    assert result.error["message"] == (
        "the state would be 70 MiB as JSON, more than `limits.max_state` allows (64 MiB); "
        "most of it is `state.blob` (30 MiB)"
    )
    assert (result.error["key"], result.error["limit"]) == ("state.blob", "limits.max_state")
    assert store.get(RUN).status is Status.FAILED
    saved = [record.path for record in store.journal(RUN) if record.saves is not None]
    assert saved == ["s0", "s1"]


def test_a_value_may_be_replaced_without_counting_twice() -> None:
    steps = [
        {"id": f"s{n}", "local": call("large", size=30 * MIB), "output": "ok", "save": {"blob": "${{ result }}"}}
        for n in range(4)
    ]
    assert run(Memory(), make(steps, state={"blob": {"initial": None}})).status == "completed"


def test_a_state_that_is_over_a_lowered_limit_is_refused_before_an_effect(tmp_path: Path) -> None:
    store, mark = Memory(), tmp_path / "done"
    steps = [
        {"id": "a", "local": call("large", size=5000), "save": {"blob": "${{ result }}"}},
        {"id": "nap", "delay": "2h"},
        {"id": "effect", "shell": f"touch {mark}"},
    ]
    state = {"blob": {"initial": None}}
    assert run(store, make(steps, state=state)).status == "sleeping"
    lowered = make(steps, state=state, limits={"max_state": "4KiB"})
    options = engine.Options(wait=1e6)
    clock = FakeClock(store.get(RUN).created + 7300)
    result = engine.resume(RUN, store=store, plan=lowered, accept_changes=True, options=options, clock=clock)
    assert result.error is not None
    assert result.error["message"].startswith("the state is 4.885 KiB as JSON, more than `limits.max_state`")
    assert not mark.exists()


def test_the_items_of_a_fan_out_and_the_outputs_of_the_run_have_the_same_limit() -> None:
    limits = {"max_value": "1KiB"}
    items = make([{"id": "p", "foreach": {"items": ["x" * 2000], "do": [{"id": "i", "local": "1"}]}}], limits=limits)
    result = run(Memory(), items)
    assert result.error is not None
    assert result.error["type"] == "limit"
    outputs = {f"o{n}": "${{ steps.a.output }}" for n in range(4)}
    made = make([{"id": "a", "local": "x" * 500}], limits=limits, outputs=outputs)
    result = run(Memory(), made)
    assert result.error is not None
    assert "`outputs` is 1.985 KiB as JSON" in result.error["message"]


def test_inputs_that_are_too_large_are_refused_before_a_run_is_made() -> None:
    store = Memory()
    made = make([{"id": "a", "local": "1"}], inputs={"data": {"type": "string"}, "n": {"type": "integer"}})
    with pytest.raises(InvalidInput, match=r"input 'data' is 40 MiB as JSON; .* allows 32 MiB for all inputs"):
        run(store, made, {"data": "x" * 40 * MIB, "n": 1})
    assert store.page(limit=1) == ((), None)


def test_an_error_that_is_too_large_keeps_its_type_and_the_start_of_its_message() -> None:
    result = run(Memory(), make([{"id": "a", "local": call("shout", size=20 * MIB)}]))
    assert result.error is not None
    assert result.error["type"] == "exit.1"
    assert result.error["message"] == "a" * (1 << 14)
    assert "body" not in result.error


def test_a_part_is_named_as_deep_as_it_holds_most_of_the_value() -> None:
    assert caps.biggest({"a": {"b": ["x" * 90]}, "c": 1}, "output", 110) == ("output.a.b[0]", 92)
    assert caps.biggest({"a": "x" * 40, "b": "x" * 40}, "output", 95)[0] == "output"
    assert caps.biggest([], "output", 2) == ("output", 2)


# 500 steps that each add 10 KB.


class Counting(Memory):
    """Counts the bytes of the texts in each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: list[int] = []

    def commit(self, lease: Lease, change: Change) -> int:
        texts = [text for one in change.records for text in (one.value, one.saves, one.error) if text is not None]
        self.bytes.append(sum(map(len, texts)))
        return super().commit(lease, change)


def test_what_a_step_hands_to_the_store_does_not_grow_with_the_run() -> None:
    store = Counting()
    assert run(store, growing(500)).status == "completed"
    steps = [count for count in store.bytes if count > 100]
    assert len(steps) == 500
    assert max(steps) - min(steps) < 100


def written() -> int:
    """Bytes that this process has given to the system to write."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("wchar"):
            return int(line.split()[1])
    raise AssertionError("the kernel counts no bytes")


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:{tmp_path}/runs.db")
    yield store
    store.close()


@pytest.mark.skipif(not os.access("/proc/self/io", os.R_OK), reason="/proc/self/io cannot be read")
def test_the_bytes_that_sqlite_writes_for_a_step_do_not_grow_with_the_run(sqlite: Store) -> None:
    marks: list[int] = []

    def watch(event: Any) -> None:
        if getattr(event, "status", None) == "succeeded":
            marks.append(written())

    assert run(sqlite, growing(500), observers=[watch]).status == "completed"
    first, last = marks[100] - marks[0], marks[499] - marks[399]
    assert 100 * 10_000 < first < 100 * 100_000
    assert last < first * 1.25


def test_after_500_steps_one_that_is_too_large_leaves_all_of_them_safe(sqlite: Store) -> None:
    huge = {"id": "huge", "local": call("large", size=36_000_000), "save": {"blob": "${{ result }}"}}
    result = run(sqlite, growing(500, huge))
    assert result.error is not None
    assert result.error["step"] == "huge"
    done = [record for record in sqlite.journal(RUN) if record.mark is Mark.COMPLETED]
    assert len(done) == 500
    again = engine.resume(RUN, store=sqlite)
    assert again.error == {**result.error, "attempt": 2}
    assert len([record for record in sqlite.journal(RUN) if record.mark is Mark.COMPLETED]) == 500
