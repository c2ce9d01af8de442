"""Where a run stands at each step of its drawing: one word for all the paths of a step, and a colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..plan import Plan
from ._documents import StepView

if TYPE_CHECKING:
    from ._terminal import Terminal

PENDING = "pending"
_FILLS = {
    "failed": "#ffd7d5",
    "unknown": "#ffe2b3",
    "cancelled": "#ffe2b3",
    "interrupted": "#ffe2b3",
    "waiting": "#fff3bf",
    "sleeping": "#fff3bf",
    "running": "#d0ebff",
    "started": "#d0ebff",
    "recovered": "#e3f5c4",
    "succeeded": "#d3f9d8",
    "skipped": "#eeeeee",
    PENDING: "#ffffff",
}
"""From what matters most to what matters least."""
_OVER = ("succeeded", "recovered", "skipped")


class Stands(NamedTuple):
    """A step in a run. `times` paths, of which `done` are over; `words` say it."""

    status: str
    times: int
    done: int

    @property
    def words(self) -> str:
        """The word, and of a step that was done several times how often."""
        return f"{self.status}, {self.done} of {self.times}" if self.times > 1 else self.status


def stands(plan: Plan, views: Sequence[StepView]) -> dict[str, Stands]:
    """Every step of the plan. What is worst among its paths counts."""
    order = list(_FILLS)
    found: dict[str, list[str]] = {}
    for view in views:
        found.setdefault(view.id, []).append(view.status)

    def rank(status: str) -> int:
        return order.index(status) if status in order else 0

    made = {}
    for id in plan.nodes:
        statuses = found.get(id, [PENDING])
        made[id] = Stands(min(statuses, key=rank), len(statuses), sum(status in _OVER for status in statuses))
    return made


def fill(status: str) -> str:
    """The colour of a status."""
    return _FILLS.get(status, "#ffffff")


def told(terminal: Terminal, found: Mapping[str, Stands]) -> dict[str, str]:
    """What a tree says behind each step: sign and word, without colour."""
    from ._glyphs import sign

    return {id: f"{sign(terminal, one.status)} {one.words}" for id, one in found.items()}


def mermaid(plan: Plan, found: Mapping[str, Stands]) -> str:
    """The flowchart, coloured."""
    from .. import graph

    lines = [graph.mermaid(plan).rstrip("\n")]
    for status in dict.fromkeys(one.status for one in found.values()):
        ids = ",".join(f"s_{id}" for id, one in found.items() if one.status == status)
        lines += [f"    classDef {status} fill:{fill(status)},stroke:#555,color:#111", f"    class {ids} {status}"]
    return "\n".join(lines) + "\n"


def dot(plan: Plan, found: Mapping[str, Stands]) -> str:
    """The digraph, coloured. Ids of steps need no escape."""
    from .. import graph

    body = graph.dot(plan).rstrip("\n").removesuffix("}")
    lines = [f'    "{id}" [style=filled, fillcolor="{fill(one.status)}"];' for id, one in found.items()]
    return "\n".join([body.rstrip("\n"), *lines, "}"]) + "\n"
