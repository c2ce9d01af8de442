"""What all tests may ask for: a PostgreSQL server, started when the first test wants it; and which tests are sweeps."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from .postgres import Database, new_server, roomy_memory

# Under `nohup`, or behind a script's `&`, these are ignored, and children are born so: a program that is told to ignore
# a signal does ignore it. What the tests send has to arrive, however they were started.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL if _number != signal.SIGINT else signal.default_int_handler)


# Hundreds of tests start the command line: it need not be compiled each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is tested of files is what is asked of the system, and that is the same in memory, without a disk to wait for.
if folder := roomy_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)

_SWEPT_FILES = re.compile(
    r"tests/(faults|crash)/|tests/chaos/test_(chaos|sleepers)|tests/test_(flushes|many_\w+|\w+_faults|without_proc)\.py|"
    r"tests/test_(canary|no_process_left|scheduler_processes)\.py|tests/cli/test_(hostile_everything|worker_retries)\.py"
)
_SWEPT_TESTS = re.compile(r"_processes_|_twenty_resumes_|_random_walk_|_in_a_swarm_|_both_refuse_the_same_data")
"""Kills, faults and races of processes at many points, and every verb at once: minutes of them, that few changes can
have a bearing on."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the sweeps, so that `pytest` leaves them out and `pytest -m sweep` runs them."""
    for item in items:
        if _SWEPT_FILES.search(item.nodeid) or _SWEPT_TESTS.search(item.nodeid):
            item.add_marker("sweep")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Who asks for the sweeps waits for no file that has none; those of the contract of stores are inherited."""
    if not config.getoption("markexpr").startswith("sweep") or not collection_path.name.startswith("test_"):
        return None
    if collection_path.suffix != ".py" or _SWEPT_FILES.search(collection_path.as_posix()):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if re.search(r"StoreContract|mark\.sweep", text) or _SWEPT_TESTS.search(text) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are objects that stay to the end: they are made, and afterwards left, without a collector."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where nobody asks for another way: each worker has a block of tests, and takes of another's when it has no more.

    So what the tests of a module share is made by one worker, and not by all.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A server of this session (of this worker, where there are several), and a schema for each test."""
    server = new_server()
    try:
        database = Database(server)
        yield database
        database.close()
    finally:
        server.remove()
