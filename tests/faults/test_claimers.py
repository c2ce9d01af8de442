"""A hundred who take runs at one time: none is given out twice, nobody goes away empty, and the oldest go first."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .support import program, url_of

PROCESSES, RUNS = 100, 600


@pytest.mark.parametrize("kind", ["postgres", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_of_a_hundred_claimers_each_gets_some_and_none_gets_what_another_got(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    answer = program("tests.faults.claimers", url=url_of(kind, tmp_path, request), processes=PROCESSES, runs=RUNS)
    assert answer["errors"] == []
    runs = [run for run, _, _ in answer["taken"]]
    assert sorted(runs) == [f"r{number:05}" for number in range(RUNS)], "given out twice, or not at all"
    assert (answer["completed"], answer["fences"]) == (RUNS, [1])
    shares = Counter(owner for _, owner, _ in answer["taken"])
    assert len(shares) == PROCESSES, f"{PROCESSES - len(shares)} went away empty"
    assert max(shares.values()) <= RUNS / PROCESSES * 6, shares.most_common(3)
    late = {run: place - int(run[1:]) for place, run in enumerate(runs)}
    assert max(late.values()) <= PROCESSES * 2, f"left behind: {max(late, key=lambda run: late[run])}"
