"""C. Durable steps: what the engine adds to one INSERT and COMMIT, and how often it flushes.

    python3 bench/c_durable.py [rounds=7]

Everything but the counting of flushes runs in memory (/dev/shm), in a process of its own, over a fresh store; CPU
seconds are taken around the steps alone, after a small run that warms up.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lib
from lib import Report, flushes, have, in_turn, median, program, ratio, rounds_wanted, worker, workplace

SCRIPT = Path(__file__).name
BASE = "INSERT + COMMIT"
TRAMAI = "tramai"
STEPS = 2000
LONG = 10_000


# What runs in the contenders' processes: CPU seconds per step.


def insert(folder: Path, steps: int) -> float:
    database = sqlite3.connect(folder / "bare.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE step(run INT, seq INT, out TEXT, PRIMARY KEY(run, seq)) WITHOUT ROWID")
    execute = database.execute
    began = lib.cpu()
    for number in range(steps):
        execute("INSERT INTO step VALUES (1, ?, ?)", (number, "2"))
    return (lib.cpu() - began) / steps


def tramai(folder: Path, steps: int, *observers: Callable[[Any], None]) -> float:
    nodes = [{"id": f"s{number}", "local": "${{ 1 + 1 }}"} for number in range(steps)]
    return _run(folder, {"steps": nodes}, observers) / steps


def tramai_observed(folder: Path, steps: int) -> float:
    seen: list[Any] = []
    return tramai(folder, steps, seen.append)


def tramai_state(folder: Path, steps: int, size: int) -> float:
    """Steps that each save a small number, beside a text of that size in the state: the cost of the second half."""
    marks: list[float] = []

    def watch(event: Any) -> None:
        if type(event).__name__ == "StepFinished":
            marks.append(lib.cpu())

    save = {"count": "${{ result }}"}
    nodes: list[dict[str, Any]] = [{"id": "blob", "local": "x" * size, "save": {"blob": "${{ result }}"}}]
    nodes += [{"id": f"s{n}", "local": "${{ state.count + 1 }}", "save": save} for n in range(steps * 2)]
    _run(folder, {"state": {"count": {"initial": 0}, "blob": {"initial": ""}}, "steps": nodes}, [watch])
    return (marks[-1] - marks[steps]) / steps


def tramai_length(folder: Path, steps: int) -> tuple[float, float]:
    """Steps 100 to 600 of a long run, and its last 500: each span holds one checkpoint of the write-ahead log."""
    marks: list[float] = []

    def watch(event: Any) -> None:
        if type(event).__name__ == "StepFinished":
            marks.append(lib.cpu())

    nodes = [{"id": f"s{number}", "local": "${{ 1 + 1 }}"} for number in range(steps)]
    _run(folder, {"steps": nodes}, [watch])
    span = 500
    return (marks[100 + span] - marks[100]) / span, (marks[-1] - marks[-1 - span]) / span


def _run(folder: Path, body: dict[str, Any], observers: Any) -> float:
    from tramai import build, engine, plan
    from tramai.stores.sqlite import Sqlite

    head = {"tramai": 1, "name": "bench", "limits": {"max_step_executions": 100_000}}
    warm = {**head, "steps": [{"id": f"w{number}", "local": "${{ 1 + 1 }}"} for number in range(20)]}
    spent = 0.0
    for number, data in enumerate((warm, {**head, **body})):
        made = plan.of(build.build(data))
        made.definition()
        store = Sqlite(str(folder / f"{number}.db"))
        began = lib.cpu()
        result = engine.run(made, {}, store=store, observers=observers if number else ())
        spent = lib.cpu() - began
        assert result.status == "completed", result
        store.close()
    return spent


def burr(folder: Path, steps: int) -> float:
    from burr.core import ApplicationBuilder, action, default, expr
    from burr.core.persistence import SQLLitePersister

    @action(reads=["i"], writes=["i"])
    def step(state: Any) -> Any:
        return state.update(i=state["i"] + 1)

    @action(reads=["i"], writes=[])
    def end(state: Any) -> Any:
        return state

    kept = SQLLitePersister(str(folder / "burr.db"))
    kept.initialize()

    def carry(name: str, count: int) -> float:
        app = (
            ApplicationBuilder()
            .with_actions(step=step, end=end)
            .with_transitions(("step", "step", expr(f"i < {count}")), ("step", "end", default))
            .with_state(i=0)
            .with_entrypoint("step")
            .with_identifiers(app_id=name)
            .with_state_persister(kept)
            .build()
        )
        began = lib.cpu()
        app.run(halt_after=["end"])
        return lib.cpu() - began

    carry("warm", 3)
    return carry("measured", steps) / steps


def langgraph(folder: Path, steps: int) -> float:
    from typing import TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    State = TypedDict("State", {"i": int, "n": int})  # noqa: UP013 - a class would look for `int` in vain: see above
    graph = StateGraph(State)
    graph.add_node("step", lambda state: {"i": state["i"] + 1})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["i"] < state["n"] else END, ["step", END])
    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        app = graph.compile(checkpointer=saver)

        def carry(name: str, count: int) -> float:
            settings = {"configurable": {"thread_id": name}, "recursion_limit": count + 10}
            began = lib.cpu()
            app.invoke({"i": 0, "n": count}, settings, durability="sync")
            return lib.cpu() - began

        carry("warm", 3)
        return carry("measured", steps) / steps


WORK: dict[str, Callable[..., Any]] = {
    work.__name__: work for work in (insert, tramai, tramai_observed, tramai_state, tramai_length, burr, langgraph)
}


def child(name: str, *arguments: str) -> None:
    with workplace(disk=False) as folder:
        answer = WORK[name](folder, *map(int, arguments))
    if isinstance(answer, tuple):
        lib.emit(early=answer[0], late=answer[1])
    else:
        lib.emit(cpu=answer)


# The measurements.


def speed(report: Report, rounds: int) -> float:
    contenders = {BASE: ("tramai", "insert", STEPS), TRAMAI: ("tramai", "tramai", STEPS)}
    contenders["tramai, with an observer"] = ("tramai", "tramai_observed", STEPS)
    contenders |= {
        label: (venv, venv, 300)
        for label, venv in (("burr + SQLite", "burr"), ("LangGraph + SqliteSaver", "langgraph"))
        if have(venv)
    }
    found = in_turn(rounds, contenders, lambda spec: worker(spec[0], SCRIPT, *spec[1:]))
    times = {label: ratio(samples, found[BASE]) for label, samples in found.items()}
    rows = [(label, median(samples) * 1e6, times[label]) for label, samples in found.items()]
    report.table(["a durable step, no disk", "cpu us", "x INSERT + COMMIT"], rows)
    return times[TRAMAI]


def growth(report: Report, rounds: int) -> tuple[float, float]:
    sizes = {f"state of {size:,} bytes": ("tramai_state", 300, size) for size in (1_000, 100_000, 1_000_000)}
    found = in_turn(rounds, sizes, lambda spec: worker("tramai", SCRIPT, *spec))
    small, *_, large = found.values()
    rows = [(label, median(samples) * 1e6, ratio(samples, small)) for label, samples in found.items()]
    long = in_turn(rounds, {"run": ("tramai_length", LONG)}, lambda spec: worker("tramai", SCRIPT, *spec))["run"]
    early = [{"cpu": sample["early"]} for sample in long]
    late = [{"cpu": sample["late"]} for sample in long]
    rows += [("steps 100 to 600 of a run", median(early) * 1e6, 1.0)]
    rows += [(f"steps {LONG - 500:,} to {LONG:,}", median(late) * 1e6, ratio(late, early))]
    report.table(["a step that saves a number", "cpu us", "x first"], rows)
    return ratio(large, small), ratio(late, early)


SLOPES = {  # a step, and how many of them: N; then there are 2N
    "replayable": ("    local: ${{ 1 + 1 }}\n", 40),
    "replayable shell": ('    shell: ":"\n    replay: replayable\n', 20),
    "unsafe shell": ('    shell: ":"\n', 20),
}


def counted(report: Report) -> dict[str, float]:
    """Flushes of the whole command at N and at 2N steps: the difference is the steps'."""
    command, slopes, rows = program("tramai", "tramai"), {}, []
    with workplace(disk=False) as folder:
        for label, (step, number) in SLOPES.items():
            counts = []
            for steps in (1, number, number * 2):  # the first run makes the store
                text = "".join(f"  - id: s{index}\n{step}" for index in range(steps))
                (folder / "flow.yaml").write_text(f"tramai: 1\nname: flow\nsteps:\n{text}")
                counts.append(flushes([command, "run", "-q", "flow.yaml"], folder))
            slopes[label] = (counts[2] - counts[1]) / number
            rows.append((f"tramai, {label}", slopes[label], counts[1] - slopes[label] * number))
        for label, venv in (("burr + SQLite", "burr"), ("LangGraph + SqliteSaver", "langgraph")):
            if have(venv):
                counts = [
                    flushes([program(venv), str(lib.HERE / SCRIPT), "--worker", venv, str(steps)], folder)
                    for steps in (100, 200)
                ]
                slope = (counts[1] - counts[0]) / 100
                rows.append((label, slope, counts[0] - slope * 100))
    report.table(["flushes, by strace", "per step", "per run"], rows)
    return slopes


def main() -> None:
    report = Report("c_durable", "C. Durable steps: the engine against one INSERT + COMMIT")
    rounds = rounds_wanted(7)
    step = speed(report, rounds)
    size, length = growth(report, rounds)
    slopes = counted(report)
    report.goals(
        [
            ("CPU of a durable step against INSERT + COMMIT", 12.0, 5.0, step),
            ("flushes per replayable step", 1.0, 1.0, max(slopes["replayable"], slopes["replayable shell"])),
            ("flushes per unsafe step", 2.0, 2.0, slopes["unsafe shell"]),
            ("a step over 1 MB of state against 1 KB", 1.5, 1.1, size),
            (f"step {LONG:,} of a run against step 100", 1.2, None, length),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        child(*sys.argv[2:])
    else:
        main()
