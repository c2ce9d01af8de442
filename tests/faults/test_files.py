"""What stands where a store of plain files writes: a file of somebody else, and the rest of a write broken off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tramai.stores import open_store
from tramai.stores._files import Folder
from tramai.testing._store_given import begin, change, claim, done, everything, expire
from tramai.testing.clock import FakeClock


def test_a_file_of_somebody_else_is_not_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guesses the random name of a new file, and links another one there, does not get it overwritten."""
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(os, "urandom", lambda count: b"\1" * count)
    os.link(victim, tmp_path / "runs" / f".{'01' * 8}.part")
    with Folder.at(str(tmp_path / "runs")) as folder, pytest.raises(FileExistsError):
        folder.replace("journal", b"ours")
    assert victim.read_text() == "theirs"
    assert not (tmp_path / "runs" / "journal").exists()


def test_a_long_entry_that_was_torn_leaves_nothing_behind_a_short_one(tmp_path: Path) -> None:
    """The next entry is written where the torn one began, and is shorter: no rest of it may stand behind."""
    store, clock = open_store(f"file:{tmp_path}/runs"), FakeClock()
    lease = begin(store, clock)
    journal = tmp_path / "runs" / "r1" / "journal"
    sound = journal.read_bytes()
    store.commit(lease, change(clock, done(1, value='"' + "v" * 20_000 + '"')))
    torn = journal.read_bytes()[: len(sound) + 10_000]
    store.close()
    journal.write_bytes(torn)
    (journal.parent / "head").unlink()  # the torn entry was never acknowledged
    store = open_store(f"file:{tmp_path}/runs")
    expire(clock)
    _, lease = claim(store, clock)
    store.commit(lease, change(clock, done(1, value='"short"')))
    before = everything(store)
    store.close()
    assert b"vvv" not in journal.read_bytes()
    other = open_store(f"file:{tmp_path}/runs")
    assert everything(other) == before
    other.close()
