"""D. Fan-out: one parallel step over 10,000 trivial items, against asyncio.gather with a semaphore.

python3 bench/d_fanout.py [rounds=7]
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lib
from lib import Report, flushes, have, in_turn, median, program, ratio, rounds_wanted, worker, workplace

SCRIPT = Path(__file__).name
ITEMS = 10_000
WINDOW = 32
BASE = "asyncio.gather + Semaphore(32)"
TRAMAI = "tramai, memory"


# What runs in the contenders' processes: CPU seconds per item.


def gather(folder: Path, items: int) -> float:
    async def one(turn: asyncio.Semaphore, item: int) -> int:
        async with turn:
            return item

    async def everything() -> list[int]:
        turn = asyncio.Semaphore(WINDOW)
        return await asyncio.gather(*(one(turn, item) for item in range(items)))

    began = lib.cpu()
    assert len(asyncio.run(everything())) == items
    return (lib.cpu() - began) / items


def memory(folder: Path, items: int) -> float:
    from tramai.stores.memory import Memory

    return _fan_out(Memory(), items)


def durable(folder: Path, items: int) -> float:
    from tramai.stores.sqlite import Sqlite

    return _fan_out(Sqlite(str(folder / "runs.db")), items)


def _fan_out(store: Any, items: int) -> float:
    from tramai import build, engine, plan

    for number in (100, items):  # the first is to warm up
        body = {"items": list(range(number)), "do": [{"id": "one", "local": "${{ item }}"}]}
        limits = {"max_step_executions": 100_000, "max_parallel_branches": WINDOW}
        steps = [{"id": "all", "parallel": body}]
        made = plan.of(build.build({"tramai": 1, "name": "bench", "limits": limits, "steps": steps}))
        made.definition()
        began = lib.cpu()
        result = engine.run(made, {}, store=store)
        spent = lib.cpu() - began
        assert result.status == "completed", result
    return spent / items


def langgraph(folder: Path, items: int) -> float:
    import operator
    from typing import Annotated, TypedDict

    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    State = TypedDict("State", {"n": int, "out": Annotated[list, operator.add]})  # noqa: UP013 - local names
    graph = StateGraph(State)
    graph.add_node("one", lambda state: {"out": [state["x"]]})
    graph.add_conditional_edges(START, lambda state: [Send("one", {"x": x}) for x in range(state["n"])], ["one"])
    graph.add_edge("one", END)
    app = graph.compile()
    began = lib.cpu()
    assert len(app.invoke({"n": items, "out": []}, {"max_concurrency": WINDOW})["out"]) == items
    return (lib.cpu() - began) / items


WORK: dict[str, Callable[..., float]] = {work.__name__: work for work in (gather, memory, durable, langgraph)}


def child(name: str, items: str) -> None:
    with workplace(disk=False) as folder:
        spent = WORK[name](folder, int(items))
    lib.emit(cpu=spent, peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# The measurements.

FLOW = """\
tramai: 1
name: fan
limits: {{max_step_executions: 100000}}
steps:
  - id: all
    parallel:
      items: [{rows}]
      do:
        - id: one
          local: ${{{{ item }}}}
"""


def counted() -> float:
    """Flushes for 10,000 durable items, by the whole command: what 2N items need more than N."""
    command = program("tramai", "tramai")
    with workplace(disk=False) as folder:
        counts = []
        for items in (1, ITEMS, ITEMS * 2):
            rows = ", ".join(map(str, range(items)))
            (folder / "flow.yaml").write_text(FLOW.format(rows=rows))
            counts.append(flushes([command, "run", "-q", "flow.yaml"], folder))
    return float(counts[2] - counts[1])


def main() -> None:
    report = Report("d_fanout", f"D. Fan-out over {ITEMS:,} items: CPU against {BASE}")
    contenders = {
        BASE: ("tramai", "gather", ITEMS),
        TRAMAI: ("tramai", "memory", ITEMS),
        "tramai, SQLite, each item durable": ("tramai", "durable", ITEMS),
    }
    if have("langgraph"):
        contenders["LangGraph Send, memory"] = ("langgraph", "langgraph", 1000)
    found = in_turn(rounds_wanted(7), contenders, lambda spec: worker(spec[0], SCRIPT, *spec[1:]))
    times = {label: ratio(samples, found[BASE]) for label, samples in found.items()}
    rows = [
        (label, contenders[label][2], median(samples) * 1e6, times[label], median(samples, "peak"))
        for label, samples in found.items()
    ]
    report.table(["contender", "items", "cpu us an item", "x gather", "peak MiB"], rows)
    synced = counted()
    report.table(["flushes, by strace", "in all", "items a flush"], [("tramai run", synced, ITEMS / synced)])
    report.goals(
        [
            ("CPU in memory against gather", 10.0, 2.0, times[TRAMAI]),
            (f"flushes for {ITEMS:,} durable items", ITEMS / 16, ITEMS / 32, synced),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        child(*sys.argv[2:])
    else:
        main()
