"""Every verb, on runs and files whose texts are the worst: nothing raw, nothing obeyed, no traceback, no cropped id."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.hostile import STATUSES, called, everything, harmless, lines_of
from tramai.cli._advice import short
from tramai.cli._group import SUMMARIES

EXACT = ("convert",)
"""What these print is a file, and must be exactly that."""
LONG = {"worker"}
"""What these do does not end by itself."""
OURS = {"github": ("error", "warning", "group", "endgroup", "notice"), "azure": ("task.logissue",)}


@pytest.mark.parametrize(
    ("encoding", "columns", "terminal"),
    [
        ("utf-8", "80", False),
        ("ascii", "40", True),
        ("latin-1", "200", True),
        ("cp1252", "1", True),
        ("utf-8", "7", True),
    ],
)
def test_the_worst_texts_in_every_verb_are_shown_as_text(
    encoding: str, columns: str, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    tried = set()
    for line in lines_of(everything(), each=columns == "80"):
        flags = ("--color", "never", "--progress", "plain")
        status, out, err = called(*line, *flags, encoding=encoding, terminal=terminal)
        ours = OURS.get(line[-1], ())
        if line[0] not in EXACT:
            harmless(out, line[:4], ours=ours)
        harmless(err, line[:4], ours=ours)
        assert status in STATUSES, (line, status, err)
        tried.add(line[0])
    assert set(SUMMARIES) - tried - LONG == set(), "a verb that is not tried"


@pytest.mark.parametrize("system", ["github", "azure"])
def test_the_log_of_a_ci_obeys_nothing_but_us(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*{"github": ("GITHUB_ACTIONS", "true"), "azure": ("TF_BUILD", "True")}[system])
    monkeypatch.setenv("AGENT_TEMPDIRECTORY", str(Path.cwd()))
    ours = (*OURS[system], "task.setvariable", "task.uploadsummary") if system == "azure" else OURS[system]
    ids = everything()
    for line in [("run", f"flows/{which}.yaml", "--inputs", "in.json") for which in ids] + lines_of(ids):
        _, out, err = called(*line, "--color", "never")
        if line[0] not in EXACT:
            harmless(out, line[:4], ours=(*ours, *OURS.get(line[-1], ())))
        harmless(err.replace("##[group]", "").replace("##[endgroup]", ""), line[:4], ours=(*ours, "task.logissue"))


@pytest.mark.parametrize("columns", ["1", "12", "40", "200"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_an_id_is_never_cropped(columns: str, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    ids = everything()
    shown = {name: called(name, encoding=encoding, terminal=True)[1] for name in ("list", "status")}
    for which, run in ids.items():
        assert short(run) in shown["list"]
        if which != "ends":
            assert short(run) in shown["status"], which
        _, out, err = called("resume", run, encoding=encoding, terminal=True)
        assert short(run) in out + err
        assert run in called("show", run, encoding=encoding, terminal=True)[1]


def test_bytes_that_are_no_text_are_shown_as_what_they_are() -> None:
    odd = os.fsdecode(b"\xff\xfe\x80.yaml")
    for line in (("show", odd), ("run", odd), ("validate", odd), ("list", "--label", odd), (odd,), ("-C", odd, "list")):
        for flag in ((), ("--json",)):
            status, out, err = called(*line, *flag)
            harmless(out + err, line)
            assert status in STATUSES - {0} or line[0] == "list", (line, status)


def test_streams_are_put_back() -> None:
    before = sys.stdout, sys.stderr
    called("list")
    assert (sys.stdout, sys.stderr) == before
