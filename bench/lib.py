"""What the measurements share: whole processes timed in turn, ratios pair by pair, flushes counted, one table.

The machine may be busy, so nothing here is believed alone: a figure is the median of the ratios of two neighbours in
one run, of CPU seconds rather than time passed, or a plain count of system calls.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ.get("TRAMAI_BENCH_DIR") or HERE.parent / ".bench").resolve()
MEMORY = Path("/dev/shm")
"""A folder without a disk under it: what is left is the engine's own cost."""

Sample = dict[str, Any]


# Contenders.


def program(contender: str, name: str = "python") -> str:
    """A program of a contender's virtual environment."""
    return str(HOME / contender / "bin" / name)


def have(contender: str) -> bool:
    return os.path.exists(program(contender))


def environment(folder: Path | str | None = None) -> dict[str, str]:
    """The environment without settings of Python's or tramai's own, and with caches in the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRAMAI_", "XDG_"))}
    if folder is not None:
        kept |= {"HOME": str(folder), "XDG_CACHE_HOME": f"{folder}/cache", "XDG_CONFIG_HOME": f"{folder}/config"}
    return kept


@contextmanager
def workplace(*, disk: bool) -> Iterator[Path]:
    """A folder that is gone afterwards: on the disk, or in memory where there is such a place."""
    base = HOME if disk or not MEMORY.is_dir() else MEMORY
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="tramai-bench-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# Measuring.


def timed(argv: Sequence[str], folder: Path) -> Sample:
    """CPU and wall seconds of a whole process and all its children."""
    with open(os.devnull, "r+b") as nothing:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv, stdin=nothing, stdout=nothing, stderr=nothing, cwd=folder, env=environment(folder)
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    sample: Sample = {"cpu": used.ru_utime + used.ru_stime, "wall": wall}
    if process.returncode:
        sample["error"] = f"exit status {process.returncode}"
    return sample


_SMALL_PARENT = """
import os, sys
nothing = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in (0, 1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
print(os.wait4(pid, 0)[2].ru_maxrss)
"""


def peak(argv: Sequence[str], folder: Path) -> float:
    """Peak memory of a process in MiB.

    The system counts the memory of the parent at the time of the fork too, so the parent is a bare interpreter,
    smaller than any contender.
    """
    path = shutil.which(argv[0]) or argv[0]
    small = [sys.executable, "-I", "-S", "-c", _SMALL_PARENT, path, *argv[1:]]
    done = subprocess.run(small, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def worker(contender: str, script: str, *arguments: object, timeout: float = 600) -> Sample:
    """What `script --worker arguments` prints under a contender's Python: one JSON object, its last line."""
    argv = [program(contender), str(HERE / script), "--worker", *map(str, arguments)]
    try:
        done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {timeout:g}s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    found: Sample = json.loads(lines[-1])
    return found


def in_turn(rounds: int, contenders: Mapping[str, Any], measure: Callable[[Any], Sample]) -> dict[str, list[Sample]]:
    """Every contender once, then again (A B C, A B C …), so that a busy minute hits all alike."""
    found: dict[str, list[Sample]] = {label: [] for label in contenders}
    broken: set[str] = set()
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for label, spec in contenders.items():
            if label in broken:
                continue
            sample = measure(spec)
            if "error" in sample:
                progress(f"{label}: {sample['error']}\n")
                broken.add(label)
                found[label] = []
                continue
            found[label].append(sample)
    progress("")
    return {label: samples for label, samples in found.items() if samples}


def median(samples: Sequence[Sample], key: str = "cpu") -> float:
    return statistics.median(sample[key] for sample in samples)


def ratio(samples: Sequence[Sample], base: Sequence[Sample], key: str = "cpu") -> float:
    """The median of the ratios of neighbours."""
    return statistics.median(ours[key] / theirs[key] for ours, theirs in zip(samples, base, strict=True))


def cpu() -> float:
    """CPU seconds of this process so far, all threads."""
    return time.process_time()


# Counting.

CALLS = ("fsync", "fdatasync", "sync_file_range", "msync")


def flushes(argv: Sequence[str], folder: Path) -> int:
    """How often a process and its children ask for data to be on the disk, counted by strace."""
    tracer = shutil.which("strace")
    if tracer is None:
        raise SystemExit("strace is missing: flushes cannot be counted")
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".strace") as summary:
        traced = [tracer, "-f", "-c", "-o", summary.name, "-e", f"trace={','.join(CALLS)}", *argv]
        done = subprocess.run(traced, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{argv}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        text = Path(summary.name).read_text()
    row = re.compile(rf"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(?:{'|'.join(CALLS)})$", re.M)
    return sum(int(count) for count in row.findall(text))


# Telling.


class Report:
    """One table on standard output, and the same numbers as JSON under `results/`."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.began_with_load = os.getloadavg()[0]
        self.rows: list[dict[str, Any]] = []
        print(f"{title}\n")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print contenders and their figures."""
        texts = [[columns[0], *columns[1:]], *([_text(cell) for cell in row] for row in rows)]
        _print(texts)
        self.rows += [dict(zip(columns, row, strict=True)) for row in rows]

    def goals(self, goals: Sequence[tuple[str, float, float | None, float]]) -> None:
        """Print what must hold, what is aimed at and what was reached; then write the results."""
        texts = [["goal", "must", "aim", "reached", ""]]
        kept = []
        for what, must, aim, reached in goals:
            verdict = "fails" if reached > must else "aim" if aim is not None and reached <= aim else "holds"
            texts.append([what, f"<= {_text(must)}", "-" if aim is None else _text(aim), _text(reached), verdict])
            kept.append({"goal": what, "must": must, "aim": aim, "reached": reached, "verdict": verdict})
        _print(texts)
        self._save({"rows": self.rows, "goals": kept})

    def _save(self, data: dict[str, Any]) -> None:
        folder = Path(os.environ.get("TRAMAI_BENCH_RESULTS") or HERE / "results")
        folder.mkdir(parents=True, exist_ok=True)
        loads = [round(self.began_with_load, 2), round(os.getloadavg()[0], 2)]
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = {"when": when, "python": sys.version.split()[0], "cpus": os.cpu_count(), "load": loads, **data}
        (folder / f"{self.name}.json").write_text(json.dumps(document, indent=1) + "\n")
        print(f"load {loads[0]} before, {loads[1]} after, {os.cpu_count()} CPUs")


def _print(texts: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[index]) for row in texts) for index in range(len(texts[0]))]
    for row in texts:
        first, *rest = (
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *rest]).rstrip())
    print()


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"
    return str(value)


def progress(text: str) -> None:
    """A line on the terminal that the next one replaces; nothing where nobody looks."""
    if text.endswith("\n") or sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else text)
        sys.stderr.flush()


def rounds_wanted(usual: int) -> int:
    """The number of rounds: the first argument, or as many as are usual."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else usual


def emit(**figures: Any) -> None:
    """A worker's answer."""
    print(json.dumps(figures), flush=True)
