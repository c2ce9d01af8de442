"""What all tests may ask for: a PostgreSQL server, started when the first test wants it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .postgres import Database, new_server


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
