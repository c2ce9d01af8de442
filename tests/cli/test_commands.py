"""What each command shows to people, and what it does."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import FAILS, GATE, HELLO, SLEEPS, document, write
from tests.cli.test_exit_codes import blocked_run

Call = Callable[..., Result]
PLANNED = """\
tramai: 1
name: planned
version: "2"
inputs:
  base: {type: string}
  limit: {type: integer, default: 20}
secrets: {TOKEN: {env: TOKEN_FOR_TEST}}
steps:
  - id: diff
    shell: git diff
  - id: check
    parallel:
      items: ${{ [1, 2] }}
      as: n
      do:
        - id: look
          http: {get: "https://example.com/${{ n }}"}
  - id: choose
    branch:
      select: ${{ inputs.base }}
      cases:
        main: [{id: strict, local: 1}]
      default: []
  - id: done
    when: ${{ inputs.limit > 3 }}
    local: ${{ inputs.base }}
"""


def steady(text: str) -> str:
    """The text without what differs from run to run: ids, times, folders."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "<run id>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "<time>", text)
    text = re.sub(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d:\d\d", "<instant>", text)
    text = re.sub(r"(digest +)[0-9a-f]{8}\b", r"\1<digest>", text)
    text = re.sub(r"v2  digest [0-9a-f]+", "v2  digest <digest>", text)
    text = re.sub(r" +\d+(\.\d+)?s\b", " <s>", text)
    text = re.sub(r"\b[0-9a-f]{16}\.(\d)\.log", r"<log>.\1.log", text)
    return re.sub(r"(run|show|resume|resolve|cancel) [0-9a-f]{8}\b", r"\1 <id>", text)


@pytest.mark.parametrize("name", ["HELLO", "FAILS", "GATE", "SLEEPS"])
def test_what_a_run_shows(tramai: Call, snapshot: SnapshotAssertion, name: str) -> None:
    write("w.yaml", {"HELLO": HELLO, "FAILS": FAILS, "GATE": GATE, "SLEEPS": SLEEPS}[name])
    result = tramai("run", "w.yaml")
    assert steady(result.stderr) == snapshot(name="stderr")
    assert result.stdout == snapshot(name="stdout")


@pytest.mark.parametrize("name", ["HELLO", "FAILS", "SLEEPS"])
def test_what_show_shows(tramai: Call, snapshot: SnapshotAssertion, name: str) -> None:
    write("w.yaml", {"HELLO": HELLO, "FAILS": FAILS, "SLEEPS": SLEEPS}[name])
    tramai("run", "w.yaml")
    assert steady(tramai("show", "@last").stdout) == snapshot


def test_what_a_blocked_run_shows(tramai: Call, snapshot: SnapshotAssertion) -> None:
    assert steady(tramai("resume", blocked_run()).stderr) == snapshot(name="resume")
    assert steady(tramai("show", "blocked-run").stdout) == snapshot(name="show")


def test_what_a_changed_definition_shows(tramai: Call, snapshot: SnapshotAssertion) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    write("fails.yaml", FAILS + "  - {id: after, local: 1}\n")
    assert steady(tramai("resume", "@last").stderr) == snapshot(name="harmless")
    write("fails.yaml", FAILS.replace("${{ 1 }}", "${{ 2 }}"))
    assert steady(tramai("resume", "@last", "--accept-changes").stderr) == snapshot(name="reaches back")


# run


def test_an_input_is_read_as_its_type(tramai: Call) -> None:
    write("n.yaml", "tramai: 1\nname: n\ninputs: {n: {type: integer}}\nsteps: [{id: a, local: '${{ inputs.n + 1 }}'}]\n"
                    "outputs: {n: '${{ steps.a.output }}'}\n")  # fmt: skip
    assert tramai("run", "n.yaml", "-i", "n=41").stdout == "n: 42\n"
    assert tramai("run", "n.yaml", "-i", "n:=41").stdout == "n: 42\n"
    write("in.json", '{"n": 41}')
    assert tramai("run", "n.yaml", "--inputs", "in.json").stdout == "n: 42\n"
    assert tramai("run", "n.yaml", "--inputs", "-", stdin='{"n": 41}').stdout == "n: 42\n"


def test_a_wrong_input_names_a_near_one(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    result = tramai("run", "hello.yaml", "-i", "woh=x")
    assert "did you mean 'who'?" in result.stderr
    assert not Path(".tramai").exists()


def test_a_start_key_starts_once(tramai: Call) -> None:
    write("once.yaml", "tramai: 1\nname: once\nsteps: [{id: a, shell: echo x >> effects}]\n")
    first = tramai("run", "once.yaml", "--start-key", "k", "--json")
    second = tramai("run", "once.yaml", "--start-key", "k", "--json")
    assert second.exit_code == 0
    ids = {json.loads(result.stdout.splitlines()[0])["run_id"] for result in (first, second)}
    assert len(ids) == 1
    assert Path("effects").read_text() == "x\n"


def test_the_same_result_is_printed_by_run_and_resume(tramai: Call) -> None:
    write(
        "o.yaml",
        "tramai: 1\nname: o\nsteps: [{id: a, local: {value: {z: 1, b: 2}}}]\n"
        "outputs: {z: 1, a: '${{ steps.a.output }}'}\n",
    )
    texts = [tramai("run", "o.yaml").stdout, tramai("run", "o.yaml").stdout, tramai("resume", "@last").stdout]
    assert texts[0] == texts[1] == texts[2] == "a:\n  b: 2\n  z: 1\nz: 1\n"


def test_a_resume_from_another_folder_finds_file_and_children(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("where.yaml", "tramai: 1\nname: where\nsteps: [{id: a, shell: 'pwd >> ../pwd; test -e ok'}]\n")
    store = f"sqlite:{os.getcwd()}/.tramai/tramai.db"
    tramai("run", "where.yaml")
    Path("ok").touch()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert tramai("resume", "@last", "--store", store).exit_code == 0
    assert len(set(Path("../../pwd").read_text().splitlines())) == 1


def test_the_default_folder_is_private_and_ignored_by_git(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    assert stat.S_IMODE(os.stat(".tramai").st_mode) == 0o700
    assert Path(".tramai/.gitignore").read_text() == "*\n"


def test_another_folder_is_worked_in_and_left_again(tramai: Call) -> None:
    Path("sub").mkdir()
    write("sub/hello.yaml", HELLO)
    assert tramai("run", "-C", "sub", "hello.yaml").exit_code == 0
    assert Path("sub/.tramai/tramai.db").exists()
    assert not Path(".tramai").exists()
    assert tramai("-C", "none", "list").exit_code == 3


def test_a_memory_store_leaves_no_database(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    assert tramai("run", "hello.yaml", "--store", "memory:").stdout == "said: hello world\n"
    assert not Path(".tramai/tramai.db").exists()


def test_two_runs_at_once_in_one_folder_stay_apart(start: Call, tramai: Call) -> None:
    write("hello.yaml", HELLO)
    processes = [start("run", "hello.yaml", "-i", f"who={name}") for name in "abcd"]
    said = [process.communicate(timeout=60)[0] for process in processes]  # type: ignore[attr-defined]
    assert said == [f"said: hello {name}\n" for name in "abcd"]
    assert len({run["run_id"] for run in document(tramai("list", "--json"))["runs"]}) == 4
    assert len(list(Path(".tramai/logs").iterdir())) == 4


# validate


def test_all_problems_of_all_files_are_shown(tramai: Call, snapshot: SnapshotAssertion) -> None:
    write("good.yaml", HELLO)
    write(
        "a.yaml", "tramai: 1\nname: a\nsteps:\n  - id: x\n    shel: ls\n  - id: y\n    local: ${{ steps.z.output }}\n"
    )
    write("b.toml", 'tramai = 1\nname = "b"\nname = "c"\n')
    result = tramai("validate", "good.yaml", "a.yaml", "b.toml")
    assert result.exit_code == 1
    assert result.stdout == snapshot


def test_a_folder_is_searched_for_workflows(tramai: Call) -> None:
    Path("deep/er").mkdir(parents=True)
    Path("deep/.hidden").mkdir()
    write("deep/er/a.yaml", HELLO)
    write("deep/b.toml", 'tramai = 1\nname = "b"\n[[steps]]\nid = "a"\nshell = "ls"\n')
    write("deep/c.yml", '{"tramai": 1, "name": "c", "steps": [{"id": "a", "shell": "ls"}]}')
    write("deep/other.yaml", "services: {}\n# tramai: 1\n")
    write("deep/pyproject.toml", "[tool.tramai]\n")
    write("deep/.hidden/d.yaml", HELLO)
    found = document(tramai("validate", "deep", "--json"))
    assert [file["file"] for file in found["files"]] == ["deep/b.toml", "deep/c.yml", "deep/er/a.yaml"]


def test_a_file_that_is_named_is_checked_whatever_it_holds(tramai: Call) -> None:
    write("other.yaml", "services: {}\n")
    assert tramai("validate", "other.yaml").exit_code == 1


def test_json_and_format_json_are_the_same(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    assert (
        tramai("validate", "hello.yaml", "--json").stdout == tramai("validate", "hello.yaml", "--format", "json").stdout
    )


def test_strict_counts_warnings(tramai: Call) -> None:
    # `1.10` in untyped data loses its last digit: a warning.
    write("w.yaml", HELLO + "  v: {x: 1.10}\n")
    assert [
        problem["severity"] for problem in document(tramai("validate", "w.yaml", "--json"))["files"][0]["problems"]
    ] == ["warning"]
    assert tramai("validate", "w.yaml").exit_code == 0
    assert tramai("validate", "w.yaml", "--strict").exit_code == 1


@pytest.mark.parametrize(
    "content", [b"\x00\xff\xfe" * 100, b"", b"\xef\xbb\xbf", b"[" * 5000, b"a: " * 9000, b"&a [*a]"]
)
def test_no_content_makes_a_traceback(tramai: Call, content: bytes) -> None:
    Path("odd.yaml").write_bytes(content)
    result = tramai("validate", "odd.yaml")
    assert result.exit_code == 1
    assert "Traceback" not in result.output


# plan, graph, digest, schema, explain


def test_a_plan_shows_what_would_happen(
    tramai: Call, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN_FOR_TEST", raising=False)
    write("planned.yaml", PLANNED)
    result = tramai("plan", "planned.yaml", "-i", "limit=5")
    assert result.exit_code == 0
    assert steady(result.stdout) == snapshot
    assert tramai("run", "-n", "planned.yaml", "-i", "limit=5").stdout == result.stdout
    assert not Path(".tramai").exists()


def test_a_plan_says_whether_a_secret_is_there(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_FOR_TEST", "secret-canary")
    write("planned.yaml", PLANNED)
    text = tramai("plan", "planned.yaml").stdout
    assert "secret TOKEN: set" in text
    assert "canary" not in text


@pytest.mark.parametrize("form", ["tree", "mermaid", "dot"])
def test_a_graph_is_drawn(tramai: Call, snapshot: SnapshotAssertion, form: str) -> None:
    write("planned.yaml", PLANNED)
    assert tramai("graph", "planned.yaml", "--format", form).stdout == snapshot


def test_a_graph_of_a_run_needs_no_file_and_says_where_it_stands(tramai: Call) -> None:
    write("fails.yaml", FAILS + "  - {id: never, local: 1}\n")
    tramai("run", "fails.yaml")
    os.unlink("fails.yaml")
    nodes = document(tramai("graph", "@last", "--json"))["nodes"]
    assert [node["status"] for node in nodes] == ["succeeded", "failed", "pending"]


def test_digests_are_printed_like_checksums(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("same.yaml", "# a comment\n" + HELLO)
    lines = tramai("digest", "hello.yaml", "same.yaml").stdout.splitlines()
    assert re.fullmatch(r"[0-9a-f]{64}  hello\.yaml", lines[0])
    assert lines[0][:64] == lines[1][:64]


def test_a_schema_is_printed_whole_or_as_a_path(tramai: Call) -> None:
    text = tramai("schema").stdout
    assert json.loads(text)["title"]
    path = tramai("schema", "--path").stdout.strip()
    assert Path(path).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("code", ["TRM701", "trm701", "701", "error[TRM701]"])
def test_a_code_is_explained_however_it_is_written(tramai: Call, code: str) -> None:
    result = tramai("explain", code)
    assert result.stdout.startswith("TRM701: ")
    assert "Wrong" in result.stdout
    assert "```" not in result.stdout


def test_a_near_code_is_suggested(tramai: Call) -> None:
    assert "did you mean TRM70" in tramai("explain", "TRM709").stderr


def test_every_code_is_listed_with_its_title(tramai: Call) -> None:
    lines = tramai("explain").stdout.splitlines()
    assert any(line.startswith("TRM704  ") for line in lines)
    assert lines == sorted(lines)


# list, logs, cancel, resolve, completion


def test_a_list_of_nothing_is_empty_and_makes_nothing(tramai: Call) -> None:
    result = tramai("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert document(tramai("list", "--json")) == {"schema": "tramai.runs/1", "runs": [], "next": None, "faults": []}
    assert not Path(".tramai").exists()


def test_a_list_is_paged_and_filtered(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("fails.yaml", FAILS)
    for label in ("a", "b"):
        tramai("run", "hello.yaml", "--label", label)
    tramai("run", "fails.yaml")
    first = document(tramai("list", "--limit", "2", "--json"))
    rest = document(tramai("list", "--after", first["next"], "--json"))
    assert [run["workflow"] for run in first["runs"] + rest["runs"]] == ["fails", "hello", "hello"]
    assert rest["next"] is None
    assert len(document(tramai("list", "--workflow", "hello", "--json"))["runs"]) == 2
    assert len(document(tramai("list", "--status", "failed", "--json"))["runs"]) == 1
    assert len(document(tramai("list", "--label", "a", "--json"))["runs"]) == 1


def test_a_list_lines_up_wide_names(tramai: Call) -> None:
    from tramai.cli._terminal import cells

    for name in ("日本語🚀", "nai\u0308ve", "x" * 100):
        tramai("run", write("w.yaml", HELLO.replace("name: hello", f"name: {name}")), "-q")
    lines = tramai("list").stdout.splitlines()
    starts = {cells(line[: re.search(r"\d{4}-\d\d-\d\d", line).start()]) for line in lines}  # type: ignore[union-attr]
    assert len(starts) == 1
    assert "x" * 100 in tramai("list", "--json").stdout


def test_a_narrow_terminal_cuts_names_but_no_id(tramai: Call) -> None:
    from tests.cli.test_terminal import Tty
    from tramai.cli._terminal import Terminal
    from tramai.cli.list import _table
    from tramai.stores import open_store

    tramai("run", write("w.yaml", HELLO.replace("name: hello", f"name: {'long-name-' * 9}")), "-q")
    with contextlib.closing(open_store("sqlite:.tramai/tramai.db")) as store:
        (run,), _ = store.page(limit=5)
    (line,) = _table(Terminal(Tty(), colour="never", env={"COLUMNS": "40"}), (run,))
    assert line.startswith(run.run_id[-8:])
    assert "long-name-l…" in line


def test_verbose_says_where_settings_come_from(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("tramai.toml", 'lease = "20s"\n')
    err = tramai("run", "hello.yaml", "-v", "--wait", "5s").stderr
    assert "store sqlite:.tramai/tramai.db (default)" in err
    assert "lease 20s (tramai.toml: lease)" in err
    assert "wait 5s (--wait)" in err


def test_logs_show_what_steps_wrote(tramai: Call) -> None:
    write("fails.yaml", FAILS)
    tramai("run", "fails.yaml")
    tramai("resume", "@last")
    assert tramai("logs", "@last", "--attempt", "1").stdout == "compiling\nno such file\n"
    assert tramai("logs", "@last", "build", "--attempt", "2", "--tail", "1").stdout == "no such file\n"
    assert tramai("logs", "@last", "--failed").stdout.count("compiling") == 2
    assert tramai("logs", "@last").stdout.startswith("== build, attempt 1\n")
    assert tramai("logs", "@last", "-f").stdout == "build | compiling\nbuild | no such file\n" * 2


def test_logs_never_steer_the_terminal(tramai: Call) -> None:
    write("esc.yaml", "tramai: 1\nname: esc\nsteps:\n  - id: a\n    shell: \"printf '\\\\033[2Jx'\"\n")
    tramai("run", "esc.yaml")
    assert tramai("logs", "@last").stdout == "\\x1b[2Jx\n"


def test_logs_are_followed_until_the_run_stops(start: Call, tramai: Call) -> None:
    write(
        "slow.yaml", "tramai: 1\nname: slow\nsteps:\n  - {id: a, shell: 'echo one; touch begun; sleep 1.5; echo two'}\n"
    )
    runner = start("run", "slow.yaml", "-q")
    while not Path("begun").exists():
        assert runner.poll() is None  # type: ignore[attr-defined]
    follower = start("logs", "@last", "-f")
    assert follower.stdout.readline() == "a | one\n"  # type: ignore[attr-defined]
    assert runner.poll() is None, "the line is there before the step ends"  # type: ignore[attr-defined]
    assert follower.communicate(timeout=30)[0] == "a | two\n"  # type: ignore[attr-defined]


def test_a_log_file_has_the_name_that_logs_looks_for(tramai: Call) -> None:
    from tramai.journal import log_name

    write("hello.yaml", HELLO)
    tramai("run", "hello.yaml")
    (log,) = Path(".tramai/logs").glob("*/*.log")
    assert log.name == log_name("greet", 1)


def test_a_cancel_says_who_and_why(tramai: Call) -> None:
    write("sleeps.yaml", SLEEPS)
    tramai("run", "sleeps.yaml")
    assert "is cancelled" in tramai("cancel", "@last", "--comment", "not needed").stdout
    events = document(tramai("show", "@last", "--json"))["run"]["events"]
    assert any(event["comment"] == "not needed" and event["by"] for event in events)


@pytest.mark.parametrize(
    ("as_", "status"), [("completed", "ready"), ("retry", "ready"), ("skipped", "ready"), ("failed", "failed")]
)
def test_an_unknown_outcome_is_resolved_once(tramai: Call, as_: str, status: str) -> None:
    run = blocked_run()
    arguments = ("--output", '{"n": 1}') if as_ == "completed" else ()
    result = tramai("resolve", run, "send", "--as", as_, *arguments, "--comment", "looked", "--json")
    assert document(result)["status"] == status
    assert tramai("resolve", run, "send", "--as", as_).exit_code == 5
    found = document(tramai("show", run, "--json"))["run"]
    assert any(event["comment"] == "looked" for event in found["events"])
    if as_ == "completed":
        assert found["steps"][0]["output"] == {"n": 1}


def test_a_wrong_output_of_resolve_is_named(tramai: Call) -> None:
    result = tramai("resolve", blocked_run(), "send", "--as", "completed", "--output", "done")
    assert result.exit_code == 2
    assert "--output" in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(tramai: Call, shell: str) -> None:
    assert "_TRAMAI_COMPLETE" in tramai("completion", shell).stdout


def test_a_shell_completes_commands_and_options(finished: Call) -> None:
    result = finished(env={"_TRAMAI_COMPLETE": "bash_complete", "COMP_LINE": "tramai re"})
    assert "plain\tresume\t" in result.stdout
    assert "plain\tresolve\t" in result.stdout
