"""Which run a step has called, as its journal says."""

from __future__ import annotations

from .codec import decode
from .paths import is_aside
from .store import Mark, Record


def called_run(record: Record) -> str | None:
    """The id of the run that a step has called, where a record says one; other things are told of such a step too: the
    clause of a `catch` that it has entered, or that it sleeps."""
    if record.mark is not Mark.DECIDED or record.verb != "call" or record.value is None:
        return None
    if is_aside(record.path) and "@tool[" not in record.path:
        return None
    return str(decode(record.value)["run_id"])
