"""`tramai validate`: find every mistake in workflow files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..errors import ConfigurationError, UsageError
from ._group import verb
from ._session import Session

if TYPE_CHECKING:
    from ._documents import File

ENDINGS = (".yaml", ".yml", ".toml")
_MARK = re.compile(rb"""^[ \t]*\{?[ \t]*["']?tramai["']?[ \t]*[:=]""", re.MULTILINE)
_SKIPPED = {"node_modules", "__pycache__", "venv"}


@verb(
    "validate", "tramai validate review.yaml", "tramai validate workflows/ --strict", "tramai validate - < review.toml"
)
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="text or json.")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
def command(session: Session, paths: tuple[str, ...], form: str, strict: bool) -> int:
    """Find every mistake in workflow files, without running anything.

    PATHS are files, folders, or - for standard input. In a folder, the *.yaml,
    *.yml and *.toml files with a top-level `tramai` key are checked.

    All independent problems of a file are found in one pass; the text shows at
    most 20 of each file. `tramai explain CODE` explains one.

    Exit status: 0 no errors, 1 errors (with --strict also warnings), 3 a path
    cannot be read.
    """
    if form == "json":
        session.flags["json"] = True
    files, unreadable = [], False
    for path in _files(paths):
        report, readable = _check(session, path)
        files.append(report)
        unreadable = unreadable or not readable
    if not files:
        raise UsageError(what=f"no workflow files in {', '.join(paths)}", hint="a workflow has the key `tramai: 1`")
    if session.json:
        from ._documents import Validation

        session.emit(Validation(files=files))
    else:
        session.out.line(_summary(files))
    found = [problem.severity for report in files for problem in report.problems]
    if unreadable:
        return 3
    return 1 if "error" in found or (strict and found) else 0


def _files(paths: tuple[str, ...]) -> Iterator[str]:
    seen = set()
    for path in paths:
        for file in _walk(path) if os.path.isdir(path) else (path,):
            if file not in seen:
                seen.add(file)
                yield file


def _walk(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(names):
            path = os.path.normpath(os.path.join(where, name))
            if name.endswith(ENDINGS) and _is_workflow(path):
                yield path


def _is_workflow(path: str) -> bool:
    """Whether a file that was found calls itself one. One that may not be read counts, lest it pass for checked."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False  # a pipe would keep us waiting
        with open(path, "rb") as file:
            return _MARK.search(file.read(1 << 20)) is not None
    except PermissionError:
        return True
    except OSError:
        return False


def _check(session: Session, path: str) -> tuple[File, bool]:
    """The report of one file, printed as it is made, and whether the file could be read."""
    from .. import plan
    from . import _documents, _encode, _load

    try:
        found, problems = _load.check(session, path)
    except ConfigurationError as error:
        if not session.json:
            _unreadable(session, error)
        finding = _documents.Finding(
            code=error.code, severity="error", message=error.message, hint=error.hint, line=None, column=None,
            end_line=None, end_column=None, path="", related=[],
        )  # fmt: skip
        return _documents.File(file=path, name=None, version=None, digest=None, problems=[finding]), False
    sound = found is not None and not any(problem.severity == "error" for problem in problems)
    workflow = found if sound else None
    if not session.json:
        _print(session, path, problems)
    report = _documents.File(
        file=path,
        name=workflow.name if workflow else None,
        version=workflow.version if workflow else None,
        digest=plan.of(workflow).digest if workflow and session.json else None,  # only the document shows it
        problems=[_encode.finding(problem) for problem in problems],
    )
    return report, True


def _unreadable(session: Session, error: ConfigurationError) -> None:
    from ._errors import text

    for line in [*text(session, error), ""]:
        session.err.line(line)


def _print(session: Session, path: str, problems: tuple) -> None:  # type: ignore[type-arg]
    from ._errors import problem_blocks

    for block in problem_blocks(session, problems, terminal=session.out):
        for line in block:
            session.out.line(line)
    if session.verbose and not problems:
        session.out.line(f"ok  {path}")


def _summary(files: list[File]) -> str:
    severities = [problem.severity for report in files for problem in report.problems]
    errors, warnings = severities.count("error"), severities.count("warning")
    said = _count(len(files), "file")
    if not severities:
        return f"{said} checked, no problems"
    return f"{said} checked: {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
