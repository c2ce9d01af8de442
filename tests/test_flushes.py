"""How often a run waits for the disk: system calls of the real command, counted by strace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLUSHES = ("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs")
ROW = re.compile(rf"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(?:{'|'.join(FLUSHES)})$", re.M)


def traced(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TRAMAI_")},
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    traced = ["strace", "-f", "-c", "-o", "flushes.txt", "-e", f"trace={','.join(FLUSHES)}", *arguments]
    return subprocess.run(
        traced, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.fixture(autouse=True)
def _needs_strace(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("NOT CHECKED: how often a run flushes; install strace")
    probe = traced([sys.executable, "-c", "import os; os.fsync(os.open('probe', os.O_RDWR | os.O_CREAT))"], tmp_path)
    if probe.returncode or counted(tmp_path) != 1:
        pytest.skip(f"NOT CHECKED: how often a run flushes; strace does not work here: {probe.stderr.strip()[-200:]}")


def counted(folder: Path) -> int:
    return sum(map(int, ROW.findall((folder / "flushes.txt").read_text())))


def flushes(steps: str, folder: Path) -> int:
    """The flushes of one whole `tramai run`; the lease is too long to be renewed in between."""
    head = "tramai: 1\nname: flow\nlimits: {max_step_executions: 100000}\nstate: {last: {initial: 0}}\n"
    (folder / "flow.yaml").write_text(f"{head}steps:\n{steps}")
    done = traced([sys.executable, "-m", "tramai", "run", "-q", "--lease", "1h", "flow.yaml"], folder)
    assert done.returncode == 0, done.stderr
    return counted(folder)


def per_step(step: str, folder: Path, *, count: int = 8) -> float:
    """What N more steps cost, once the store is there."""
    one, some, more = (
        flushes("".join(step.format(index=index) for index in range(steps)), folder) for steps in (1, count, count * 2)
    )
    assert one > 0, "nothing was flushed at all"
    return (more - some) / count


REPLAYABLE = {
    "local": "  - id: s{index}\n    local: ${{{{ {index} + 1 }}}}\n",
    "shell that says so": "  - id: s{index}\n    shell: 'true'\n    replay: replayable\n",
    "local that saves": "  - id: s{index}\n    local: {index}\n    save: {{last: '${{{{ result }}}}'}}\n",
}
UNSAFE = {
    "shell": "  - id: s{index}\n    shell: 'true'\n",
    "shell with a key": "  - id: s{index}\n    shell: 'true'\n    replay: idempotent\n",
}


@pytest.mark.parametrize("step", REPLAYABLE.values(), ids=REPLAYABLE)
def test_a_step_that_may_run_again_costs_one_flush(step: str, tmp_path: Path) -> None:
    assert per_step(step, tmp_path) == 1


@pytest.mark.parametrize("step", UNSAFE.values(), ids=UNSAFE)
def test_a_step_with_an_effect_costs_two_flushes(step: str, tmp_path: Path) -> None:
    assert per_step(step, tmp_path) == 2


def test_a_step_that_is_skipped_waits_for_company(tmp_path: Path) -> None:
    assert per_step("  - id: s{index}\n    when: ${{{{ {index} < 0 }}}}\n    shell: 'true'\n", tmp_path) < 1


def test_the_items_of_a_fan_out_share_their_flushes(tmp_path: Path) -> None:
    def fan_out(items: int) -> int:
        listed = ", ".join(map(str, range(items)))
        do = "do: [{id: one, local: '${{ item }}'}]"
        return flushes(f"  - id: all\n    parallel:\n      items: [{listed}]\n      {do}\n", tmp_path)

    fan_out(1)  # makes the store
    items = 1000
    assert fan_out(items * 2) - fan_out(items) <= items / 16
