"""Completion: what is offered, in real shells, quickly, and without a word when something is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FAILS, HELLO, ROOT, document, write
from tests.cli.test_exit_codes import blocked_run
from tests.cli.test_startup import imported
from tramai.cli import _complete
from tramai.cli._group import SUMMARIES

Call = Callable[..., Result]
FAN = """\
tramai: 1
name: fan
inputs:
  who: {type: string, default: me, description: Who it is.}
steps:
  - id: each
    foreach: {items: ["a b", c], as: item, key: "${{ item }}", do: [{id: one, local: "${{ item }}"}]}
  - {id: ask, gate: {ask: Go on?}}
"""


def offered(line: str) -> dict[str, str]:
    """What is offered at the end of a line, with the help."""
    words, word = _complete.split(line)
    return {one.value or one.kind: one.help for one in _complete.candidates(words[1:], word)}


@pytest.fixture
def runs(tramai: Call, once: Callable[[Callable[[], object]], None]) -> list[str]:
    """The endings of the ids of some runs, newest first."""

    def make() -> None:
        write("hello.yaml", HELLO), write("fails.yaml", FAILS), write("fan.yaml", FAN)
        for name in ("hello", "fails", "fan"):
            tramai("run", f"{name}.yaml", "--label", f"by-{name}", "--no-input")

    once(make)
    return [run["run_id"][-8:] for run in document(tramai("list", "--json"))["runs"]]


def test_commands_verbs_and_flags_are_offered_with_their_help() -> None:
    assert offered("tramai ") == SUMMARIES
    assert set(offered("tramai sh")) == {"show"}
    assert {"info", "check", "move"} <= set(offered("tramai store "))
    assert "--start-key" in offered("tramai run x.yaml --st")
    assert "--json" in offered("tramai -")
    assert offered("tramai list --status compl") == {"completed": ""}


def test_runs_are_offered_newest_first_by_the_endings_of_their_ids(runs: list[str]) -> None:
    found = offered("tramai show ")
    assert list(found)[:3] == runs
    assert found[runs[1]] == "fails, failed"
    assert {"@last", "@failed"} <= set(found)
    assert next(iter(offered(f"tramai show {runs[1][:5]}"))) == runs[1]
    assert set(offered("tramai show @")) == {"@last", "@failed", "@last:hello", "@last:fails", "@last:fan"}


@pytest.mark.parametrize("name", ["show", "logs", "resume", "rerun", "watch", "cancel", "export", "diff", "approve",
                                  "reject", "resolve", "store copy", "store move", "graph"])  # fmt: skip
def test_every_command_that_takes_a_run_offers_them(runs: list[str], name: str) -> None:
    assert set(runs) <= set(offered(f"tramai {name} "))


def test_steps_of_a_run_are_offered_by_their_paths(runs: list[str]) -> None:
    assert set(offered("tramai logs @last:fan ")) == {"each", 'each["a b"].one', "each[c].one", "ask"}
    assert offered("tramai approve @last:fan ") == {"ask": "Go on?"}
    assert set(offered("tramai rerun @last:fan --from ")) == {"each", "ask"}
    assert set(offered("tramai resume @last:fan --until=a")) == {"ask"}
    blocked_run()
    assert set(offered("tramai resolve blocked-run ")) == {"send"}


def test_what_a_file_has_is_offered(runs: list[str]) -> None:
    assert offered("tramai run fan.yaml -i ") == {"who=": "string"}
    assert set(offered("tramai run fan.yaml --until ")) == {"each", "ask"}
    assert set(offered("tramai run fan.yaml --approve ")) == {"ask=yes", "ask=no"}


def test_files_are_left_to_the_shell() -> None:
    assert set(offered("tramai run ")) == {"workflow"}
    assert set(offered("tramai validate one.yaml ")) == {"workflow"}
    assert set(offered("tramai export x -o ")) == {"file"}
    assert set(offered("tramai init ")) == {"dir"}
    assert set(offered("tramai -C ")) == {"dir"}
    assert set(offered("tramai run x.yaml --inputs ")) == {"file"}
    assert set(offered("tramai resume x --file ")) == {"workflow"}


def test_topics_codes_names_and_words_are_offered(runs: list[str]) -> None:
    assert {"expressions", "exit-codes", "explain", "export"} == set(offered("tramai help ex"))
    assert set(offered("tramai help store mo")) == {"move"}
    assert "TRM104" in offered("tramai explain TRM1")
    assert "retry" in offered("tramai explain ret")
    assert "run" in offered("tramai schema ")
    assert "shell" in offered("tramai schema step ")
    assert set(offered("tramai list --label by-f")) == {"by-fan", "by-fails"}
    assert set(offered("tramai list --workflow h")) == {"hello"}
    assert set(offered("tramai list --color=a")) == {"auto", "always"}
    assert "sqlite:" in offered("tramai list --store ")
    assert {"junit=", "json="} <= set(offered("tramai run x.yaml --report j"))


def test_global_flags_before_it_count(tramai: Call, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getcwd()
    monkeypatch.chdir("..")
    assert offered("tramai show ") == {}
    assert set(runs) <= set(offered(f"tramai -C {here} show "))
    assert set(runs) <= set(offered(f"tramai --store sqlite:{here}/.tramai/tramai.db show "))
    assert set(runs) <= set(offered(f"tramai show --store=sqlite:{here}/.tramai/tramai.db "))


@pytest.mark.parametrize(
    "line",
    ["", "tramai", "tramai nope ", "tramai show --store nonsense: ", "tramai logs nope ", "tramai run broken.yaml -i ",
     "tramai run 'open quote", "tramai run missing.yaml --until ", "tramai -C /nowhere show ", "tramai show -- "],
)  # fmt: skip
def test_what_goes_wrong_is_silent_and_makes_nothing(line: str) -> None:
    write("broken.yaml", "a: [\n")
    result = asked(line)
    assert (result.returncode, result.stderr) == (0, "")
    assert not Path(".tramai").exists()


def test_names_that_cannot_be_typed_are_not_offered(tramai: Call) -> None:
    write("odd.yaml", HELLO)
    tramai("run", "odd.yaml", "--label", "evil\x1b[31m")
    assert "\x1b" not in asked("tramai list --label ").stdout


def asked(line: str, shell: str = "bash", **env: str) -> subprocess.CompletedProcess[str]:
    """What a shell is told, by a process of its own."""
    variables = {"COMP_LINE": line, "COMP_BREAKS": " \t\n\"'><=;|&(:", "_TRAMAI_COMPLETE": f"{shell}_complete", **env}
    return subprocess.run(
        [sys.executable, "-m", "tramai"],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_it_imports_no_reader_of_workflows_and_no_client(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TRAMAI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", "tramai show ")
    heavy = {
        "httpx",
        "mcp",
        "psycopg",
        "jinja2",
        "jsonschema",
        "ruamel",
        "rich",
        "asyncio",
        "sqlite_utils",
        "subprocess",
    }
    assert not imported() & heavy


def test_it_is_quick(runs: list[str]) -> None:
    """In processor time, the best of five, measured together with `--help`."""

    def spent(command: list[str], **env: str) -> float:
        best = 9.0
        for _ in range(5):
            before = os.times()
            subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT), **env}, capture_output=True, check=True)
            after = os.times()
            best = min(
                best, after.children_user + after.children_system - before.children_user - before.children_system
            )
        return best

    program = [sys.executable, "-m", "tramai"]
    completing = spent(program, COMP_LINE="tramai show ", _TRAMAI_COMPLETE="bash_complete")
    assert completing < 12 * max(spent([*program, "--help"]), 0.01)


def test_a_script_is_printed_for_each_shell(tramai: Call) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_TRAMAI_COMPLETE" in tramai("completion", shell).stdout
        assert document(tramai("completion", shell, "--json"))["shell"] == shell


# Real shells.


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with a `tramai` to put on PATH, and the scripts."""
    folder = tmp_path / "programs"
    folder.mkdir()
    tramai = folder / "tramai"
    tramai.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m tramai "$@"\n', encoding="utf-8")
    tramai.chmod(0o755)
    return folder


def shell(program: Path, *command: str, **env: str) -> list[str]:
    result = subprocess.run(
        command,
        env={**os.environ, "PATH": f"{program}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


BASH = """\
eval "$(tramai completion bash)"
COMP_LINE=$1 COMP_POINT=${#1}
read -ra COMP_WORDS <<< "$2"
[[ $1 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tramai_completion tramai
printf '%s\\n' "${COMPREPLY[@]}"
"""


def bash(program: Path, line: str, words: str | None = None) -> list[str]:
    """What bash would put in; `words` as bash breaks the line, when that is not at blanks alone."""
    return shell(program, "bash", "--norc", "-c", BASH, "bash", line, line if words is None else words)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_runs_steps_and_files(program: Path, runs: list[str]) -> None:
    assert bash(program, "tramai show ")[:3] == runs
    assert bash(program, "tramai show @last:h", "tramai show @last : h") == ["hello"]
    assert bash(program, "tramai logs @last:fan each") == ["each", r"each\[\"a\ b\"\].one", r"each\[c\].one"]
    assert bash(program, r"tramai logs @last:fan each\[c") == [r"each\[c\].one"]
    assert sorted(bash(program, "tramai run f")) == ["fails.yaml", "fan.yaml"]
    assert bash(program, "tramai list --store=sq", "tramai list --store = sq") == ["sqlite:"]
    assert bash(program, "tramai run fan.yaml -i w") == ["who="]


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_offers_them_with_their_help(program: Path, runs: list[str], tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}

    def fish(line: str) -> list[str]:
        return shell(program, "fish", "-c", f"tramai completion fish | source; complete -C '{line}'", **home)

    assert [line.split("\t")[0] for line in fish("tramai show ")[:3]] == runs
    assert fish("tramai show ")[1].split("\t")[1] == "fails, failed"
    assert "hello.yaml" in fish("tramai run h")
    assert [line.split("\t")[0] for line in fish("tramai help exit")] == ["exit-codes"]


ZSH = """\
import os, pty, re, select, sys, time
pid, terminal = pty.fork()
if not pid:
    os.execvp("zsh", ["zsh", "-f", "-i"])
said = b""
def until(mark, limit=30):
    global said
    end = time.monotonic() + limit
    while mark not in said and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536)
    if mark not in said:
        sys.exit(f"{mark!r} never came: {said!r}")
os.write(terminal, b"autoload -Uz compinit; compinit -u -D; eval \\"$(tramai completion zsh)\\"; print set''up\\n")
until(b"setup\\r\\n")
said = b""
os.write(terminal, sys.argv[1].encode() + b"\\t")
until(sys.argv[2].encode())
os.write(terminal, b"\\x03exit\\n")
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("tramai sho", "show "),
        ("tramai resume @last:hel", "@last:hello "),
        ("tramai run hel", "hello.yaml"),
        ("tramai run fan.yaml -i w", "who="),
        ("tramai logs @last:fan each\\[c", "each\\[c\\].one"),
    ],
)
def test_zsh_puts_in_what_is_the_only_one(
    program: Path, runs: list[str], tmp_path: Path, line: str, shown: str
) -> None:
    shell(program, sys.executable, "-c", ZSH, line, shown, HOME=str(tmp_path), TERM="dumb")
