"""The file store keeps the contract of a store."""

from __future__ import annotations

import functools
from pathlib import Path

from tramai.store import Store
from tramai.stores import open_store
from tramai.testing.store_contract import Opener, StoreContract


class TestFile(StoreContract):
    def make_store(self, folder: Path) -> Store:
        return open_store(f"file:{folder}/runs")

    def opener(self, store: Store) -> Opener:
        return functools.partial(open_store, store.url)
