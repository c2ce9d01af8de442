"""Crowds: one of sixteen resumes wins, one of fifty starts with one key runs, and nobody hears of a locked file."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tramai.stores import _sqlite_connection
from tramai.stores.sqlite import Sqlite
from tramai.testing._store_given import begin, claim, expire
from tramai.testing.clock import FakeClock

from .support import SHARED, program, url_of

QUICK = 10.0
"""Seconds in which a loser must have been told, on a machine that does much else besides."""


def play(game: str, url: str, folder: Path, processes: int, rounds: int) -> Any:
    given = {"game": game, "url": url, "folder": str(folder), "processes": processes, "rounds": rounds}
    return program("tests.faults.racers", **given, timeout=300.0 + 10.0 * rounds)


def resume_at_once(kind: str, folder: Path, request: pytest.FixtureRequest, rounds: int) -> None:
    found = play("resume", url_of(kind, folder, request), folder, 16, rounds)
    assert found["violations"] == []
    assert found["kinds"] == {"completed": rounds, "LeaseHeld": 15 * rounds}
    assert found["slowest"] < QUICK


@pytest.mark.parametrize("kind", SHARED)
def test_of_sixteen_processes_that_resume_one_run_one_does(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    resume_at_once(kind, tmp_path, request, 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_of_sixteen_processes_one_resumes_two_hundred_times(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    resume_at_once(kind, tmp_path, request, 200)


def start_at_once(kind: str, folder: Path, request: pytest.FixtureRequest, processes: int, rounds: int) -> None:
    found = play("start", url_of(kind, folder, request), folder, processes, rounds)
    assert found["violations"] == []
    assert found["kinds"] == {"completed": rounds, "interrupted": (processes - 1) * rounds}


@pytest.mark.parametrize(("kind", "processes"), [("sqlite", 50), ("file", 16)])
def test_starts_with_one_key_make_one_run(
    kind: str, processes: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    start_at_once(kind, tmp_path, request, processes, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_fifty_starts_with_one_key_make_one_run_ten_times(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    start_at_once(kind, tmp_path, request, 50, 10)


def crowd(kind: str, folder: Path, request: pytest.FixtureRequest, runs: int) -> None:
    found = play("crowd", url_of(kind, folder, request), folder, 8, runs)
    assert found["errors"] == []
    assert (found["runs"], found["whole"]) == (8 * runs, 8 * runs)


def test_a_crowd_and_a_long_reader_share_one_sqlite_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    crowd("sqlite", tmp_path, request, 10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_eight_processes_make_fifty_runs_each(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    crowd(kind, tmp_path, request, 50)


def test_a_sqlite_write_keeps_others_out_from_its_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where SQLite is new enough that no lock beside the file makes writers take turns."""
    monkeypatch.setattr(_sqlite_connection, "NEEDS_TURNS", False)
    store, clock = Sqlite(str(tmp_path / "runs.db")), FakeClock()
    begin(store, clock)
    expire(clock)
    other = sqlite3.connect(tmp_path / "runs.db", timeout=0)
    look = store._header

    def meddled(run_id: str) -> Any:
        found = look(run_id)
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            other.execute("UPDATE head SET fence = fence")
        return found

    monkeypatch.setattr(store, "_header", meddled)
    with contextlib.closing(store), contextlib.closing(other):
        assert claim(store, clock)[1].fence == 2
