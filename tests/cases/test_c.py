"""Shell steps: quoting, masked failures, process trees, long and odd output, large values, standard input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci_logs import commands
from tests.cli.conftest import ROOT

from .support import alive, attempts, call, content, eventually, problems, save, shown, text_of

# C01

NASTY = 'it\'s "x" $(touch pwned) `id` ; \\ %s\né'


def test_a_nasty_text_is_one_value_by_every_way_in() -> None:
    save(
        """
        - {id: env, shell: {run: 'printf %s "$X"', env: {X: "${{ inputs.x }}"}, parse: text}}
        - {id: argv, shell: {argv: [printf, "%s", "${{ inputs.x }}"], parse: text}}
        - {id: stdin, shell: {run: cat, stdin: "${{ inputs.x }}", parse: text}}
        - {id: quoted, shell: {argv: [bash, -c, "printf %s ${{ inputs.x | quote }}"], parse: text}}
        """,
        """
        inputs: {x: {type: string}}
        outputs:
          all: ${{ [steps.env.output, steps.argv.output, steps.stdin.output, steps.quoted.output] }}
        """,
    )
    assert call("run", "case.yaml", "-i", f"x={NASTY}").outputs == {"all": [NASTY] * 4}
    assert not Path("pwned").exists()


def test_a_value_in_the_text_of_a_script_is_refused_with_the_rewrite() -> None:
    save("- {id: a, shell: 'echo ${{ inputs.x }}'}", "inputs: {x: {type: string}}")
    (problem,) = problems("case.yaml")
    assert (problem["code"], problem["severity"]) == ("TRM301", "error")
    assert 'env: {X: "${{ inputs.x }}"}' in problem["hint"]


HOSTILE = (
    "::error file=x::boo\n::set-output name=x::1\n##[error]x\n[red]x[/red] [link=http://evil]y[/link] [/]\n"
    "<script>alert(1)</script> &amp; ${{ secrets.X }} {{ x }} {% raw %} $(touch pwned) `touch pwned`\n"
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \u202e \x9b31m"
)
SERVER = f"{sys.executable}, {ROOT / 'tests' / 'mcp_server.py'}"
CHILDREN = {
    "shell": "shell: {run: cat text, parse: text}",
    "argv": "shell: {argv: [cat, text], parse: text}",
    "files": "shell: {run: 'cat \"$X\"', files: {X: '${{ inputs.x }}'}, parse: text}",
    "stderr": "shell: {run: cat text >&2}, output: '${{ result.stderr }}'",
    "codex": "codex: {prompt: x}",
    "mcp": f"mcp: {{server: {{command: [{SERVER}]}}, tool: echo, arguments: {{text: '${{{{ inputs.x }}}}'}}}}",
}
CODEX = """\
cat > /dev/null
printf '{"type":"item.completed","item":{"type":"agent_message","text":%s}}\\n' "$(cat json)"
echo '{"type":"turn.completed","usage":{}}'
"""


def test_hostile_text_of_a_child_is_data_and_never_more(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("text").write_text(HOSTILE)
    Path("json").write_text(json.dumps(HOSTILE))
    Path("bin").mkdir()
    Path("bin/codex").write_text(f"#!/bin/sh\n{CODEX}")
    Path("bin/codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path.cwd()}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    steps = [f"- {{id: {name}, {step}}}" for name, step in CHILDREN.items()]
    steps += [
        f"- {{id: {name}_on, shell: {{run: 'printf %s \"$X\"', env: {{X: '${{{{ steps.{name}.output }}}}'}}}}}}"
        for name in CHILDREN
    ]
    outputs = "".join(
        f"\n  {name}: ${{{{ [steps.{name}.output, steps.{name}_on.output.stdout] }}}}" for name in CHILDREN
    )
    save("\n".join(steps), f"inputs: {{x: {{type: string}}}}\noutputs:{outputs}")
    Path("inputs.json").write_text(json.dumps({"x": HOSTILE}))
    ended = call("run", "case.yaml", "--inputs", "inputs.json")
    assert ended.outputs == {name: [HOSTILE, HOSTILE] for name in CHILDREN}
    assert {step["path"]: step["output"] for step in shown()["steps"]}["mcp"] == HOSTILE
    said = text_of("run", "case.yaml", "--inputs", "inputs.json", "--color", "never")
    said += text_of("logs", "@last") + text_of("show", "@last", "-v")
    assert "[red]x[/red] [link=http://evil]y[/link] [/]" in said
    assert "<script>alert(1)</script> &amp; ${{ secrets.X }} {{ x }} {% raw %}" in said
    assert not set(said) & set("\x1b\x07\x9b\u202e")
    assert {name for name, _, _ in commands(said)} == {"group", "endgroup"}, "no command but our own is obeyed"
    assert not Path("pwned").exists()


# C02


@pytest.mark.parametrize("script", ["false\necho after", "false | tee log", "x=$(false) ; echo after"])
def test_no_failure_inside_a_script_is_masked(script: str) -> None:
    save("- id: a\n  shell:\n    run: |\n" + "".join(f"      {line}\n" for line in script.splitlines()))
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["type"], ended.error["exit_code"]) == (1, "exit.1", 1)
    assert "after" not in ended.error["output"]
    assert attempts(shown()) == {"a": ["failed"]}


# C04

TREES = {
    "children": "sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; wait",
    "deaf": "trap '' TERM; echo $$ >> pids; while true; do sleep 0.1; done",
    "daemon": "(setsid sh -c 'echo $$ >> pids; exec sleep 300' &) ; sleep 300",
}


@pytest.mark.parametrize("what", TREES)
def test_a_timeout_ends_the_whole_tree_and_the_run_goes_on(what: str) -> None:
    save(
        f"""
        - id: slow
          foreach:
            items: [1]
            on_error: collect
            do:
              - id: it
                shell: {{run: "echo partial; {TREES[what]}", kill_after: 300ms}}
                timeout: 500ms
        - {{id: next, shell: echo on}}
        """,
        "outputs: {error: '${{ steps.slow.output[0].error }}'}",
    )
    began = time.monotonic()
    error = call("run", "case.yaml").outputs["error"]
    assert 0.5 < time.monotonic() - began < 5
    assert (error["type"], error["output"]) == ("timeout", "partial")
    pids = [int(pid) for pid in content("pids").split()]
    assert pids
    eventually(lambda: not any(map(alive, pids)), 1.0)
    assert attempts(shown())["next"] == ["succeeded"]


# C06


def test_a_line_of_five_million_characters_is_kept_or_cut_with_a_mark() -> None:
    big = "head -c 5000000 /dev/zero | tr '\\\\0' x"
    save(
        f"""
        - {{id: whole, shell: {{run: "{big}", max_output: 6MB}}, output: "${{{{ result.stdout | length }}}}"}}
        - {{id: err, shell: {{run: "{big} >&2", max_output: 6MB}}, output: "${{{{ result.stderr | length }}}}"}}
        - {{id: cut, shell: "{big}", output: "${{{{ [result.truncated, result.stdout] }}}}"}}
        """,
        "outputs: {whole: '${{ steps.whole.output }}', err: '${{ steps.err.output }}', cut: '${{ steps.cut.output }}'}",
    )
    outputs = call("run", "case.yaml").outputs
    assert (outputs["whole"], outputs["err"]) == (5_000_000, 5_000_000)
    truncated, text = outputs["cut"]
    assert truncated is True
    assert "… [3951424 bytes left out] …" in text
    assert text.count("x") == 1024 * 1024


def test_a_failure_shows_the_beginning_of_a_very_long_line_only() -> None:
    save("- {id: a, shell: \"head -c 500000 /dev/zero | tr '\\\\0' x; exit 1\"}")
    said = text_of("run", "case.yaml", "--progress", "none")
    (shown,) = (line for line in said.splitlines() if "xxx" in line)
    assert 1000 < len(shown) < 1100
    assert len(text_of("logs", "@last")) == 500_001


# C07


def test_bytes_that_are_no_text_end_nothing() -> None:
    save(
        r"""
        - id: a
          shell: |
            printf 'c\303(\377\000\351\n'; echo done
        - {id: b, shell: test -e go}
        """,
        "outputs: {a: '${{ steps.a.output.stdout }}'}",
    )
    wanted = "c\ufffd(\ufffd\0\ufffd\ndone\n"
    assert call("run", "case.yaml").status == 1
    assert shown()["steps"][0]["output"]["stdout"] == wanted
    assert "done" in text_of("logs", "@last", "a")
    assert "\0" not in text_of("logs", "@last", "a") + text_of("show", "@last", "-v")
    Path("go").touch()
    assert call("resume", "@last").outputs == {"a": wanted}


# C09


def test_a_value_too_long_for_the_system_is_refused_by_name() -> None:
    top = "inputs: {big: {type: string}}"
    for settings, words in (
        ("run: touch ran, env: {BIG: '${{ inputs.big }}'}", ("BIG", "200,000", "131,072")),
        ("argv: [touch, ran, '${{ inputs.big }}']", ("argv[2]", "200,000", "131,072")),
    ):
        save(f"- {{id: a, shell: {{{settings}}}}}", top)
        Path("inputs.json").write_text('{"big": "' + "y" * 200_000 + '"}')
        ended = call("run", "case.yaml", "--inputs", "inputs.json")
        assert (ended.status, ended.error["type"]) == (1, "limit")
        assert all(word in ended.error["message"] for word in words)
        assert "stdin" in ended.error["hint"]
    assert not Path("ran").exists()
    save(
        "- {id: a, shell: {run: wc -c, stdin: '${{ inputs.big }}', parse: json}}",
        f"{top}\noutputs: {{n: '${{{{ steps.a.output }}}}'}}",
    )
    assert call("run", "case.yaml", "--inputs", "inputs.json").outputs == {"n": 200_000}


def test_a_nul_in_a_variable_is_named() -> None:
    save('- {id: a, shell: {run: touch ran, env: {X: "${{ state.x }}"}}}', 'state: {x: {initial: "a\\0b"}}')
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["type"]) == (1, "refused")
    assert "variable X holds a NUL" in ended.error["message"]
    assert not Path("ran").exists()


# C10


def test_an_endless_standard_input_does_not_reach_a_step(start: Callable[..., subprocess.Popen[str]]) -> None:
    save("- {id: a, shell: {run: cat, parse: text}}", "outputs: {a: '${{ steps.a.output }}'}")
    reading, writing = os.pipe()
    try:
        process = start("run", "case.yaml", "--json", stdin=reading)
        out, err = process.communicate(timeout=20)
    finally:
        os.close(reading), os.close(writing)
    assert process.returncode == 0, err
    assert '"outputs":{"a":""}' in out


def test_a_loop_of_a_shell_keeps_its_lines() -> None:
    save("- {id: a, shell: cat}")
    script = 'while read -r line; do "$0" -m tramai run case.yaml -q; echo "$line"; done'
    ended = subprocess.run(
        ["bash", "-c", script, sys.executable],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="one\ntwo\nthree\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.stdout, ended.stderr) == ("one\ntwo\nthree\n", "")


# C12


def test_streams_keep_their_order_and_bars_become_one_line() -> None:
    save(
        r"""
        - id: a
          shell: |
            echo o1; sleep 0.05; echo e1 >&2; sleep 0.05; echo o2; sleep 0.05
            for i in $(seq 500); do printf '\r%s of 500' "$i"; done; echo
        - {id: version, shell: {run: 'echo v1.2; echo noise >&2', parse: text}}
        - {id: lines, shell: {run: "printf 'x\nEOF\na=b\n\n'", parse: text}}
        - {id: raw, shell: 'echo v1.2', output: "${{ result.stdout }}"}
        """,
        """
        outputs:
          all: ${{ [steps.version.output, steps.lines.output, steps.raw.output] }}
          streams: ${{ [steps.a.output.stdout | length, steps.a.output.stderr] }}
        """,
    )
    ended = call("run", "case.yaml")
    assert ended.outputs["all"] == ["v1.2", "x\nEOF\na=b", "v1.2\n"]
    assert ended.outputs["streams"][1] == "e1\n"
    lines = text_of("logs", "@last", "a").splitlines()
    order = [lines.index(next(line for line in lines if line.endswith(word))) for word in ("o1", "e1", "o2")]
    assert order == sorted(order)
    assert len(lines) < 10
    assert lines[-1].endswith("500 of 500")


# C14, see also tests/cli/test_signals.py, tests/crash/test_mid_step.py and tests/test_no_process_left.py

DEAF = """
- {id: one, shell: echo one >> effects}
- id: two
  replay: replayable
  shell:
    run: |
      echo two >> effects
      [ ! -e go ] || exit 0
      trap '' SIGNALS
      sleep 300 & echo $! >> pids
      (setsid -f sh -c 'trap "" INT TERM; echo $$ >> pids; exec sleep 300')
      echo $$ >> pids
      touch started
      while :; do sleep 0.1; done
    kill_after: 400ms
- {id: three, shell: echo three >> effects}
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_runner_leaves_a_run_that_goes_on(
    start: Callable[..., subprocess.Popen[str]], number: signal.Signals, status: int
) -> None:
    save(DEAF.replace("SIGNALS", "INT TERM"))
    process = start("run", "case.yaml")
    eventually(lambda: Path("started").exists() and len(content("pids").split()) == 3)
    pids = [int(pid) for pid in content("pids").split()]
    assert all(map(alive, pids))
    began = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == status, err
    assert time.monotonic() - began < 5
    assert not any(map(alive, pids))
    run = shown()
    assert (run["status"], run["owner"]) == ("ready", None)
    assert attempts(run) == {"one": ["succeeded"], "two": ["cancelled"]}
    Path("go").touch()
    assert call("resume", "@last").status == 0
    assert content("effects").split() == ["one", "two", "two", "three"]


def test_the_second_signal_to_the_runner_waits_for_nobody(start: Callable[..., subprocess.Popen[str]]) -> None:
    save(DEAF.replace("SIGNALS", "INT TERM").replace("400ms", "60s"))
    process = start("run", "case.yaml")
    eventually(lambda: Path("started").exists() and len(content("pids").split()) == 3)
    pids = [int(pid) for pid in content("pids").split()]
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert not any(map(alive, pids))
    assert shown()["status"] == "ready"
