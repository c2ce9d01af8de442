"""kill -9 at every write while a gate asks, is decided, and lets the run go on: one question, one decision, one end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tramai import deciding, engine
from tramai.errors import NotFound
from tramai.store import Mark, Store
from tramai.stores import open_store

from .gates import RUN, act

ROOT = Path(__file__).parents[2]
PHASES = ("ask", "decide", "resume")
WRITES = {"ask": 4, "decide": 1, "resume": 4}
"""How many writes each of them makes: the last step of a resume, which only computes, goes with the end."""
POINTS = [
    # What is stored after one write is what is stored before the next: after the last one of a phase there is no next.
    pytest.param(phase, at, after, marks=pytest.mark.slow if after and at != count else ())
    for phase, count in WRITES.items()
    for at in range(1, count + 2)
    for after in (False, True)
]


def killed(url: str, phase: str, at: int, after: bool) -> bool:
    """Do a phase in a process that dies at a write; whether it did."""
    given = json.dumps({"url": url, "phase": phase, "at": at, "after": after})
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.gates", given], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9


def recover(store: Store) -> engine.Result:
    """What people do: start it, if there is none; decide, if it is asked; go on."""
    try:
        store.get(RUN)
    except NotFound:
        act(store, "ask")
    result = engine.resume(RUN, store=store)
    if result.status == "waiting":
        act(store, "decide")
        result = engine.resume(RUN, store=store)
    return result


@pytest.mark.parametrize("kind", ["sqlite", "file"])
@pytest.mark.parametrize(("phase", "at", "after"), POINTS)
def test_a_kill_at_any_write_loses_and_doubles_nothing(
    tmp_path: Path, kind: str, phase: str, at: int, after: bool
) -> None:
    url = f"{kind}:{tmp_path}/runs"
    with_store = open_store(url)
    for earlier in PHASES[: PHASES.index(phase)]:
        act(with_store, earlier)
    with_store.close()
    struck = killed(url, phase, at, after)
    assert struck == (at <= WRITES[phase])
    store = open_store(url)
    try:
        if phase == "decide":
            heard = [note.by for note in store.notes(RUN) if note.type == "gate.decided"]
            assert heard == (["ann"] if after or not struck else [])
        result = recover(store)
        assert (result.status, result.outputs) == ("completed", {"it": "ann said yes"})
        marks = Counter((record.path, record.mark) for record in store.journal(RUN))
        assert {path: marks[path, Mark.COMPLETED] for path in ("before", "ok", "after")} == {
            "before": 1,
            "ok": 1,
            "after": 1,
        }
        assert marks["ok", Mark.DECIDED] == 1
        types = Counter(note.type for note in store.notes(RUN))
        assert (types["gate.asked"], types["gate.decided"]) == (1, 1)
        with pytest.raises(deciding.NotInThatState):
            act(store, "decide")
    finally:
        store.close()
