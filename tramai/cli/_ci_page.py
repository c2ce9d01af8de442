"""A page about a run in Markdown: how it ended, its steps in a table, its graph. Text of others is never markup."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from ..event import RunFinished, StepFinished
from ..paths import step_id
from ._advice import short
from ._clockface import took
from ._tally import Tally, is_top
from ._terminal import safe, safe_lines

if TYPE_CHECKING:
    from ..plan import Plan
    from ._ci_report import Reporter

ROWS = 200
"""Steps in the table."""
NODES = 150
"""Steps in a graph: beyond that GitHub draws nothing."""
LONGEST = 4000
"""Characters of an error or a value."""
SIGNS = {
    "succeeded": "✅", "completed": "✅", "recovered": "✅", "replayed": "⏩", "skipped": "⏭️", "failed": "❌",
    "cancelled": "🚫", "interrupted": "⏸️", "sleeping": "💤", "waiting": "✋", "blocked": "⚠️", "open": "⏳",
}  # fmt: skip
STYLES = {
    "failed": "fill:#ffebe9,stroke:#cf222e,color:#1f2328",
    "open": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "succeeded": "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
    "skipped": "fill:#f6f8fa,stroke:#8c959f,color:#57606a,stroke-dasharray:4",
}
"""How a step looks in the graph, the strongest first: a step that ran often is drawn as the worst of its ends."""
_AS = {"recovered": "succeeded", "replayed": "succeeded", "cancelled": "failed"}


def page(reporter: Reporter, finished: RunFinished, tally: Tally, plan: Plan | None, *, graph: bool) -> str:
    """The whole page."""
    run = reporter.run or tally.started
    assert run is not None
    head = f"{SIGNS.get(finished.status, '')} {plain(run.workflow)} {plain('v' + run.version)}: {finished.status}"
    facts = [f"run {code(short(run.run_id))}", f"took {took(finished.duration)}"]
    if run.file:
        facts.append(code(os.path.basename(run.file)))
    parts = [f"### {head.strip()}", " · ".join(facts)]
    if finished.error is not None:
        parts.append(quoted(_error(finished)))
    if finished.status in ("failed", "interrupted", "sleeping", "waiting", "blocked"):
        parts.append(f"The run is saved: {code(f'tramai resume {short(run.run_id)}')} goes on where it stopped.")
    ends = {**reporter.ends, **dict.fromkeys(tally.open)}
    if ends:
        parts.append(table(ends, reporter, tally))
    if graph and plan is not None and len(plan.nodes) <= NODES:
        parts.append(drawing(plan, ends))
    if finished.outputs:
        parts.append(_folded("outputs", quoted(_cut(json.dumps(finished.outputs, indent=2, ensure_ascii=False)))))
    return "\n\n".join(parts) + "\n\n"


def _error(finished: RunFinished) -> str:
    from ._ending import message

    error = finished.error or {}
    path = str(error.get("path") or error.get("step") or "")
    said = message(error, path)
    return _cut(said + (f"\n{error['hint']}" if error.get("hint") else ""))


def table(ends: dict[str, StepFinished | None], reporter: Reporter, tally: Tally) -> str:
    """A row for each step at the top, and for each that failed inside of one."""
    rows = ["| | step | verb | took | |", "|---|---|---|---:|---|"]
    shown = [path for path, end in ends.items() if is_top(path) or end is None or end.status == "failed"]
    for path in shown[:ROWS]:
        end = ends[path]
        verb = end.verb if end is not None else tally.open[path].verb
        status = end.status if end is not None else "open"
        long = took(end.duration) if end is not None and status not in ("skipped", "replayed") else ""
        rows.append(f"| {SIGNS.get(status, '')} | {code(path)} | {verb} | {long} | {_said(end, status, reporter)} |")
    if len(shown) > ROWS:
        rows.append(f"| | and {len(shown) - ROWS} more | | | |")
    return "\n".join(rows)


def _said(end: StepFinished | None, status: str, reporter: Reporter) -> str:
    words = [] if status == "succeeded" else [status]
    if end is not None and end.error is not None:
        words.append(safe_lines(str(end.error.get("message") or end.error.get("type") or ""))[0][:300])
    elif end is not None and end.note:
        words.append(safe_lines(end.note)[0][:300])
    again = reporter.retried.get(end.path) if end is not None else None
    if again is not None:
        words.append(f"({again.attempt + 1} attempts)")
    return plain(" ".join(words))


def drawing(plan: Plan, ends: dict[str, StepFinished | None]) -> str:
    """The graph, its steps coloured by how they ended."""
    from .. import graph

    strongest = list(STYLES)
    states: dict[str, str] = {}
    for path, end in ends.items():
        state = "open" if end is None else _AS.get(end.status, end.status)
        id = step_id(path)
        if id in plan.nodes and state in STYLES:
            states[id] = min(state, states.get(id, state), key=strongest.index)
    lines = [graph.mermaid(plan).rstrip("\n")]
    for state, style in STYLES.items():
        ids = [f"s_{id}" for id, found in states.items() if found == state]
        if ids:
            lines += [f"    classDef {state} {style}", f"    class {','.join(ids)} {state}"]
    return _folded("graph", "```mermaid\n" + "\n".join(lines) + "\n```")


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def plain(text: str) -> str:
    """Text as text: every character that Markdown or HTML could read is written as an entity."""
    return "".join(
        character if character.isalnum() or character in " ,'" or not character.isascii() else f"&#{ord(character)};"
        for character in safe(text)
    )


def code(text: str) -> str:
    """The same in the letters of code."""
    return f"<code>{plain(text)}</code>"


def quoted(text: str) -> str:
    """Lines as they are; nothing in them ends the block."""
    return "<pre>" + "&#10;".join(plain(line) for line in safe_lines(text)) + "</pre>"
