"""`tramai export`: a whole run as one document, with nothing in it that should not be."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, SLEEPS, document, write
from tests.cli.test_documents import check, meets
from tests.cli.test_exit_codes import blocked_run
from tramai.cli import _called_runs
from tramai.cli._run_markdown import code, fenced
from tramai.store import Mark, Record
from tramai.stores import open_store

Call = Callable[..., Result]


def test_a_page_tells_what_went_wrong_and_all_there_is(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml", "--label", "nightly"), tramai("resume", "@last")
    text = tramai("export", "@failed").stdout
    assert re.match(r"# Run `\w{8}` of `fails`: failed\n", text)
    for part in ("What went wrong", "Steps", "Attempts", "Events", "Journal", "Definition"):
        assert f"\n## {part}\n" in text
    assert "`exit.3` in step `build`, attempt 2:" in text
    assert "```\ncompiling\nno such file\n```" in text
    assert "| `build` | `shell` | failed | 2 |" in text
    assert "`nightly`" in text
    assert f"```yaml\n{FAILS}```" in text
    assert re.search(r"tramai resume \w{8}", text)


def test_json_has_the_journal_the_events_and_the_definition(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml"), tramai("resume", "@last")
    found = check(document(tramai("export", "@last", "--format", "json")))
    assert found["run"] == document(tramai("show", "@last", "--json"))["run"]
    marks = [(record["path"], record["mark"], record["attempt"]) for record in found["journal"]]
    assert marks.count(("build", "failed", 1)) == 1
    assert marks.count(("build", "failed", 2)) == 1
    assert [record["seq"] for record in found["journal"]] == list(range(1, len(marks) + 1))
    assert found["definition"]["text"] == FAILS
    assert found["definition"]["canonical"]["name"] == "fails"
    assert [(log["attempt"], log["text"]) for log in found["logs"]] == [
        (1, "compiling\nno such file\n"), (2, "compiling\nno such file\n"),
    ]  # fmt: skip
    assert document(tramai("export", "@last", "--json")) == found


def test_a_run_names_the_runs_that_it_has_called(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("calls.yaml", "tramai: 1\nname: calls\nsteps:\n  - {id: sub, call: hello.yaml}\n")
    assert tramai("run", "calls.yaml").exit_code == 0
    called = document(tramai("show", "@last:hello", "--json"))["run"]["run_id"]
    assert document(tramai("export", "@last:calls", "--json"))["called"] == [called]
    assert called in tramai("export", "@last:calls").stdout


def test_called_runs_are_listed_with_how_they_stand_and_those_that_they_have_called(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    write("mid.yaml", "tramai: 1\nname: mid\nsteps:\n  - {id: inner, call: fails.yaml}\n")
    write("top.yaml", "tramai: 1\nname: top\nsteps:\n  - {id: outer, call: mid.yaml}\n")
    assert tramai("run", "top.yaml").exit_code == 1
    whole = check(document(tramai("export", "@last:top", "--json")))
    ids = [document(tramai("show", f"@last:{name}", "--json"))["run"]["run_id"] for name in ("top", "mid", "fails")]
    said = [
        (one["run_id"], one["caller"], one["path"], one["workflow"], one["status"], one["stale"])
        for one in whole["calls"]
    ]
    assert said == [
        (ids[1], ids[0], "outer", "mid", "failed", False), (ids[2], ids[1], "inner", "fails", "failed", False),
    ]  # fmt: skip
    _, step = whole["calls"][1]["steps"]
    assert (step["path"], step["verb"], step["status"], step["attempts"]) == ("build", "shell", "failed", 1)
    page = tramai("export", "@last:top").stdout
    assert f"| `{ids[2][-8:]}` | `fails` | failed | `inner` | `{ids[1][-8:]}` |" in page
    assert f"| `{ids[2][-8:]}` | `build` | `shell` | failed | 1 |" in page


def test_a_called_run_that_the_store_does_not_have_is_named_all_the_same(tramai: Call) -> None:
    tramai("run", write("hello.yaml", HELLO))
    path = Path(".tramai/tramai.db")
    run_id = document(tramai("show", "@last", "--json"))["run"]["run_id"]
    line = Record(seq=9, path="sub", mark=Mark.DECIDED, attempt=0, verb="call", at=1.0, fence=1, value='{"run_id":"x"}')
    (one,) = _called_runs.of(open_store(f"sqlite:{path}"), run_id, [line])
    assert (one.run_id, one.caller, one.path, one.workflow, one.status, one.steps) == (
        "x",
        run_id,
        "sub",
        None,
        None,
        [],
    )


def test_secrets_are_masked_in_every_form(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "canary-4f1d9a"
    monkeypatch.setenv("TOKEN_FOR_TEST", canary)
    text = HELLO.replace("steps:", "secrets: {TOKEN: {env: TOKEN_FOR_TEST}}\nsteps:")
    text = text.replace('echo "hello $WHO"', 'echo "$TOKEN"; exit 4').replace(
        'env: {WHO: "${{ inputs.who }}"}', 'env: {TOKEN: "${{ secrets.TOKEN }}"}'
    )
    write("secret.yaml", text)
    assert tramai("run", "secret.yaml").exit_code == 1
    for arguments in (("--format", "md"), ("--format", "json"), ("--format", "md", "--json")):
        shown = tramai("export", "@last", *arguments).stdout
        assert canary not in shown
        assert "***" in shown
    tramai("export", "@last", "-o", "whole.json")
    assert canary not in Path("whole.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "form"), [("run.md", "md"), ("run.json", "json"), ("RUN.JSON", "json"), ("run", "md")]
)
def test_a_file_is_for_its_owner_alone_and_its_ending_says_the_format(tramai: Call, name: str, form: str) -> None:
    tramai("run", write("hello.yaml", HELLO))
    write(name, "old")
    os.chmod(name, 0o644)
    result = tramai("export", "@last", "-o", name)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert f"written: {name}" in result.stderr
    assert Path(name).stat().st_mode & 0o777 == 0o600
    text = Path(name).read_text(encoding="utf-8")
    if form == "md":
        assert text.startswith("# Run ")
    else:
        meets(json.loads(text), "export")
    told = check(document(tramai("export", "@last", "-o", name, "--json")))
    assert (told["format"], told["output"], told["text"]) == (form, name, None)


def test_the_page_can_be_had_in_a_document(tramai: Call) -> None:
    tramai("run", write("hello.yaml", HELLO))
    told = check(document(tramai("export", "@last", "--format", "md", "--json")))
    assert told["text"] == tramai("export", "@last").stdout


def test_what_a_child_wrote_is_no_markup(tramai: Call) -> None:
    evil = "</td><script>alert(1)</script> | `` ``` ::set-output name=x::y \\x1b[31m"
    text = HELLO.replace('echo "hello $WHO"', 'printf "%s" "$WHO" >&2; exit 3')
    write("evil.yaml", text)
    assert tramai("run", "evil.yaml", "-i", f"who={evil}").exit_code == 1
    page = tramai("export", "@last").stdout
    assert "````\n" in page
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", page)
    assert "<script>" not in re.sub(r"(`+)[^`].*?[^`]\1(?!`)", "", outside)


@pytest.mark.parametrize("text", ["", "`", "``", "a`b", "| a | b |", "x\ny", "<b>", "`x", "a" * 900])
def test_code_holds_any_text_on_one_line(text: str) -> None:
    said = code(text)
    assert "\n" not in said
    assert not re.search(r"(?<!\\)\|", said)
    ticks = re.match(r"`+", said)
    assert ticks is not None
    inside = said[len(ticks[0]) : -len(ticks[0])]
    assert ticks[0] not in re.findall("`+", inside)
    assert len(said) < 600


def test_a_fence_is_longer_than_any_in_its_text() -> None:
    assert fenced("a\n````\nb").split("\n")[0] == "`````"


def test_a_blocked_run_says_the_ways_on(tramai: Call) -> None:
    text = tramai("export", blocked_run()).stdout
    assert ": blocked" in text.splitlines()[0]
    assert "tramai resolve blocked-run send --as retry" in text


def test_a_run_that_sleeps_and_one_that_was_removed_can_be_exported(tramai: Call) -> None:
    tramai("run", write("sleeps.yaml", SLEEPS))
    assert "| wakes | " in tramai("export", "@last").stdout
    tramai("run", write("hello.yaml", HELLO))
    run_id = document(tramai("show", "@last", "--json"))["run"]["run_id"]
    assert tramai("store", "prune", "--older-than", "0s").exit_code == 0
    found = check(document(tramai("export", run_id, "--json")))
    assert (found["run"]["status"], found["definition"], found["journal"]) == ("removed", None, [])
    assert tramai("export", run_id).exit_code == 0


def test_a_file_that_cannot_be_written_is_3(tramai: Call) -> None:
    tramai("run", write("hello.yaml", HELLO))
    result = tramai("export", "@last", "-o", "missing/run.md")
    assert result.exit_code == 3
    assert "cannot write missing/run.md: no such file or directory" in result.stderr


def test_no_such_run_is_4_and_a_wrong_format_2(tramai: Call) -> None:
    assert tramai("export", "k3f9q2mz").exit_code == 4
    assert tramai("export", "@last", "--format", "xml").exit_code == 2
    assert not Path(".tramai").exists()
