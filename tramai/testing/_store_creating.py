"""Making runs: ids, start keys, definitions, and what is refused before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from ..errors import NotFound, StoreUnavailable
from ..store import Change, Note, RunExists, Status, Store
from ._store_given import AWKWARD, HERE, TTL, Given, begin, change, definition, everything, new_run
from .clock import FakeClock

LOOK_ALIKES = [
    "order/a",
    "order?a",
    "Daily",
    "daily",
    "..",
    ".",
    "CON",
    "a b",
    "a%",
    "a_",
    "\u00e9",
    "e\u0301",
    "x" * 300,
]

WRONG: list[dict[str, object]] = [
    {"run_id": ""},
    {"run_id": " \t"},
    {"start_key": ""},
    {"owner": ""},
    {"owner": "  "},
    {"ttl": 0.0},
    {"ttl": -1.0},
    {"ttl": float("nan")},
    {"ttl": float("inf")},
    {"ttl": 1e18},
]


class Creating(Given):
    """A run begins claimed, at revision 1 and fence 1, and nothing else may take its id."""

    def test_a_new_run_is_running_and_claimed(self, store: Store, clock: FakeClock) -> None:
        run, lease = store.create(new_run(), owner="alice", holder=HERE, ttl=TTL, now=clock.now())
        assert (run.status, run.revision, run.fence) == (Status.RUNNING, 1, 1)
        assert (run.claims_without_progress, run.step_executions, run.cancel_requested) == (0, 0, False)
        assert run.updated == clock.now()
        assert run.lease == lease
        assert lease is not None
        assert lease.token.strip()
        assert (lease.run_id, lease.owner, lease.holder, lease.fence) == ("r1", "alice", HERE, 1)
        assert (lease.acquired, lease.expires) == (clock.now(), clock.now() + TTL)

    def test_get_gives_what_create_gave(self, store: Store, clock: FakeClock) -> None:
        given = new_run(
            inputs='{"n":12345678901234567890123}',
            started_by=AWKWARD,
            start_key=AWKWARD,
            labels=("b", AWKWARD, "a"),
            queue="q",
            priority=-3,
            cwd="/srv/\udcff",
            definition=definition(file="/srv/\udcff.yaml", version="2.0"),
        )
        run, _ = store.create(given, owner=AWKWARD, holder=HERE, ttl=TTL, now=clock.now())
        assert store.get("r1") == run
        for name in ("inputs", "cwd", "created", "started_by", "start_key", "labels", "queue", "priority"):
            assert getattr(run, name) == getattr(given, name)
        assert (run.workflow, run.version, run.digest, run.file) == ("wf", "2.0", "d1", "/srv/\udcff.yaml")

    def test_long_inputs_come_back_whole(self, store: Store, clock: FakeClock) -> None:
        inputs = '"' + "x" * 300_000 + '"'
        begin(store, clock, inputs=inputs)
        assert store.get("r1").inputs == inputs
        assert store.page(limit=1)[0][0].inputs == inputs

    def test_an_empty_journal_and_event_list_at_first(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        assert store.journal("r1") == ()
        assert store.notes("r1") == ()

    def test_a_taken_id_is_refused_and_the_first_run_untouched(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock)
        before = everything(store)
        with pytest.raises(RunExists, match=r"^run r1 already exists$"):
            begin(store, clock, owner="bob", inputs="[1]")
        assert everything(store) == before

    def test_a_finished_run_keeps_its_id(self, store: Store, clock: FakeClock) -> None:
        store.commit(begin(store, clock), change(clock, status=Status.COMPLETED, release=True))
        with pytest.raises(RunExists):
            begin(store, clock)

    def test_every_run_gets_a_generation_of_its_own(self, store: Store, clock: FakeClock) -> None:
        for number in range(20):
            begin(store, clock, f"r{number}")
        generations = {run.generation for run in store.page(limit=50)[0]}
        assert len(generations) == 20
        assert all(len(generation) >= 16 for generation in generations)

    def test_ids_that_look_alike_are_different_runs(self, store: Store, clock: FakeClock) -> None:
        for number, run_id in enumerate(LOOK_ALIKES):
            begin(store, clock, run_id, inputs=str(number))
        for number, run_id in enumerate(LOOK_ALIKES):
            assert (store.get(run_id).run_id, store.get(run_id).inputs) == (run_id, str(number))

    def test_an_awkward_id_is_an_id_like_any(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock, AWKWARD)
        store.commit(lease, change(clock, notes=(Note(at=1.0, type="seen"),)))
        assert store.get(AWKWARD).run_id == AWKWARD
        assert len(store.notes(AWKWARD)) == 1
        assert store.match(AWKWARD[-5:]) == (AWKWARD,)
        assert [run.run_id for run in store.page(limit=5)[0]] == [AWKWARD]

    def test_a_start_key_gives_the_run_it_started(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock, "first", start_key="key")
        before = store.get("first")
        run, lease = store.create(
            new_run("second", start_key="key", inputs="[9]"), owner="bob", holder=HERE, ttl=TTL, now=clock.now()
        )
        assert (run, lease) == (before, None)
        assert store.get("first") == before
        with pytest.raises(NotFound):
            store.get("second")

    def test_a_start_key_still_counts_when_its_run_is_over(self, store: Store, clock: FakeClock) -> None:
        over = change(clock, status=Status.COMPLETED, outputs='{"a":1}', release=True)
        store.commit(begin(store, clock, "first", start_key="key"), over)
        run, lease = store.create(new_run("x", start_key="key"), owner="b", holder=HERE, ttl=TTL, now=clock.now())
        assert (run.run_id, run.status, run.outputs, lease) == ("first", Status.COMPLETED, '{"a":1}', None)

    def test_the_start_key_is_looked_at_before_the_id(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock, "first", start_key="key")
        run, lease = store.create(new_run("first", start_key="key"), owner="b", holder=HERE, ttl=TTL, now=clock.now())
        assert (run.run_id, lease) == ("first", None)

    def test_other_start_keys_start_other_runs(self, store: Store, clock: FakeClock) -> None:
        for run_id, key in (("a", "key"), ("b", "KEY"), ("c", "key "), ("d", None), ("e", None)):
            begin(store, clock, run_id, start_key=key)
        assert len(store.page(limit=10)[0]) == 5

    @pytest.mark.parametrize("wrong", WRONG, ids=str)
    def test_a_callers_mistake_is_refused_before_anything_is_stored(
        self, store: Store, clock: FakeClock, wrong: dict[str, object]
    ) -> None:
        call: dict[str, object] = {"run_id": "r1", "start_key": None, "owner": "alice", "ttl": TTL} | wrong
        new = new_run(str(call["run_id"]), start_key=call["start_key"])
        with pytest.raises(ValueError):
            store.create(new, owner=str(call["owner"]), holder=HERE, ttl=float(str(call["ttl"])), now=clock.now())
        assert store.page(limit=5) == ((), None)

    def test_a_definition_is_kept_with_its_runs(self, store: Store, clock: FakeClock) -> None:
        kept = definition("d7", text=AWKWARD + "x" * 200_000, canonical='{"a":"' + "y" * 200_000 + '"}', file=None)
        begin(store, clock, definition=kept)
        assert store.definition("d7") == kept
        assert store.get("r1").digest == "d7"

    def test_the_first_source_of_a_digest_stays(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock, "a", definition=definition("d1", text="first", file="/a.yaml"))
        begin(store, clock, "b", definition=definition("d1", text="# comment\nfirst", file="/b.yaml"))
        assert store.definition("d1").text == "first"
        assert [store.get(run_id).file for run_id in "ab"] == ["/a.yaml", "/b.yaml"]

    def test_a_missing_definition_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound, match="no such definition: d9"):
            store.definition("d9")

    @pytest.mark.parametrize(
        "ask",
        [
            lambda store: store.get("nobody"),
            lambda store: store.journal("nobody"),
            lambda store: store.notes("nobody"),
            lambda store: store.cancel_requested("nobody"),
            lambda store: store.claim("nobody", owner="a", holder=HERE, ttl=TTL, now=1.0),
            lambda store: store.amend("nobody", revision=1, change=Change(now=1.0)),
            lambda store: store.request_cancel("nobody", Note(at=1.0, type="cancel"), now=1.0),
            lambda store: store.post("nobody", Note(at=1.0, type="word"), after=0, now=1.0),
        ],
        ids=["get", "journal", "notes", "cancel_requested", "claim", "amend", "request_cancel", "post"],
    )
    def test_a_run_that_never_was_is_not_found(self, store: Store, ask: Callable[[Store], object]) -> None:
        with pytest.raises(NotFound, match=re.escape("no such run: nobody")):
            ask(store)

    def test_what_was_handed_out_never_changes(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock, labels=("a",))
        run, copy = store.get("r1"), msgspec.json.encode(store.get("r1"))
        store.commit(lease, change(clock, step="later"))
        assert msgspec.json.encode(run) == copy
        assert replace(run, step="later") != run

    def test_a_closed_store_refuses_everything_and_closes_twice(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.close()
        store.close()
        with pytest.raises(StoreUnavailable, match="the store cannot be used: it is closed"):
            store.get("r1")
        with pytest.raises(StoreUnavailable):
            store.commit(lease, change(clock))
        with pytest.raises(StoreUnavailable):
            begin(store, clock, "r2")
