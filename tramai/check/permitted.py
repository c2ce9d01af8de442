"""Permits: entries that can be meant, and steps that reach for what is not named."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from ..errors import Pointer, Problem
from ..permits import Permits, host_allowed, hosts_covered
from ..reach import Reach, of
from .scene import Scene


def entries(scene: Scene) -> Iterator[Problem]:
    """What is named can be a program, a host or a folder."""
    permits = scene.workflow.permits
    if permits is None:
        return
    for section in ("shell", "http", "mcp", "write"):
        for index, name in enumerate(getattr(permits, section)):
            found = _wrong(section, name)
            if found is not None:
                yield scene.problem("TRM387", found[0], ("permits", section, index), hint=found[1])


def _wrong(section: str, name: str) -> tuple[str, str | None] | None:
    shown = name if len(name) <= 60 else name[:57] + "…"
    if "${{" in name:
        return "a permit is fixed: an expression in it would never be evaluated", "write the value itself"
    if name == "*":
        every = "leave `permits` out, or name what is needed; a `*.domain` covers the hosts below it"
        return f"`*` names no {_WHAT[section]}", every
    if section == "http":
        host = name.removeprefix("*.")
        if "://" in host or "/" in host:
            bare = host.partition("://")[2].partition("/")[0] or host.partition("/")[0]
            return f"`{shown}` is no host", f"write the host alone: {bare}"
        if not host or any(mark in host for mark in " *:@?#"):
            return f"`{shown}` is no host", "write a host such as api.github.com or *.example.com, without a port"
    if section == "shell" and (not name.strip() or name != name.strip() or " " in name):
        first = name.split()[0] if name.split() else "git"
        return f"`{shown}` is no program", f"name the program alone: {first}"
    if section == "write" and ".." in posixpath.normpath(name).split("/"):
        return f"`{shown}` is outside the folder in which the run is started", "name a folder in it, or a full path"
    return None


_WHAT = {"shell": "program", "http": "host", "mcp": "server", "write": "folder"}


def covered(scene: Scene) -> Iterator[Problem]:
    """Every program and host that stands in the file is named."""
    permits = scene.workflow.permits
    if permits is None:
        return
    broken = {kind for kind in _WHAT for name in getattr(permits, kind) if _wrong(kind, name) is not None}
    for entry in scene.running:
        node = entry.node
        for reach in of(node.step):
            if reach.name is None or reach.kind in broken or not _refused(permits, reach):
                continue
            at = scene.setting(node, reach.pointer)
            what = f"the {_WHAT[reach.kind]} {reach.name} is not permitted"
            if reach.kind == "shell" and reach.script:
                what = "scripts are not permitted"
            hint = f"add {reach.name} to permits.{reach.kind}, or do without it"
            yield scene.problem("TRM386", what, at, hint=hint, related=_named(permits, reach.kind))


def _refused(permits: Permits, reach: Reach) -> bool:
    assert reach.name is not None
    if reach.kind == "shell":
        return not (permits.script() if reach.script else permits.program(reach.name))
    if reach.kind == "http":
        pattern = reach.name.startswith("*.")
        return not (hosts_covered(reach.name, permits.http) if pattern else host_allowed(reach.name, permits.http))
    if reach.kind == "write":
        return not permits.folder(reach.name)
    return reach.name not in getattr(permits, reach.kind)


def _named(permits: Permits, kind: str) -> tuple[tuple[Pointer, str], ...]:
    """Where the permits of a kind stand."""
    if getattr(permits, kind):
        return ((("permits", kind), "what is permitted"),)
    return ((("permits",), f"nothing is named under `{kind}`"),)
