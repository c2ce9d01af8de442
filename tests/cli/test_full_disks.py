"""A standard output that cannot be written, by every verb: 141, a sentence, no traceback, and nothing of it a bug."""

from __future__ import annotations

import os
import sys

import pytest

from tests.cli.hostile import called, everything, lines_of
from tests.cli.test_help_tree import COMMANDS
from tramai.cli import _errors

STATUSES = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 141}


def written(path: str, *arguments: str) -> tuple[int, str]:
    """Exit status and standard error of a command line whose standard output is this file."""
    with open(path, "w") as out, open("err.txt", "w+") as err:
        before, (sys.stdout, sys.stderr) = (sys.stdout, sys.stderr), (out, err)
        try:
            status = _errors.guarded(list(arguments))
        finally:
            sys.stdout, sys.stderr = before
        err.seek(0)
        return status, err.read()


def unread(*arguments: str) -> tuple[int, str]:
    """The same with a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return written(f"/dev/fd/{writer}", *arguments)
    finally:
        os.close(writer)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_on_a_full_disk_is_no_bug(name: str) -> None:
    status, err = written("/dev/full", *name.split(), "--help")
    assert (status, err) == (141, "warning: standard output cannot be written: No space left on device\n")
    assert unread(*name.split(), "--help") == (141, "")
    assert called(*name.split(), "--help")[0] == 0


@pytest.mark.parametrize("how", ["full", "unread"])
def test_every_verb_says_it_and_goes_on(how: str) -> None:
    for line in lines_of(everything()):
        arguments = (*line, "--color", "never", "--progress", "plain")
        status, err = written("/dev/full", *arguments) if how == "full" else unread(*arguments)
        assert status in STATUSES, (line, status, err)
        assert "Traceback" not in err
        assert "TRM499" not in err
        assert "Exception ignored" not in err
        if status == 141 and how == "full":
            assert "warning: standard output cannot be written" in err
