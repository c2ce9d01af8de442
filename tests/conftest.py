"""What all tests may ask for: a PostgreSQL server, started when the first test wants it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from .postgres import Database, new_server

# Under `nohup`, or behind a script's `&`, these are ignored, and children are born so: a program that is told to ignore
# a signal does ignore it. What the tests send has to arrive, however they were started.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL if _number != signal.SIGINT else signal.default_int_handler)


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
