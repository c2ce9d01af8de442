"""Runs of one group: who is carried out, who waits, and what becomes of a run that comes too late."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import RUN, Watch, make
from tramai import engine, plan
from tramai.clock import SystemClock
from tramai.errors import CheckpointCorrupt, DefinitionChanged, GroupFull, UnfitGroup
from tramai.event import Event, RunQueued
from tramai.interrupt import Interrupt
from tramai.portable import Unsupported
from tramai.results import CALLED
from tramai.standing import ran_before
from tramai.store import Group, Lease, Note, Record, Run, Status, Store
from tramai.stores.memory import Memory
from tramai.testing._store_given import HERE, change, dead_holder, new_run, record
from tramai.testing.clock import FakeClock

ONE: list[dict[str, Any]] = [{"id": "a", "local": {"value": 1}}]
OUT = {"a": "${{ steps.a.output }}"}


@pytest.fixture
def store() -> Memory:
    return Memory()


def flow(on_conflict: str = "queue", **more: Any) -> plan.Plan:
    rule = {"group": "g", "on_conflict": on_conflict, **more.pop("concurrency", {})}
    return make(more.pop("steps", ONE), concurrency=rule, outputs=more.pop("outputs", OUT), **more)


def hold(store: Store, run_id: str = "holder", **fields: Any) -> Lease:
    """A run of the group that somebody else carries out."""
    now = SystemClock().now()
    new = new_run(run_id, **{"group": Group("g"), "created": 1.0, **fields.pop("new", {})})
    _, lease = store.create(new, owner="bob", **{"holder": HERE, "ttl": 1e6, "now": now, **fields})
    assert lease is not None
    assert store.enter(lease, now=now) == ()
    return lease


def let_go(store: Store, lease: Lease, status: Status = Status.COMPLETED) -> None:
    store.commit(lease, change(FakeClock(SystemClock().now()), status=status, release=True))


class OnceQueued(Watch):
    """Does something the first time a run is told to wait."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act: Callable[[], object] | None = act

    def __call__(self, event: Event, /) -> None:
        super().__call__(event)
        if isinstance(event, RunQueued) and self._act is not None:
            act, self._act = self._act, None
            act()

    def queued(self) -> list[RunQueued]:
        return [event for event in self.events if isinstance(event, RunQueued)]


def start(store: Store, made: plan.Plan, given: dict[str, Any] | None = None, *watch: Watch, **more: Any) -> Any:
    options = engine.Options(**{"run_id": RUN, **more})
    return engine.run(made, given or {}, store=store, observers=watch, options=options)


def test_the_name_of_a_group_is_made_once_and_kept(store: Memory) -> None:
    rule = {"group": "deploy-${{ inputs.host }}-${{ run.workflow }}", "limit": 3}
    made = flow(inputs={"host": {"type": "string"}}, concurrency=rule)
    assert start(store, made, {"host": "web1"}).outputs == {"a": 1}
    assert store.get(RUN).group == Group("deploy-web1-test", 3)
    engine.rerun(RUN, store=store, options=engine.Options(run_id="again"))
    assert store.get("again").group == Group("deploy-web1-test", 3)


@pytest.mark.parametrize(
    ("host", "what"),
    [("", "is empty"), ("  ", "is empty"), ("x" * 201, "must have at most 200 characters"), ("a\nb", "printable")],
    ids=["empty", "blank", "long", "not printable"],
)
def test_a_name_that_no_group_can_have_is_refused_before_anything(store: Memory, host: str, what: str) -> None:
    made = flow(inputs={"host": {"type": "string"}}, concurrency={"group": "${{ inputs.host }}"})
    with pytest.raises(UnfitGroup, match=what) as caught:
        start(store, made, {"host": host})
    assert (caught.value.code, caught.value.exit_status) == ("TRM451", 2)
    assert store.page(limit=1) == ((), None)


def test_a_name_that_holds_a_secret_is_refused(store: Memory) -> None:
    made = flow(
        inputs={"key": {"type": "string"}}, secrets={"S": {"env": "S"}}, concurrency={"group": "${{ inputs.key }}"}
    )
    with pytest.raises(UnfitGroup, match="holds a secret"):
        start(store, made, {"key": "hunter22"}, secrets={"S": "hunter22"})
    assert store.page(limit=1) == ((), None)


def test_a_store_that_knows_no_groups_is_refused_before_anything(store: Memory) -> None:
    class Older:
        """A store of before: all of another one but `enter`."""

        def __getattr__(self, name: str) -> Any:
            if name == "enter":
                raise AttributeError(name)
            return getattr(store, name)

    with pytest.raises(Unsupported, match="cannot keep the places of a group of runs"):
        start(Older(), flow())  # type: ignore[arg-type]
    assert store.page(limit=1) == ((), None)


def test_where_there_is_room_nobody_hears_of_the_group(store: Memory) -> None:
    watch = OnceQueued(lambda: None)
    assert start(store, flow(), None, watch).status == "completed"
    assert watch.queued() == []
    assert [note.type for note in store.notes(RUN)] == ["run.completed"]


def test_who_waits_is_told_for_whom_and_goes_on_when_the_place_is_free(store: Memory) -> None:
    lease = hold(store)
    watch = OnceQueued(lambda: let_go(store, lease))
    result = start(store, flow(), None, watch)
    assert (result.status, result.outputs) == ("completed", {"a": 1})
    (told,) = watch.queued()
    assert (told.group, told.limit, [(held.run_id, held.workflow, held.owner) for held in told.before]) == (
        "g", 1, [("holder", "wf", "bob")],
    )  # fmt: skip
    assert [event.__class__.__name__ for event in watch.events][:2] == ["RunStarted", "RunQueued"]
    assert [note.type for note in store.notes(RUN)] == ["run.queued", "run.entered", "run.completed"]


def test_who_waits_for_a_run_whose_values_are_damaged_waits_all_the_same(
    store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, get = hold(store), store.get

    def damaged(run_id: str) -> Run:
        if run_id == "holder":
            raise CheckpointCorrupt(what="a large value of run holder is missing", run_id=run_id)
        return get(run_id)

    watch = OnceQueued(lambda: let_go(store, lease))
    with monkeypatch.context() as patch:
        patch.setattr(store, "get", damaged)
        assert start(store, flow(), None, watch).outputs == {"a": 1}
    assert [event.before for event in watch.queued()] == [()]


def test_two_workflows_that_name_one_group_wait_for_each_other(store: Memory) -> None:
    hold(store)
    other = make(ONE, concurrency={"group": "g", "limit": 2, "on_conflict": "fail"}, outputs=OUT)
    assert start(store, other).status == "completed"  # by its own limit there is room
    assert start(store, flow("fail"), run_id="s").exit_status == 5


def test_one_that_is_interrupted_in_line_is_ready_and_stands_in_line_again(store: Memory) -> None:
    lease, stop = hold(store), Interrupt()
    result = start(store, flow(), None, OnceQueued(lambda: stop.set("signal")), interrupt=stop)
    assert (result.status, result.exit_status, result.error) == ("interrupted", 130, None)
    run = store.get(RUN)
    assert (run.status, run.lease, store.journal(RUN)) == (Status.READY, None, ())
    watch = OnceQueued(lambda: let_go(store, lease))
    assert engine.resume(RUN, store=store, observers=[watch]).outputs == {"a": 1}
    assert len(watch.queued()) == 1


def test_one_that_is_cancelled_in_line_ends_and_nothing_of_it_runs(store: Memory) -> None:
    hold(store)
    cancel = OnceQueued(lambda: engine.cancel(RUN, store=store))
    made = flow(**{"finally": [{"id": "f", "local": 1}]})
    result = start(store, made, None, cancel)
    assert (result.status, result.exit_status) == ("cancelled", 12)
    assert (store.get(RUN).status, store.journal(RUN)) == (Status.CANCELLED, ())


def test_skip_ends_a_new_run_as_cancelled_and_nothing_of_it_runs(store: Memory) -> None:
    hold(store)
    result = start(store, flow("skip", **{"finally": [{"id": "f", "local": 1}]}))
    assert (result.status, result.exit_status) == ("cancelled", 12)
    assert result.error == {
        "type": "cancelled",
        "message": "skipped: the group 'g' has no place (1 at a time): before this run comes run holder of wf",
        "group": "g",
        "held_by": ["holder"],
    }
    assert (store.get(RUN).status, store.journal(RUN)) == (Status.CANCELLED, ())


def test_fail_names_who_has_the_place(store: Memory) -> None:
    hold(store)
    result = start(store, flow("fail"))
    assert (result.status, result.exit_status) == ("cancelled", 5)
    assert result.error is not None
    assert (result.error["type"], result.error["code"], result.error["held_by"]) == ("group_full", "TRM450", ["holder"])
    assert (store.get(RUN).status, store.journal(RUN)) == (Status.CANCELLED, ())
    assert engine.run(flow("fail"), {}, store=Memory()).status == "completed"


def test_cancel_running_ends_the_older_ones_first_and_their_finally_runs(store: Memory, tmp_path: Path) -> None:
    steps = [{"id": "a", "shell": f"echo started > {tmp_path}/started; sleep 60"}]
    old = flow(steps=steps, outputs={}, **{"finally": [{"id": "f", "shell": f"echo tidied > {tmp_path}/tidied"}]})
    results: list[engine.Result] = []
    began = threading.Event()

    class Began(Watch):
        def __call__(self, event: Event, /) -> None:
            if getattr(event, "path", "") == "a":
                began.set()

    thread = threading.Thread(target=lambda: results.append(start(store, old, None, Began(), run_id="old")))
    thread.start()
    assert began.wait(30)
    assert start(store, flow("cancel_running")).outputs == {"a": 1}
    thread.join(30)
    assert [result.status for result in results] == ["cancelled"]
    assert (tmp_path / "tidied").exists()
    (note,) = [note for note in store.notes("old") if note.type == "cancel.requested"]
    assert note.comment == f"run {RUN} of the same group takes its place"


def test_cancel_running_asks_only_as_many_as_stand_in_its_way_and_no_younger_ones(store: Memory) -> None:
    two = {"group": Group("g", 2)}
    leases = [hold(store, name, new=two | {"created": when}) for name, when in (("old", 1.0), ("newer", 2.0))]
    made = flow("cancel_running", concurrency={"limit": 2})

    def leave() -> None:
        threading.Timer(0.3, lambda: let_go(store, leases[0], Status.CANCELLED)).start()

    assert start(store, made, None, OnceQueued(leave)).status == "completed"
    assert [store.get(run_id).cancel_requested for run_id in ("old", "newer")] == [True, False]


@pytest.mark.parametrize("policy", ["skip", "fail"])
def test_a_resume_that_does_not_wait_leaves_the_run_as_it_was(store: Memory, policy: str) -> None:
    clock = FakeClock(SystemClock().now())
    steps = [*ONE, {"id": "nap", "delay": "1h"}]
    made, options = flow(policy, steps=steps), engine.Options(run_id=RUN, wait=0)
    assert engine.run(made, {}, store=store, options=options, clock=clock).status == "sleeping"
    before = store.get(RUN)
    lease = hold(store, new={"created": 5.0})
    clock.advance(3600)
    watch = Watch()
    with pytest.raises(GroupFull, match="before this run comes run holder of wf") as caught:
        engine.resume(RUN, store=store, options=options, clock=clock, observers=[watch])
    assert (caught.value.exit_status, watch.events) == (5, [])
    after = store.get(RUN)
    assert replace(after, fence=before.fence, revision=before.revision, updated=before.updated) == before
    let_go(store, lease)
    assert engine.resume(RUN, store=store, options=options, clock=clock).outputs == {"a": 1}


def test_a_suspended_run_holds_no_place_and_waits_for_one_when_it_goes_on(store: Memory) -> None:
    clock = FakeClock(SystemClock().now())
    made = flow(steps=[*ONE, {"id": "nap", "delay": "1h"}])
    options = engine.Options(run_id=RUN, wait=0)
    assert engine.run(made, {}, store=store, options=options, clock=clock).status == "sleeping"
    assert start(store, flow("fail"), run_id="s").status == "completed"
    lease, stop = hold(store), Interrupt()
    clock.advance(3600)
    again = replace(options, interrupt=stop)
    watch = OnceQueued(lambda: stop.set("signal"))
    assert engine.resume(RUN, store=store, options=again, clock=clock, observers=[watch]).status == "interrupted"
    assert store.get(RUN).status is Status.SLEEPING
    watch = OnceQueued(lambda: let_go(store, lease))
    assert engine.resume(RUN, store=store, options=options, clock=clock, observers=[watch]).outputs == {"a": 1}
    assert len(watch.queued()) == 1


def test_one_that_had_begun_and_is_cancelled_in_line_runs_its_finally(store: Memory) -> None:
    clock = FakeClock(SystemClock().now())
    made = flow(steps=[*ONE, {"id": "nap", "delay": "1h"}], **{"finally": [{"id": "f", "local": 1}]})
    options = engine.Options(run_id=RUN, wait=0)
    assert engine.run(made, {}, store=store, options=options, clock=clock).status == "sleeping"
    hold(store)
    clock.advance(3600)
    watch = OnceQueued(lambda: engine.cancel(RUN, store=store))
    assert engine.resume(RUN, store=store, options=options, clock=clock, observers=[watch]).status == "cancelled"
    assert any(line.path.startswith("@finally") for line in store.journal(RUN))


def test_a_dead_holder_keeps_nobody_waiting(store: Memory) -> None:
    hold(store, holder=dead_holder())
    assert start(store, flow("fail")).status == "completed"


def test_the_lease_of_one_that_waits_is_kept(store: Memory) -> None:
    lease = hold(store)
    watch = OnceQueued(lambda: threading.Timer(1.5, lambda: let_go(store, lease)).start())
    assert start(store, flow(), None, watch, lease=0.6).status == "completed"


def test_the_time_in_line_is_no_running_time(store: Memory) -> None:
    _, lease = store.create(new_run(RUN, created=0.0), owner="a", holder=HERE, ttl=900.0, now=0.0)
    assert lease is not None
    said = (Note(at=1.0, type="run.queued"), Note(at=500.0, type="run.entered"))
    lines: tuple[Record, ...] = (record(1, at=501.0), record(2, at=503.0))
    store.commit(lease, change(FakeClock(600.0), *lines, notes=said))
    assert ran_before(store, store.get(RUN), store.journal(RUN)) == 3.0
    # It fails, somebody goes on with it, and he has to wait in line again, twice: the first time he gives up.
    more = [(504.0, "run.failed"), (700.0, "run.queued"), (900.0, "run.interrupted"), (950.0, "run.queued")]
    more += [(980.0, "run.entered"), (981.0, "run.resumed"), (983.0, "run.failed")]
    notes = tuple(Note(at=at, type=type) for at, type in more)
    store.commit(lease, change(FakeClock(600.0), notes=notes))
    assert ran_before(store, store.get(RUN), store.journal(RUN)) == 6.0


def test_what_is_noted_before_a_run_goes_on_is_no_running_time(store: Memory) -> None:
    _, lease = store.create(new_run(RUN, created=0.0), owner="a", holder=HERE, ttl=900.0, now=0.0)
    assert lease is not None
    early = ("definition.accepted", "children.ended", "run.traced", "journal.cut")
    notes = [Note(at=3.0, type="run.failed"), *(Note(at=500.0, type=type) for type in early)]
    notes += [Note(at=500.5, type="run.resumed"), Note(at=502.5, type="run.failed")]
    store.commit(lease, change(FakeClock(600.0), record(1, at=1.0), notes=tuple(notes)))
    assert ran_before(store, store.get(RUN), store.journal(RUN)) == 5.0


def test_a_run_that_goes_on_with_another_rule_stays_in_its_group(store: Memory) -> None:
    clock = FakeClock(SystemClock().now())
    steps, options = [*ONE, {"id": "nap", "delay": "1h"}], engine.Options(run_id=RUN, wait=0)
    assert engine.run(flow(steps=steps), {}, store=store, options=options, clock=clock).status == "sleeping"
    other = flow("fail", steps=steps, concurrency={"group": "h", "limit": 2})
    clock.advance(3600)
    hold(store)
    with pytest.raises(DefinitionChanged):
        engine.resume(RUN, store=store, plan=other, options=options, clock=clock)
    with pytest.raises(GroupFull, match=r"the group 'g' has no place \(1 at a time\)"):
        engine.resume(RUN, store=store, plan=other, accept_changes=True, options=options, clock=clock)


OF_LEAF, OF_CALL = "{n: '${{ steps.a.output }}'}", "{n: '${{ steps.c.output.n }}'}"


class Files:
    """A parent and the children it calls, all of the group `g`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rule = "tramai: 1\nconcurrency: {group: g}\n"
        self.write("leaf", f"{rule}name: leaf\nsteps: [{{id: a, local: 1}}]\noutputs: {OF_LEAF}\n")
        for name, called in (("middle", "leaf"), ("top", "middle")):
            self.write(name, f"{rule}name: {name}\nsteps: [{{id: c, call: ./{called}.yaml}}]\noutputs: {OF_CALL}\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.yaml").write_text(text, encoding="utf-8")

    def plan(self, name: str) -> plan.Plan:
        return plan.load(str(self.folder / f"{name}.yaml"))


def test_a_called_run_never_waits_for_the_group_of_its_callers(store: Memory, tmp_path: Path) -> None:
    result = start(store, Files(tmp_path).plan("top"))
    assert (result.status, result.outputs) == ("completed", {"n": 1})
    runs = store.page(limit=9)[0]
    assert {run.workflow: run.started_by.startswith(CALLED) for run in runs} == {
        "top": False, "middle": True, "leaf": True,
    }  # fmt: skip
    assert {run.group for run in runs} == {Group("g")}


def test_branches_that_call_side_by_side_share_the_place_of_their_caller(store: Memory, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write(
        "wide",
        "tramai: 1\nname: wide\nconcurrency: {group: g}\nsteps:\n  - id: all\n    parallel:\n"
        "      items: [1, 2, 3]\n      do: [{id: c, call: ./leaf.yaml}]\n",
    )
    assert start(store, files.plan("wide")).status == "completed"


def test_calls_side_by_side_of_a_caller_without_the_group_wait_for_each_other(store: Memory, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write(
        "wide",
        "tramai: 1\nname: wide\nsteps:\n  - id: all\n    parallel:\n"
        "      items: [1, 2, 3]\n      do: [{id: c, call: ./leaf.yaml}]\n",
    )
    assert start(store, files.plan("wide")).status == "completed"
    assert sum(run.workflow == "leaf" and run.status is Status.COMPLETED for run in store.page(limit=9)[0]) == 3


def test_a_called_run_that_is_skipped_fails_its_step(store: Memory, tmp_path: Path) -> None:
    files = Files(tmp_path)
    hold(store)
    files.write(
        "leaf", "tramai: 1\nname: leaf\nconcurrency: {group: g, on_conflict: skip}\nsteps: [{id: a, local: 1}]\n"
    )
    files.write("free", "tramai: 1\nname: free\nsteps: [{id: c, call: ./leaf.yaml}]\n")
    result = start(store, files.plan("free"))
    assert (result.status, result.error and result.error["type"]) == ("failed", "cancelled")
    assert "skipped: the group 'g' has no place" in str(result.error and result.error["message"])


def test_a_caller_that_is_stopped_takes_the_waiting_child_with_it(store: Memory, tmp_path: Path) -> None:
    files, stop = Files(tmp_path), Interrupt()
    lease = hold(store)
    files.write("free", "tramai: 1\nname: free\nsteps: [{id: c, call: ./leaf.yaml}]\n")
    threading.Timer(0.3, lambda: stop.set("signal")).start()
    assert start(store, files.plan("free"), interrupt=stop).status == "interrupted"
    let_go(store, lease)
    assert engine.resume(RUN, store=store).status == "completed"
