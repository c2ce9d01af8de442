"""Safe failures: a fixed sentence, a code and a reference for everybody; the rest for those who were named for it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tramai import diagnostics, engine, errors
from tramai.cli._group import group
from tramai.diagnostics import Diagnostic
from tramai.errors import BugError, CheckpointCorrupt, Fault, StoreUnavailable, TramaiError
from tramai.redact import Redactor
from tramai.stores import open_store
from tramai.stores.memory import Memory

from .engine.support import make
from .engine.support import run_r as run

DSN = "postgresql://app:hunter2@db.internal:5432/runs"
LEAKS = re.compile(r"SELECT|INSERT|UPDATE|FROM|no such|\bhead\b|\brecord\b.*column|hunter2|db\.internal|sqlite3", re.I)
ONE = [{"id": "a", "shell": "true"}]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without settings from outside."""
    for name in ("TRAMAI_STORE", "TRAMAI_DIAGNOSTICS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def safe(text: str, *, id: str | None = None) -> None:
    """A text that may be shown: it has a reference and no word of what is behind it."""
    assert re.search(r"\(ref [0-9a-f]{8}\)", text), text
    assert id is None or f"(ref {id})" in text
    assert not LEAKS.search(text), text
    assert not re.search(r"(?<![\w.])/\w+/", re.sub(r"the report is in \S+", "", text)), text


# The text.


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("busy", "busy"),
        ("'/srv/x/runs.db' is a folder, not a file", "it is a folder, not a file"),
        ("'runs.db' is empty", "it is empty"),
        ("/srv/x: Permission denied", "it: Permission denied"),
        (f"no answer from {DSN}, twice", "no answer from …, twice"),
        ("cannot open ~/.tramai/x.db (errno 2)", "cannot open … (errno 2)"),
        ("'C:\\runs\\x.db' is locked", "it is locked"),
        ("read and/or write failed", "read and/or write failed"),
        ("its folder holds a store of the kind 'file'", "its folder holds a store of the kind 'file'"),
    ],
)
def test_a_fault_never_shows_a_place(what: str, shown: str) -> None:
    error = StoreUnavailable(what=what, hint=f"look at {DSN}")
    assert error.message == f"the store cannot be used: {shown}"
    assert str(error) == f"the store cannot be used: {shown} (ref {error.id})"
    assert error.told == what
    assert error.hint == "look at …"


def test_every_fault_has_a_reference_of_its_own() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Fault)}
    assert kinds == {Fault, StoreUnavailable, CheckpointCorrupt, BugError}
    ids = {kind(what="x").id for kind in kinds for _ in range(10)}
    assert len(ids) == 40


# Through the API.


def drop(path: Path, table: str) -> None:
    meddler = sqlite3.connect(path)
    meddler.execute(f"DROP TABLE {table}")
    meddler.commit()
    meddler.close()


def lose_a_table(path: Path) -> None:
    drop(path, "record")


def write_junk(path: Path) -> None:
    path.write_bytes(b"x" * 9000)


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BREAKS: list[Callable[[Path], None]] = [lose_a_table, write_junk, make_a_folder]


@pytest.mark.parametrize("damage", BREAKS, ids=lambda one: one.__name__)
def test_a_broken_store_says_no_more_than_it_may(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "runs.db"
    open_store(f"sqlite:{path}").close()
    damage(path)
    seen: list[Diagnostic] = []
    with pytest.raises(Fault) as caught:
        run(open_store(f"sqlite:{path}"), make(ONE), options={"diagnostics": seen.append})
    assert caught.value.exit_status == 7
    safe(str(caught.value), id=caught.value.id)
    if damage is lose_a_table:
        (diagnostic,) = seen
        assert diagnostic.id == caught.value.id
        assert diagnostic.kind == "OperationalError"
        assert "no such table: record" in diagnostic.detail
        assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_closed_store_says_so() -> None:
    store = Memory()
    store.close()
    with pytest.raises(StoreUnavailable) as caught:
        run(store, make(ONE))
    safe(str(caught.value))


class Leaky(Memory):
    """A store of a third party that lets its driver's errors through, at one of its methods."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    def __getattribute__(self, name: str) -> Any:
        if name != "method" and name == self.method:

            def fail(*args: Any, **kwargs: Any) -> Any:
                raise ConnectionError(f"could not connect to {DSN}: SELECT 1")

            return fail
        return super().__getattribute__(name)


@pytest.mark.parametrize("method", ["create", "commit"])
def test_an_error_that_is_nobodys_becomes_a_bug_by_the_name_of_its_class(method: str) -> None:
    seen: list[Diagnostic] = []
    with pytest.raises(BugError) as caught:
        run(Leaky(method), make(ONE), options={"diagnostics": seen.append})
    assert caught.value.message == "internal error: ConnectionError"
    safe(str(caught.value))
    assert caught.value.__context__ is None
    (diagnostic,) = seen
    assert diagnostic.id == caught.value.id
    assert "could not connect to postgresql://***@db.internal" in diagnostic.detail
    assert "hunter2" not in diagnostic.detail


def test_a_lease_that_cannot_be_renewed_stops_the_run_whatever_the_store_raises(
    capfd: pytest.CaptureFixture[str],
) -> None:
    result = run(Leaky("renew"), make([{"id": "a", "shell": "sleep 20"}]), options={"lease": 0.3})
    assert (result.status, result.exit_status) == ("interrupted", 5)
    assert "hunter2" not in "".join(capfd.readouterr())


def test_a_journal_that_cannot_be_read_keeps_the_run_from_nobody() -> None:
    store = Leaky("journal")
    store.method = ""
    made = make([{"id": "a", "delay": "2h"}])
    assert run(store, made).status == "sleeping"
    store.method = "journal"
    with pytest.raises(BugError):
        engine.resume("r", store=store, plan=made, options=engine.Options(wait=1e6))
    store.method = ""
    assert store.get("r").lease is None


def test_a_mistake_of_the_caller_stays_one() -> None:
    with pytest.raises(ValueError, match="run id must not be blank"):
        engine.run(make(ONE), {}, store=Memory(), options=engine.Options(run_id=" "))


# The diagnostic.


def test_a_diagnostic_is_short_and_masks_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "c4n4ry-value")

    class Talks(Memory):
        def commit(self, *args: Any) -> int:
            raise RuntimeError("c4n4ry-value password=hunter2 " + "x" * 50_000 + " the end c4n4ry-value")

    seen: list[Diagnostic] = []
    with pytest.raises(BugError):
        run(Talks(), make(ONE, secrets={"t": {"env": "TOKEN"}}), options={"diagnostics": seen.append})
    (diagnostic,) = seen
    assert len(diagnostic.detail.encode()) <= diagnostics.LONGEST
    assert "c4n4ry" not in diagnostic.detail
    assert "hunter2" not in diagnostic.detail
    assert "the end ***" in diagnostic.detail
    assert diagnostic.run_id == "r"


def test_the_errors_behind_an_error_are_told_in_order() -> None:
    try:
        try:
            raise OSError(28, "No space left on device", "/srv/x.db")
        except OSError:
            raise StoreUnavailable(what="no space is left") from None
    except StoreUnavailable as error:
        told = diagnostics.of(error, Redactor())
    assert told.kind == "OSError"
    assert told.detail.index("/srv/x.db") < told.detail.index("StoreUnavailable")


def test_a_sink_that_fails_hides_nothing() -> None:
    def broken(diagnostic: Diagnostic) -> None:
        raise OSError("the log is full")

    with pytest.raises(BugError, match="ConnectionError"):
        run(Leaky("commit"), make(ONE), options={"diagnostics": broken})


# Through the command line.


def command(*arguments: str) -> Any:
    return CliRunner().invoke(group, list(arguments))


def prepared(place: Path) -> None:
    (place / "one.yaml").write_text("tramai: 1\nname: one\nsteps: [{id: a, local: 1}]\n", encoding="utf-8")
    assert command("run", "one.yaml").exit_code == 0
    drop(place / ".tramai" / "tramai.db", "record")


@pytest.mark.parametrize("arguments", [("run", "one.yaml"), ("show", "@last"), ("logs", "@last")])
def test_a_command_says_a_sentence_and_a_reference(place: Path, arguments: tuple[str, ...]) -> None:
    prepared(place)
    result = command(*arguments)
    assert result.exit_code == 7
    safe("error[" + result.stderr.split("error[")[1])
    document = json.loads(command(*arguments, "--json").stdout.splitlines()[-1])
    assert document["error"]["code"] == "TRM510"
    assert document["error"]["message"] == "the store cannot be used: the database failed (SQLITE_ERROR)"
    assert re.fullmatch(r"[0-9a-f]{8}", document["error"]["correlation_id"])
    assert not LEAKS.search(json.dumps(document))


def test_what_is_behind_it_goes_to_the_file_that_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(place)
    monkeypatch.setenv("TRAMAI_DIAGNOSTICS", "faults.jsonl")
    first, second = command("run", "one.yaml"), command("show", "@last")
    kept = [json.loads(line) for line in (place / "faults.jsonl").read_text().splitlines()]
    assert len(kept) == 2
    for result, diagnostic in zip((first, second), kept, strict=True):
        assert f"(ref {diagnostic['id']})" in result.stderr
        assert "no such table: record" in diagnostic["detail"]
    assert stat.S_IMODE(os.stat(place / "faults.jsonl").st_mode) == 0o600


def test_debug_shows_what_is_behind_it(place: Path) -> None:
    prepared(place)
    assert "no such table: record" in command("show", "@last", "--debug").stderr
    assert "no such table" not in command("show", "@last").stderr


def test_a_diagnostics_file_that_cannot_be_written_hides_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(place)
    monkeypatch.setenv("TRAMAI_DIAGNOSTICS", "no/such/folder/x")
    result = command("show", "@last")
    assert result.exit_code == 7
    safe(result.stderr)


def test_errors_that_are_no_faults_have_no_reference(place: Path) -> None:
    result = command("show", "nothing", "--json")
    assert "correlation_id" not in json.loads(result.stdout)["error"]
    assert not issubclass(errors.NotFound, Fault)
    assert issubclass(Fault, TramaiError)
