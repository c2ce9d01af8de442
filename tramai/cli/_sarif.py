"""`validate --format sarif`: SARIF 2.1.0, for code scanning and editors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .. import __version__
from ._encode import harmless

if TYPE_CHECKING:
    from ..fixes import Edit
    from ._documents import File, Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
Edits = Mapping[tuple[str, str, str], tuple[str, list["Edit"]]]
"""Of a file, a code and a path: the hint, and the edits that follow it."""


def document(files: list[File], edits: Edits) -> str:
    """The log: one run, a rule for each code that was found, a result for each problem."""
    codes = sorted({one.code for report in files for one in report.problems})
    results = [_result(report, one, codes.index(one.code), edits) for report in files for one in report.problems]
    run = {
        "tool": {
            "driver": {
                "name": "tramai",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": _artifact(report.file)} for report in files],
        "results": results,
    }
    return harmless(json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2))


def _rule(code: str) -> dict[str, Any]:
    """A rule out of the page of its code."""
    from .explain import read, title

    page = read(code)
    body = page.partition("\n")[2].strip()
    short = title(page)
    words = re.findall(r"[A-Za-z0-9]+", short)
    return {
        "id": code,
        "name": "".join(word[:1].upper() + word[1:] for word in words) or code,
        "shortDescription": {"text": short},
        "fullDescription": {"text": " ".join(body.split("\n## ")[0].split()) or short},
        "help": {"text": f"tramai explain {code}", "markdown": body},
    }


def _result(report: File, one: Finding, index: int, edits: Edits) -> dict[str, Any]:
    text = one.message + (f"\n{one.hint}" if one.hint else "")
    made: dict[str, Any] = {
        "ruleId": one.code,
        "ruleIndex": index,
        "level": one.severity,
        "message": {"text": text},
        "locations": [_location(report.file, one.line, one.column, one.end_line, one.end_column)],
        "partialFingerprints": {"tramai/1": f"{one.code}:{one.path}"},
    }
    if one.related:
        made["relatedLocations"] = [
            {**_location(other.file, other.line, other.column), "message": {"text": other.message}, "id": number}
            for number, other in enumerate(one.related, 1)
        ]
    hint, mending = edits.get((report.file, one.code, one.path), ("", []))
    if mending:
        replacements = [
            {"deletedRegion": _region(*edit.range()), "insertedContent": {"text": edit.text}} for edit in mending
        ]
        change = {"artifactLocation": _artifact(report.file), "replacements": replacements}
        made["fixes"] = [{"description": {"text": hint or "mend it"}, "artifactChanges": [change]}]
    return made


def _location(
    file: str, line: int | None, column: int | None, end_line: int | None = None, end_column: int | None = None
) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if line is not None:
        physical["region"] = _region(line, column, end_line, end_column)
    return {"physicalLocation": physical}


def _region(
    line: int, column: int | None, end_line: int | None = None, end_column: int | None = None
) -> dict[str, int]:
    named = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    return {name: value for name, value in named.items() if value is not None}


def _artifact(file: str) -> dict[str, str]:
    """A file as a URI: relative as it was given, absolute ones with their scheme."""
    path = file.replace(os.sep, "/")
    return {"uri": ("file://" if os.path.isabs(file) else "") + quote(path, safe="/._-~+@,=")}
