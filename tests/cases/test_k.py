"""Checkpoints in the SQLite store and resume: damage, odd values, changed and missing files, races, growth."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .support import attempts, call, content, save, shown, text_of, workflow

DATABASE = Path(".tramai/tramai.db")
Start = Callable[..., "subprocess.Popen[str]"]

# K01

TWO = """
- {id: one, shell: 'echo one >> effects', save: {kept: "canary-text"}}
- {id: two, shell: 'echo two >> effects; test -e go'}
"""
TOP = "state: {kept: {initial: ''}}"


def failed_runs(count: int) -> list[str]:
    """Runs that failed at their second step, oldest first."""
    save(TWO, TOP)
    return [str(call("run", "case.yaml").lines[0]["run_id"]) for _ in range(count)]


@pytest.mark.parametrize("percent", [0, 50, 95, 99])
def test_a_store_cut_short_is_refused_by_name_and_left_alone(percent: int) -> None:
    (run,) = failed_runs(1)
    sound = DATABASE.read_bytes()
    DATABASE.write_bytes(cut := sound[: len(sound) * percent // 100])
    Path("go").touch()
    ended = call("resume", run)
    assert ended.status == 7
    assert ended.error["code"] in ("TRM510", "TRM512")
    assert DATABASE.read_bytes() == cut
    assert content("effects").split() == ["one", "two"]


KEPT_IN = {"file:runs": "journal", "markdown:runs": "checkpoint.md"}


@pytest.mark.parametrize("store", KEPT_IN)
def test_a_damaged_file_of_one_run_is_marked_and_the_others_go_on(store: str) -> None:
    save(TWO, TOP)
    hurt, other = (str(call("run", "case.yaml", "--store", store).lines[0]["run_id"]) for _ in range(2))
    Path("go").touch()
    (file,) = Path("runs", hurt).glob(KEPT_IN[store])
    sound = file.read_bytes()
    for damaged in (b"", sound[: len(sound) // 2], sound[: len(sound) * 95 // 100], b"x" + sound):
        file.write_bytes(damaged)
        ended = call("resume", hurt, "--store", store)
        assert (ended.status, ended.error["code"]) == (7, "TRM512")
        assert hurt in ended.error["message"]
        listed = call("list", "--store", store).last
        assert [run["run_id"] for run in listed["runs"]] == [other]
        assert [fault["run_id"] for fault in listed["faults"]] == [hurt]
        assert file.read_bytes() == damaged
    assert content("effects").split() == ["one", "two"] * 2
    assert call("resume", other, "--store", store).status == 0


def test_an_edited_state_is_not_believed() -> None:
    save(TWO, TOP)
    run = str(call("run", "case.yaml", "--store", "markdown:runs").lines[0]["run_id"])
    file = Path("runs", run, "checkpoint.md")
    file.write_text(file.read_text().replace("canary", "cbnary"))
    Path("go").touch()
    assert call("resume", run, "--store", "markdown:runs").status == 7
    assert content("effects").split() == ["one", "two"]


def test_a_flipped_byte_in_one_run_is_told_and_the_others_go_on() -> None:
    first, second, third = failed_runs(3)
    meddler = sqlite3.connect(DATABASE)
    meddler.execute(
        "UPDATE record SET body = replace(body, 'canary', 'cbnary') WHERE run = (SELECT id FROM run WHERE run_id = ?)",
        (second,),
    )
    meddler.commit()
    meddler.close()
    Path("go").touch()
    ended = call("resume", second)
    assert ended.status == 7
    assert ended.error["code"] == "TRM512"
    assert second in ended.error["message"]
    assert content("effects").split() == ["one", "two"] * 3
    assert call("resume", third).status == 0
    assert content("effects").split() == [*["one", "two"] * 3, "two"]
    assert [run["run_id"] for run in call("list").last["runs"]] == [third, second, first]


def test_a_run_whose_header_is_damaged_is_marked_in_the_list() -> None:
    first, second = failed_runs(2)
    meddler = sqlite3.connect(DATABASE)
    meddler.execute("UPDATE run SET body = replace(body, 'case', 'cbse') WHERE run_id = ?", (first,))
    meddler.commit()
    meddler.close()
    listed = call("list")
    assert listed.status == 0
    assert [run["run_id"] for run in listed.last["runs"]] == [second]
    assert [fault["run_id"] for fault in listed.last["faults"]] == [first]
    assert f"run {first} cannot be read" in text_of("list")
    assert call("resume", first).status == 7


# K03

ODD = {
    "bytes": "bytes",
    "set": "set",
    "date": "date",
    "nan": "nan",
    "inf": "inf",
    "int_key": "key 1 of type int",
    "tuple": "tuple",
    "object": "object",
    "nested": "a[0].b has the type bytes",
}


@pytest.mark.parametrize("what", ODD)
def test_what_is_no_json_fails_at_its_step_and_leaves_no_half(what: str) -> None:
    save(
        "- {id: one, local: 1}\n"
        f"- {{id: odd, local: {{call: 'tests.engine.functions:give', with: {{what: {what}}}}}, save: {{s: new}}}}",
        "state: {s: {initial: before}}",
    )
    for ended in (call("run", "case.yaml"), call("resume", "@last")):
        assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "odd", "invalid_output")
        assert ODD[what] in ended.error["message"]
    run = shown()
    assert run["state"] == {"s": "before"}
    assert attempts(run) == {"one": ["succeeded"], "odd": ["failed", "failed"]}


def test_what_is_no_json_reaches_no_state_either() -> None:
    for what in ("bytes", "date", "object"):
        save(
            f"- {{id: odd, local: {{call: 'tests.engine.functions:give', with: {{what: {what}}}}}, "
            "save: {s: '${{ result }}'}}",
            "state: {s: {initial: before}}",
        )
        ended = call("run", "case.yaml")
        assert (ended.status, ended.error["step"]) == (1, "odd")
        assert what in ended.error["message"]
        assert shown()["state"] == {"s": "before"}


# K04


@pytest.mark.parametrize("store", ["sqlite:runs.db", "file:runs", "markdown:runs", "memory:"])
def test_odd_texts_are_the_same_after_a_reload(store: str) -> None:
    texts = [
        "a\0b",
        "\\u0000",
        "\\\\u0000",
        "🚀👩‍👩‍👧",
        "\x7f\x1b[31m",
        "\u2028",
        "```\n---\r\n",
        "y" * (4_000_000 if "sqlite" in store else 400_000),
    ]
    save(
        """
        - {id: one, local: "${{ inputs.texts }}", save: {texts: "${{ result }}"}}
        - {id: two, shell: test -e go}
        """,
        "inputs: {texts: {type: array}}\nstate: {texts: {initial: []}}\n"
        "outputs: {one: '${{ steps.one.output }}', state: '${{ state.texts }}'}",
    )
    Path("inputs.json").write_text(json.dumps({"texts": texts}))
    if store == "memory:":
        Path("go").touch()
        assert call("run", "case.yaml", "--inputs", "inputs.json", "--store", store).outputs["one"] == texts
        return
    assert call("run", "case.yaml", "--inputs", "inputs.json", "--store", store).status == 1
    Path("go").touch()
    assert call("resume", "@last", "--store", store).outputs == {"one": texts, "state": texts}
    assert call("show", "@last", "--store", store).last["run"]["state"] == {"texts": texts}


def test_half_a_character_is_refused_in_a_file() -> None:
    save('- {id: a, local: "\\ud83d"}')
    checked = call("validate", "case.yaml")
    assert checked.status == 1
    assert checked.last["files"][0]["problems"][0]["line"] == 5


# K05

BASE = workflow(
    """
    - {id: one, shell: "echo one >> effects"}
    - {id: two, shell: {run: "test -e go", env: {A: one, B: two}}}
    """
)
SPELLINGS = {
    "comments": BASE.replace("steps:", "# a comment\nsteps: # another"),
    "order of keys": BASE.replace("tramai: 1\nname: case\n", "name: case\ntramai: 1\n").replace(
        "{A: one, B: two}", "{B: two, A: one}"
    ),
    "quotes and indentation": BASE.replace('"test -e go"', "'test -e go'").replace("  - {", "      - {"),
    "CRLF": BASE.replace("\n", "\r\n"),
    "an anchor": BASE.replace("B: two", "B: &two two").replace("A: one, B: &two two", "B: &two two, A: one"),
}
BASE_TOML = """\
tramai = 1
name = "case"
[[steps]]
id = "one"
shell = "echo one >> effects"
[[steps]]
id = "two"
shell = {run = "test -e go", env = {A = "one", B = "two"}}
"""


@pytest.mark.parametrize("what", SPELLINGS)
def test_another_spelling_of_the_file_is_resumed(what: str) -> None:
    Path("case.yaml").write_text(BASE)
    digest = call("run", "case.yaml").lines[0]["digest"]
    Path("case.yaml").write_bytes(SPELLINGS[what].encode())
    assert SPELLINGS[what] != BASE
    Path("go").touch()
    ended = call("resume", "@last")
    assert (ended.status, ended.lines[0]["digest"]) == (0, digest)
    assert content("effects").split() == ["one"]


def test_the_same_in_toml_under_another_name_is_resumed() -> None:
    Path("case.yaml").write_text(BASE)
    call("run", "case.yaml")
    Path("case.yaml").unlink()
    Path("other.toml").write_text(BASE_TOML)
    Path("go").touch()
    assert call("resume", "@last", "--file", "other.toml").status == 0
    assert content("effects").split() == ["one"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("id: two", "id: zwei"), ("echo one", "echo eins"), ("name: case", "name: case\nlimits: {timeout: 9h}")],
)
def test_another_meaning_is_refused(old: str, new: str) -> None:
    Path("case.yaml").write_text(BASE)
    call("run", "case.yaml")
    Path("case.yaml").write_text(BASE.replace(old, new))
    Path("go").touch()
    ended = call("resume", "@last")
    assert (ended.status, ended.error["code"]) == (5, "TRM501")
    assert content("effects").split() == ["one"]
