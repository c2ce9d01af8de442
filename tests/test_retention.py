"""Retention: which runs are due, and that one which went on meanwhile stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tramai import engine, kinds, plan, retention
from tramai.errors import CheckpointCorrupt, ConfigurationError
from tramai.portable import Unsupported
from tramai.store import CALLED, Change, Lease, Mark, Status
from tramai.stores import open_store
from tramai.stores.memory import Memory
from tramai.testing._store_given import begin, change, claim, done
from tramai.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
def store() -> Memory:
    return Memory()


def ended(store: Memory, clock: FakeClock, run_id: str, status: Status, **fields: float) -> None:
    store.commit(begin(store, clock, run_id), change(clock, status=status, release=True, **fields))


def due(store: Memory, before: float, *statuses: Status) -> list[str]:
    return sorted(run.run_id for run in retention.due(store, before=before, statuses=statuses or retention.OVER))


def test_a_run_is_due_by_its_end_not_by_its_beginning(store: Memory, clock: FakeClock) -> None:
    lease = begin(store, clock, "long", created=1.0)
    clock.advance(10)
    store.commit(lease, change(clock, status=Status.COMPLETED, finished=clock.now(), release=True))
    assert due(store, 1010.0) == []
    assert due(store, 1010.5) == ["long"]


def test_where_no_end_is_known_the_last_write_counts(store: Memory, clock: FakeClock) -> None:
    ended(store, clock, "r1", Status.DEAD)
    assert due(store, 1000.0) == []
    assert due(store, 1001.0) == ["r1"]


def test_only_what_is_over_is_due_and_failed_runs_when_they_are_named(store: Memory, clock: FakeClock) -> None:
    for status in Status:
        ended(store, clock, status.value, status)
    assert due(store, 9e9) == ["cancelled", "completed", "dead"]
    assert due(store, 9e9, Status.FAILED) == ["failed"]
    for status in set(Status) - set(retention.REMOVABLE):
        with pytest.raises(ValueError, match=f"a run that is {status.value} is not removed"):
            due(store, 9e9, status)


def test_called_runs_go_with_their_callers_deepest_last(store: Memory, clock: FakeClock) -> None:
    calls = (
        ("top", ""),
        ("middle", f"{CALLED}top"),
        ("deep", f"{CALLED}middle"),
        ("waits", ""),
        ("kept", f"{CALLED}waits"),
    )
    for number, (run_id, started_by) in enumerate(calls, 1):
        status = Status.WAITING if run_id == "waits" else Status.FAILED
        lease = begin(store, clock, run_id, created=float(number), started_by=started_by)
        store.commit(lease, change(clock, status=status, release=True))
    found = [run.run_id for run in retention.due(store, before=9e9, statuses=[Status.FAILED])]
    assert found == ["top", "middle", "deep"]


def test_many_runs_are_all_removed_while_they_are_read(
    store: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_PAGE", 3)
    for number in range(10):
        ended(store, clock, f"r{number}", Status.COMPLETED)
    removed = [
        run.run_id for run in retention.due(store, before=9e9) if retention.remove(store, run, by="ops", clock=clock)
    ]
    assert len(removed) == 10
    assert {run.status for run in store.page(limit=20, status=Status.REMOVED)[0]} == {Status.REMOVED}
    assert [(note.type, note.by) for note in store.notes("r3")] == [("run.removed", "ops")]


def test_a_failed_run_that_somebody_resumed_meanwhile_stays(store: Memory, clock: FakeClock) -> None:
    ended(store, clock, "r1", Status.FAILED)
    run = store.get("r1")
    claim(store, clock)
    assert not retention.remove(store, run, clock=clock)
    assert store.get("r1").status is Status.RUNNING
    clock.advance(30)
    assert not retention.remove(store, run, clock=clock)


# The rule in the URL of a store.


@pytest.mark.parametrize(
    ("url", "left", "rule"),
    [
        ("memory:", "memory:", None),
        ("memory:?retention=30d", "memory:", "30d"),
        ("sqlite:a?b.db?retention=completion", "sqlite:a?b.db", "completion"),
        ("sqlite:a?retention=1d/b.db", "sqlite:a", "1d/b.db"),
        ("file:d?layout=workflow&retention=2h", "file:d?layout=workflow", "2h"),
        ("file:d?retention=2h&layout=workflow", "file:d?layout=workflow", "2h"),
        ("postgresql://h/d?retention=2h", "postgresql://h/d", "2h"),
        ("sqlite:retention=1d", "sqlite:retention=1d", None),
    ],
)
def test_a_rule_stands_in_the_url(url: str, left: str, rule: str | None) -> None:
    assert retention.split(url) == (left, rule)


@pytest.mark.parametrize("rule", ["", "30", "-1d", "never", "101w1d1d", "200000d", "1d/b.db"])
def test_a_rule_that_is_none_is_refused_before_anything_is_made(tmp_path: Path, rule: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^retention=") as caught:
        open_store(f"sqlite:{tmp_path}/runs.db?retention={rule}")
    assert caught.value.hint is not None
    assert "?retention=30d" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_two_rules_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two retentions"):
        open_store("memory:?retention=1d&retention=2d")


def test_looking_at_nothing_with_a_rule_makes_nothing(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}/runs?retention=1d", create=False)
    assert store.page(limit=1) == ((), None)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_leave_tombstones_takes_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Poor(Memory):
        bury = None  # type: ignore[assignment]

        def close(self) -> None:
            closed.append(self.url)

    monkeypatch.setattr(kinds, "find", lambda family, name: Poor)
    with pytest.raises(Unsupported, match="cannot leave a tombstone"):
        open_store("memory:?retention=1d")
    assert closed == ["memory:"]


def test_the_end_of_a_run_is_told_whatever_becomes_of_the_others(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store("memory:?retention=completion")
    lease = begin(store, clock)

    def fail(**_: object) -> None:
        raise OSError("the disk")

    monkeypatch.setattr(store._store, "page", fail)  # type: ignore[attr-defined]
    assert store.commit(lease, change(clock, status=Status.COMPLETED, release=True)) == 2
    monkeypatch.undo()
    assert store.get("r1").status is Status.COMPLETED
    store.commit(begin(store, clock, "r2"), change(clock, status=Status.COMPLETED, release=True))
    assert store.page(limit=9) == ((), None)


def test_what_nobody_needs_goes_now_and_then(store: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monthly = retention.Retaining(store, "1s")
    tidied: list[int] = []
    monkeypatch.setattr(store, "tidy", lambda: tidied.append(1))
    for number in range(600):
        clock.advance(2)
        ended(monthly, clock, f"r{number}", Status.COMPLETED)  # type: ignore[arg-type]
    assert len(store.page(limit=999)[0]) == 1
    assert 1 <= len(tidied) <= 60  # 599 / 32 or so: generations are random, and none in six hundred is not to be seen


def test_a_damaged_run_goes_like_the_others(store: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(store, clock, "r1", Status.COMPLETED)

    def damaged(run_id: str) -> None:
        raise CheckpointCorrupt(what="it is damaged", run_id=run_id)

    monkeypatch.setattr(store, "journal", damaged)
    ended(retention.Retaining(store, "completion"), clock, "r2", Status.COMPLETED)  # type: ignore[arg-type]
    assert store.page(limit=9) == ((), None)


def test_only_the_log_folder_of_the_very_run_goes_with_it(store: Memory, clock: FakeClock, tmp_path: Path) -> None:
    names = ("logs/r1/a.log", "logs/r2/b.log", "other/r1/c.log", "d.log")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    lines = [done(seq, f"p{seq}", log=str(tmp_path / name)) for seq, name in enumerate(names, 1)]
    lease = begin(store, clock)
    store.commit(lease, change(clock, *lines, done(5, "p5", log="logs/r1/relative.log")))
    retaining = retention.Retaining(store, "completion")
    retaining.commit(lease, change(clock, status=Status.COMPLETED, release=True))
    assert [name for name in names if not (tmp_path / name).exists()] == ["logs/r1/a.log"]


def turned(folder: Path, run_id: str) -> None:
    """Turn a byte in the middle of a run's journal: its header can be read, and nothing else."""
    journal = folder / run_id / "journal"
    data = bytearray(journal.read_bytes())
    data[len(data) // 3] ^= 1
    journal.write_bytes(data)


def test_a_run_whose_journal_is_damaged_keeps_no_other_from_being_removed(tmp_path: Path, clock: FakeClock) -> None:
    url = f"file:{tmp_path / 'runs'}"
    store = open_store(url)
    for run_id in ("r1", "bad", "r3"):
        lease = begin(store, clock, run_id)
        store.commit(lease, change(clock, done(1)))
        store.commit(lease, change(clock, status=Status.COMPLETED, finished=clock.now(), release=True))
    lease = begin(store, clock, "last")
    store.close()
    turned(tmp_path / "runs", "bad")
    ruled = open_store(f"{url}?retention=completion")
    ruled.commit(lease, change(clock, status=Status.COMPLETED, finished=clock.now(), release=True))
    found = {
        run.run_id: run.status.value
        for status in (None, Status.REMOVED)
        for run in ruled.page(limit=9, status=status)[0]
    }
    assert found == {"r1": "removed", "bad": "completed", "r3": "removed", "last": "removed"}
    ruled.close()


CHILD = """\
tramai: 1
name: child
steps:
  - id: effect
    shell: "true"
outputs: {a: 7}
"""
PARENT = """\
tramai: 1
name: parent
steps:
  - id: sub
    call: ./child.yaml
outputs: {b: "${{ steps.sub.output.a }}"}
"""


def test_a_called_run_stays_until_its_caller_is_over_who_may_not_have_recorded_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    (tmp_path / "parent.yaml").write_text(PARENT, encoding="utf-8")
    inner = Memory()
    store = retention.Retaining(inner, "completion")
    commit = inner.commit

    class Killed(BaseException):
        pass

    def dying(lease: Lease, change: Change) -> int:
        if any(record.mark is Mark.COMPLETED and record.path == "sub" for record in change.records):
            raise Killed
        return commit(lease, change)

    made = plan.load(str(tmp_path / "parent.yaml"))
    with monkeypatch.context() as patch:
        patch.setattr(inner, "commit", dying)
        with pytest.raises(Killed):
            engine.run(made, {}, store=store, options=engine.Options(run_id="parent"))
    (child,) = (run for run in inner.page(limit=9)[0] if run.workflow == "child")
    assert child.status is Status.COMPLETED
    assert list(retention.due(inner, before=9e9)) == []
    kept = inner._runs["parent"]
    kept.run = replace(kept.run, lease=None)  # as if it had ended
    assert engine.resume("parent", store=store).outputs == {"b": 7}
    assert {run_id: inner.get(run_id).status for run_id in ("parent", child.run_id)} == {
        "parent": Status.REMOVED,
        child.run_id: Status.REMOVED,
    }


def test_a_run_goes_with_what_it_has_called_also_where_its_catch_took_the_failure(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD.replace('"true"', "exit 3"), encoding="utf-8")
    caught = PARENT.replace("outputs:", "    catch: [{output: {a: 8}}]\noutputs:")
    (tmp_path / "parent.yaml").write_text(caught, encoding="utf-8")
    inner = Memory()
    made = plan.load(str(tmp_path / "parent.yaml"))
    store = retention.Retaining(inner, "completion")
    assert engine.run(made, {}, store=store, options=engine.Options(run_id="parent")).outputs == {"b": 8}
    assert inner.get("parent").status is Status.REMOVED
