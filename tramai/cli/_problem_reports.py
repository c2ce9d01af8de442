"""Problems of files as CI systems show them beside the code: annotations, and GitLab's report of code quality."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDefinition, TramaiError
from ._ci import Annotation, Dialect, near, root, told
from ._encode import finding, harmless

if TYPE_CHECKING:
    from ._documents import File, Finding


def lines(files: list[File], dialect: Dialect) -> list[str]:
    """Annotations of all problems, errors first, and how many there are if not all are shown."""
    found = [annotation(one, report.file) for report in files for one in report.problems]
    return told(dialect, found, whole=True)


def of_error(error: TramaiError) -> list[Annotation]:
    """Annotations of what ended a command: of each mistake in a file, or of the error itself."""
    if isinstance(error, InvalidDefinition):
        wrong = [problem for problem in error.problems if problem.severity == "error"]
        return [annotation(finding(one), one.position.file if one.position else None) for one in wrong]
    text = str(error) + (f"\n{error.hint}" if error.hint else "")
    at = error.position
    if at is None:
        return [Annotation(severity="error", title=error.code, text=text)]
    file = near(at.file, root())
    return [Annotation(severity="error", title=error.code, text=text, file=file, line=at.line, column=at.column)]


def annotation(one: Finding, file: str | None) -> Annotation:
    """A problem as an annotation."""
    text = one.message + (f"\n{one.hint}" if one.hint else "")
    for other in one.related:
        text += f"\n{other.file}:{other.line}:{other.column}: {other.message}"
    return Annotation(
        severity=one.severity,
        title=one.code,
        text=text,
        file=None if file is None else near(file, root()),
        line=one.line,
        column=one.column,
        end_line=one.end_line,
    )


def code_quality(files: list[File]) -> str:
    """GitLab's report of code quality: a JSON array."""
    place = root()
    seen: dict[str, int] = {}
    found = [_issue(one, near(report.file, place), seen) for report in files for one in report.problems]
    return harmless(json.dumps(found, indent=2))


def _issue(one: Finding, file: str, seen: dict[str, int]) -> dict[str, Any]:
    """One entry. The fingerprint is that of the place in the data, so that a line that moves is no new problem."""
    import hashlib

    name = f"{file}\0{one.code}\0{one.path}"
    seen[name] = seen.get(name, -1) + 1
    mark = hashlib.sha256(f"{name}\0{seen[name]}".encode("utf-8", "backslashreplace")).hexdigest()
    return {
        "description": one.message + (f" ({one.hint})" if one.hint else ""),
        "check_name": one.code,
        "fingerprint": mark,
        "severity": "major" if one.severity == "error" else "minor",
        "location": {"path": file, "lines": {"begin": one.line or 1}},
    }
