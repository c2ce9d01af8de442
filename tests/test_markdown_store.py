"""The Markdown store keeps the contract of a store; and what is its own: one file, for people and for Git."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tramai import engine, plan, workflow
from tramai.codec import encode
from tramai.errors import CheckpointCorrupt, NotFound, StoreTooNew
from tramai.store import Mark, Note, Status, Store
from tramai.stores import _folder_keys, open_store
from tramai.stores._markdown_words import fence_text, json_fence, opens_fence, scalar, scalar_value, text_fence
from tramai.testing._store_given import (
    AWKWARD,
    HERE,
    begin,
    change,
    claim,
    definition,
    done,
    everything,
    expire,
    new_run,
    record,
)
from tramai.testing.clock import FakeClock
from tramai.testing.store_contract import Opener, StoreContract


class TestMarkdown(StoreContract):
    def make_store(self, folder: Path) -> Store:
        return open_store(f"markdown:{folder}/runs")

    def opener(self, store: Store) -> Opener:
        return functools.partial(open_store, store.url)


@pytest.mark.slow
class TestByWorkflow(StoreContract):
    """The other layout keeps the same contract; what needs processes is tried above."""

    def make_store(self, folder: Path) -> Store:
        return open_store(f"markdown:{folder}/runs?layout=workflow")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def story(store: Store, clock: FakeClock, run_id: str = "r1") -> tuple[object, ...]:
    """A run with something of everything."""
    source = "name: wf\n# ``` ünïcode 漢字\nsteps:\n  - x\n"
    kept = definition(text=source, canonical='{"a":"`````"}', file="/srv/wf.yaml")
    lease = begin(store, clock, run_id, definition=kept, inputs='{"who":"w\\u00f6rld"}', labels=("a", "b c"))
    value = encode({"text": AWKWARD, "list": [*range(30)], "big": 12345678901234567890123})
    lines = (record(1, "fetch", policy="non_replayable"), done(2, "fetch", value=value, started=999.0, worker="w:1"))
    store.commit(lease, change(clock, *lines, step="fetch"))
    store.commit(lease, change(clock, record(3, "b[1].x", Mark.FAILED, error='{"type":"x"}'), notes=(NOTE,)))
    store.commit(lease, change(clock, status=Status.FAILED, error='{"e":1}', outputs="[1]", finished=7.5, release=True))
    return everything(store, run_id)


NOTE = Note(at=1.0, type="cancel", by="me", comment=AWKWARD, data='{"why":"x"}')


# What an editor or Git may do.


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
        lambda data: data.rstrip(b"\n"),
        lambda data: data + b"\n\n",
        lambda data: data.replace(b"\n", b"\r\n") + b"\r\n",
    ],
    ids=["CRLF", "mark", "mark and CRLF", "no last line end", "more line ends", "CRLF and more"],
)
def test_line_ends_may_change(folder: Path, clock: FakeClock, edit: Any) -> None:
    store = open_store(f"markdown:{folder}")
    truth = story(store, clock)
    store.close()
    path = folder / "r1" / "checkpoint.md"
    plain = path.read_bytes()
    path.write_bytes(edit(plain))
    store = open_store(f"markdown:{folder}")
    assert everything(store) == truth
    assert store.page(limit=5)[0] == (truth[0],)
    assert store.definition("d1").text.startswith("name: wf\n# ```")
    _, lease = claim(store, clock)
    store.commit(lease, change(clock, done(4, "more")))
    assert len(store.journal("r1")) == 4
    assert b"\r" not in path.read_bytes()
    assert path.read_bytes().startswith(b"---\n")
    store.close()


def test_git_may_check_it_out_with_other_line_ends(folder: Path, clock: FakeClock, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*words: str, cwd: Path) -> str:
        options = ["-c", "user.name=x", "-c", "user.email=x@example.invalid", "-c", "core.autocrlf=true"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        done_ = subprocess.run(
            ["git", *options, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=True
        )
        return done_.stdout

    store = open_store(f"markdown:{folder}")
    truth = story(store, clock)
    store.close()
    git("init", "-q", ".", cwd=tmp_path)
    git("add", ".", cwd=tmp_path)
    git("commit", "-q", "-m", "x", cwd=tmp_path)
    tracked = git("ls-files", cwd=tmp_path).split()
    assert sorted(tracked) == ["runs/.gitignore", "runs/.store", "runs/r1/checkpoint.md"]
    git("clone", "-q", str(tmp_path), str(tmp_path / "clone"), cwd=tmp_path)
    assert b"\r\n" in (tmp_path / "clone" / "runs" / "r1" / "checkpoint.md").read_bytes()
    store = open_store(f"markdown:{tmp_path}/clone/runs")
    assert everything(store) == truth
    claim(store, clock)
    store.close()


def test_the_file_alone_is_enough_to_resume(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    (tmp_path / "flow.yaml").write_text(
        "tramai: 1\nname: flow\nlimits: {max_step_executions: 50}\nstate: {n: {initial: 1}}\nsteps:\n"
        f"  - id: one\n    shell: {{run: 'echo one >> {effects}; echo 41', parse: json}}\n"
        "    save: {n: '${{ result.value + 1 }}'}\n"
        f"  - id: two\n    shell: {{run: 'test -e {tmp_path}/go && echo two >> {effects}', parse: text}}\n"
        "outputs: {n: '${{ state.n }}'}\n"
    )
    store = open_store(f"markdown:{tmp_path}/runs")
    made = plan.of(workflow.load(str(tmp_path / "flow.yaml")))
    options = engine.Options(run_id="Run/1", logs=str(tmp_path / "logs"))
    assert engine.run(made, {}, store=store, options=options).status == "failed"
    store.close()
    (found,) = (tmp_path / "runs").rglob("checkpoint.md")
    alone = tmp_path / "elsewhere" / found.parent.name
    alone.mkdir(parents=True)
    (alone / "checkpoint.md").write_bytes(found.read_bytes().replace(b"\n", b"\r\n"))
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "flow.yaml").unlink()
    (tmp_path / "go").touch()
    store = open_store(f"markdown:{tmp_path}/elsewhere")
    result = engine.resume("Run/1", store=store, options=options)
    assert result.error is None
    assert (result.status, result.outputs) == ("completed", {"n": 42})
    assert effects.read_text() == "one\ntwo\n"
    store.close()


# Edits by hand.


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("status: failed", "status: ready"),
        ("fence: 1\nrevision", "fence: 9\nrevision"),
        ("# A run of wf", "# My favourite run"),
        ("- attempt: 1", "- attempt: 2"),
        ("    3,\n", "    4,\n"),
        ("    3,\n", "    3, \n"),
        ("    3,\n", "    3,\n\n"),
        ('"type": "x"', '"type": "y"'),
        ("### 2. fetch: completed", "### 2. fetch: failed"),
        ("## Outputs", "## Remark\n\nI like it.\n\n## Outputs"),
        ("name: wf\n# ```", "name: wf\n#  ```"),
        ("checksum: ", "checksum:  "),
        ("---\n\n# A run", "---\n# A run"),
        ("format: 1", "format: 01"),
        ("labels: [", "labels:  ["),
    ],
)
def test_any_edit_is_told_by_the_name_of_the_file(folder: Path, clock: FakeClock, old: str, new: str) -> None:
    store = open_store(f"markdown:{folder}")
    story(store, clock)
    path = folder / "r1" / "checkpoint.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    expire(clock)
    for ask in (store.get, store.journal, store.notes, lambda _: claim(store, clock)):
        with pytest.raises(CheckpointCorrupt, match=r"run r1: its checkpoint\.md was edited or damaged") as caught:
            ask("r1")
        assert caught.value.hint is not None
        assert "version control" in caught.value.hint
    assert store.page(limit=5)[0] == ()
    assert [fault["run_id"] for fault in store.faults()] == ["r1"]
    assert path.read_text() == text.replace(old, new, 1)
    path.write_text(text)
    assert claim(store, clock)[0].status is Status.FAILED
    store.close()


def test_conflict_markers_are_called_by_their_name(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    story(store, clock)
    path = folder / "r1" / "checkpoint.md"
    text = path.read_text()
    both = "<<<<<<< HEAD\nstatus: failed\n=======\nstatus: ready\n>>>>>>> theirs\n"
    path.write_text(text.replace("status: failed\n", both))
    with pytest.raises(CheckpointCorrupt, match="has Git's conflict markers in it") as caught:
        store.get("r1")
    assert caught.value.hint is not None
    assert "git checkout --ours" in caught.value.hint
    path.write_bytes(b"")
    with pytest.raises(CheckpointCorrupt, match=r"its checkpoint\.md is empty"):
        store.get("r1")
    store.close()


def test_an_edit_while_the_run_is_going_on_is_not_written_over(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    lease = begin(store, clock)
    store.commit(lease, change(clock, done(1)))
    path = folder / "r1" / "checkpoint.md"
    edited = path.read_text().replace("- attempt: 1", "- attempt: 7")
    path.write_text(edited)
    for _ in range(2):
        with pytest.raises(CheckpointCorrupt):
            store.commit(lease, change(clock, done(2, "b")))
    assert path.read_text() == edited
    store.close()


# For people and for Git.


def test_a_commit_changes_the_front_matter_and_adds_to_the_journal(folder: Path, clock: FakeClock) -> None:
    import difflib

    store = open_store(f"markdown:{folder}")
    lease = begin(store, clock, inputs='{"a":1}')
    store.commit(lease, change(clock, *(done(seq, f"p{seq}", value=str(seq)) for seq in range(1, 9)), step="p8"))
    path = folder / "r1" / "checkpoint.md"
    before = path.read_text().splitlines()
    clock.advance(1)
    store.commit(lease, change(clock, done(9, "p9", value='"new"'), step="p9"))
    gone = [line for line in difflib.ndiff(before, path.read_text().splitlines()) if line[:1] == "-"]
    assert [line.split(":")[0] for line in gone] == ["- revision", "- updated", "- step", "- body", "- checksum"]
    store.close()


def test_the_front_matter_is_yaml_with_every_field_of_the_header(folder: Path, clock: FakeClock) -> None:
    import msgspec
    from ruamel.yaml import YAML

    store = open_store(f"markdown:{folder}")
    fields: dict[str, Any] = {"labels": ("yes", "1", "a: b"), "started_by": "null", "start_key": "2001-01-01"}
    begin(store, clock, "0x10", **fields, cwd="/tmp/a b", definition=definition(name="On", version="1.0"))
    run = store.get("0x10")
    _, front, body = (folder / "0x10" / "checkpoint.md").read_text().split("---\n", 2)
    found = YAML(typ="safe").load(front)
    wanted = msgspec.json.decode(msgspec.json.encode(run))
    for name in ("inputs", "outputs", "error"):
        wanted.pop(name)
    assert {name: found[name] for name in wanted} == wanted
    assert (found["definitions"], len(found["checksum"]), len(found["body"])) == (["d1"], 64, 64)
    assert [line.split(":")[0] for line in front.splitlines()][:3] == ["format", "run_id", "generation"]
    assert body.startswith("\n# A run of On\n")
    store.close()


def test_a_completed_step_has_a_section_that_people_can_read(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    lease = begin(store, clock)
    line = done(1, "triage[42].classify", value='{"label":"b\\u00fcg","n":1}', started=1000.25, attempt=2, at=1002.75)
    store.commit(lease, change(clock, line))
    text = (folder / "r1" / "checkpoint.md").read_text()
    assert (
        "### 1. triage[42].classify: completed in 2.5 s\n\n"
        '- seq: 1\n- path: "triage[42].classify"\n- mark: completed\n- attempt: 2\n- verb: shell\n'
        "- started: 1000.25  # 1970-01-01 00:16:40Z\n- at: 1002.75  # 1970-01-01 00:16:42Z\n- fence: 1\n\n"
        '```json value\n{"label": "büg", "n": 1}\n```\n'
    ) in text
    store.close()


def test_what_is_long_is_indented_and_comes_back_exactly(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    value = '{"a":[1,2.5,-12345678901234567890,"' + "x" * 80 + '"],"b":{"c":null}}'
    store.commit(begin(store, clock), change(clock, done(1, value=value)))
    assert "\n    -12345678901234567890,\n" in (folder / "r1" / "checkpoint.md").read_text()
    store.close()
    store = open_store(f"markdown:{folder}")
    assert store.journal("r1")[0].value == value
    store.close()


ODD = [
    *("", " ", "\n", "a\n", "\n\n", "a\r\nb\n", "\ttab\n", "trailing  \n", "no line end", AWKWARD, AWKWARD + "\n"),
    *("```\n", "````` x\n````\n", "---\n", "## Journal\n", "### Event 1. x\n", "- a: b\n", '"' + "`" * 50 + '"'),
    *("\ufeffx\n", "a\x0cb\n", "\x85\n", "\u2028\n", "\ud800\n"),
    *('"a"', "[1, 2]", "[1,2]", "1e400", "NaN", "{}", '{"b":1,"a":2}', "9" * 5000, "[" * 150 + "]" * 150),
]
WORDS = [
    *(None, True, 0, -5, 1.5, 1e22, 1e-320, 10**30, [], ["a", "b: c"], {"a": [1, None]}),
    *("", "a", "null", "Yes", "on", "1", "1e3", "0x1", "2001-01-01", "~", "=", "-", "# x", "a#b", "a  # b"),
    *("a b", "a: b", "/a/b", "a\n", "é", AWKWARD),
]


@pytest.mark.parametrize("text", ODD, ids=lambda text: f"{text[:12]!a}-{len(text)}")
def test_any_text_comes_back_exactly_from_a_block(folder: Path, clock: FakeClock, text: str) -> None:
    for block in (json_fence("value", text), text_fence("yaml", "text", text)):
        first, *content, last = block.removesuffix("\n").split("\n")
        assert last not in content
        name, form = opens_fence(first)
        assert (name in ("value", "text"), fence_text(form, "\n".join(content))) == (True, text)
    store = open_store(f"markdown:{folder}")
    kept = definition(text=text, canonical=text)
    lease = begin(store, clock, inputs=text, definition=kept)
    line = done(1, text or "x", value=text, error=text, saves=text, usage=text, worker=text)
    store.commit(lease, change(clock, line, notes=(Note(at=1.0, type="t", data=text, comment=text),), outputs=text))
    store.close()
    with_run = open_store(f"markdown:{folder}")
    assert with_run.journal("r1") == (line,)
    assert (with_run.notes("r1")[0].data, with_run.notes("r1")[0].comment) == (text, text)
    assert (with_run.get("r1").inputs, with_run.get("r1").outputs) == (text, text)
    assert with_run.definition("d1") == kept
    with_run.close()


@pytest.mark.parametrize("value", WORDS, ids=lambda value: f"{value!a}"[:20])
def test_any_value_comes_back_from_one_line_of_yaml(value: Any) -> None:
    from ruamel.yaml import YAML

    line = scalar(value)
    assert "\n" not in line
    assert scalar_value(line) == value
    if value != AWKWARD:  # YAML does not know lone surrogates
        assert YAML(typ="safe").load(f"key: {line}\n")["key"] == value


# Beside the runs.


def test_other_files_in_the_folder_are_left_alone(folder: Path, clock: FakeClock) -> None:
    folder.mkdir()
    (folder / "README.md").write_text("# Our releases\n")
    (folder / "drafts").mkdir()
    (folder / "drafts" / "one.md").write_text("x")
    store = open_store(f"markdown:{folder}")
    begin(store, clock)
    begin(store, clock, "r2", start_key="k")
    assert [run.run_id for run in store.page(limit=9)[0]] == ["r2", "r1"]
    assert store.faults() == ()
    assert store.match("s") == ()
    for run_id in ("drafts", "README.md"):
        with pytest.raises(NotFound):
            store.get(run_id)
    store.close()
    assert (folder / "README.md").read_text() == "# Our releases\n"
    assert not (folder / ".gitignore").exists()


def test_what_need_not_be_committed_is_ignored_in_a_new_folder(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    assert (folder / ".gitignore").read_text() == "lock\n.lock\n.keys/\n.groups/\n.new/\n*.part\n"
    store.close()


def test_a_start_key_is_known_after_a_checkout(folder: Path, clock: FakeClock, tmp_path: Path) -> None:
    store = open_store(f"markdown:{folder}")
    begin(store, clock, start_key="nightly 1")
    store.close()
    (tmp_path / "clone" / "r1").mkdir(parents=True)
    shutil.copy(folder / "r1" / "checkpoint.md", tmp_path / "clone" / "r1")
    store = open_store(f"markdown:{tmp_path}/clone")
    run, lease = store.create(new_run("r2", start_key="nightly 1"), owner="a", holder=HERE, ttl=9.0, now=1.0)
    assert (run.run_id, lease) == ("r1", None)
    store.close()


@pytest.mark.parametrize("left", [None, b"", b"\0" * 4000, b"---\nformat: 1\n", b"my notes\n"])
def test_a_start_key_outlives_its_checkpoint(folder: Path, clock: FakeClock, left: bytes | None) -> None:
    store = open_store(f"markdown:{folder}")
    begin(store, clock, "a", start_key="k")
    begin(store, clock, "b", start_key="k2")
    path = folder / "a" / "checkpoint.md"
    path.unlink() if left is None else path.write_bytes(left)
    for again in (store, open_store(f"markdown:{folder}")):
        with pytest.raises(CheckpointCorrupt, match=r"run a: its checkpoint\.md "):
            begin(again, clock, "c", start_key="k")
        assert again.create(new_run("c", start_key="k2"), owner="o", holder=HERE, ttl=9.0, now=1.0)[0].run_id == "b"
        begin(again, clock, os.urandom(4).hex(), start_key=os.urandom(4).hex())
    shutil.rmtree(folder / "a")  # somebody wants it to be forgotten
    begin(store, clock, "c", start_key="k")


def test_a_start_key_whose_run_was_never_made_is_free(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    begin(store, clock, "a")
    for run_id, key in (("a", "k"), ("never", "k2")):  # as makers leave it who are killed before their run has its name
        _folder_keys.remember(store._place.folder, key, run_id)  # type: ignore[attr-defined]
        assert begin(store, clock, f"of-{key}", start_key=key).fence == 1


def test_a_newer_checkpoint_is_refused_untouched_and_the_others_are_not(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    begin(store, clock, "new", start_key="k")
    begin(store, clock, "old")
    path = folder / "new" / "checkpoint.md"
    path.write_text(path.read_text().replace("format: 1\n", "format: 2\nkind: other\n", 1))
    before = path.read_bytes()
    expire(clock)
    for ask in (store.get, store.journal, lambda run_id: claim(store, clock, run_id)):
        with pytest.raises(StoreTooNew, match="the store has format 2; this tramai knows formats up to 1"):
            ask("new")
    assert [run.run_id for run in store.page(limit=5)[0]] == ["old"]
    assert [fault["run_id"] for fault in store.faults()] == ["new"]
    with pytest.raises(CheckpointCorrupt):
        begin(store, clock, "again", start_key="k")
    assert path.read_bytes() == before
    store.close()


def test_what_a_killed_writer_left_is_removed_by_the_next(folder: Path, clock: FakeClock) -> None:
    store = open_store(f"markdown:{folder}")
    lease = begin(store, clock)
    store.close()
    (folder / "r1" / ".0123456789abcdef.part").write_text("half")
    store = open_store(f"markdown:{folder}")
    store.commit(lease, change(clock, done(1)))
    assert sorted(os.listdir(folder / "r1")) == ["checkpoint.md", "lock"]
    store.close()


def test_a_thousand_steps_are_no_trouble(folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    store = open_store(f"markdown:{folder}")
    lease = begin(store, clock)
    for seq in range(1, 1001):
        store.commit(lease, change(clock, done(seq, f"p{seq}", value='{"n":1}')))
    store.close()
    store = open_store(f"markdown:{folder}")
    assert len(store.journal("r1")) == 1000
    assert store.get("r1").revision == 1001
    store.close()
