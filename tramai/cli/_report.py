"""The report file of an internal error: what a maintainer needs, and nothing that a user typed as a value."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from ..diagnostics import Diagnostic


def write(arguments: list[str], diagnostic: Diagnostic) -> str | None:
    """Write the report, owner-only; its path, or None when there is no place for it."""
    try:
        handle, path = tempfile.mkstemp(prefix="tramai-report-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(contents(arguments, diagnostic))
    except OSError:
        return None
    return path


def contents(arguments: list[str], diagnostic: Diagnostic) -> str:
    """Version, platform, the words of the command without input values, what is behind the error."""
    lines = [
        f"tramai {__version__}",
        f"python {sys.version.split()[0]} ({platform.python_implementation()})",
        f"platform {platform.platform()}",
        f"command tramai {' '.join(without_values(arguments))}",
        f"reference {diagnostic.id}",
        "",
        diagnostic.detail,
    ]
    return "\n".join(lines)


def without_values(arguments: list[str]) -> list[str]:
    """The arguments with the values of inputs left out: `-i token=…`."""
    kept, hide = [], False
    for argument in arguments:
        if hide or argument.startswith(("--input=", "-i=")):
            argument = argument.split("=", 1)[0] + "=…"
        hide = argument in ("-i", "--input", "--output", "--comment")
        kept.append(argument)
    return kept
