"""Choose how a run is shown: live on a terminal, folded in the log of a CI, plain lines, JSON lines, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..event import Event, RunFinished
from . import _ci
from ._session import Session


class View(Protocol):
    """An observer that shows a run."""

    def __call__(self, event: Event) -> None:
        """Show one event."""
        ...

    def pause(self) -> None:
        """Make room: somebody is asked something."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class Quiet:
    """Shows nothing."""

    def __call__(self, event: Event) -> None:
        """Not a word."""

    def pause(self) -> None:
        """There is room."""

    def close(self) -> None:
        """Nothing to leave."""


def choose(session: Session, names: Sequence[str], final: Callable[[RunFinished], RunFinished]) -> list[View]:
    """The views of this call. `names`: the ids to line up; `final` sets the exit status of the last event."""
    if session.json:
        from ._jsonl import Lines

        views: list[View] = [Lines(session.out, final)]
        # Somebody who pipes the events away may still want to watch, but has to say so.
        return views + ([_plain(session, names)] if session.flags.get("progress") == "plain" else [])
    progress = session.settings.text("progress")
    if session.quiet or progress == "none":
        return [Quiet()]
    if (system := _ci.wanted(session)) is not None:
        from ._grouped import Grouped

        return [Grouped(session.err, names, _ci.dialect(system), verbose=session.verbose)]
    if session.err.redraws and (progress == "live" or (progress == "auto" and session.err.lively)):
        from ._live import Live

        return [Live(session.err, names, verbose=session.verbose)]
    return [_plain(session, names)]


def _plain(session: Session, names: Sequence[str]) -> View:
    from ._plain import Plain

    if session.settings.text("progress") == "plain" and session.settings.text("color") == "auto":
        session.err.coloured = False
    return Plain(session.err, names, verbose=session.verbose)
