"""Which workflow files the paths of a command mean: files as they are, and what folders hold."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from ..errors import UsageError

ENDINGS = (".yaml", ".yml", ".toml")
_MARK = re.compile(rb"""^[ \t]*\{?[ \t]*["']?tramai["']?[ \t]*[:=]""", re.MULTILINE)
_SKIPPED = {"node_modules", "__pycache__", "venv"}


def files(paths: tuple[str, ...]) -> list[str]:
    """Every file once, in order; a folder stands for the workflow files in it. UsageError when there is none."""
    found = list(dict.fromkeys(file for path in paths for file in (_walk(path) if os.path.isdir(path) else (path,))))
    if not found:
        raise UsageError(what=f"no workflow files in {', '.join(paths)}", hint="a workflow has the key `tramai: 1`")
    return found


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
