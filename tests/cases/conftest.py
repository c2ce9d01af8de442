"""The cases run where the command line's own tests run: an empty folder, and no settings from outside."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import finished, place, start, tramai

from .servers import Route, Server

__all__ = ["finished", "place", "serve", "start", "tramai"]


@pytest.fixture
def serve() -> Iterator[Callable[[Route], Server]]:
    servers: list[Server] = []

    def start(route: Route) -> Server:
        servers.append(Server(route))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
