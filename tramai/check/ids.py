"""Names that a file gives: step ids, and what is declared at the top."""

from __future__ import annotations

import re
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


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INPUT = re.compile(r"[^\s=:@\x00-\x1f\x7f]{1,100}")


def declared(scene: Scene) -> Iterator[Problem]:
    """Names at the top can be used: variables set, inputs given on a command line, secrets asked for."""
    from ..steps._child_env import OURS

    for name in scene.workflow.env:
        if not _WORD.fullmatch(name):
            what = f"`{name}` cannot be the name of an environment variable"
            yield scene.problem("TRM312", what, ("env", name), hint="use letters, digits and underscores", key=True)
        elif name in OURS:
            yield scene.problem("TRM313", f"the variable {name} is set by tramai", ("env", name), key=True)
    for name in scene.workflow.secrets:
        if not _WORD.fullmatch(name):
            what = f"`{name}` cannot be the name of a secret"
            yield scene.problem("TRM358", what, ("secrets", name), hint="use letters, digits and underscores", key=True)
    for section in ("inputs", "state", "outputs"):
        for name in getattr(scene.workflow, section):
            if not (_INPUT.fullmatch(name) if section == "inputs" else name.strip()):
                what = f"`{name}` cannot be a name under `{section}`"
                hint = "leave out blanks, `=`, `:` and `@`" if section == "inputs" else "give it a name"
                yield scene.problem("TRM358", what, (section, name), hint=hint, key=True)
