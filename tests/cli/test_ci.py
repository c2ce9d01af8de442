"""Runs in the logs of CI systems: read as their runners read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.ci_logs import azure_commands, commands
from tests.cli.conftest import GATE, HELLO, ROOT, write
from tramai.cli import _ci, _ci_page

Call = Callable[..., Result]
EVIL = "::error::x##[error]y##vso[task.complete]z%0A::set-output name=a::b <img src=x> [a](b) | `c` \u202e"
FAN = """\
tramai: 1
name: fan
steps:
  - id: prepare
    shell: 'echo preparing; echo "::error::not ours"; echo "  ##vso[task.complete result=Failed;]"; echo "##[error]x"'
  - id: each
    foreach:
      items: [1, 2]
      as: n
      do: [{id: work, shell: {run: 'echo "item $N"; test $N != 2', env: {N: "${{ n }}"}}}]
  - id: never
    local: 1
"""
SECRET = """\
tramai: 1
name: kept
secrets: {KEY: {command: [printf, 'hunter2-%%\\nsecond line']}}
steps:
  - {id: use, shell: {run: 'echo "$KEY"', env: {KEY: "${{ secrets.KEY }}"}}}
"""


@pytest.fixture(autouse=True)
def github(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """The variables of a step in GitHub Actions."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(place))
    monkeypatch.setenv("GITHUB_OUTPUT", "out.txt")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "page.md")


def outputs() -> dict[str, str]:
    """The outputs of the step, as the runner reads its file: the last one of a name counts."""
    return dict(line.split("=", 1) for line in Path("out.txt").read_text(encoding="utf-8").splitlines())


def test_each_step_at_the_top_is_a_group_and_its_end_stands_outside(tramai: Call) -> None:
    result = tramai("run", write("fan.yaml", FAN))
    assert result.exit_code == 1
    said = commands(result.stderr)
    assert [(name, text) for name, _, text in said if "group" in name] == [
        ("group", "prepare (shell)"), ("endgroup", ""), ("group", "each (foreach)"), ("endgroup", ""),
    ]  # fmt: skip
    lines = result.stderr.splitlines()
    ends = [number for number, line in enumerate(lines) if line == "::endgroup::"]
    assert [lines[at + 1].split()[:2] for at in ends] == [["✓", "prepare"], ["✗", "each"]]
    inside = lines[lines.index("::group::each (foreach)") : ends[1]]
    assert any("each[0].work │ item 1" in line for line in inside)


def test_nothing_that_a_child_writes_is_obeyed(tramai: Call) -> None:
    result = tramai("run", write("fan.yaml", FAN))
    assert {name for name, _, _ in commands(result.stderr)} == {"group", "endgroup", "error"}
    assert "##vso[" not in result.stderr
    token = re.findall(r"::stop-commands::(\w+)", result.stderr)
    assert len(set(token)) == 2, "each group has a word of its own"
    assert all(len(word) == 32 for word in token)


def test_a_failure_is_an_annotation_at_its_step(tramai: Call) -> None:
    result = tramai("run", write("fan.yaml", FAN))
    ((_, where, text),) = [found for found in commands(result.stderr) if found[0] == "error"]
    assert where == {"file": "fan.yaml", "line": "10", "col": "12", "endLine": "10", "title": "tramai: each[1].work"}
    first, way = text.split("\n")
    assert first == "step 'each[1].work' failed: exit status 1"
    assert re.fullmatch(r"tramai resume \w{8}", way)


def test_the_outputs_of_the_step_are_the_run_its_status_and_its_outputs(tramai: Call) -> None:
    tramai("run", write("hello.yaml", HELLO), "-i", "who=a\nb")
    found = outputs()
    assert found["status"] == "completed"
    assert json.loads(found["outputs"]) == {"said": "hello a\nb"}
    assert found["run-id"] == json.loads(tramai("show", "@last", "--json").stdout)["run"]["run_id"]
    tramai("resume", found["run-id"])
    assert outputs()["run-id"] == found["run-id"]


@pytest.mark.parametrize("flag", ["--json", "--quiet"])
def test_they_are_there_also_when_the_log_is_for_programs(tramai: Call, flag: str) -> None:
    result = tramai("run", write("fan.yaml", FAN), flag)
    assert outputs()["status"] == "failed"
    assert Path("page.md").read_text(encoding="utf-8").startswith("### ❌ fan v1")
    names = {name for name, _, _ in commands(result.stderr)}
    assert names == ({"error"} if flag == "--quiet" else set())


def test_the_page_has_a_table_and_the_graph(tramai: Call) -> None:
    tramai("run", write("fan.yaml", FAN))
    page = Path("page.md").read_text(encoding="utf-8")
    assert "| ✅ | <code>prepare</code> | shell |" in page
    assert "| ❌ | <code>each&#91;1&#93;&#46;work</code> | shell |" in page
    assert "each&#91;0&#93;" not in page, "what went well inside a loop is not listed"
    graph = page.split("```mermaid\n")[1].split("\n```")[0]
    assert 's_work["work · shell"]' in graph
    assert "class s_work,s_each failed" in graph
    assert "class s_prepare succeeded" in graph
    assert "<code>tramai resume " in page


def test_no_text_of_others_is_markup_on_the_page(tramai: Call) -> None:
    write(
        "evil.yaml",
        "tramai: 1\nname: evil\ninputs: {x: {type: string}}\nsteps:\n"
        "  - {id: a, local: '${{ inputs.x }}'}\n"
        "  - {id: b, gate: {check: '${{ false }}', reason: '${{ inputs.x }}'}}\n",
    )
    result = tramai("run", "evil.yaml", "-i", f"x={EVIL}\n```\n# big\n::error::y\n</pre><script>")
    assert {name for name, _, _ in commands(result.stderr)} == {"group", "endgroup", "error"}
    page = Path("page.md").read_text(encoding="utf-8")
    body = page.partition("<details>")[0]
    assert not re.search(r"<(?!/?(pre|code)>)", body)
    assert not set("`[]#\u202e\x1b") & set(re.sub(r"&#\d+;|^### ", "", body))
    assert page.count("```") == 2


def test_a_page_stays_below_what_github_takes(tramai: Call) -> None:
    many = "".join(f"  - {{id: s{number}, local: '{'x' * 50}'}}\n" for number in range(300))
    write("many.yaml", f"tramai: 1\nname: many\nsteps:\n{many}outputs: {{a: '{'<' * 20000}'}}\n")
    assert tramai("run", "many.yaml").exit_code == 0
    page = Path("page.md").read_bytes()
    assert len(page) < 100_000
    assert b"and 100 more" in page
    assert b"mermaid" not in page, "more steps than can be drawn"
    Path("page.md").write_bytes(b"x" * (1024 * 1024 - 50))
    assert tramai("run", "many.yaml").exit_code == 0
    assert Path("page.md").stat().st_size == 1024 * 1024 - 50


def test_files_that_cannot_be_written_are_told_and_harm_nothing(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", "no/such/folder")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/dev/full")
    result = tramai("run", write("hello.yaml", HELLO))
    assert result.exit_code == 0
    assert "no/such/folder cannot be written" in result.stderr
    assert "/dev/full cannot be written" in result.stderr


def test_what_was_tolerated_is_a_warning_and_more_than_are_shown_are_counted(tramai: Call) -> None:
    do = "[{id: work, shell: exit 1}]"
    write(
        "fan.yaml",
        "tramai: 1\nname: fan\nsteps:\n"
        f"  - {{id: each, foreach: {{items: {[*range(12)]}, as: n, on_error: collect, do: {do}}}}}\n"
        "  - {id: end, shell: exit 1}\n",
    )
    result = tramai("run", "fan.yaml")
    said = [(name, where["title"]) for name, where, _ in commands(result.stderr) if "group" not in name]
    assert said[0] == ("error", "tramai: end")
    assert said[1:] == [("warning", f"tramai: each[{number}].work") for number in range(10)]
    assert "12 warnings; 10 of them are shown as annotations" in result.stderr


def test_a_question_is_a_notice_with_the_command_that_answers_it(tramai: Call) -> None:
    write("ask.yaml", "tramai: 1\nname: ask\nsteps:\n  - {id: ok, gate: {ask: 'go, on?'}}\n")
    result = tramai("run", "ask.yaml")
    assert result.exit_code == 11
    ((_, where, text),) = [found for found in commands(result.stderr) if found[0] == "notice"]
    assert where["line"] == "4"
    assert text.startswith("waits for a decision: go, on?\ntramai approve ")
    assert outputs()["status"] == "waiting"
    assert "⏳ | <code>ok</code>" in Path("page.md").read_text(encoding="utf-8")


def test_a_file_with_mistakes_is_annotated_before_any_run(tramai: Call) -> None:
    result = tramai("run", write("bad.yaml", "tramai: 1\nname: x\nsteps:\n  - {id: a, shel: x}\n  - {id: b}\n"))
    assert result.exit_code == 3
    said = [(where["line"], where["title"]) for name, where, _ in commands(result.stderr) if name == "error"]
    assert ("4", "TRM104") in said
    result = tramai("show", "nothing")
    assert [where["title"] for _, where, _ in commands(result.stderr)] == ["TRM704"]


def test_a_line_of_json_is_no_command(tramai: Call) -> None:
    write("x.yaml", "tramai: 1\nname: x\ninputs: {x: {type: string}}\nsteps: [{id: a, local: 1}]\n"
          "outputs: {x: '${{ inputs.x }}'}\n")  # fmt: skip
    result = tramai("run", "x.yaml", "--json", "-i", "x=##[error]###vso[task.complete]")
    assert json.loads(result.stdout.splitlines()[-1])["outputs"] == {"x": "##[error]###vso[task.complete]"}
    shown = tramai("show", "@last", "--json").stdout
    assert json.loads(shown)["run"]["outputs"] == {"x": "##[error]###vso[task.complete]"}
    assert commands(result.stdout + shown) == []
    assert azure_commands(result.stdout + shown) == []


@pytest.mark.parametrize("how", ["plain", "none", "live"])
def test_a_system_can_be_forbidden(tramai: Call, how: str) -> None:
    result = tramai("run", write("fan.yaml", FAN), "--progress", how)
    assert commands(result.stderr) == []
    assert not Path("out.txt").exists()
    assert not Path("page.md").exists()


def test_a_system_can_be_asked_for(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert commands(tramai("run", write("fan.yaml", FAN)).stderr) == []
    assert commands(tramai("run", "fan.yaml", "--progress", "github").stderr)
    monkeypatch.setenv("TRAMAI_PROGRESS", "github")
    assert commands(tramai("run", "fan.yaml").stderr)


# Masks


def as_runner(script: str, place: Path) -> tuple[str, str]:
    """What a shell script writes that a process called as GitHub's runner has started; both streams."""
    runner = place / "Runner.Worker"
    shutil.copy("/bin/bash", runner)
    inner = write("script.sh", f'tramai() {{ "{sys.executable}" -m tramai "$@"; }}\n{script}\ntrue\n')
    done = subprocess.run(
        [runner, "-c", f"/bin/bash {inner}; true"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_the_runner_hides_secrets_before_anything_is_told(place: Path) -> None:
    write("kept.yaml", SECRET)
    _, err = as_runner("tramai run kept.yaml", place)
    said = commands(err)
    hidden = [text for name, _, text in said if name == "add-mask"]
    assert hidden == ["hunter2-%", "hunter2-%\nsecond line", "second line"]
    assert [name for name, _, _ in said][:3] == ["add-mask"] * 3
    assert err.splitlines()[3].startswith("run ")
    rest = "\n".join(err.splitlines()[3:])
    assert "hunter2" not in rest
    assert "second line" not in rest


@pytest.mark.parametrize("script", ["tramai run kept.yaml 2> log", "tramai run kept.yaml 2>&1 | tee log"])
def test_nobody_but_the_runner_is_told_what_to_hide(place: Path, script: str) -> None:
    write("kept.yaml", SECRET)
    out, err = as_runner(script, place)
    assert "::group::" in Path("log").read_text(encoding="utf-8")
    assert "hunter2" not in out + err + Path("log").read_text(encoding="utf-8")


def test_without_a_runner_nothing_is_hidden_by_a_command(tramai: Call) -> None:
    assert "hunter2" not in tramai("run", write("kept.yaml", SECRET)).output


# The other systems


def test_gitlab_folds_sections(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.setenv("GITLAB_CI", "true")
    result = tramai("run", write("fan.yaml", FAN))
    marks = re.findall(
        r"\x1b\[0Ksection_(start|end):(\d{10}):([A-Za-z0-9_.-]+)(\[collapsed=true\])?\r\x1b\[0K", result.stderr
    )
    assert [(kind, name) for kind, _, name, _ in marks] == [
        ("start", "tramai_1_prepare__shell_"), ("end", "tramai_1_prepare__shell_"),
        ("start", "tramai_2_each__foreach_"), ("end", "tramai_2_each__foreach_"),
    ]  # fmt: skip
    assert commands(result.stderr) == []
    assert not Path("out.txt").exists()


def test_azure_gets_groups_issues_variables_and_a_page(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.setenv("TF_BUILD", "True")
    monkeypatch.setenv("AGENT_TEMPDIRECTORY", ".")
    result = tramai("run", write("fan.yaml", FAN))
    assert [line for line in result.stderr.splitlines() if line.startswith("##[")] == [
        "##[group]prepare (shell)", "##[endgroup]", "##[group]each (foreach)", "##[endgroup]",
    ]  # fmt: skip
    said = azure_commands(result.stderr)
    assert [name for name, _, _ in said] == [
        "task.setvariable", "task.logissue", "task.setvariable", "task.uploadsummary",
    ]  # fmt: skip
    assert said[1][1] == {"type": "error", "sourcepath": "fan.yaml", "linenumber": "10", "columnnumber": "12"}
    assert said[2][1:] == ({"variable": "status", "isOutput": "true"}, "failed")
    page = Path(said[3][2]).read_text(encoding="utf-8")
    assert "### ❌ fan v1: failed" in page
    assert "mermaid" not in page


def test_values_are_escaped_for_azure() -> None:
    one = _ci.Annotation(severity="error", title="TRM104", text="50%\n##vso[x]", file="a;b].yaml", line=3)
    (line,) = _ci.told(_ci.dialect("azure"), [one])
    where = {"type": "error", "sourcepath": "a;b].yaml", "linenumber": "3", "code": "TRM104"}
    assert azure_commands(line) == [("task.logissue", where, "50%\n#\\#vso[x]")]


@pytest.mark.parametrize("text", [EVIL, "日本語", "a\nb", "x" * 10_000])
def test_every_character_that_markdown_could_read_is_an_entity(text: str) -> None:
    shown = re.sub(r"&#\d+;", "", _ci_page.plain(text))
    assert not set(shown) & set("`*_[]()<>#|~!\\&\u202e\n")


def test_a_gate_by_policy_that_rejects_is_an_error(tramai: Call) -> None:
    result = tramai("run", write("gate.yaml", GATE))
    assert result.exit_code == 10
    ((_, _, text),) = [found for found in commands(result.stderr) if found[0] == "error"]
    assert text.startswith("gate 'check' rejected the run: the score is too low")
