"""Which files the paths of a command mean: files as they are, and the workflows and workflow tests in folders."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator

from ..errors import UsageError

ENDINGS = (".yaml", ".yml", ".toml")
TESTS = (".tramai-test.yaml", ".tramai-test.yml", ".tramai-test.toml")
"""`testing.suite.ENDINGS`, without the import."""
_MARK = re.compile(rb"""^[ \t]*\{?[ \t]*["']?tramai["']?[ \t]*[:=]""", re.MULTILINE)
_SKIPPED = {"node_modules", "__pycache__", "venv"}


def files(paths: tuple[str, ...], *, tests: bool = False) -> list[str]:
    """Every file once, in order; a folder stands for the workflow files in it. UsageError when there is none.

    `tests`: a folder stands for its files of workflow tests, too.
    """
    found = _all(paths, lambda path: _is_workflow(path) if not is_test(path) else tests)
    if not found:
        raise UsageError(what=f"no workflow files in {', '.join(paths)}", hint="a workflow has the key `tramai: 1`")
    return found


def test_files(paths: tuple[str, ...]) -> list[str]:
    """The same for files of workflow tests alone."""
    found = _all(paths, is_test)
    if not found:
        hint = "their names end in .tramai-test.yaml or .toml"
        raise UsageError(what=f"no test files in {', '.join(paths)}", hint=hint)
    return found


def is_test(path: str) -> bool:
    """Whether a file is one of workflow tests, by its name."""
    return path.lower().endswith(TESTS)


def _all(paths: tuple[str, ...], wanted: Callable[[str], bool]) -> list[str]:
    found = (file for path in paths for file in (_walk(path, wanted) if os.path.isdir(path) else (path,)))
    return list(dict.fromkeys(found))


def _walk(folder: str, wanted: Callable[[str], bool]) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(names):
            path = os.path.normpath(os.path.join(where, name))
            if name.endswith(ENDINGS) and wanted(path):
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
