"""`tramai store`: what each verb says and does, and every exit status it can have."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from tests.cli.conftest import FAILS, HELLO, SLEEPS, document, write
from tests.cli.test_exit_codes import owned_run
from tramai.errors import StoreUnavailable
from tramai.store import Holder
from tramai.stores import open_store

Call = Callable[..., Result]
DEFAULT = "sqlite:.tramai/tramai.db"


@pytest.fixture
def three(tramai: Call) -> tuple[str, str, str]:
    """A completed, a failed and a sleeping run; their ids."""
    for file, text in (("hello.yaml", HELLO), ("fails.yaml", FAILS), ("sleeps.yaml", SLEEPS)):
        tramai("run", write(file, text), "-q")
    runs = document(tramai("list", "--json"))["runs"]
    sleeps, fails, hello = (run["run_id"] for run in runs)
    return hello, fails, sleeps


def statuses(tramai: Call, *arguments: str) -> dict[str, str]:
    return {run["run_id"]: run["status"] for run in document(tramai("list", "--json", *arguments))["runs"]}


def damage(statement: str) -> None:
    connection = sqlite3.connect(".tramai/tramai.db")
    connection.execute(statement)
    connection.commit()
    connection.close()


# The noun.


def test_a_noun_without_a_verb_is_2_and_a_near_verb_is_suggested(tramai: Call) -> None:
    assert tramai("store").exit_code == 2
    result = tramai("store", "inf")
    assert result.exit_code == 2
    assert "did you mean 'tramai store info'?" in result.stderr


@pytest.mark.parametrize("verb", ["info", "check", "migrate", "prune", "copy", "move"])
def test_the_help_of_each_verb_is_whole_and_fits(tramai: Call, verb: str) -> None:
    result = tramai("store", verb, "--help")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Examples:"
    assert lines[1].startswith(f"  tramai store {verb}")
    assert f"Usage: tramai store {verb}" in result.stdout
    assert "Exit status:" in result.stdout
    assert max(map(len, result.stdout[result.stdout.index("Usage:") :].splitlines())) <= 80


def test_a_global_flag_stands_at_each_level_and_the_last_wins(tramai: Call) -> None:
    result = tramai("--store", "no:", "store", "--store", "no:", "info", "--store", "memory:", "--json")
    assert document(result)["url"] == "memory:"
    assert tramai("store", "--json", "info", "--store", "memory:").exit_code == 0


@pytest.mark.parametrize("verb", ["info", "check", "migrate", "prune", "copy", "move"])
def test_a_store_that_cannot_be_used_is_7(tramai: Call, verb: str) -> None:
    write("broken.db", "this is no database, whatever its name says\n" * 40)
    more = {"prune": ("--older-than", "1d"), "copy": ("--all", "--to", "memory:"), "move": ("--all", "--to", "memory:")}
    result = tramai("store", verb, *more.get(verb, ()), "--store", "sqlite:broken.db", "--json")
    assert result.exit_code == 7
    assert document(result)["exit_status"] == 7


@pytest.mark.parametrize("verb", ["info", "check", "migrate", "prune", "copy", "move"])
def test_an_unknown_store_is_3(tramai: Call, verb: str) -> None:
    more = {"prune": ("--older-than", "1d"), "copy": ("--all", "--to", "memory:"), "move": ("--all", "--to", "memory:")}
    assert tramai("store", verb, *more.get(verb, ()), "--store", "redis://x").exit_code == 3


def test_looking_at_nothing_makes_nothing(tramai: Call) -> None:
    assert "nothing is stored there yet" in tramai("store", "info").stdout
    assert tramai("store", "check").exit_code == 0
    assert "nothing to migrate" in tramai("store", "migrate").stdout
    assert tramai("store", "prune", "--older-than", "0s").exit_code == 0
    assert not Path(".tramai").exists()


# info


def test_info_says_what_there_is(tramai: Call, three: tuple[str, ...]) -> None:
    owned_run()
    text = tramai("store", "info").stdout
    for part in ("sqlite, format 4", "4: 1 completed, 1 failed, 1 running, 1 sleeping", "1 being worked on", "free"):
        assert part in text
    found = document(tramai("store", "info", "--json"))
    assert found["runs"] == {"completed": 1, "failed": 1, "running": 1, "sleeping": 1}
    assert (found["kind"], found["format"], found["held"]) == ("sqlite", 4, 1)
    assert found["place"] == os.path.abspath(".tramai/tramai.db")
    assert found["size"] > 10_000


# check


def test_a_sound_store_has_no_faults(tramai: Call, three: tuple[str, ...]) -> None:
    result = tramai("store", "check", "--repair-nothing")
    assert result.exit_code == 0
    assert result.stdout == ""
    found = document(tramai("store", "check", "--json"))
    assert (found["runs"], found["definitions"], found["faults"]) == (3, 3, [])
    assert found["records"] >= 5


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE record SET value='\"x\"' WHERE path='greet' AND slot=0", "does not match its checksum"),
        ("DELETE FROM record WHERE path='greet'", "0 of its 2 records"),
        ("DELETE FROM note", "of its"),
        ("UPDATE definition SET body=replace(body, 'hello', 'hullo')", "definition"),
        ("DELETE FROM definition", "is missing"),
        ("UPDATE run SET body=replace(body, 'hello', 'hullo')", "does not match its checksum"),
        ("INSERT INTO record VALUES (99, 'p', 1, NULL, '', 0)", "belong to no run"),
        ("INSERT INTO blob VALUES ('abc', x'00')", "the large value abc is damaged"),
    ],
)
def test_what_is_damaged_is_1_and_named(tramai: Call, statement: str, said: str) -> None:
    tramai("run", write("hello.yaml", HELLO), "-q")
    run_id = next(iter(statuses(tramai)))
    damage(statement)
    before = Path(".tramai/tramai.db").read_bytes()
    result = tramai("store", "check")
    assert result.exit_code == 1
    assert said in result.stdout
    found = document(tramai("store", "check", "--json"))
    own = "no run" in said or "large value" in said
    assert found["faults"][0]["run_id"] == (None if own else run_id)
    assert Path(".tramai/tramai.db").read_bytes() == before


# migrate


def test_a_store_that_is_up_to_date_is_left_as_it_is(tramai: Call, three: tuple[str, ...]) -> None:
    assert "format 4, up to date" in tramai("store", "migrate").stdout
    assert document(tramai("store", "migrate", "--json"))["migrated"] is False


def test_an_older_format_is_migrated_and_said(
    tramai: Call, three: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tramai.stores import _sqlite_schema

    later = (*_sqlite_schema.MIGRATIONS, lambda db: db.execute("CREATE TABLE later (x)"))
    monkeypatch.setattr(_sqlite_schema, "MIGRATIONS", later)
    found = document(tramai("store", "migrate", "--json"))
    assert (found["found"], found["format"], found["migrated"]) == (4, 5, True)
    assert "format 5, up to date" in tramai("store", "migrate").stdout
    damage("PRAGMA user_version=4")
    damage("DROP TABLE later")
    assert "format 4 is now format 5" in tramai("store", "migrate").stdout


def test_a_newer_format_is_7_and_untouched(tramai: Call, three: tuple[str, ...]) -> None:
    damage("PRAGMA user_version=99")
    before = Path(".tramai/tramai.db").read_bytes()
    result = tramai("store", "migrate")
    assert result.exit_code == 7
    assert "TRM511" in result.stderr
    assert Path(".tramai/tramai.db").read_bytes() == before


def test_the_sql_of_a_store_makes_one(tramai: Call) -> None:
    text = tramai("store", "migrate", "--print-sql").stdout
    assert not Path(".tramai").exists()
    connection = sqlite3.connect("made.db")
    connection.executescript(text)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    assert tramai("run", write("hello.yaml", HELLO), "--store", "sqlite:made.db").exit_code == 0
    assert document(tramai("store", "migrate", "--print-sql", "--json"))["sql"] == text


def test_the_sql_of_a_server_is_printed_without_asking_it(tramai: Call) -> None:
    url = "postgresql://u:s3cret@192.0.2.1:9/d?schema=reviews&prefix=acme_"
    result = tramai("store", "migrate", "--print-sql", "--store", url)
    assert result.exit_code == 0
    assert 'CREATE SCHEMA IF NOT EXISTS "reviews"' in result.stdout
    assert '"reviews"."acme_run"' in result.stdout
    assert result.stdout.startswith("BEGIN;\n")
    assert result.stdout.endswith("COMMIT;\n")
    assert "s3cret" not in result.output


def test_a_store_without_sql_is_2(tramai: Call) -> None:
    result = tramai("store", "migrate", "--print-sql", "--store", "memory:")
    assert result.exit_code == 2
    assert "the store memory: cannot be made by SQL" in result.stderr


# Places that cannot be written


def test_a_run_needs_no_place_for_its_logs(tramai: Call) -> None:
    Path(".tramai").write_text("in the way")
    result = tramai("run", write("hello.yaml", HELLO), "--store", "memory:")
    assert (result.exit_code, result.stdout) == (0, "said: hello world\n")
    assert "what the steps write is not kept: " in result.stderr
    assert Path(".tramai").read_text() == "in the way"
    quiet = tramai("run", "hello.yaml", "--store", "sqlite:runs.db", "--json")
    assert quiet.exit_code == 0
    assert "not kept" not in quiet.output


# prune


def test_prune_removes_what_is_over_and_leaves_a_tombstone(tramai: Call, three: tuple[str, ...]) -> None:
    hello, fails, sleeps = three
    shown = tramai("store", "prune", "--older-than", "0s", "--dry-run")
    assert (shown.exit_code, len(shown.stdout.splitlines())) == (0, 1)
    assert len(statuses(tramai)) == 3
    found = document(tramai("store", "prune", "--older-than", "0s", "--json"))
    assert [run["run_id"] for run in found["removed"]] == [hello]
    assert found["freed"] > 0
    assert statuses(tramai) == {sleeps: "sleeping", fails: "failed"}
    assert statuses(tramai, "--status", "removed") == {hello: "removed"}
    view = document(tramai("show", hello, "--json"))["run"]
    assert (view["inputs"], view["steps"], view["status"]) == ({}, [], "removed")
    assert tramai("show", hello).exit_code == 0
    assert tramai("resume", hello).exit_code == 5
    assert tramai("rerun", hello).exit_code == 5
    assert tramai("store", "prune", "--older-than", "0s").stdout == ""


def test_a_removed_start_key_starts_nothing(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml", "--start-key", "k")
    tramai("store", "prune", "--older-than", "0s")
    result = tramai("run", "hello.yaml", "--start-key", "k")
    assert result.exit_code == 5
    assert "what it held is gone" in result.stderr
    assert statuses(tramai) == {}


def test_a_failed_run_is_removed_only_when_it_is_named(tramai: Call, three: tuple[str, ...]) -> None:
    found = document(tramai("store", "prune", "--older-than", "0s", "--status", "failed", "--json"))
    assert [run["run_id"] for run in found["removed"]] == [three[1]]


def test_the_logs_of_a_removed_run_go_with_it(tramai: Call, three: tuple[str, ...]) -> None:
    folders = {path.name for path in Path(".tramai/logs").iterdir()}
    assert {three[0], three[1]} <= folders
    tramai("store", "prune", "--older-than", "0s")
    assert {path.name for path in Path(".tramai/logs").iterdir()} == folders - {three[0]}


def test_what_is_younger_stays(tramai: Call, three: tuple[str, ...]) -> None:
    assert document(tramai("store", "prune", "--older-than", "1h", "--json"))["removed"] == []
    assert len(statuses(tramai)) == 3


def test_retention_is_a_setting_and_the_flag_wins(tramai: Call, three: tuple[str, ...]) -> None:
    write("tramai.toml", 'retention = "0s"\n')
    assert document(tramai("store", "prune", "--older-than", "1d", "--json"))["removed"] == []
    assert len(document(tramai("store", "prune", "-n", "--json"))["removed"]) == 1
    assert tramai("store", "prune").exit_code == 0
    assert len(statuses(tramai)) == 2


@pytest.mark.parametrize("kind", ["sqlite:runs.db", "file:runs", "markdown:runs"])
def test_a_store_may_keep_nothing_of_a_run_that_is_over(tramai: Call, kind: str) -> None:
    url = f"{kind}?retention=completion"
    result = tramai("run", write("hello.yaml", HELLO), "--store", url, "--start-key", "k")
    assert (result.exit_code, result.stdout) == (0, "said: hello world\n")
    ((run_id, status),) = statuses(tramai, "--store", kind, "--status", "removed").items()
    assert status == "removed"
    assert list(Path(".tramai/logs").iterdir()) == []
    assert not any(b"hello world" in path.read_bytes() for path in Path().rglob("runs/**/*") if path.is_file())
    assert tramai("run", "hello.yaml", "--store", url, "--start-key", "k").exit_code == 5
    assert tramai("resume", run_id, "--store", url).exit_code == 5
    assert tramai("run", write("sleeps.yaml", SLEEPS), "--store", url).exit_code == 11
    assert list(statuses(tramai, "--store", kind).values()) == ["sleeping"]
    assert tramai("cancel", "@last", "--store", url).exit_code == 0
    assert len(statuses(tramai, "--store", kind, "--status", "removed")) == 2


def test_a_wrong_rule_is_3_and_says_how_to_write_it(tramai: Call) -> None:
    result = tramai("list", "--store", "sqlite:runs.db?retention=30")
    assert result.exit_code == 3
    assert "retention=30: 30 what? write 30s or 30m" in result.stderr
    assert "?retention=completion" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("prune",),
        ("prune", "--older-than", "30"),
        ("prune", "--older-than", "1d", "--status", "running"),
        ("copy", "--to", "memory:"),
        ("copy", "x", "--all", "--to", "memory:"),
        ("copy", "--all"),
        ("move", "--all", "--to", DEFAULT),
        ("move", "--all", "--to", "sqlite:.tramai/../.tramai/tramai.db"),
        ("check", "--repair"),
    ],
)
def test_a_wrong_command_line_is_2(tramai: Call, three: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    result = tramai("store", *arguments, "--json")
    assert result.exit_code == 2, result.output
    assert document(result)["schema"] == "tramai.error/1"
    assert len(statuses(tramai)) == 3


def test_a_wrong_retention_is_3_with_its_place(tramai: Call) -> None:
    write("tramai.toml", 'retention = "30"\n')
    result = tramai("store", "prune")
    assert result.exit_code == 3
    assert "tramai.toml:1:1" in result.stderr


# copy


def test_copies_are_made_once_and_only_of_what_is_over(tramai: Call, three: tuple[str, ...]) -> None:
    hello, fails, sleeps = three
    found = document(tramai("store", "copy", "--all", "--to", "sqlite:b.db", "--json"))
    assert {run["run_id"]: run["outcome"] for run in found["runs"]} == {hello: "copied", fails: "left", sleeps: "left"}
    assert found["to"] == "sqlite:b.db"
    assert statuses(tramai, "--store", "sqlite:b.db") == {hello: "completed"}
    assert len(statuses(tramai)) == 3
    text = tramai("store", "copy", "--all", "--to", "sqlite:b.db")
    assert text.exit_code == 0
    assert "it can still go on" in text.stdout
    assert "1 there already" in text.stderr
    assert tramai("resume", hello, "--store", "sqlite:b.db").exit_code == 0


def test_a_run_that_can_go_on_is_not_copied_5(tramai: Call, three: tuple[str, ...]) -> None:
    result = tramai("store", "copy", three[2], "--to", "sqlite:b.db")
    assert result.exit_code == 5
    assert "tramai store move" in result.stderr


def test_no_such_run_to_copy_or_move_is_4(tramai: Call, three: tuple[str, ...]) -> None:
    for verb in ("copy", "move"):
        assert tramai("store", verb, "k3f9q2mz", "--to", "sqlite:b.db").exit_code == 4
    assert not Path("b.db").exists()


def test_a_start_key_that_is_taken_there_is_5(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    for url in (DEFAULT, "sqlite:b.db"):
        tramai("run", "hello.yaml", "--start-key", "k", "--store", url)
    for verb in ("copy", "move"):
        result = tramai("store", verb, "--all", "--to", "sqlite:b.db", "--json")
        assert result.exit_code == 5
        assert document(result)["runs"][0]["code"] == "TRM521"
    assert list(statuses(tramai).values()) == ["completed"]


# move


def test_moved_runs_go_on_there_and_not_here(tramai: Call, three: tuple[str, ...]) -> None:
    hello, fails, sleeps = three
    result = tramai("store", "move", "--all", "--to", "sqlite:b.db", "--json")
    assert result.exit_code == 0
    assert {run["outcome"] for run in document(result)["runs"]} == {"moved"}
    assert statuses(tramai) == {}
    assert statuses(tramai, "--status", "moved").keys() == {hello, fails, sleeps}
    there = statuses(tramai, "--store", "sqlite:b.db")
    assert there == {hello: "completed", fails: "failed", sleeps: "sleeping"}
    refused = tramai("resume", fails)
    assert refused.exit_code == 5
    assert f"it is in sqlite:{os.getcwd()}/b.db now" in refused.stderr
    assert f"sqlite:{os.getcwd()}/b.db" in tramai("show", fails).stdout
    assert tramai("resume", fails, "--store", "sqlite:b.db").exit_code == 1
    assert tramai("store", "check", "--store", "sqlite:b.db").exit_code == 0
    assert tramai("store", "check").exit_code == 0
    again = tramai("store", "move", "--all", "--to", "sqlite:b.db")
    assert again.exit_code == 0


def test_a_run_that_is_owned_is_not_moved_5_and_the_others_are(tramai: Call, three: tuple[str, ...]) -> None:
    owned_run()
    result = tramai("store", "move", "--all", "--to", "sqlite:b.db", "--json")
    assert result.exit_code == 5
    outcomes = [run["outcome"] for run in document(result)["runs"]]
    assert sorted(outcomes) == ["left", "moved", "moved", "moved"]
    assert statuses(tramai) == {"owned-run": "running"}
    assert tramai("store", "move", "owned-run", "--to", "sqlite:b.db").exit_code == 5


def test_a_move_that_was_cut_off_is_finished_by_resume(
    tramai: Call, three: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tramai import moving

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    sleeps = three[2]
    with monkeypatch.context() as patch:
        patch.setattr(moving, "_open", die)
        assert tramai("store", "move", sleeps, "--to", "sqlite:b.db").exit_code == 130
    assert statuses(tramai, "--store", "sqlite:b.db") == {sleeps: "arriving"}
    assert "tramai --store sqlite:b.db resume" in tramai("show", sleeps, "--store", "sqlite:b.db").stdout
    assert tramai("cancel", sleeps, "--store", "sqlite:b.db").exit_code == 5
    assert tramai("resume", sleeps).exit_code == 5
    assert tramai("resume", sleeps, "--store", "sqlite:b.db").exit_code == 11
    assert statuses(tramai, "--store", "sqlite:b.db") == {sleeps: "sleeping"}


def test_all_again_finishes_a_move_that_was_killed_before_its_last_write(
    tramai: Call, three: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps = three[2]

    def killed(*_: object, **__: object) -> Any:
        raise StoreUnavailable(what="killed")

    with monkeypatch.context() as patch:
        patch.setattr("tramai.moving._open", killed)
        assert tramai("store", "move", "--all", "--to", "sqlite:b.db").exit_code == 7
    assert statuses(tramai, "--store", "sqlite:b.db")[sleeps] == "arriving"
    again = document(tramai("store", "move", "--all", "--to", "sqlite:b.db", "--json"))
    assert {run["run_id"]: run["outcome"] for run in again["runs"]}[sleeps] == "moved"
    assert statuses(tramai, "--store", "sqlite:b.db")[sleeps] == "sleeping"
    once_more = document(tramai("store", "move", "--all", "--to", "sqlite:b.db", "--json"))
    assert {run["run_id"]: run["outcome"] for run in once_more["runs"]}[sleeps] == "there"


def test_a_tombstone_comes_along_with_all(tramai: Call, three: tuple[str, ...]) -> None:
    hello = three[0]
    tramai("store", "prune", "--older-than", "0s")
    tramai("store", "move", "--all", "--to", "sqlite:b.db")
    assert statuses(tramai, "--store", "sqlite:b.db", "--status", "removed") == {hello: "removed"}


# A runner that is gone.


def test_a_run_whose_runner_is_gone_is_interrupted_for_people_and_stale_in_json(tramai: Call) -> None:
    store = open_store(DEFAULT)
    from tests.cli.test_exit_codes import claimed

    claimed(store, "dead-run", replace(Holder.here(), start="1"))
    store.close()
    owned_run()
    runs = {run["run_id"]: run for run in document(tramai("list", "--json"))["runs"]}
    assert (runs["dead-run"]["status"], runs["dead-run"]["stale"]) == ("running", True)
    assert (runs["owned-run"]["status"], runs["owned-run"]["stale"]) == ("running", False)
    lines = {line.split()[0]: line for line in tramai("list").stdout.splitlines()}
    assert "interrupted" in lines["dead-run"]
    assert "running" in lines["owned-run"]
    view = document(tramai("show", "dead-run", "--json"))["run"]
    assert (view["status"], view["stale"]) == ("running", True)
    text = tramai("show", "dead-run").stdout
    assert "interrupted" in text
    assert "tramai resume dead-run" in text
    assert tramai("cancel", "dead-run").exit_code == 0
    assert statuses(tramai, "--status", "running") == {"owned-run": "running"}


def test_a_lease_that_has_expired_is_as_good_as_gone(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    owned_run()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 120)
    assert "interrupted" in tramai("list").stdout
    assert document(tramai("show", "owned-run", "--json"))["run"]["stale"] is True
    assert json.loads(tramai("list", "--status", "running", "--json").stdout)["runs"][0]["stale"] is True


def test_a_run_that_cannot_be_read_stays_when_the_others_are_removed_and_is_named(tramai: Call) -> None:
    from tests.test_retention import turned

    write("hello.yaml", HELLO)
    for _ in range(3):
        tramai("run", "hello.yaml", "-q", "--store", "file:runs")
    ids = [run["run_id"] for run in document(tramai("list", "--store", "file:runs", "--json"))["runs"]]
    turned(Path("runs"), ids[1])
    pruned = tramai("store", "prune", "--older-than", "0s", "--store", "file:runs")
    assert pruned.exit_code == 0
    assert "2 runs removed" in pruned.stderr
    assert "1 run that cannot be read stays: tramai --store file:runs store check" in pruned.stderr
    assert statuses(tramai, "--store", "file:runs") == {ids[1]: "completed"}
    again = document(tramai("store", "prune", "--older-than", "0s", "--store", "file:runs", "--json"))
    assert again["removed"] == []


CHILD = """\
tramai: 1
name: child
steps:
  - id: effect
    shell: echo once >> effects.txt
  - id: ok
    gate: {ask: Go on?}
"""
PARENT = "tramai: 1\nname: parent\nsteps:\n  - id: sub\n    call: ./child.yaml\n"


def test_a_run_takes_along_the_run_that_it_has_called_which_does_nothing_twice(tramai: Call) -> None:
    write("child.yaml", CHILD)
    write("parent.yaml", PARENT)
    assert tramai("run", "parent.yaml", "-q").exit_code == 11
    ids = {run["workflow"]: run["run_id"] for run in document(tramai("list", "--json"))["runs"]}
    alone = tramai("store", "move", ids["child"], "--to", "sqlite:b.db")
    assert (alone.exit_code, "takes it along" in alone.stderr) == (5, True)
    moved = document(tramai("store", "move", ids["parent"], "--to", "sqlite:b.db", "--json"))
    assert [(run["run_id"], run["outcome"]) for run in moved["runs"]] == [
        (ids["child"], "moved"),
        (ids["parent"], "moved"),
    ]
    there = ("--store", "sqlite:b.db")
    assert tramai("approve", ids["child"], *there).exit_code == 0
    assert tramai("resume", ids["parent"], *there).exit_code == 0
    assert Path("effects.txt").read_text("utf-8") == "once\n"
    assert statuses(tramai, *there) == {ids["child"]: "completed", ids["parent"]: "completed"}
    assert tramai("store", "move", ids["child"], "--to", "sqlite:c.db", *there).exit_code == 0


@pytest.mark.parametrize("which", ["named", "all"])
def test_a_run_stays_where_what_it_has_called_cannot_come_along(tramai: Call, which: str) -> None:
    write("child.yaml", CHILD)
    write("parent.yaml", PARENT)
    assert tramai("run", "parent.yaml", "-q").exit_code == 11
    ids = {run["workflow"]: run["run_id"] for run in document(tramai("list", "--json"))["runs"]}
    store = open_store(DEFAULT)
    store.claim(ids["child"], owner="o", holder=Holder("elsewhere", "", 1, ""), ttl=600.0, now=time.time())
    store.close()
    moved = tramai("store", "move", *([ids["parent"]] if which == "named" else ["--all"]), "--to", "sqlite:b.db")
    assert moved.exit_code == 5
    assert f"{ids['child']} is owned by" in moved.stdout + moved.stderr
    assert set(statuses(tramai)) == set(ids.values())
    assert statuses(tramai, "--store", "sqlite:b.db") == {}
