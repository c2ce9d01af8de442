"""The memory store keeps the contract of a store, and says that it shares nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tramai.errors import ConfigurationError, NotFound, StoreUnavailable
from tramai.store import Store
from tramai.stores import open_store
from tramai.stores.memory import Memory
from tramai.testing._store_given import begin
from tramai.testing.clock import FakeClock
from tramai.testing.store_contract import StoreContract


class TestMemory(StoreContract):
    def make_store(self, folder: Path) -> Store:
        return Memory()


def test_two_memory_stores_share_nothing() -> None:
    one, other = open_store("memory:"), open_store("memory:")
    begin(one, FakeClock())
    with pytest.raises(NotFound):
        other.get("r1")


def test_memory_has_no_place() -> None:
    with pytest.raises(ConfigurationError, match="memory: takes no place"):
        open_store("memory:somewhere")


def test_a_sealed_store_takes_no_run() -> None:
    store = Memory(url="sqlite:nowhere", sealed=True)
    assert (store.url, store.page(limit=1)) == ("sqlite:nowhere", ((), None))
    with pytest.raises(StoreUnavailable, match="opened for reading"):
        begin(store, FakeClock())


@pytest.mark.parametrize("url", ["postgre:x", "nonsense", "", ":", "_rules:", "../x:", "sqlite"])
def test_a_scheme_nobody_knows_is_refused_with_those_that_are(url: str) -> None:
    with pytest.raises(ConfigurationError, match="no store goes by") as caught:
        open_store(url)
    assert caught.value.hint is not None
    assert {"memory:", "sqlite:"} <= set(caught.value.hint.removeprefix("known stores: ").split(", "))
    assert caught.value.exit_status == 3
