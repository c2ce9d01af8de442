"""Those who use the store from outside while it is harmed: they start runs, decide at gates, resolve what blocks."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tramai import carrying, deciding, recovery
from tramai.clock import SystemClock
from tramai.codec import Json
from tramai.errors import TramaiError
from tramai.plan import Plan
from tramai.results import Options
from tramai.store import Status
from tramai.stores import open_store

from .flows import FLOWS

_BREATH = 0.3
_BRIEF = ("sums", "dozes", "sums")
"""Once more: a slot carries several of these side by side, and they pass by quickly."""


class People:
    """Three who work side by side until they are told to stop, each over a connection of their own."""

    def __init__(self, url: str, folder: Path, plans: dict[str, Plan], *, runs: int, seconds: float, seed: int) -> None:
        self._url = url
        self._folder = folder
        self._plans = plans
        self._runs = runs
        self._seconds = seconds
        self._seed = seed
        self._over = threading.Event()
        self.acknowledged: dict[str, str] = {}
        """By start key: the runs that the store has said it has."""
        self.unanswered: set[int] = set()
        """Gates that nobody decides."""
        self.did: Counter[str] = Counter()
        self.trouble: list[BaseException] = []
        work = (self._start, self._decide, self._resolve)
        self._threads = [threading.Thread(target=self._safely, args=(one,), daemon=True) for one in work]

    def begin(self) -> None:
        """Start to work."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop, and hear of what went wrong."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)
        if self.trouble:
            raise self.trouble[0]

    def _safely(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # told in `end`
            self.trouble.append(error)

    @property
    def all_started(self) -> bool:
        """Whether every run has been made."""
        return len(self.acknowledged) >= self._runs

    def _start(self) -> None:
        """Make runs, evenly over the time; what is not acknowledged is asked for again with the same key."""
        chance, names = random.Random(self._seed + 1), [*(name for name in FLOWS if name != "inner"), *_BRIEF]
        began, place = time.monotonic(), {"effects": self._folder / "effects", "program": self._folder / "effect.sh"}
        with contextlib.closing(open_store(self._url)) as store:
            for number in range(self._runs):
                if self._over.wait(max(began + self._seconds * number / self._runs - time.monotonic(), 0.0)):
                    return
                name = names[number % len(names)]
                inputs: dict[str, Json] = {"n": number % 11, "pause": f"{chance.choice((0.02, 0.1, 0.3, 1.0)):g}"}
                inputs |= {key: str(path) for key, path in place.items()}
                options = Options(start_key=f"chaos-{number}", cwd=str(self._folder), priority=chance.randint(0, 3))
                while not self._over.is_set():
                    try:
                        run = carrying.enqueue(self._plans[name], inputs, store=store, options=options)
                    except TramaiError:
                        self.did["starts that had to be repeated"] += 1
                        time.sleep(_BREATH)
                        continue
                    self.acknowledged[f"chaos-{number}"] = run.run_id
                    break

    def _decide(self) -> None:
        """Say yes at gates; every tenth is left to wait for ever."""
        with contextlib.closing(open_store(self._url)) as store:
            while not self._over.wait(_BREATH):
                try:
                    waiting = store.page(limit=200, status=Status.WAITING)[0]
                except TramaiError:
                    continue
                for run in waiting:
                    if run.start_key is not None and int(run.start_key.rpartition("-")[2]) % 10 == 0:
                        continue
                    with contextlib.suppress(TramaiError):
                        deciding.decide(store, run.run_id, None, decision="approved", by="ann", clock=SystemClock())
                        self.did["decided"] += 1

    def _resolve(self) -> None:
        """Look after runs that are blocked: two of three are tried again, the others stay."""
        chance, left = random.Random(self._seed + 2), set[str]()
        with contextlib.closing(open_store(self._url)) as store:
            while not self._over.wait(_BREATH * 3):
                try:
                    blocked = store.page(limit=200, status=Status.BLOCKED)[0]
                except TramaiError:
                    continue
                for run in blocked:
                    if run.run_id in left:
                        continue
                    if chance.random() < 1 / 3:
                        left.add(run.run_id)
                        continue
                    with contextlib.suppress(TramaiError):
                        for record in recovery.unknown_attempts(store.journal(run.run_id)):
                            run = recovery.resolve(
                                store, run, record.path, as_="retry", by="ann", comment="looked", clock=SystemClock()
                            )
                            self.did["resolved"] += 1
