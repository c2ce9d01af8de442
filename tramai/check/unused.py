"""What is declared at the top and used nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from . import foreign
from .scene import Scene

_ONE = {"inputs": "input", "secrets": "secret", "state": "state key"}


def declared(scene: Scene) -> Iterator[Problem]:
    """Inputs, secrets and state that no step uses. What has a description, or a name that begins with `_`, is meant."""
    used = _used(scene) | foreign.mentioned(scene)
    for section, one in _ONE.items():
        for name, spec in getattr(scene.workflow, section).items():
            if (section, name) in used or (section, "") in used or name.startswith("_"):
                continue
            if getattr(spec, "description", None):
                continue
            hint = "use it, remove it, or give it a `description`" if section == "inputs" else "use it, or remove it"
            message = f"{one} `{name}` is used nowhere"
            yield scene.problem("TRM246", message, (section, name), hint=hint, key=True, severity="warning")


def _used(scene: Scene) -> set[tuple[str, str]]:
    found = {
        (str(read.use.path[0]), str(read.use.path[1]) if len(read.use.path) > 1 else "")
        for read in scene.reads
        if read.use.path[0] in _ONE
    }
    for entry in scene.entries:
        found.update(("state", name) for name in entry.node.save)
        passed = getattr(entry.node.step, "secrets", None)
        found.update(("secrets", str(name)) for name in (passed.values() if isinstance(passed, dict) else passed or ()))
    return found
