"""Gates in called workflows: the caller waits with them, and goes on when they are decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from tramai import deciding, engine, plan
from tramai.calling import open_calls
from tramai.stores.memory import Memory

from .written import Clockwork

CHILD = """\
tramai: 1
name: child
steps:
  - id: ok
    gate: {ask: Go on?, timeout: 1h, on_timeout: approve}
outputs: {by: "${{ steps.ok.output.by }}"}
"""
PARENT = """\
tramai: 1
name: parent
steps:
  - id: ask
    call: ./child.yaml
outputs: {by: "${{ steps.ask.output.by }}"}
"""


def begun(folder: Path, **options: object) -> tuple[Memory, str]:
    """A run that waits with the run it has called; the id of that one."""
    (folder / "child.yaml").write_text(CHILD, encoding="utf-8")
    (folder / "parent.yaml").write_text(PARENT, encoding="utf-8")
    store = Memory()
    made = plan.load(str(folder / "parent.yaml"))
    given = engine.Options(run_id="parent", **options)  # type: ignore[arg-type]
    assert engine.run(made, {}, store=store, clock=Clockwork(1000), options=given).status == "waiting"
    (child,) = open_calls(store.journal("parent"))
    assert (store.get(child).status, store.get("parent").wake_at) == ("waiting", 4600)
    return store, child


def test_a_decision_in_a_called_run_lets_its_caller_go_on(tmp_path: Path) -> None:
    store, child = begun(tmp_path)
    before = store.get("parent")
    assert engine.resume("parent", store=store, clock=Clockwork(1001)).resumed is False
    assert store.get("parent") == before
    with pytest.raises(deciding.NothingAsked):
        deciding.decide(store, "parent", None, decision="approved", by="ann", clock=Clockwork(1001))
    deciding.decide(store, child, None, decision="approved", by="ann", clock=Clockwork(1001))
    assert engine.resume("parent", store=store, clock=Clockwork(1002)).outputs == {"by": "ann"}


def test_the_end_of_the_time_in_a_called_run_lets_its_caller_go_on(tmp_path: Path) -> None:
    store, _ = begun(tmp_path)
    assert engine.resume("parent", store=store, clock=Clockwork(4600)).outputs == {"by": "timeout"}


def test_nobody_is_asked_in_the_middle_of_a_step(tmp_path: Path) -> None:
    asked: list[object] = []
    begun(tmp_path, answer=asked.append)
    assert asked == []
