"""A random walk beside a model: whatever is done, in whatever order, the store answers as the memory store does."""

# ruff: noqa: S311 (the names of the tests are the sentences; the chance is seeded, and guards nothing)

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import TramaiError
from ..store import Change, Group, Lease, Mark, NewRun, Note, Run, Status, Store
from ..stores.memory import Memory
from ._store_given import HERE as ALIVE
from ._store_given import TTL, Given, dead_holder, definition, new_run, record
from .clock import FakeClock

IDS = ("a", "b", "c")
SEEDS = range(32)
ACTIONS = 32


class Walk(Given):
    """32 seeds of 32 actions."""

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_random_walk_agrees_with_the_model(self, store: Store, clock: FakeClock, seed: int) -> None:
        walk = _Walk(store, clock, random.Random(seed))
        for _ in range(ACTIONS):
            walk.step()
            walk.compare()


class _Walk:
    """Does the same to the store and to the model; leases are kept in pairs, for their tokens differ."""

    def __init__(self, store: Store, clock: FakeClock, chance: random.Random) -> None:
        self.store, self.model = store, Memory()
        self.clock, self.chance = clock, chance
        self.leases: list[tuple[Lease, Lease]] = []
        self.made = 0

    def step(self) -> None:
        beside = (self.amend, self.cancel, self.post)
        actions = (self.create, self.claim, self.enter, self.renew, self.release, self.commit, *beside, self.wait)
        weights = (2, 4, 3, 2, 2, 9, 2, 1, 2, 3)
        self.chance.choices(actions, weights)[0]()

    def both(self, call: Callable[[Store, int], Any]) -> Any:
        """Call both; they must give the like, or raise the same. The pair of answers, or None when both raised."""
        answers = [_outcome(call, store, place) for place, store in enumerate((self.store, self.model))]
        assert _plain(answers[0]) == _plain(answers[1])
        return None if isinstance(answers[0], tuple) and answers[0][:1] == ("raised",) else answers

    def compare(self) -> None:
        for run_id in IDS:
            self.both(lambda store, _, run_id=run_id: store.get(run_id))  # type: ignore[misc]
            self.both(lambda store, _, run_id=run_id: store.journal(run_id))  # type: ignore[misc]
            self.both(lambda store, _, run_id=run_id: store.notes(run_id))  # type: ignore[misc]
        self.both(lambda store, _: store.page(limit=2))
        self.both(lambda store, _: store.page(limit=9, status=Status.RUNNING))

    def create(self) -> None:
        new = self.new()
        options: dict[str, Any] = {"owner": "o", "holder": self.holder(), "ttl": TTL, "now": self.clock.now()}
        answers = self.both(lambda store, _: store.create(new, **options))
        if answers and answers[0][1] is not None:
            self.leases.append((answers[0][1], answers[1][1]))

    def new(self) -> NewRun:
        self.made += 1
        key = self.chance.choice((None, None, "key"))
        group = self.chance.choice((None, None, Group("g"), Group("g", 2)))
        return new_run(self.chance.choice(IDS), start_key=key, created=float(self.chance.randrange(3)), group=group)

    def claim(self) -> None:
        run_id, holder = self.chance.choice(IDS), self.holder()
        now = self.clock.now()
        answers = self.both(lambda store, _: store.claim(run_id, owner="p", holder=holder, ttl=TTL, now=now))
        if answers:
            self.leases.append((answers[0][1], answers[1][1]))

    def enter(self) -> None:
        pair, within = self.lease(), self.chance.choice(((), (), IDS[:1]))
        if pair:
            self.both(lambda store, place: store.enter(pair[place], within=within, now=self.clock.now()))

    def renew(self) -> None:
        pair, ttl = self.lease(), self.chance.choice((1.0, TTL, 50.0))
        if pair:
            self.both(lambda store, place: store.renew(pair[place], ttl=ttl, now=self.clock.now()))

    def release(self) -> None:
        pair = self.lease()
        if pair:
            self.both(lambda store, place: store.release(pair[place], now=self.clock.now()))

    def commit(self) -> None:
        pair = self.lease()
        if pair:
            change = self.change(pair[1].run_id)
            self.both(lambda store, place: store.commit(pair[place], change))

    def amend(self) -> None:
        run_id = self.chance.choice(IDS)
        change, off = self.change(run_id), self.chance.choice((0, 0, 1))
        revision = self.revision(run_id) - off
        self.both(lambda store, _: store.amend(run_id, revision=revision, change=change))

    def cancel(self) -> None:
        run_id, note = self.chance.choice(IDS), Note(at=1.0, type="cancel")
        self.both(lambda store, _: store.request_cancel(run_id, note, now=self.clock.now()))

    def post(self) -> None:
        run_id, note = self.chance.choice(IDS), Note(at=1.0, type="word", by="p")
        off, due = self.chance.choice((0, 0, 1)), self.chance.random() < 0.5
        try:
            after = len(self.model.notes(run_id)) + off
        except TramaiError:
            after = off
        self.both(lambda store, _: store.post(run_id, note, after=after, due=due, now=self.clock.now()))

    def wait(self) -> None:
        self.clock.advance(self.chance.choice((0.5, TTL - 0.5, TTL)))

    def lease(self) -> tuple[Lease, Lease] | None:
        recent = self.leases[-4:]
        return self.chance.choice(recent) if recent else None

    def holder(self) -> Any:
        return self.chance.choice((ALIVE, ALIVE, ALIVE, dead_holder()))

    def revision(self, run_id: str) -> int:
        known = [run for run in self.model.page(limit=9)[0] if run.run_id == run_id]
        return known[0].revision if known else 1

    def change(self, run_id: str) -> Change:
        chance = self.chance
        known = [run for run in self.model.page(limit=9)[0] if run.run_id == run_id]
        last = len(self.model.journal(run_id)) if known else 0
        wrong = chance.choice((0, 0, 0, 0, 1, -1))
        count = chance.randrange(4)
        records = tuple(
            record(
                last + place + 1 + wrong,
                f"p{chance.randrange(12)}",
                chance.choice((Mark.STARTED, Mark.COMPLETED, Mark.FAILED)),
                value=chance.choice((None, "1", '"' + "v" * 70_000 + '"')),
            )
            for place in range(count)
        )
        fields: dict[str, Any] = {}
        if chance.random() < 0.4:
            usual = (Status.RUNNING, Status.SLEEPING, Status.WAITING, Status.FAILED)
            fields["status"] = chance.choice((*usual, *usual, Status.COMPLETED))
        if chance.random() < 0.3:
            fields["wake_at"] = chance.choice((None, 5.0))
        if chance.random() < 0.3:
            fields["error"] = chance.choice((None, '"' + "e" * 2000 + '"'))
        if chance.random() < 0.2:
            fields["definition"] = definition(chance.choice(("d1", "d2")), name=chance.choice(("wf", "wf2")))
        notes = (Note(at=2.0, type="n"),) * chance.randrange(2)
        return Change(
            now=self.clock.now(), records=records, notes=notes, release=chance.random() < 0.1, step="s", **fields
        )


def _outcome(call: Callable[[Store, int], Any], store: Store, place: int) -> Any:
    try:
        return call(store, place)
    except TramaiError as error:
        return ("raised", type(error).__name__, error.message)


def _plain(answer: Any) -> Any:
    """An answer without what chance made: tokens and generations."""
    if isinstance(answer, Run):
        return replace(answer, generation="", lease=_plain(answer.lease))
    if isinstance(answer, Lease):
        return replace(answer, token="")
    if isinstance(answer, tuple):
        return tuple(_plain(part) for part in answer)
    return answer
