"""A run that is killed at a system call of its store loses nothing it was told of and does nothing unsafe twice."""

from __future__ import annotations

import pytest

from . import kill_sweep

STORES = {"sqlite": "sqlite:{folder}/runs.db", "file": "file:{folder}/runs", "markdown": "markdown:{folder}/runs"}
STORES["postgres"] = ""


def url_of(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "postgres":
        return f"{request.getfixturevalue('database').server.url}?schema={{name}}"
    return STORES[kind]


@pytest.fixture(autouse=True)
def _needs_strace() -> None:
    reason = kill_sweep.unable()
    if reason is not None:
        pytest.skip(f"NOT CHECKED: kills inside the writes of a store; {reason}")


@pytest.mark.parametrize(("kind", "places"), [("sqlite", 2), ("file", 2), ("markdown", 1), ("postgres", 1)])
def test_a_run_killed_inside_a_write_goes_on(kind: str, places: int, request: pytest.FixtureRequest) -> None:
    figures = kill_sweep.sweep(url_of(kind, request), sample=places)
    assert figures.wrong == []
    assert figures.killed == figures.places == places


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["once", "and again"])
@pytest.mark.parametrize("kind", STORES)
def test_a_run_killed_at_any_call_of_its_store_goes_on(kind: str, again: bool, request: pytest.FixtureRequest) -> None:
    figures = kill_sweep.sweep(url_of(kind, request), again=again)
    print(f"{kind}: {figures}")
    assert figures.wrong == []
    assert figures.places > 40
    assert figures.killed >= figures.places
