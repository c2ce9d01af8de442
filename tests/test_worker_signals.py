"""What a worker tells listeners: names, counts and codes, every one of them documented, and nothing of the user's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai import signals
from tramai.errors import StoreUnavailable
from tramai.event import Signal
from tramai.pool import Pool, Taken, Wanted, pooled
from tramai.signals import WORKER_NAMES, WORKER_PREFIX
from tramai.stores import open_store
from tramai.worker import Plan

from .plugin_install import example, tramai
from .test_worker import Inline, enqueue, work

__all__ = ["example"]

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "events.md"
CANARY = "c4n4ry"
FILE = f"tramai: 1\nname: w\nsteps: [{{id: a, shell: 'echo {CANARY}'}}]\n"


@pytest.fixture
def store() -> Iterator[Pool]:
    store = pooled(open_store("memory:"))
    yield store
    store.close()


def told(store: Pool, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Everything that a worker tells, from workers that have all sorts of trouble."""
    wanted = Wanted(queues=(CANARY, f"{CANARY}-2"))
    enqueue(store, queue=CANARY)
    heard = work(store, Plan(once=True, poll=0.05, wanted=wanted))
    slots, die = iter([True, True, False]), Inline.give

    def give(slot: Inline, taken: Taken, sent: float) -> None:
        die(slot, taken, sent)
        if slot._dies and taken.lease is not None:
            store.release(taken.lease, now=0.0)

    monkeypatch.setattr(Inline, "give", give)
    enqueue(store)
    heard += work(store, Plan(once=True, poll=0.05, most_claims=2), lambda: Inline(store, dies=next(slots)))
    real, failures = store.take, iter([True])

    def take(*arguments: Any, **named: Any) -> Any:
        if next(failures, False):
            raise StoreUnavailable(what=f"{CANARY} is away")
        return real(*arguments, **named)

    enqueue(store)
    monkeypatch.setattr(store, "take", take)
    heard += work(store, Plan(max_runs=1, poll=0.05))
    enqueue(store)
    store._definitions.clear()  # type: ignore[attr-defined]
    return heard + work(store, Plan(once=True, poll=0.05))


def test_every_signal_is_sent_and_nothing_belongs_to_the_user(store: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = [
        signals.of_worker("host:1-ab", kind.removeprefix("worker."), about) for kind, about in told(store, monkeypatch)
    ]
    schedules = {name for name in WORKER_NAMES if name.startswith("schedule.")}  # told by the scheduler, not the loop
    assert sorted(set(WORKER_NAMES) - schedules - {one.name.removeprefix(WORKER_PREFIX) for one in heard}) == []
    modules = (PAGE.parents[2] / "tramai").rglob("*.py")
    source = "".join(path.read_text(encoding="utf-8") for path in modules if path.name != "signals.py")
    assert [name for name in schedules if f'"{name}"' not in source] == []
    for one in heard:
        expected = ("worker", *WORKER_NAMES[one.name.removeprefix(WORKER_PREFIX)])
        assert tuple(one.attributes) == expected, one
        assert all(value is None or type(value) in (str, int, float) for value in one.attributes.values()), one
        assert CANARY not in json.dumps(one.attributes), one
    assert heard[0].attributes["queues"] == 2


def test_the_page_lists_every_signal_of_a_worker_with_its_attributes() -> None:
    rows = re.findall(r"^\| `tramai\.worker\.([a-z_.]+)` \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), re.M)
    assert {name: tuple(re.findall(r"`(\w+)`", attributes)) for name, attributes in rows} == WORKER_NAMES


def test_a_listener_that_raises_keeps_nobody_from_hearing() -> None:
    class Broken:
        def signal(self, signal: Signal, /) -> None:
            raise RuntimeError(signal.name)

    class Ear:
        def signal(self, signal: Signal, /) -> None:
            heard.append(signal.name)

    heard: list[str] = []
    signals.send([Broken(), Ear()], signals.of_worker("w", "stopped", {"runs": 1}))
    assert heard == ["tramai.worker.stopped"]


def test_the_observers_of_the_settings_hear_the_worker_and_its_runs(tmp_path: Path, example: Path) -> None:
    (tmp_path / "w.yaml").write_text(FILE)
    (tmp_path / "tramai.toml").write_text('observers = ["listener"]\n')
    assert tramai(tmp_path, "run", "w.yaml", "--detach", packages=(example,)).returncode == 0
    done = tramai(tmp_path, "worker", "--once", "--concurrency", "1", packages=(example,))
    assert done.returncode == 0, done.stderr
    heard = (tmp_path / "signals.txt").read_text().split()
    for name in ("worker.started", "worker.took", "workflow.completed", "worker.finished", "worker.stopped"):
        assert heard.count(f"tramai.{name}") == 1, heard
