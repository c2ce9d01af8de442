"""Files that somebody else put where one of the store's would be made: they are never written into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tramai.stores._files import Folder


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
