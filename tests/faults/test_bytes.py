"""What a step costs: bytes written and flushes, beside a small state and a large one.

`python -m tests.faults.test_bytes` prints the table; with `--whole` also what writes many gigabytes.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tramai import build, engine, plan
from tramai.store import Store
from tramai.stores import open_store

from .support import PLAIN, ROOT, environment, url_of

KB, MB = 1 << 10, 1 << 20
SIZES = (KB, 64 * KB, MB, 10 * MB)
STEPS = (10, 100, 1000)
WHOLE_FILE = "markdown"
"""Each of its writes is a new file with all of the run, as its page says."""

Meter = Callable[[], int]


class Metered:
    """A store that notes what each commit has written."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store = store
        self._meter = meter
        self.costs: list[int] = []

    def commit(self, *given: Any) -> int:
        before = self._meter()
        revision = self._store.commit(*given)
        self.costs.append(self._meter() - before)
        return revision

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def written() -> int:
    """Bytes that this process has given to the system to write."""
    found = re.search(r"^wchar: (\d+)$", Path("/proc/self/io").read_text(), re.M)
    assert found is not None
    return int(found[1])


@contextlib.contextmanager
def meter(kind: str, request: pytest.FixtureRequest) -> Iterator[Meter]:
    """What measures a store: its writes, or what a server adds to its log."""
    if kind != "postgres":
        yield written
        return
    import psycopg

    with psycopg.connect(request.getfixturevalue("database").server.url, autocommit=True) as server:
        query = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"

        def log() -> int:
            row = server.execute(query).fetchone()
            assert row is not None
            return int(row[0])

        yield log


def costs(url: str, size: int, steps: int, meter: Meter) -> list[int]:
    """What the commits of so many small steps wrote, in a run whose state is so large."""
    made = plan.of(
        build.build(
            {
                "tramai": 1,
                "name": "steps",
                "inputs": {"large": {"type": "string"}},
                "limits": {"max_step_executions": steps + 2},
                "state": {"large": {"initial": ""}, "last": {"initial": 0}},
                "steps": [
                    {"id": "large", "local": "${{ inputs.large }}", "save": {"large": "${{ result }}"}},
                    *({"id": f"s{n}", "local": n, "save": {"last": "${{ result }}"}} for n in range(steps + 1)),
                ],
            }
        )
    )
    store = open_store(url)
    metered: Any = Metered(store, meter)
    result = engine.run(made, {"large": "v" * size}, store=metered, options=engine.Options(lease=3600.0))
    store.close()
    assert result.status == "completed"
    assert len(metered.costs) == steps + 2  # the first has the large value, the last step goes with the end
    return metered.costs[1:-1]


def mean(kind: str, folder: Path, size: int, steps: int, request: pytest.FixtureRequest) -> float:
    folder = folder / f"{size}.{steps}"
    folder.mkdir()
    with meter(kind, request) as found:
        return statistics.fmean(costs(url_of(kind, folder, request), size, steps, found))


def independent(kind: str, folder: Path, sizes: tuple[int, ...], steps: int, request: pytest.FixtureRequest) -> None:
    small, *larger = (mean(kind, folder, size, steps, request) for size in sizes)
    assert 0 < small < 40 * KB
    assert max(larger) <= small * 1.2


@pytest.mark.parametrize("kind", ["sqlite", "file", "postgres"])
def test_a_step_beside_a_large_state_writes_no_more_than_beside_a_small_one(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    independent(kind, tmp_path, (KB, MB), 10, request)


@pytest.mark.slow
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kind", ["sqlite", "file", "postgres"])
def test_no_size_of_the_state_makes_a_step_write_more(
    kind: str, steps: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    independent(kind, tmp_path, SIZES, steps, request)


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_the_hundredth_step_writes_as_much_as_the_first(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = costs(url_of(kind, tmp_path, request), KB, 100, written)
    assert statistics.median(found[-20:]) <= statistics.median(found[:20]) * 1.2


def test_a_markdown_step_writes_the_whole_file_and_no_more(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = costs(url_of(WHOLE_FILE, tmp_path, request), 64 * KB, 20, written)
    whole = next(tmp_path.rglob("checkpoint.md")).stat().st_size
    assert 0.9 * whole < found[-1] < 1.1 * whole


# Flushes.

FLUSHES = ("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs")
ROW = re.compile(rf"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(?:{'|'.join(FLUSHES)})$", re.M)
HEAD = "tramai: 1\nname: flow\nsteps:\n"
COSTS = {"sqlite": 1, "file": 1, "markdown": 2}


def flushes(url: str, steps: int, folder: Path) -> int:
    """The flushes of one whole run of so many steps; nothing renews its lease in between."""
    steps_ = "".join(f"  - id: s{n}\n    local: {n}\n" for n in range(steps))
    (folder / "flow.yaml").write_text(HEAD + steps_)
    command = [sys.executable, "-m", "tramai", "run", "-q", "--lease", "1h", "--store", url, "flow.yaml"]
    traced = ["strace", "-f", "-c", "-o", "flushes.txt", "-e", f"trace={','.join(FLUSHES)}", *command]
    ended = subprocess.run(
        traced,
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in ended.stderr.lower() or shutil.which("strace") is None:
        pytest.skip(f"NOT CHECKED: how often a step flushes; strace does not work here: {ended.stderr.strip()[-200:]}")
    assert ended.returncode == 0, ended.stderr
    return sum(map(int, ROW.findall((folder / "flushes.txt").read_text())))


def flushes_of_a_step(kind: str, folder: Path) -> float:
    few, many = (flushes(f"{kind}:{folder}/{kind}-{steps}", steps, folder) for steps in (4, 16))
    assert few > 0
    return (many - few) / 12


@pytest.mark.parametrize("kind", ["file", "markdown"])  # test_flushes.py has sqlite, test_postgres_store.py its sends
def test_a_step_flushes_once_or_twice(kind: str, tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("NOT CHECKED: how often a step flushes; install strace")
    assert flushes_of_a_step(kind, tmp_path) == COSTS[kind]


def main() -> None:
    """Print what a step writes on average, store by store, in bytes."""
    print("| store | steps |", " | ".join(f"{size // KB} KB" for size in SIZES), "|")
    for kind in PLAIN:
        for steps in STEPS:
            row = []
            for size in SIZES:
                if kind == WHOLE_FILE and size * steps > 200 * MB and "--whole" not in sys.argv:
                    row.append("–")
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    row.append(f"{statistics.fmean(costs(f'{kind}:{folder}/s', size, steps, written)):,.0f}")
            print(f"| {kind} | {steps} |", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
