"""Places and streams that a command would rather not have: none of them makes a traceback or a wrong status."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, ROOT, write
from tests.test_sqlite_faults import unprivileged
from tramai.errors import StoreUnavailable
from tramai.stores import open_store

__all__ = ["unprivileged"]

Call = Callable[..., Result]


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `$T` is tramai."""
    command = f'T() {{ "{sys.executable}" -m tramai "$@"; }}; {script}'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("list", 3), ("run hello.yaml", 3), ("--json show @last", 3), ("--version", 0), ("--help", 0), ("run", 2)],
)
def test_a_folder_that_was_removed_is_said_to_be_gone(arguments: str, status: int) -> None:
    Path("gone").mkdir()
    ended = shell(f"cd gone; rmdir ../gone; T {arguments}")
    assert ended.returncode == status
    assert "Traceback" not in ended.stderr
    if status == 3:
        assert "has been removed" in ended.stdout + ended.stderr


def test_from_a_folder_that_was_removed_another_can_be_worked_in() -> None:
    write("hello.yaml", HELLO)
    Path("gone").mkdir()
    ended = shell(f"cd gone; rmdir ../gone; T -C {os.getcwd()} run hello.yaml -q")
    assert (ended.returncode, ended.stdout) == (0, "said: hello world\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["run hello.yaml", "list", "validate hello.yaml", "run --help"])
def test_a_closed_stream_is_nothing_to_fail_on(arguments: str, closed: str) -> None:
    write("hello.yaml", HELLO)
    ended = shell(f"T {arguments} {closed}")
    assert ended.returncode == 0
    assert "error" not in ended.stderr
    if arguments.startswith("run h"):
        with contextlib.closing(sqlite3.connect(".tramai/tramai.db")) as database:
            found = database.execute("PRAGMA integrity_check").fetchone()
        assert found == ("ok",)
        assert json.loads(shell("T show @last --json").stdout)["run"]["status"] == "completed"


@pytest.mark.parametrize(("arguments", "status"), [("validate -", 1), ("run -", 3)])
def test_a_closed_standard_input_holds_no_workflow(arguments: str, status: int) -> None:
    ended = shell(f"T {arguments} <&-")
    assert ended.returncode == status
    assert "TRM118" in ended.stdout + ended.stderr


@pytest.mark.parametrize("arguments", ["list --json", "schema", "run hello.yaml", "show @last"])
def test_a_full_disk_behind_standard_output_is_told(arguments: str) -> None:
    write("hello.yaml", HELLO)
    shell("T run hello.yaml -q")
    ended = shell(f"T {arguments} > /dev/full")
    assert ended.returncode == 141
    assert "warning: standard output cannot be written: No space left on device" in ended.stderr


def test_a_pipe_among_the_files_of_a_folder_keeps_nobody_waiting(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    os.mkfifo("pipe.yaml")
    os.symlink("nowhere.yaml", "dangling.yaml")
    os.symlink("loop.yaml", "loop.yaml")
    result = tramai("validate", ".")
    assert (result.exit_code, result.stdout) == (0, "1 file checked, no problems\n")


def test_a_child_that_wrote_nothing_has_no_log_that_could_not_be_read(tramai: Call) -> None:
    write("quiet.yaml", "tramai: 1\nname: quiet\nsteps:\n  - {id: one, shell: ':'}\n  - {id: two, shell: echo two}\n")
    tramai("run", "quiet.yaml")
    result = tramai("logs", "@last")
    assert (result.exit_code, result.stdout) == (0, "== one, attempt 1\n== two, attempt 1\ntwo\n")
    assert result.stderr.startswith("one, attempt 1, wrote nothing, or its log is gone: ")


def test_a_log_that_is_gone_is_said_to_be(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    (log,) = json.loads(tramai("logs", "@last", "--json").stdout)["logs"]
    assert log["text"] == "compiling\nno such file\n"
    os.unlink(log["file"])
    result = tramai("logs", "@last")
    assert result.exit_code == 0
    assert f"build, attempt 1, wrote nothing, or its log is gone: {log['file']}" in result.stderr
    assert json.loads(tramai("logs", "@last", "--json").stdout)["logs"][0]["text"] is None


def test_a_store_that_cannot_be_reached_is_not_taken_for_none(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    open_store(f"sqlite:{tmp_path}/runs.db").close()  # what it imports, the other user might not be able to read
    folder: Path = request.getfixturevalue("unprivileged")
    url = f"sqlite:{folder}/kept/runs.db"
    open_store(url).close()
    (folder / "kept").chmod(0)
    for create in (True, False):
        with pytest.raises(StoreUnavailable):
            open_store(url, create=create)
    (folder / "kept").chmod(0o700)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("x:=1e400", "1e400 is larger than any number can be"),
        ('x:={"a": 1, "a": 2}', "the key 'a' stands there twice"),
        ("x:=" + "[" * 300 + "]" * 300, "nested deeper than 200 levels"),
        ("x:=" + "[" * 100_000, "nested too deeply"),
        ("x:=[NaN]", "NaN is not JSON"),
    ],
)
def test_an_input_that_is_no_data_is_refused(tramai: Call, pair: str, words: str) -> None:
    write("any.yaml", "tramai: 1\nname: any\ninputs: {x: {}}\nsteps: [{id: a, local: 1}]\n")
    result = tramai("run", "any.yaml", "-i", pair)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Path(".tramai").exists()


def test_a_file_without_an_end_is_no_input(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tramai.cli._given.LONGEST", 1 << 20)
    write("any.yaml", "tramai: 1\nname: any\ninputs: {x: {}}\nsteps: [{id: a, local: 1}]\n")
    for arguments in (("-i", "x=@/dev/zero"), ("--inputs", "/dev/zero")):
        result = tramai("run", "any.yaml", *arguments)
        assert result.exit_code == 2
        assert "larger than 1 MiB" in result.stderr


@pytest.mark.parametrize("key", ["", " ", "a\nb", "k" * 201])
def test_a_start_key_has_some_characters_and_not_too_many(tramai: Call, key: str) -> None:
    write("hello.yaml", HELLO)
    result = tramai("run", "hello.yaml", "--start-key", key)
    assert result.exit_code == 2
    assert "1 to 200 printable characters" in result.stderr


def test_a_step_that_a_run_never_had_is_not_followed_in_silence(tramai: Call) -> None:
    tramai("run", write("fails.yaml", FAILS))
    result = tramai("logs", "@last", "biuld", "-f")
    assert (result.exit_code, "did you mean build?" in result.stderr) == (4, True)
    assert tramai("logs", "@last", "build", "-f").exit_code == 0
    assert "no logs of these:" in tramai("logs", "@last", "build", "--attempt", "9").stderr


def test_a_path_is_no_command_for_a_terminal(tramai: Call) -> None:
    from tests.cli.test_exit_codes import blocked_run

    path = "each[\x1b[31m].a"
    result = tramai("resolve", blocked_run(path=path), path, "--as", "retry")
    assert (result.exit_code, "\x1b" in result.stdout) == (0, False)


@pytest.mark.parametrize("priority", ["9" * 30, "-" + "9" * 30, "1000001", "x", "1.5"])
def test_a_priority_that_no_store_can_hold_is_bad_input(tramai: Call, priority: str) -> None:
    write("hello.yaml", HELLO)
    result = tramai("run", "hello.yaml", "--detach", "--priority", priority)
    assert (result.exit_code, "--priority" in result.stderr) == (2, True)
    assert not Path(".tramai").exists()


@pytest.mark.parametrize("store", ["sqlite:runs.db?retentoin=30d", "file:runs?x=1", "sqlite:a.db?retention=1d&y=2"])
def test_a_parameter_of_a_store_that_nothing_knows_makes_no_file_of_that_name(tramai: Call, store: str) -> None:
    write("hello.yaml", HELLO)
    result = tramai("run", "hello.yaml", "--store", store)
    assert (result.exit_code, "a parameter that nothing knows" in result.stderr) == (3, True)
    assert sorted(os.listdir()) == ["hello.yaml"]


def test_the_word_of_another_cron_is_answered_as_an_expression(tramai: Call) -> None:
    result = tramai("schedule", "preview", "@daily")
    assert (result.exit_code, "0 0 * * *" in result.stderr) == (2, True)


def test_a_full_disk_is_said_to_be_full_by_those_who_look_too(tramai: Call) -> None:
    tramai("run", write("hello.yaml", HELLO))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        told = [tramai(*words) for words in (("list",), ("show", "@last"), ("run", "hello.yaml"))]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert [result.exit_code for result in told] == [7, 7, 7]
    assert all("no space is left" in result.stderr for result in told)
    assert tramai("show", "@last").exit_code == 0


def test_nothing_is_left_for_others_in_a_store_that_ends_with_the_process(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("s.yaml", HELLO.replace("steps:", "schedules: [{cron: '0 6 * * *', timezone: UTC}]\nsteps:"))
    for words in (
        "run hello.yaml --detach",
        "schedule apply s.yaml",
        "schedule run s",
        "worker --once",
        "schedule serve",
    ):
        result = tramai(*words.split(), "--store", "memory:")
        assert (result.exit_code, "memory: is not shared" in result.stderr) == (2, True), words


def test_nobody_to_drain_is_said_in_words(tramai: Call) -> None:
    for words, says in ((("--all",), "this store has none"), (("--pool", "blue"), "the pool blue has none")):
        result = tramai("worker", "drain", *words)
        assert (result.exit_code, says in result.stderr) == (4, True)
