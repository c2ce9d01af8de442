"""`tramai doctor`: whether this machine has what runs need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ._machine_documents import HealthFinding

LOOKS = {"ok": "succeeded", "absent": "skipped", "warning": "blocked", "error": "failed"}
"""The state of a run that looks as a finding does."""


@verb("doctor", "tramai doctor", "tramai doctor --check", "tramai doctor --report > report.md")
@click.option("--check", is_flag=True, help="Ask model services and MCP servers too, and agents for their version.")
@click.option("--report", is_flag=True, help="Print a text for a bug report, without paths, names and hosts of yours.")
def command(session: Session, check: bool, report: bool) -> int:
    """Look at what runs need here: Python and SQLite, settings and where each
    comes from, the store, model services, agents, programs, MCP servers, plugins.

    Nothing is made or changed, and without --check nothing is asked over a
    network and no program is started. Keys are named, their values are never
    shown. What is merely absent is needed only by those who use it.

    Exit status: 0 usable, 1 something is wrong, 3 the settings are not valid.
    """
    from . import _machine_documents

    found = list(_findings(session, check=check))
    usable = all(one.state != "error" for one in found)
    if session.json:
        session.emit(_machine_documents.Health(usable=usable, checked=check, findings=found))
        return 0 if usable else 1
    if report:
        from . import _doctor_report

        session.out.write(_doctor_report.page(found))
        return 0 if usable else 1
    _show(session, found)
    count = {state: sum(one.state == state for one in found) for state in ("error", "warning")}
    said = ", ".join(f"{number} {state}{'s' if number != 1 else ''}" for state, number in count.items())
    session.note(f"{'usable' if usable else 'not usable'}: {said}")
    return 0 if usable else 1


def _findings(session: Session, *, check: bool) -> Iterator[HealthFinding]:
    from . import _doctor_models, _doctor_place, _doctor_plugins, _doctor_store

    yield from _doctor_place.environment(session)
    yield from _doctor_place.settings(session)
    yield from _doctor_store.store(session)
    yield from _doctor_models.models(os.environ, session.settings.providers, check=check)
    yield from _doctor_models.agents(check=check)
    yield from _doctor_place.programs(check=check)
    yield from _doctor_plugins.servers(session, check=check)
    yield from _doctor_plugins.plugins(session)


def _show(session: Session, found: list[HealthFinding]) -> None:
    """One line each, under the name of its section."""
    from . import _glyphs

    out = session.out
    width = max(len(one.name) for one in found)
    section = None
    for one in found:
        if one.section != section:
            out.line(out.paint(one.section, "bold"))
            section = one.section
        look = LOOKS[one.state]
        state = out.paint(one.state.ljust(7), "dim") if one.state == "absent" else _coloured(session, one.state)
        out.line(f"  {_glyphs.glyph(out, look)} {state}  {safe(one.name).ljust(width)}  {safe(one.text)}")
        if one.hint and one.state in ("warning", "error"):
            out.line(f"    = help: {safe(one.hint)}")


def _coloured(session: Session, state: str) -> str:
    colour = {"ok": "green", "warning": "yellow", "error": "red"}[state]
    return session.out.paint(state.ljust(7), colour)
