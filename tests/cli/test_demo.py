"""`tramai demo`: a run that fails and is resumed, with nothing repeated and nothing touched outside its folder."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import ROOT, document, write
from tests.cli.test_documents import check
from tramai import document as documents
from tramai import workflow

Call = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


def test_it_shows_a_failure_a_resume_and_the_journal(tramai: Call) -> None:
    result = tramai("demo", "--dir", "play")
    assert result.exit_code == 0, result.output
    assert "$ tramai run demo.yaml" in result.stderr
    assert "error[TRM401]: step 'publish' failed" in result.stderr
    assert "$ touch online" in result.stderr
    assert " -C " not in result.stderr  # it is typed where the demo is
    assert "completed" in result.stderr
    assert "publish             shell    succeeded  2 attempts" in result.stdout
    assert Path("play/ledger.txt").read_text().splitlines() == ["charged Ada", "charged Grace", "charged Alan"]
    assert Path("play/published.txt").read_text() == "published 3 orders\n"


def test_its_document_says_what_ran_and_that_nothing_ran_twice(tramai: Call) -> None:
    found = check(document(tramai("demo", "--dir", "play", "--json")))
    assert found["folder"] == os.path.abspath("play")
    assert found["run"]["status"] == "failed"
    assert found["run"]["failed"] == "publish"
    assert found["resume"] == {"status": "completed", "exit_status": 0, "began": ["publish"], "failed": None}
    assert found["repeated"] == []
    attempts = {line["path"]: line["attempts"] for line in found["journal"]}
    assert attempts.pop("publish") == 2
    assert set(attempts.values()) == {1}


def test_every_command_that_it_names_works(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAMAI_STORE", "file:elsewhere")
    found = document(tramai("demo", "--dir", "my play", "--json"))
    first, *others = (shlex.split(command) for command in found["next"])
    assert first == ["cd", os.path.abspath("my play")]
    monkeypatch.chdir(first[1])
    for words in others:
        assert words[0] == "tramai"
        result = tramai(*words[1:])
        assert result.exit_code == 0, result.output
    assert not Path("../elsewhere").exists()


def test_without_a_folder_it_makes_one_of_its_own_and_leaves_it(
    tramai: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(os.listdir())
    folder = Path(document(tramai("demo", "--json"))["folder"])
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "demo.yaml").is_file()
    assert set(os.listdir()) == before


def test_settings_of_the_project_around_it_do_not_reach_it(tramai: Call) -> None:
    write("tramai.toml", 'store = "file:runs"\n')
    assert tramai("demo", "--dir", "play").exit_code == 0
    assert Path("play/.tramai/tramai.db").exists()
    assert not Path("runs").exists()


@pytest.mark.parametrize("name", ["demo.yaml", "tramai.toml", "ledger.txt", ".tramai"])
def test_a_folder_that_has_a_demo_is_3_and_stays_as_it_is(tramai: Call, name: str) -> None:
    Path("play").mkdir()
    write(f"play/{name}", "mine\n")
    result = tramai("demo", "--dir", "play")
    assert result.exit_code == 3
    assert f"play/{name} is there already" in result.stderr
    assert os.listdir("play") == [name]


def test_a_folder_that_cannot_be_made_is_3(tramai: Call) -> None:
    write("taken", "")
    result = tramai("demo", "--dir", "taken/play")
    assert result.exit_code == 3
    assert "cannot make taken/play" in result.stderr


def test_what_does_not_go_as_it_should_is_1_and_says_where_to_look(
    tramai: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "tramai: 1\nname: demo\nsteps:\n  - {id: publish, shell: exit 4}\n"
    monkeypatch.setattr("tramai.cli.init.template", lambda name: broken)
    result = tramai("demo", "--dir", "play")
    assert result.exit_code == 1
    assert "error[TRM720]: the demonstration stopped: its run is failed" in result.stderr
    found = check(document(tramai("demo", "--dir", "again", "--json")))
    assert (found["exit_status"], found["error"]["code"]) == (1, "TRM720")
    assert "tramai doctor" in result.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_and_the_run_is_saved(
    tramai: Call, start: Start, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    process = start("demo", "--dir", "play", env={"PATH": f"{slow_shell()}:{os.environ['PATH']}"})
    deadline = time.monotonic() + 20
    while not Path("slow").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=20) == status
    monkeypatch.chdir("play")
    assert tramai("show", "@last").exit_code == 0


def slow_shell() -> Path:
    """A folder with a `bash` that says it was called and takes its time."""
    folder = Path("bin").absolute()
    folder.mkdir()
    for name in ("bash", "sh"):
        program = folder / name
        program.write_text(f"#!/bin/bash\ntouch {Path('slow').absolute()}\nsleep 60\n", encoding="utf-8")
        program.chmod(0o755)
    return folder


def test_the_workflow_is_sound_and_in_canonical_form(tramai: Call) -> None:
    source = documents.read(str(ROOT / "tramai" / "templates" / "demo.yaml"))
    assert workflow.examine(source)[1] == ()
    assert tramai("fmt", "--check", str(ROOT / "tramai" / "templates" / "demo.yaml")).exit_code == 0
