"""Calls at one moment, behind a start barrier: on threads, or in processes that share a store."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ..errors import TramaiError
from ._store_given import Opener

PATIENCE = 120.0
"""Seconds after which something is taken to hang."""

_SPAWN = multiprocessing.get_context("spawn")


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Run the calls at one moment, each on its thread; what each gave or raised, in order."""
    barrier = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def run(place: int, call: Callable[[], object]) -> None:
        barrier.wait(PATIENCE)
        try:
            answers[place] = call()
        except TramaiError as error:
            answers[place] = error

    threads = [threading.Thread(target=run, args=(place, call)) for place, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return answers


def in_processes(opener: Opener, work: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[tuple[str, Any]]:
    """Run `work(store, *call)` in a process for each call, at one moment; ("won", answer) or (error's name, text)."""
    barrier = _SPAWN.Barrier(len(calls))
    started = []
    for call in calls:
        here, there = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_child, args=(opener, work, call, barrier, there))
        process.start()
        there.close()
        started.append((process, here))
    answers = []
    for _, pipe in started:
        assert pipe.poll(PATIENCE), "a process did not answer"
        answers.append(pipe.recv())
    for process, pipe in started:
        pipe.close()
        process.join(PATIENCE)
        process.close()
    return answers


@contextmanager
def running(
    opener: Opener, work: Callable[..., Any], call: tuple[Any, ...]
) -> Iterator[tuple[BaseProcess, Connection]]:
    """A process that does `work(store, *call, pipe)`; ended afterwards."""
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_child_with_pipe, args=(opener, work, call, there))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join(PATIENCE)
        process.close()
        here.close()


def _child(opener: Opener, work: Callable[..., Any], call: tuple[Any, ...], barrier: Any, pipe: Connection) -> None:
    store = opener()
    barrier.wait(PATIENCE)
    try:
        answer = ("won", work(store, *call))
    except TramaiError as error:
        answer = (type(error).__name__, error.message)
    store.close()
    pipe.send(answer)
    # To end now would be the death of a holder, whom another that is still asking may then rightly replace.
    with suppress(EOFError):
        pipe.recv()


def _child_with_pipe(opener: Opener, work: Callable[..., Any], call: tuple[Any, ...], pipe: Connection) -> None:
    work(opener(), *call, pipe)
