"""`tramai plugin list`: what installed packages bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ._machine_documents import InstalledPlugin


@verb("list", "tramai plugin list", "tramai plugin list --json", summary="List what installed packages bring.")
def list_(session: Session) -> int:
    """List the step types, model providers, stores and observers of installed
    packages, by the entry points tramai.steps, tramai.providers, tramai.stores
    and tramai.observers.

    Nothing of them is imported: `tramai doctor` says whether they work.

    Exit status: 0 listed, also when there are none.
    """
    from . import _machine_documents

    found = [*installed()]
    if session.json:
        session.emit(_machine_documents.Plugins(plugins=found))
        return 0
    if not found:
        session.note("no installed package brings anything")
        return 0
    widths = [max(len(text) for text in column) for column in zip(*map(_columns, found), strict=True)]
    for one in found:
        row = "  ".join(text.ljust(width) for text, width in zip(_columns(one), widths, strict=True))
        session.out.line(safe(row if one.note is None else f"{row}  {one.note}").rstrip())
    return 0


def _columns(one: InstalledPlugin) -> tuple[str, ...]:
    return one.family.removesuffix("s"), one.name, f"{one.package} {one.version}", one.value


def installed() -> Iterator[InstalledPlugin]:
    """Everything, by family and name."""
    from .. import kinds, provider
    from ._machine_documents import InstalledPlugin

    for family in ("steps", "providers", "stores", "observers"):
        ours = kinds.names(family) if family in ("providers", "stores") else ()
        if family == "providers":
            ours = (*ours, *provider.SERVICES)
        found = kinds.added(family)
        for one in found:
            note = "never used: the name is built in" if one.name in ours else None
            if note is None and sum(other.name == one.name for other in found) > 1:
                note = "never used: another package has the name too"
            yield InstalledPlugin(
                family=family,
                name=one.name,
                package=one.package,
                version=one.version,
                value=one.value,
                note=note,
            )
