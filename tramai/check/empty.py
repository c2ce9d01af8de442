"""Keys that hold nothing, although something was meant."""

from __future__ import annotations

from collections.abc import Iterator

from ..document import Sequence
from ..errors import Pointer, Problem
from .scene import Scene


def lists(scene: Scene) -> Iterator[Problem]:
    """An empty `catch` catches nothing, an empty `finally` does nothing."""
    document = scene.document
    if document is None:
        return
    places: list[Pointer] = [("catch",), ("finally",)]
    if "catch" in document.text:
        places += [(*entry.node.at, "catch") for entry in scene.entries if not entry.node.catch]
    for at in places:
        node = document.node(at)
        if isinstance(node, Sequence) and not node.items:
            what = f"`{at[-1]}` is empty"
            yield scene.problem("TRM346", what, at, hint="add to it, or remove it", key=True)
