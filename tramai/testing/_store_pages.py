"""Looking runs up: pages, filters, and the ends of ids."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ..errors import UsageError
from ..store import Status, Store
from ._store_given import Given, begin, change, definition
from .clock import FakeClock


class Pages(Given):
    """Newest first, by cursor; a filter never changes the order."""

    def test_an_empty_store_has_an_empty_page(self, store: Store) -> None:
        assert store.page(limit=10) == ((), None)
        assert store.match("x") == ()
        assert tuple(store.faults()) == ()

    def test_the_newest_comes_first_and_ties_go_by_id(self, store: Store, clock: FakeClock) -> None:
        for run_id, created in (("b", 2.0), ("d", 1.0), ("a", 2.0), ("c", 3.5), ("é", 2.0), ("B", 2.0)):
            begin(store, clock, run_id, created=created)
        assert _ids(store, limit=10) == ["c", "é", "b", "a", "B", "d"]

    def test_a_page_shows_runs_as_they_are(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, step="x", outputs='"' + "o" * 9000 + '"'))
        assert store.page(limit=1)[0] == (store.get("r1"),)

    @pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
    def test_cursors_lead_through_all_runs_once(self, store: Store, clock: FakeClock, limit: int) -> None:
        for number in range(7):
            begin(store, clock, f"r{number}", created=float(number // 2))
        seen, cursor = [], None
        for _ in range(8):
            page, cursor = store.page(limit=limit, after=cursor)
            seen += [run.run_id for run in page]
            if cursor is None:
                break
            assert len(page) == limit
            begin(store, clock, f"new{len(seen)}", created=100.0 + len(seen))
        assert seen == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]

    def test_a_text_that_is_no_cursor_is_refused(self, store: Store) -> None:
        for text in ("nonsense", "", "\u00e9", "W10", "WzEsMl0"):
            with pytest.raises(UsageError):
                store.page(limit=1, after=text)

    @pytest.mark.parametrize("limit", [0, -1, -50])
    def test_a_page_of_nothing_is_a_callers_mistake(self, store: Store, clock: FakeClock, limit: int) -> None:
        begin(store, clock)
        with pytest.raises(ValueError):
            store.page(limit=limit)

    def test_filters_combine(self, store: Store, clock: FakeClock) -> None:
        for number, (name, label, status) in enumerate(
            itertools.product(("x", "y"), (("red",), ("red", "blue"), ()), (None, Status.FAILED))
        ):
            run_id = f"{name}-{'+'.join(label)}-{status}-{number:02}"
            kept = definition(f"d{name}", name=name)
            lease = begin(store, clock, run_id, definition=kept, labels=label, created=float(number))
            if status:
                store.commit(lease, change(clock, status=status, release=True))
        everyone = store.page(limit=50)[0]
        options: list[dict[str, Any]] = [
            dict(zip(("workflow", "label", "status"), values, strict=True))
            for values in itertools.product((None, "x", "z"), (None, "red", "blue", "r"), (None, *Status))
        ]
        for option in options:
            wanted = [
                run.run_id
                for run in everyone
                if option["workflow"] in (None, run.workflow)
                and option["status"] in (None, run.status)
                and (option["label"] is None or option["label"] in run.labels)
            ]
            assert _ids(store, limit=50, **option) == wanted
            assert _walk(store, **option) == wanted

    def test_filters_follow_a_run_as_it_changes(self, store: Store, clock: FakeClock) -> None:
        lease = begin(store, clock)
        store.commit(lease, change(clock, status=Status.WAITING))
        assert _ids(store, limit=5, status=Status.WAITING) == ["r1"]
        assert _ids(store, limit=5, status=Status.RUNNING) == []
        new = definition("d2", name="renamed")
        store.commit(lease, change(clock, definition=new, status=Status.FAILED))
        assert _ids(store, limit=5, workflow="renamed", status=Status.FAILED) == ["r1"]

    def test_a_label_given_twice_shows_a_run_once(self, store: Store, clock: FakeClock) -> None:
        begin(store, clock, labels=("a", "a"))
        assert _ids(store, limit=5, label="a") == ["r1"]
        assert store.get("r1").labels == ("a", "a")

    def test_ids_are_found_by_their_end(self, store: Store, clock: FakeClock) -> None:
        for run_id in ("018f-abc", "018f-xbc", "abc-018f", "ABC", "a%c", "a_c", "é"):
            begin(store, clock, run_id)
        assert sorted(store.match("bc")) == ["018f-abc", "018f-xbc"]
        assert store.match("-abc") == ("018f-abc",)
        assert store.match("018f-abc") == ("018f-abc",)
        assert store.match("x018f-abc") == ()
        assert store.match("%c") == ("a%c",)
        assert store.match("_c") == ("a_c",)
        assert store.match("BC") == ("ABC",)
        assert store.match("é") == ("é",)
        assert len(store.match("c", limit=2)) == 2
        assert len(store.match("c")) == 4


def _ids(store: Store, **options: Any) -> list[str]:
    return [run.run_id for run in store.page(**options)[0]]


def _walk(store: Store, **options: Any) -> list[str]:
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = store.page(limit=2, after=cursor, **options)
        seen += [run.run_id for run in page]
        if cursor is None:
            return seen
