"""Step ids: one name, one step."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from .scene import Scene


def unique(scene: Scene) -> Iterator[Problem]:
    """Every id stands once in the whole file, blocks included."""
    for entry in scene.entries:
        node, first = entry.node, scene.steps[entry.node.id].node
        if node is first or not node.id:
            continue
        yield scene.problem(
            "TRM211",
            f"step id `{node.id}` is used twice",
            (*node.at, "id"),
            hint="ids are unique in the whole file: choose another",
            related=(((*first.at, "id"), "first used here"),),
        )
