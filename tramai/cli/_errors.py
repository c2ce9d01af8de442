"""The error edge: whatever goes wrong becomes a short text or one JSON document, and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from ..errors import BugError, Fault, InvalidDefinition, TramaiError, UsageError
from ._session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..errors import Position, Problem
    from ._terminal import Terminal

PIPE = 128 + signal.SIGPIPE
SHOWN = 20
"""Problems that the text shows of one file; JSON has all."""


def guarded(arguments: list[str], action: Callable[[Session], int] | None = None) -> int:
    """Run a command line and return its exit status; nothing is ever raised, not even by a bug."""
    _never_refuse_text()
    session = Session(arguments)
    try:
        status = (action or _dispatch)(session)
    except BrokenPipeError:
        status = PIPE
    except KeyboardInterrupt:
        session.err.line("interrupted")
        status = 128 + signal.SIGINT
    except Exception as error:  # noqa: BLE001 - this is the edge
        full = isinstance(error, OSError) and not _flush(sys.stdout)  # what could not be written cannot be flushed
        status = PIPE if full else _report(session, error)
    finally:
        _close(session)
    if session.out.failure is not None:
        session.err.line(f"warning: standard output cannot be written: {session.out.failure}")
    _flush(sys.stderr)
    return status if _flush(sys.stdout) and not session.out.broken else status or PIPE


def _dispatch(session: Session) -> int:
    from . import _short

    understood = _short.understand(session)
    if understood is not None:
        from . import _start

        name, request = understood
        session.begin()
        return _start.run(session, request) if name == "run" else _start.resume(session, request)
    from ._group import group

    return group.call(session)


def _never_refuse_text() -> None:
    """A stream that cannot write a character spells it out instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _flush(stream: Any) -> bool:
    from ._terminal import silence

    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        silence(stream)
        return False
    return True


def _close(session: Session) -> None:
    try:
        session.close()
    except Exception as error:  # noqa: BLE001 - an edge: the command is over, its status stands
        session.err.line(f"warning: {_known(session, error)}")


def _report(session: Session, error: Exception) -> int:
    known = _diagnosed(session, error)
    try:
        if session.json:
            session.emit(document(known, session))
        else:
            for line in [*text(session, known), *_annotated(session, known)]:
                session.err.line(line)
        if session.debug and isinstance(known, Fault):
            session.err.line(session.diagnosed[known.id].detail)
    except Exception:  # noqa: BLE001 - the last edge: what describes errors has one itself
        sys.stderr.write(f"error[{known.code}]: {known}\n")
    return known.exit_status


def _annotated(session: Session, error: TramaiError) -> list[str]:
    """The same for the CI system that runs us, which shows it beside the code."""
    from . import _ci

    system = _ci.wanted(session)
    if system is None:
        return []
    from ._problem_reports import of_error

    return _ci.told(_ci.dialect(system), of_error(error))


def _diagnosed(session: Session, error: Exception) -> TramaiError:
    """The error as one of ours. What is behind a fault is kept in the session; a bug gets a report file."""
    known = _known(session, error)
    if not isinstance(known, Fault):
        return known
    from .. import faults

    faults.diagnose(known, session.diagnose, None, session.run_id)
    if known.id not in session.diagnosed:  # it was diagnosed by somebody else, or could not be written
        from .. import diagnostics

        session.diagnosed[known.id] = diagnostics.of(known)
    if isinstance(known, BugError):
        _report_bug(session, known)
    return known


def _known(session: Session, error: Exception) -> TramaiError:
    """The error as one of ours: click's become usage errors, a stranger is a bug."""
    from .. import faults

    if isinstance(error, TramaiError):
        return error
    if "click" in sys.modules:
        import click

        if isinstance(error, click.ClickException):
            return _usage(error)
        if isinstance(error, click.exceptions.Abort):
            return UsageError(what="aborted")
    if isinstance(error, UnicodeError) and not session.arguments:
        return UsageError(what=str(error))
    return faults.public(error)


def _usage(error: Any) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tramai"
    near = getattr(error, "possibilities", None)
    message = error.message if near and getattr(error, "message", None) else error.format_message()
    hint = f"did you mean {' or '.join(sorted(near))}?" if near else f"{path} --help"
    message = message.rstrip(".")
    return UsageError(what=message[:1].lower() + message[1:], hint=hint)


def _report_bug(session: Session, bug: BugError) -> None:
    from ._report import write

    file = write(session.arguments, session.diagnosed[bug.id])
    where = f"the report is in {file}" if file else "no report could be written"
    bug.hint = f"this is a bug in tramai; {where}, saved runs are not harmed"
    bug.details["report"] = file


def document(error: TramaiError, session: Session) -> Any:
    """The error as a `tramai.error/1` document."""
    from msgspec import UNSET

    from . import _documents, _encode

    problems: tuple[Problem, ...] = error.problems if isinstance(error, InvalidDefinition) else ()
    first = next((problem for problem in problems if problem.severity == "error"), None)
    at = first.position if first else error.position
    owner = error.details.get("run_id") or session.run_id
    return _documents.Error(
        exit_status=error.exit_status,
        error=_documents.Body(
            code=first.code if first else error.code,
            message=first.message if first else error.message,
            hint=first.hint if first else _hint(error, session),
            path=first.path if first else None,
            run_id=str(owner) if owner else None,
            correlation_id=error.id if isinstance(error, Fault) else UNSET,
            **_encode.placed(at),
        ),
        problems=[_encode.finding(problem) for problem in problems] if problems else UNSET,
        details=_details(error) or UNSET,
    )


def _hint(error: TramaiError, session: Session) -> str | None:
    """What a person is told to do, the next commands included."""
    from ._advice import advice

    return session.typed("\n".join(text for kind, text in advice(error, session) if kind == "help")) or None


def _details(error: TramaiError) -> dict[str, Any]:
    """Facts of an error that JSON can say, beyond what its message and its `run_id` say already."""
    import msgspec

    kept: dict[str, Any] = {}
    for name, value in error.details.items():
        if name in ("what", "run_id"):
            continue
        try:
            kept[name] = msgspec.to_builtins(value)
        except TypeError:
            continue
    return kept


def text(session: Session, error: TramaiError) -> list[str]:
    """The error as people read it: message, place, hint, the next command."""
    if isinstance(error, InvalidDefinition):
        return [line for block in problem_blocks(session, error.problems) for line in block][:-1]
    from ._advice import advice

    lines = block(session, "error", error.code, str(error), error.position, ())
    return lines + notes(session.err, advice(error, session))


def problem_blocks(
    session: Session, problems: tuple[Problem, ...], terminal: Terminal | None = None
) -> list[list[str]]:
    """A block per problem with a blank line after it; beyond the twentieth of a file they are only counted."""
    terminal = terminal or session.err
    blocks: list[list[str]] = []
    for problem in problems[:SHOWN]:
        lines = block(
            session, problem.severity, problem.code, problem.message, problem.position,
            tuple((one.message, one.position) for one in problem.related), terminal, problem.note,
        )  # fmt: skip
        blocks.append([*lines, *notes(terminal, [("help", problem.hint)] if problem.hint else []), ""])
    if len(problems) > SHOWN:
        blocks.append([f"... and {len(problems) - SHOWN} more (--json shows all)", ""])
    return blocks


def block(
    session: Session,
    severity: str,
    code: str,
    message: str,
    position: Position | None,
    related: tuple[tuple[str, Position], ...],
    terminal: Terminal | None = None,
    caret: str = "",
) -> list[str]:
    """`error[TRM104]: …` and the places in the source, with `caret` behind the mark under the first."""
    from ._terminal import safe_lines

    terminal = terminal or session.err
    first, *rest = safe_lines(message)
    head = terminal.paint(f"{severity}[{code}]", "bold", "red" if severity == "error" else "yellow")
    lines = [f"{head}: {first}", *(f"  {line}" for line in rest)]
    if position is not None:
        lines += excerpt(session, position, caret)
    for note, place in related:
        lines += [f"{terminal.paint('note', 'bold')}: {safe_lines(note)[0]}", *excerpt(session, place)]
    return lines


def notes(terminal: Terminal, advice: list[tuple[str, str]]) -> list[str]:
    """`= help: …` lines; the further lines of one stand under its first."""
    from ._terminal import safe_lines

    lines: list[str] = []
    for kind, what in advice:
        first, *rest = safe_lines(terminal.typed(what) if kind == "help" else what)
        lines += [f"   = {terminal.paint(kind, 'bold')}: {first}"]
        lines += [" " * (7 + len(kind)) + line for line in rest]
    return lines


def excerpt(session: Session, position: Position, note: str = "") -> list[str]:
    """The `-->` line and the source around the place, when the source can still be read."""
    from ._terminal import safe

    source = _source(session, position.file)
    if source is None:
        return [f"  --> {safe(position.file)}:{position.line}:{position.column}"]
    from ..excerpt import excerpt as draw

    lines = [safe(line) for line in draw(source, position, note=note).rstrip("\n").split("\n")]
    return [*lines, " " * (lines[0].index("-->") + 1) + "|"]


def _source(session: Session, file: str) -> str | None:
    if file not in session.sources:
        try:
            with open(file, encoding="utf-8-sig", errors="replace", newline="") as stream:
                session.sources[file] = stream.read(2 << 20)
        except (OSError, ValueError):
            return None
    return session.sources[file]


def exists(path: str) -> bool:
    """Whether a path can be looked at at all; odd names (NUL, too long) are simply not there."""
    try:
        return os.path.exists(path)
    except ValueError:
        return False
