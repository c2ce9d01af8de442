"""What steps reach for outside: programs and hosts, as far as the file names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from .errors import Pointer
from .permits import SHELLS, Permits, host_allowed, hosts_covered
from .step import Node, Step


class Reach(msgspec.Struct, frozen=True):
    """One thing that a step reaches for: its kind (`shell`, `http`), where it stands in the settings, and its name.

    `name` is None when only the run will know it. `script`: it is what runs a script.
    """

    kind: str
    pointer: Pointer
    name: str | None
    script: bool = False


class Needs(msgspec.Struct, frozen=True):
    """What a workflow reaches for: permits that would be enough, and the steps of which only the run knows more."""

    permits: Permits
    unknown: tuple[tuple[str, str], ...]
    """Kind and step."""
    missing: tuple[tuple[str, str], ...] = ()
    """Kind and name of what the workflow's own permits do not cover."""


def of(step: Step) -> tuple[Reach, ...]:
    """What the settings of a step reach for."""
    return tuple(Reach(*found) for found in step.reaches())


def needs(nodes: Iterable[Node], own: Permits | None) -> Needs:
    """What all steps together reach for."""
    named: dict[str, dict[str, None]] = {"shell": {}, "http": {}, "mcp": {}, "write": {}}
    unknown: dict[tuple[str, str], None] = {}
    for node in nodes:
        for reach in of(node.step):
            if reach.name is None:
                unknown[reach.kind, node.id] = None
            else:
                named[reach.kind][reach.name] = None
    found = Permits(**{kind: tuple(sorted(names)) for kind, names in named.items()})
    return Needs(found, tuple(unknown), tuple(_missing(found, own)))


def _missing(found: Permits, own: Permits | None) -> Iterator[tuple[str, str]]:
    if own is None:
        return
    for name in found.shell:
        if not own.program(name) and not (name in SHELLS and own.script()):
            yield "shell", name
    for name in found.http:
        if not (hosts_covered if name.startswith("*.") else host_allowed)(name, own.http):
            yield "http", name
    yield from (("mcp", name) for name in found.mcp if name not in own.mcp)
    yield from (("write", name) for name in found.write if not own.folder(name))
