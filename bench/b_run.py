"""B. A whole command: three steps in order, each one a shell's echo, against bare Python doing the same.

    python3 bench/b_run.py [rounds=21]

Every contender has run once before it is measured, so tramai finds its plan in the cache. The floor reads nothing: it
spawns three shells and commits three rows to SQLite with synchronous=FULL. tramai commits twice a step, because a shell
step may not be repeated unasked; a second row has steps that say they may be.
"""

from pathlib import Path

from lib import Report, have, in_turn, median, peak, program, ratio, rounds_wanted, timed, workplace

FLOOR = "floor: Python, 3 sh, 3 rows"
TRAMAI = "tramai run"
GO_TASK = "go-task"
"""Compiled and keeps nothing: in the table, but no goal."""
WORDS = ("one", "two", "three")

FLOOR_SOURCE = """\
import os, sqlite3
db = sqlite3.connect("floor.db", isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE IF NOT EXISTS step(run TEXT, seq INT, out TEXT, PRIMARY KEY(run, seq)) WITHOUT ROWID")
run = os.urandom(8).hex()
for number, word in enumerate(("one", "two", "three")):
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "echo " + word], os.environ, file_actions=actions)
    os.close(write)
    out = b""
    while part := os.read(read, 65536):
        out += part
    os.close(read)
    os.waitpid(child, 0)
    db.execute("INSERT INTO step VALUES (?, ?, ?)", (run, number, out.decode()))
    os.write(1, out)
"""
BURR_SOURCE = """\
import subprocess, uuid
from burr.core import ApplicationBuilder, action
from burr.core.persistence import SQLLitePersister

def make(word):
    @action(reads=[], writes=["last"])
    def step(state):
        out = subprocess.run(["sh", "-c", "echo " + word], check=True, capture_output=True, text=True).stdout
        return state.update(last=out)
    return step

kept = SQLLitePersister("burr.db")
kept.initialize()
app = (
    ApplicationBuilder()
    .with_actions(one=make("one"), two=make("two"), three=make("three"))
    .with_transitions(("one", "two"), ("two", "three"))
    .with_state(last="").with_entrypoint("one")
    .with_identifiers(app_id=str(uuid.uuid4())).with_state_persister(kept).build()
)
app.run(halt_after=["three"])
"""
LANGGRAPH_SOURCE = """\
import subprocess, uuid
from typing import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

class State(TypedDict):
    last: str

def make(word):
    def step(state):
        out = subprocess.run(["sh", "-c", "echo " + word], check=True, capture_output=True, text=True).stdout
        return {"last": out}
    return step

graph, before = StateGraph(State), START
for word in ("one", "two", "three"):
    graph.add_node(word, make(word))
    graph.add_edge(before, word)
    before = word
graph.add_edge(before, END)
with SqliteSaver.from_conn_string("langgraph.db") as saver:
    thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
    graph.compile(checkpointer=saver).invoke({"last": ""}, thread, durability="sync")
"""


def write_files(folder: Path) -> None:
    def steps(pattern: str) -> str:
        return "".join(pattern.format(word=word) for word in WORDS)

    head = "tramai: 1\nname: echoes\nsteps:\n"
    files = {
        "floor.py": FLOOR_SOURCE,
        "echoes.yaml": head + steps("  - id: {word}\n    shell: echo {word}\n"),
        "again.yaml": head + steps("  - id: {word}\n    shell: echo {word}\n    replay: replayable\n"),
        "burr_flow.py": BURR_SOURCE,
        "langgraph_flow.py": LANGGRAPH_SOURCE,
        "yaml-workflow.yaml": "name: echoes\nsteps:\n"
        + steps("  - name: {word}\n    task: shell\n    inputs: {{command: echo {word}}}\n"),
        "Taskfile.yml": "version: '3'\ntasks:\n  default:\n    cmds: [echo one, echo two, echo three]\n",
        "dodo.py": "".join(
            f"def task_{word}():\n    return {{'actions': ['echo {word}'], 'verbosity': 2{after}}}\n"
            for word, after in zip(WORDS, ("", ", 'task_dep': ['one']", ", 'task_dep': ['two']"), strict=True)
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text)


def contenders() -> dict[str, tuple[list[str], str]]:
    """Command line, and what is kept of a finished step."""
    tramai = program("tramai", "tramai")
    found = {
        FLOOR: ([program("tramai"), "-I", "floor.py"], "each step"),
        TRAMAI: ([tramai, "run", "echoes.yaml"], "each step"),
        "tramai run, steps are replayable": ([tramai, "run", "again.yaml"], "each step"),
    }
    peers = {
        GO_TASK: ("gotask", ["task", "-s"], "nothing"),
        "burr + SQLite": ("burr", ["python", "burr_flow.py"], "each step"),
        "doit": ("doit", ["doit"], "nothing of these"),
        "yaml-workflow": ("yaml-workflow", ["yaml-workflow", "run", "yaml-workflow.yaml"], "state file"),
        "LangGraph + SqliteSaver": ("langgraph", ["python", "langgraph_flow.py"], "each step"),
    }
    for label, (venv, (name, *arguments), kept) in peers.items():
        if have(venv):
            found[label] = ([program(venv, name), *arguments], kept)
    return found


def main() -> None:
    report = Report("b_run", "B. `run` of three echo steps, file unchanged, against bare Python that does the same")
    specs = contenders()
    with workplace(disk=True) as folder:
        write_files(folder)
        for argv, _ in specs.values():
            timed(argv, folder)
        found = in_turn(rounds_wanted(21), specs, lambda spec: timed(spec[0], folder))
        peaks = {label: peak(specs[label][0], folder) for label in found}
    times = {label: ratio(samples, found[FLOOR]) for label, samples in found.items()}
    memory = {label: peaks[label] / peaks[FLOOR] for label in found}
    report.table(
        ["contender", "cpu ms", "x floor", "peak MiB", "x floor's", "kept"],
        [
            (label, median(samples) * 1e3, times[label], peaks[label], memory[label], specs[label][1])
            for label, samples in found.items()
        ],
    )
    ahead_of = [label for label in found if label not in (FLOOR, GO_TASK) and not label.startswith(TRAMAI)]
    goals: list[tuple[str, float, float | None, float]] = [
        ("CPU against the floor", 5.0, 2.7, times[TRAMAI]),
        ("peak memory against the floor", 3.0, 1.6, memory[TRAMAI]),
    ]
    goals += [(f"CPU against {peer}", 1.0, None, ratio(found[TRAMAI], found[peer])) for peer in ahead_of]
    report.goals(goals)


if __name__ == "__main__":
    main()
