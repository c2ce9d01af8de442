"""Documents, events and problems on their way to JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from ..errors import Position, Problem, TramaiError
from ..event import Event

if TYPE_CHECKING:
    from . import _documents

EVENTS = "tramai.events/1"
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def dump(document: Any) -> str:
    """A document as one line of ASCII JSON: safe in every encoding, terminal and log."""
    return harmless(_encode(msgspec.to_builtins(document)))


def event_line(seen: Event, seq: int) -> str:
    """An event as a line of the JSON stream."""
    data = msgspec.to_builtins(seen)
    line = json.dumps({"seq": seq, "type": data.pop("type"), "schema": EVENTS, **data}, separators=(",", ":"))
    return harmless(line)


def harmless(text: str) -> str:
    """The same JSON without `##`, by which a CI finds commands anywhere in a line: `##[…]`, `##vso[…]`."""
    return text.replace("##", "#\\u0023") if "##" in text else text


def finding(problem: Problem) -> _documents.Finding:
    """A problem as JSON shows it."""
    from . import _documents

    at = problem.position
    return _documents.Finding(
        code=problem.code,
        severity="warning" if problem.severity == "warning" else "error",
        message=problem.message,
        hint=problem.hint,
        line=at.line if at else None,
        column=at.column if at else None,
        end_line=at.end_line if at else None,
        end_column=at.end_column if at else None,
        path=problem.path,
        related=[
            _documents.Place(
                file=one.position.file, line=one.position.line, column=one.position.column, message=one.message
            )
            for one in problem.related
        ],
        fix=list(problem.fix) if problem.fix is not None else UNSET,
    )


def unplaced(error: TramaiError) -> _documents.Finding:
    """An error about a file as a whole."""
    from . import _documents

    return _documents.Finding(
        code=error.code, severity="error", message=error.message, hint=error.hint, line=None, column=None,
        end_line=None, end_column=None, path="", related=[],
    )  # fmt: skip


def placed(at: Position | None) -> dict[str, Any]:
    """The fields of a Body that say where."""
    return msgspec.structs.asdict(at) if at else {}
