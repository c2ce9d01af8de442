"""The report file of an internal error: what a maintainer needs, and nothing that a user typed as a value."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback

from .. import __version__


def write(arguments: list[str], error: BaseException) -> str | None:
    """Write the report, owner-only; its path, or None when there is no place for it."""
    try:
        handle, path = tempfile.mkstemp(prefix="tramai-report-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(contents(arguments, error))
    except OSError:
        return None
    return path


def contents(arguments: list[str], error: BaseException) -> str:
    """Version, platform, the words of the command without input values, the traceback."""
    lines = [
        f"tramai {__version__}",
        f"python {sys.version.split()[0]} ({platform.python_implementation()})",
        f"platform {platform.platform()}",
        f"command tramai {' '.join(without_values(arguments))}",
        "",
        "".join(traceback.format_exception(error)),
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
