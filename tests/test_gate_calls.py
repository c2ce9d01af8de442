"""Gates in called workflows: the caller waits with them, and goes on when they are decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tramai import deciding, engine, plan
from tramai.calling import open_calls
from tramai.store import Note, Run
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


def test_a_caller_that_is_written_to_just_then_is_woken_all_the_same(tmp_path: Path) -> None:
    store, child = begun(tmp_path)
    post = store.post

    def late(run_id: str, note: Note, **given: Any) -> Run:
        if run_id == "parent" and given["after"] == len(store.notes("parent")) and not spoken:
            spoken.append(post("parent", Note(at=1001.0, type="somebody.else"), after=given["after"], now=1001.0))
        return post(run_id, note, **given)

    spoken: list[Run] = []
    store.post = late  # type: ignore[method-assign]
    deciding.decide(store, child, None, decision="approved", by="ann", clock=Clockwork(1001))
    assert len(spoken) == 1
    assert store.get("parent").wake_at == 1001


def test_who_decides_once_more_wakes_a_caller_that_the_first_had_no_time_to_wake(tmp_path: Path) -> None:
    store, child = begun(tmp_path)
    post = store.post

    class Killed(BaseException):
        pass

    def dying(run_id: str, note: Note, **given: Any) -> Run:
        if run_id == "parent":
            raise Killed
        return post(run_id, note, **given)

    store.post = dying  # type: ignore[method-assign]
    with pytest.raises(Killed):
        deciding.decide(store, child, None, decision="approved", by="ann", clock=Clockwork(1001))
    store.post = post  # type: ignore[method-assign]
    assert store.get("parent").wake_at == 4600
    with pytest.raises(deciding.AlreadyDecided):
        deciding.decide(store, child, None, decision="approved", by="bob", clock=Clockwork(1002))
    assert store.get("parent").wake_at == 1002
    assert engine.resume("parent", store=store, clock=Clockwork(1003)).outputs == {"by": "ann"}
