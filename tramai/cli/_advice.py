"""What to do about an error: its own hint, or the next command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import errors

if TYPE_CHECKING:
    from ._session import Session


def short(run_id: str) -> str:
    """What people type for a run: the last eight characters of a UUID, the whole of any other id."""
    return run_id[-8:] if len(run_id) == 36 and run_id.count("-") == 4 else run_id


def advice(error: errors.TramaiError, session: Session) -> list[tuple[str, str]]:
    """Pairs of a word (`help`, `note`) and a text."""
    found: list[tuple[str, str]] = []
    maker = _MAKERS.get(type(error).__name__)
    if maker is not None:
        found += maker(error, _run(error, session))
    if error.hint:
        found.append(("help", error.hint))
    if error.code not in ("TRM499", "TRM701", "TRM702", "TRM704") and not found:
        found.append(("help", f"tramai explain {error.code}"))
    return found


def resolve_commands(run_id: str, path: str) -> str:
    """The ways on after an unknown outcome, one a line."""
    import shlex

    start = f"tramai resolve {short(run_id)} {shlex.quote(path)}"
    return "\n".join(
        (
            f"{start} --as completed --output JSON    it happened",
            f"{start} --as retry                      it did not happen, run it again",
            f"{start} --as skipped                    go on without it",
            f"{start} --as failed                     let the run fail there",
        )
    )


def _run(error: errors.TramaiError, session: Session) -> str:
    found: Any = error.details.get("run_id") or session.run_id or "RUN"
    return str(found)


def _changed(error: errors.TramaiError, run: str) -> list[tuple[str, str]]:
    """Every change, which of them concern steps that have begun, and the ways on that are open."""
    details: dict[str, Any] = error.details
    ran, blocking = details.get("ran", ()), details.get("blocking", ())
    changes = [
        difference.text + ("  (has begun)" if difference in ran else "")
        for difference in details.get("differences", ())
    ]
    found = [("changed", "\n".join(changes))] if changes else []
    if details.get("verb") == "rerun":
        return found + _rerun_changed(blocking if details.get("accept") else (), run)
    ways = [f"tramai resume {short(run)} --as-started        go on with the definition it started with"]
    if not blocking:
        ways.append(f"{accepting(run, details.get('other_file'))}    go on with the file as it is now")
    elif details.get("accept"):
        listed = "; ".join(difference.text for difference in blocking)
        found.append(("note", f"these changes reach back to what was already done and cannot be accepted: {listed}"))
    return [*found, ("help", "\n".join(ways))]


def other_file(file: str | None, own: str) -> str | None:
    """The file that was named, unless it is the own one of the run, which every command finds by itself."""
    import os

    return None if file is None or os.path.realpath(file) == os.path.realpath(own) else file


def accepting(run_id: str, file: str | None) -> str:
    """The command that goes on with a changed file; `file`: one that is not where the run was started from."""
    import shlex

    named = f" --file {shlex.quote(file)}" if file is not None else ""
    return f"tramai resume {short(run_id)}{named} --accept-changes"


def _rerun_changed(blocking: Sequence[Any], run: str) -> list[tuple[str, str]]:
    ways = f"tramai rerun {short(run)} --as-started    with the definition it started with"
    if not blocking:
        return [("help", f"{ways}\ntramai rerun {short(run)} --file FILE     with the file as it is now")]
    listed = "; ".join(difference.text for difference in blocking)
    return [("note", f"these changes reach back to results that would be taken over: {listed}"), ("help", ways)]


def _held(error: errors.TramaiError, run: str) -> list[tuple[str, str]]:
    return [("help", f"tramai show {short(run)}    see what its owner is doing")]


def _unknown(error: errors.TramaiError, run: str) -> list[tuple[str, str]]:
    """What is known of each attempt whose end was not seen, and the ways on."""
    attempts: Any = error.details.get("attempts", ())
    found = [("started", _evidence(attempt)) for attempt in attempts]
    paths = [attempt.path for attempt in attempts] or [str(error.details.get("path", "STEP"))]
    return found + [("help", resolve_commands(run, path)) for path in paths]


def _evidence(attempt: Any) -> str:
    from ._clockface import stamp

    began = stamp(attempt.started if attempt.started is not None else attempt.at)
    return f"{attempt.path}, attempt {attempt.attempt}, {began}, by {attempt.worker or 'an unknown runner'}"


def _cancelled(error: errors.TramaiError, run: str) -> list[tuple[str, str]]:
    return [("help", "a cancelled run is over for good; tramai run FILE starts a new one")]


_MAKERS = {
    "DefinitionChanged": _changed,
    "LeaseHeld": _held,
    "OutcomeUnknown": _unknown,
    "RunCancelled": _cancelled,
}
