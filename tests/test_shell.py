"""`shell`: what a script gets, what its output becomes, and what is refused."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tramai.expression import ExpressionError
from tramai.permits import Permits
from tramai.step import Replay
from tramai.steps.shell import Shell

from .shell_steps import Context, fails, findings, shell
from .step_context import run


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    return Context(tmp_path)


# What goes in.


NAUGHTY = 'it\'s "x" $(touch pwned) `id` ; \\ %s\né ${HOME} ${{ no }}'


def test_a_value_enters_by_env_by_argument_and_by_stdin_byte_for_byte(tmp_path: Path) -> None:
    ctx = Context(tmp_path, {"inputs": {"x": NAUGHTY}})
    value = "${{ inputs.x }}"
    assert run(shell(run='printf %s "$X"', env={"X": value}), ctx)["stdout"] == NAUGHTY
    assert run(shell(argv=["printf", "%s", value]), ctx)["stdout"] == NAUGHTY
    assert run(shell(run="cat", stdin=value), ctx)["stdout"] == NAUGHTY
    assert not (tmp_path / "pwned").exists()
    assert list(tmp_path.iterdir()) == []


def test_stdin_that_is_not_text_is_written_as_json(tmp_path: Path) -> None:
    ctx = Context(tmp_path, {"inputs": {"x": [1, "é"], "n": None}})
    assert run(shell(run="cat", stdin="${{ inputs.x }}"), ctx)["stdout"] == '[1,"\\u00e9"]'
    assert (
        run(shell(run="cat", stdin={"a": "n${{ inputs.x[0] }}", "b": [True]}), ctx)["stdout"] == '{"a":"n1","b":[true]}'
    )
    assert run(shell(run="cat", stdin="${{ inputs.n }}"), ctx)["stdout"] == "null"
    assert run(shell(run="cat", stdin=None), ctx)["stdout"] == "null"
    assert run(shell(run="cat | wc -c", stdin="a\0b"), ctx)["stdout"].strip() == "3"
    assert run(shell(run="cat"), ctx)["stdout"] == ""


def test_an_argument_is_one_argument_whatever_it_holds(tmp_path: Path) -> None:
    ctx = Context(tmp_path, {"inputs": {"list": ["a b", "*"], "n": 7, "none": None}})
    result = run(shell(argv=["printf", "[%s]", "${{ inputs.list }}", "-n", "${{ inputs.n }}", "a b *"]), ctx)
    assert result["stdout"] == '[["a b", "*"]][-n][7][a b *]' or result["stdout"] == '[["a b","*"]][-n][7][a b *]'
    with pytest.raises(ExpressionError):
        run(shell(argv=["printf", "${{ inputs.none }}"]), ctx)


def test_the_environment_is_little_of_ours_then_the_workflows_then_the_steps(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LANG", "C.UTF-8")
    ctx.env = {"A": "workflow", "B": "workflow", "LANG": "C"}
    text = run(shell(argv=["env"], env={"B": "step"}), ctx)["stdout"]
    seen = dict(line.split("=", 1) for line in text.splitlines())
    assert {name: seen[name] for name in ("A", "B", "LANG", "TZ", "PATH")} == {
        "A": "workflow",
        "B": "step",
        "LANG": "C",
        "TZ": "UTC",
        "PATH": os.environ["PATH"],
    }
    told = {name: value for name, value in seen.items() if name.startswith("TRAMAI_")}
    assert told.pop("TRAMAI_COOKIE").endswith(" run:step:1")
    assert told == {
        "TRAMAI_RUN_ID": "run",
        "TRAMAI_STEP": "step",
        "TRAMAI_ATTEMPT": "1",
        "TRAMAI_IDEMPOTENCY_KEY": "key",
    }
    assert set(seen) - set(told) - {"TRAMAI_COOKIE"} <= {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "A", "B"}


def test_a_value_over_the_limit_of_the_system_is_refused_by_name(tmp_path: Path) -> None:
    ctx = Context(tmp_path, {"inputs": {"x": "y" * 200_000}})
    error = fails(ctx, run="true", env={"BIG": "${{ inputs.x }}"})
    assert (error.type, error.message) == (
        "limit",
        "the environment variable BIG has 200,000 bytes; the system takes at most 131,072 in one",
    )
    assert "stdin" in str(error.hint)
    assert "argv[1] has 200,000 bytes" in fails(ctx, argv=["echo", "${{ inputs.x }}"]).message
    assert "the script in `run` has" in fails(ctx, run="#" + "x" * 140_000).message
    assert run(shell(run="wc -c", stdin="${{ inputs.x }}", parse="text"), ctx)["value"].strip() == "200000"
    ctx.scope = {"inputs": {"x": "a\0b"}}
    assert "variable X holds a NUL" in fails(ctx, run="true", env={"X": "${{ inputs.x }}"}).message


def test_a_script_starts_in_the_folder_of_the_run_or_in_its_own(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    ctx = Context(tmp_path, {"inputs": {"name": "sub"}})
    assert run(shell(run="pwd", parse="text"), ctx)["value"] == str(tmp_path)
    assert run(shell(run="pwd", cwd="./${{ inputs.name }}", parse="text"), ctx)["value"] == str(tmp_path / "sub")
    assert run(shell(run="pwd", cwd="/", parse="text"), ctx)["value"] == "/"
    error = fails(ctx, run="pwd", cwd="nosuch")
    assert (error.type, error.message) == ("refused", f"the folder {tmp_path}/nosuch does not exist")


def test_a_program_beside_the_folder_is_found_by_its_relative_path(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho $1")
    tool.chmod(0o755)
    assert run(shell(argv=["./tool", "x"], parse="text"), Context(tmp_path))["value"] == "x"


# What comes out.


def test_a_script_fails_at_the_first_failure_also_in_a_pipe_and_of_an_unknown_variable(ctx: Context) -> None:
    for script in ("false\necho after", "false | cat", "x=$(false); echo after", 'echo "$NOSUCH"; echo after'):
        error = fails(ctx, run=script)
        assert error.type == "exit.1"
        assert "after" not in str(error.details["output"])


def test_without_bash_a_script_runs_in_sh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tramai.steps import _process

    find = _process.search
    monkeypatch.setattr(_process, "search", lambda name, path: None if name == "bash" else find(name, path))
    result = run(shell(run='echo "[${BASH_VERSION-none}]"', parse="text"), Context(tmp_path))
    assert result["value"] == "[none]"
    assert fails(Context(tmp_path), run="false\necho after").type == "exit.1"
    assert fails(Context(tmp_path), run='echo "$NOSUCH"').type == "exit.2"


def test_a_failed_child_leaves_its_status_and_its_last_lines(ctx: Context) -> None:
    error = fails(ctx, run="for i in $(seq 100); do echo line $i; done; echo oops >&2; sleep 0.02; exit 7")
    assert (error.type, error.message) == ("exit.7", "exit status 7")
    assert error.details["exit_code"] == 7
    lines = str(error.details["output"]).split("\n")
    assert len(lines) == 20
    assert "oops" in lines
    killed = fails(ctx, run="kill -KILL $$")
    assert (killed.type, killed.message) == ("exit.137", "ended by SIGKILL")
    assert killed.details["signal"] == "SIGKILL"


def test_exit_statuses_that_are_declared_are_a_success_but_a_signal_never_is(ctx: Context) -> None:
    assert run(shell(run="exit 1", ok_exit_codes=[0, 1]), ctx)["exit_code"] == 1
    assert fails(ctx, run="exit 0", ok_exit_codes=[1]).type == "exit.0"
    assert fails(ctx, run="kill -TERM $$", ok_exit_codes=[143]).message == "ended by SIGTERM"


def test_the_output_is_the_parsed_value_or_the_streams(ctx: Context) -> None:
    plain = shell(run="printf 'v1.2\\n\\n'; echo e >&2")
    result = run(plain, ctx)
    assert result == {"stdout": "v1.2\n\n", "stderr": "e\n", "exit_code": 0, "truncated": False}
    assert plain.output(result) == {"stdout": "v1.2\n\n", "stderr": "e\n", "exit_code": 0}
    text = shell(run="printf 'a\\n\\nEOF\\na=b\\n\\n'", parse="text")
    assert text.output(run(text, ctx)) == "a\n\nEOF\na=b"


@pytest.mark.parametrize(
    ("parse", "script", "value"),
    [
        ("lines", r"printf 'a\r\n\nb c\n'", ["a", "", "b c"]),
        ("lines", "true", []),
        ("lines", r"printf 'a\013b\nc'", ["a\x0bb", "c"]),
        ("json", """echo '{"n": 12345678901234567890, "f": 1.10}'""", {"n": 12345678901234567890, "f": 1.1}),
        ("json", r"printf '\357\273\277[1]'", [1]),
        ("json", "echo null", None),
        ("jsonl", r"""printf '{"a":1}\n\n[2]\r\n"x"'""", [{"a": 1}, [2], "x"]),
        ("jsonl", "true", []),
        ("text", r"printf 'a\000b\n'", "a\0b"),
    ],
)
def test_stdout_is_parsed(parse: str, script: str, value: Any, ctx: Context) -> None:
    step = shell(run=script, parse=parse)
    assert step.output(run(step, ctx)) == value


@pytest.mark.parametrize(
    ("parse", "script", "message"),
    [
        (
            "json",
            "echo Hello there",
            "stdout is not JSON: Expecting value at line 1 column 1; it begins with: Hello there",
        ),
        ("json", "true", "stdout is empty, not JSON"),
        ("json", "echo '[1, NaN]'", "stdout is not JSON: [1] is nan, which JSON cannot say; it begins with: [1, NaN]"),
        ("json", "echo 1e999", "stdout is not JSON: the value is inf, which JSON cannot say; it begins with: 1e999"),
        ("json", "printf '[%.0s' $(seq 100000)", "stdout is not JSON: it is nested too deeply"),
        ("jsonl", r"printf '1\nx\n'", "line 2 is not JSON: Expecting value at line 1 column 1; it begins with: x"),
    ],
)
def test_output_that_cannot_be_parsed_fails_with_its_beginning(
    parse: str, script: str, message: str, ctx: Context
) -> None:
    error = fails(ctx, run=script, parse=parse)
    assert error.type == "invalid_output"
    assert error.message.startswith(message)
    assert len(error.message) < 400


def test_output_that_was_cut_is_marked_and_is_not_parsed(ctx: Context) -> None:
    result = run(shell(run="printf 0123456789", max_output=4), ctx)
    assert result["stdout"] == "01\n… [6 bytes left out] …\n89"
    assert result["truncated"] is True
    for parse in ("json", "jsonl", "lines"):
        error = fails(ctx, run="printf 0123456789", max_output="4B", parse=parse)
        assert error.type == "truncated"
        assert "stdout has 10 bytes, more than max_output (4 bytes)" in error.message
    assert "left out" in run(shell(run="printf 0123456789", max_output=4, parse="text"), ctx)["value"]


def test_live_output_and_the_log_get_both_streams(tmp_path: Path) -> None:
    ctx = Context(tmp_path)
    ctx.log_path = str(tmp_path / "logs" / "x.log")
    run(shell(run="echo o; sleep 0.02; echo e >&2"), ctx)
    assert ctx.shown == [("stdout", "o\n"), ("stderr", "e\n")]
    assert Path(ctx.log_path).read_text() == "o\ne\n"


# The end.


def test_a_timeout_fails_the_step_and_ends_its_tree(tmp_path: Path) -> None:
    nap = f"4{random.randrange(10**9):09d}"
    began = time.monotonic()
    ctx = Context(tmp_path, deadline=began + 0.3)
    error = fails(
        ctx, run=f"echo partial; trap '' TERM; sleep {nap} & setsid sleep {nap} & sleep {nap}", kill_after="200ms"
    )
    assert error.type == "timeout"
    assert error.details["output"] == "partial"
    assert 0.3 < time.monotonic() - began < 3
    assert not [name for name in os.listdir("/proc") if name.isdigit() and nap in _arguments(name)]


def _arguments(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_an_interrupt_cancels_the_step_with_its_reason(ctx: Context) -> None:
    ctx.interrupt.set("signal")
    error = fails(ctx, run="sleep 60")
    assert (error.type, error.message) == ("cancelled", "stopped: signal")


def test_a_missing_program_is_refused_with_what_to_do(ctx: Context) -> None:
    error = fails(ctx, argv=["no-such-program"])
    assert error.type == "refused"
    assert error.message.startswith("there is no program no-such-program on PATH (")
    assert error.hint == "install no-such-program, or write its path"


def test_on_windows_a_step_is_refused_with_what_to_do(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_spawn")
    for way in ({"run": "true"}, {"argv": ["true"]}):
        error = fails(ctx, **way)
        assert (error.type, error.message) == (
            "refused",
            "child processes need a POSIX system; on Windows, run tramai inside WSL",
        )


# Which programs.


def install(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\necho {says}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the system's PATH, with a program of ours."""
    folder = tmp_path / "tools"
    install(folder, "ours", "real")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_a_program_is_allowed_by_its_name_and_by_its_path(ctx: Context, tools: Path) -> None:
    for program in ("ours", str(tools / "ours"), "tools/ours", "./tools/../tools/ours"):
        for entry in ("ours", str(tools / "ours"), "./tools/ours"):
            assert run(shell(argv=[program], allow=["git", entry], parse="text"), ctx)["value"] == "real"
    ctx.scope = {"inputs": {"p": "/bin/true"}}
    assert run(shell(argv=["${{ inputs.p }}"], allow=["true"]), ctx)["exit_code"] == 0
    assert fails(ctx, argv=["false"], allow=["true"]).message == "the program false is not in `allow` (true)"
    assert fails(ctx, argv=["true"], allow=[]).message == "the program true is not in `allow` (nothing)"


def test_another_program_of_an_allowed_name_is_not_allowed(ctx: Context, tools: Path, tmp_path: Path) -> None:
    evil = install(tmp_path / "evil", "ours", "evil")
    install(tmp_path, "ours", "evil")
    for path in (f"{evil.parent}:{tools}", "evil", ".", f".:{tools}"):
        error = fails(ctx, argv=["ours"], allow=["ours"], env={"PATH": path})
        assert error.type == "refused"
        assert "which is not the one that `allow` names (ours)" in error.message
    assert "not the one that" in fails(ctx, argv=["./ours"], allow=["./tools/ours"], cwd="evil").message
    assert "not the one that" in fails(ctx, argv=["./ours"], allow=["tools/ours"]).message
    assert run(shell(argv=["./ours"], allow=["./evil/ours"], cwd="evil", parse="text"), ctx)["value"] == "evil"
    allowed = shell(argv=["ours"], allow=["ours"], env={"PATH": f"/nowhere:{tools}:evil"}, parse="text")
    assert run(allowed, ctx)["value"] == "real"


def test_the_shell_of_a_script_is_the_one_of_the_system_where_programs_are_allowed(ctx: Context) -> None:
    install(Path(ctx.cwd) / "evil", "bash", "evil")
    error = fails(ctx, run="true", allow=["bash"], env={"PATH": f"{ctx.cwd}/evil"})
    assert "would be" in error.message
    assert "evil/bash" in error.message
    for entry in ("bash", "sh"):
        assert run(shell(run="true", allow=[entry]), ctx)["exit_code"] == 0
        assert fails(ctx, run="true", deny=[entry]).message == "the program bash is in `deny`" + (
            "" if entry == "bash" else ": /usr/bin/bash is sh under another name"
        )
    assert fails(ctx, run="true", allow=["git"]).message == "the program bash is not in `allow` (git)"


def test_a_link_is_allowed_when_it_leads_to_the_file_of_that_name(ctx: Context, tools: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "ours").symlink_to(tools / "ours")
    (links / "other").symlink_to(tools / "ours")
    assert run(shell(argv=["links/ours"], allow=["ours"], parse="text"), ctx)["value"] == "real"
    # A file may be many programs, each under a name of its own.
    assert "is not in `allow`" in fails(ctx, argv=["links/other"], allow=["ours"]).message


def test_a_denied_program_is_denied_under_every_name_and_in_every_folder(
    ctx: Context, tools: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "linked").symlink_to(tools / "ours")
    os.link(tools / "ours", other / "hard")
    shutil.copy(tools / "ours", other / "copied")
    install(other, "ours", "a stranger")
    for program in ("ours", "tools/ours", "other/ours"):
        assert fails(ctx, argv=[program], deny=["rm", "ours"]).message == f"the program {program} is in `deny`"
    for name in ("linked", "hard", "copied"):
        for entry in ("ours", "./tools/ours"):
            error = fails(ctx, argv=[name], deny=[entry], env={"PATH": "other"})
            assert error.message.startswith(f"the program {name} is in `deny`: ")
            assert error.message.endswith(f"other/{name} is {entry} under another name")
    assert "is in `deny`" in fails(ctx, argv=["ours"], allow=["ours"], deny=["ours"]).message
    assert run(shell(argv=["other/ours"], deny=["./tools/ours"], parse="text"), ctx)["value"] == "a stranger"
    assert run(shell(argv=["true"], deny=["ours", "/no/such", "nosuch"]), ctx)["exit_code"] == 0


def test_what_is_refused_leaves_a_word_for_who_watches_and_starts_nothing(ctx: Context) -> None:
    told: list[tuple[str, Any]] = []
    ctx.signal = lambda name, **attributes: told.append((name, attributes["policy"]))  # type: ignore[method-assign]
    fails(ctx, argv=["touch", "x"], allow=["git"])
    fails(ctx, argv=["touch", "x"], deny=["touch"])
    assert told == [("security.command_denied", "allow"), ("security.command_denied", "deny")]
    assert not (Path(ctx.cwd) / "x").exists()


def test_a_permit_names_the_same_file_as_allow(ctx: Context, tools: Path, tmp_path: Path) -> None:
    install(tmp_path / "evil", "ours", "evil")
    ctx.permits = (Permits(shell=("ours",)),)
    for program in ("ours", str(tools / "ours")):
        assert run(shell(argv=[program], parse="text"), ctx)["value"] == "real"
    error = fails(ctx, argv=["ours"], env={"PATH": "evil"})
    assert (error.type, error.message) == ("refused", f"the program ours in {tmp_path}/evil/ours is not permitted")
    ctx.permits = (Permits(shell=("bash",)),)
    install(tmp_path / "evil", "bash", "evil")
    assert "a script in" in fails(ctx, run="true", env={"PATH": f"{tmp_path}/evil"}).message


def test_with_permits_a_child_starts_inside_the_folder_of_the_run(tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    ctx = Context(folder)
    where = shell(run="pwd -P", cwd="link", parse="text")
    assert run(where, ctx)["value"] == str(outside)
    ctx.permits = (Permits(shell=("bash",)),)
    for cwd in ("link", "..", str(outside), "/"):
        error = fails(ctx, run="true", cwd=cwd)
        assert error.type == "refused"
        assert "is not permitted: it is outside the run's folder" in error.message
    assert run(shell(run="pwd", cwd="sub", parse="text"), ctx)["value"] == f"{folder}/sub"
    ctx.permits = (Permits(shell=("bash",), write=(str(outside),)),)
    assert run(where, ctx)["value"] == str(outside)


# Settings.


def test_exactly_one_of_run_and_argv() -> None:
    assert [(found.code, found.pointer) for found in findings()] == [("TRM310", ())]
    assert [found.code for found in findings(run="true", argv=["true"])] == ["TRM310"]
    assert [(found.code, found.pointer) for found in findings(argv=[" "])] == [("TRM310", ("argv", 0))]
    assert not findings(run="true")
    assert not findings(argv=["docker", "ps", "--format", "{{.ID}}"])
    assert not findings(run="docker ps --format '{{.ID}}'; echo ${#a[@]} ${x:-{}}")


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        (
            "make ${{ inputs.target }}",
            'write make "$TARGET" and give the value by env: {TARGET: "${{ inputs.target }}"}',
        ),
        (
            'echo "v${{ steps.a.output.version }}!"',
            'write echo "v${VERSION}!" and give the value by env: {VERSION: "${{ steps.a.output.version }}"}',
        ),
        (
            "echo 'a ${{ inputs.path }}' ${{ inputs.path }}",
            "write echo 'a '\"$PATH_VALUE\"'' \"$PATH_VALUE\" and give the value by env: "
            '{PATH_VALUE: "${{ inputs.path }}"}',
        ),
        (
            'cp ${{ inputs.a.name }} "${{inputs.b.name | trim}}"',
            'write cp "$NAME" "${NAME_2}" and give the value by env: '
            '{NAME: "${{ inputs.a.name }}", NAME_2: "${{ inputs.b.name | trim }}"}',
        ),
        ("set -x\nmake ${{ 1 + 1 }}\ntrue", 'write make "$VALUE" and give the value by env: {VALUE: "${{ 1 + 1 }}"}'),
        ("echo ${{ inputs.x", "close the expression with }} and move it to `env`"),
    ],
)
def test_an_expression_in_a_script_is_refused_with_the_rewrite(script: str, hint: str) -> None:
    (found,) = findings(run=script)
    assert (found.code, found.pointer, found.hint) == ("TRM301", ("run",), hint)
    assert found.range is not None
    assert script[slice(*found.range)].startswith("${{")


def test_variables_must_have_names_that_can_be_set_and_are_not_ours() -> None:
    found = findings(run="true", env={"a-b": "x", "TRAMAI_RUN_ID": "x", "TRAMAI_STORE": "x", "": "x"})
    assert [(one.code, one.pointer[-1]) for one in found] == [
        ("TRM312", "a-b"),
        ("TRM313", "TRAMAI_RUN_ID"),
        ("TRM312", ""),
    ]


def test_programs_that_are_known_before_the_run_are_checked_then() -> None:
    assert [found.code for found in findings(argv=["rm", "x"], allow=["git"])] == ["TRM311"]
    assert [found.code for found in findings(argv=["/bin/rm", "x"], deny=["rm"])] == ["TRM311"]
    assert [found.code for found in findings(argv=["/tmp/git", "x"], allow=["git"])] == ["TRM311"]
    assert [found.code for found in findings(argv=["/tmp/git", "x"], deny=["/tmp/git"])] == ["TRM311"]
    assert not findings(argv=["${{ inputs.p }}"], allow=["git"])
    assert not findings(argv=["/usr/bin/git"], allow=["git"])
    assert not findings(argv=["git"], allow=["/opt/git/bin/git"])


def test_a_size_of_nothing_is_refused() -> None:
    assert [found.code for found in findings(run="true", max_output="0B")] == ["TRM314"]


@pytest.mark.parametrize(
    "settings",
    [
        {"run": ""},
        {"argv": []},
        {"max_output": "1XB"},
        {"ok_exit_codes": [256]},
        {"ok_exit_codes": []},
        {"parse": "xml"},
    ],
)
def test_values_that_cannot_be_are_refused_by_the_schema(settings: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        shell(**({} if "argv" in settings else {"run": "true"}) | settings)


def test_a_shell_step_is_not_repeated_without_leave_and_needs_no_event_loop() -> None:
    step = shell(run="true")
    assert step.replay() is Replay.NON_REPLAYABLE
    assert not step.needs_loop()
    assert step.spawns
    assert step.sinks == {"env", "stdin", "files"}
    assert Shell.scalar == "run"
    assert step.kill_after == 10.0
