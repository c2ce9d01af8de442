"""`--report KIND=FILE`: how a run went, written when it stops, for a CI or a ticket."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import TramaiError, UsageError

if TYPE_CHECKING:
    from ..store import Store
    from ._export_documents import Export
    from ._session import Session

KINDS = ("junit", "json", "md")


class Reports:
    """The reports that were asked for. Made before the run: a report that cannot be written is refused by then."""

    def __init__(self, given: Sequence[str]) -> None:
        self._wanted = [_one(text) for text in given]
        files = [os.path.realpath(file) for _, file in self._wanted]
        twice = next((file for file, real in zip(given, files, strict=True) if files.count(real) > 1), None)
        if twice is not None:
            raise UsageError(what=f"--report {twice}: two reports cannot go to one file")

    def write(self, session: Session, store: Store, run_id: str) -> None:
        """Write each; what cannot be written any more is said, and changes nothing of how the run ended."""
        if not self._wanted:
            return
        from . import _whole_run, _write

        try:
            whole = _whole_run.of(store, run_id)
            for kind, file in self._wanted:
                _write.replace(file, rendered(kind, whole))
        except TramaiError as error:
            session.err.line(f"warning: the report is not written: {error.message}")


def rendered(kind: str, whole: Export) -> str:
    """A report as text."""
    if kind == "junit":
        from . import _run_junit

        return _run_junit.document(whole)
    from .export import rendered as exported

    return exported(whole, kind)


def _one(text: str) -> tuple[str, str]:
    kind, sign, file = text.partition("=")
    if kind not in KINDS or not sign or not file:
        hint = "write --report junit=FILE, json=FILE or md=FILE"
        raise UsageError(what=f"--report: '{text}' is no report", hint=hint)
    folder = os.path.dirname(os.path.abspath(file))
    if os.path.isdir(file) or not os.path.isdir(folder):
        why = "it is a folder" if os.path.isdir(file) else f"there is no folder {os.path.dirname(file)}"
        raise UsageError(what=f"--report {kind}: {file} cannot be written: {why}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(what=f"--report {kind}: {file} cannot be written: its folder may not be written to")
    return kind, file
