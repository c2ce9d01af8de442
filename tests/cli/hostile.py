"""The worst texts in every place that a user, a file or a child can fill, and what no command may do with them."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from tests.ci_logs import azure_commands, commands
from tramai.cli import _errors

WORST = (
    "a\x1b[2J\x1b]0;title\x07b",
    "\x9b31m\x9dc1\x9c",
    "one\r\nover\rwritten\nthree",
    "::error file=x::e\n::set-output name=a::b\n  ::add-mask::m",
    "##[error]x ##vso[task.complete]y ##teamcity[z]",
    "[bold red]markup[/] [link=x]y[/link] {x} %s <img src=x onerror=y> `z` | * _",
    "\u202ereversed\u202c \u2066isolate\u2069 \u200e\u061c",
    "日本語🚀👩\u200d👩\u200d👧 nai\u0308ve z\u0301\u0302\u0303algo \ufeff\u2028",
    "x" * 10_000,
    "\t tab \x00\x7f\x08",
    " ",
    "${{ steps }} {{ x }} {% raw %} $(id) `id` ; rm -rf /",
)
"""Texts by themselves. `ALL` is each in one."""
ALL = " ".join(text for text in WORST if len(text) < 1000)
SAID = ALL.replace("${{", "$${{")
"""The same in a file, where an expression would be read."""
NAME = "::error::x ##[error]y ##vso[z] [red]a[/] <img src=x> | `b` %0A 日本語🚀 nai\u0308ve"
"""As bad as a name may be: printable, and no longer than a hundred characters."""
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufeff")
STATUSES = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12}


class Tty(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def called(*arguments: str, encoding: str = "utf-8", terminal: bool = False) -> tuple[int, str, str]:
    """Exit status and both streams of a command line in this process, written in an encoding."""
    kind = Tty if terminal else io.TextIOWrapper
    before, streams = (sys.stdout, sys.stderr), [kind(io.BytesIO(), encoding=encoding) for _ in range(2)]
    sys.stdout, sys.stderr = streams
    try:
        status = _errors.guarded(list(arguments))
    finally:
        sys.stdout, sys.stderr = before
    return status, *(stream.buffer.getvalue().decode(encoding) for stream in streams)  # type: ignore[attr-defined]


def harmless(text: str, who: Any, *, ours: tuple[str, ...] = ()) -> None:
    """Nothing raw, nothing that a terminal or a CI obeys but these commands of `ours`, no traceback."""
    raw = {
        character for character in text if (ord(character) < 32 and character != "\n") or 127 <= ord(character) < 160
    }
    assert not raw, f"{who}: raw {raw!r} in {context(text, raw)}"
    assert not BIDI & set(text), f"{who}: {context(text, BIDI)}"
    assert "Traceback" not in text, f"{who}: {text}"
    assert "TRM499" not in text, f"{who}: {text}"
    assert not any("\ud800" <= character <= "\udfff" for character in text), who
    found = {name for name, _, _ in (*commands(text), *azure_commands(text))}
    assert found <= set(ours), f"{who}: {found} in {text[:2000]}"


def context(text: str, characters: set[str]) -> str:
    """What stands around the first of some characters."""
    at = next(number for number, character in enumerate(text) if character in characters)
    return repr(text[max(at - 80, 0) : at + 40])


def quoted(text: str) -> str:
    """A text as JSON, which is YAML too."""
    spelled = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff]", lambda found: f"\\u{ord(found[0]):04x}", spelled)


def everything() -> dict[str, str]:
    """A store with runs that have the worst texts in all their fields; the ids of the runs by what they are."""
    Path("flows").mkdir()
    name, odd, data = quoted(NAME), quoted(SAID), quoted(ALL.partition(" ${{")[0])
    head = f"tramai: 1\nname: {name}\nversion: {name}\ndescription: {odd}\n"
    head += f"inputs: {{x: {{type: string, description: {odd}}}}}\n"
    files = {
        "fails": "steps:\n"
        "  - {id: ok, local: {value: '${{ inputs.x }}'}}\n"
        '  - id: bad\n    shell:\n      run: \'printf %s "$X"; printf %s "$X" >&2; exit 3\'\n'
        '      env: {X: \'${{ inputs.x | replace("\\0", "") }}\'}\n',
        "rejects": "steps: [{id: no, gate: {check: '${{ false }}', reason: '${{ inputs.x }}'}}]\n",
        "asks": "steps:\n  - id: ask\n    gate:\n      ask: '${{ inputs.x }}'\n      show: {x: '${{ inputs.x }}'}\n"
        f"      form: {{type: object, properties: {{a: {{type: string, description: {data}}}}}, required: [a]}}\n",
        "sleeps": "steps: [{id: nap, delay: 2h}]\n",
        "ends": "steps:\n  - {id: ok, local: '${{ inputs.x }}', save: {s: '${{ inputs.x }}'}}\n"
        f"state: {{s: {{initial: {data}}}}}\noutputs: {{said: '${{{{ steps.ok.output }}}}', {odd}: 1}}\n",
    }
    Path("in.json").write_text(json.dumps({"x": ALL}))
    ids = {}
    for which, text in files.items():
        file = f"flows/{which}.yaml"
        Path(file).write_text(head + text, encoding="utf-8")
        called("run", file, "--inputs", "in.json", "--label", NAME, "--start-key", which, "-q")
        ids[which] = json.loads(called("list", "--json")[1])["runs"][0]["run_id"]
    Path("flows/wrong.yaml").write_text(
        head + f"{odd}: 1\nsteps:\n  - {{id: {odd}, {odd}: 1, shel: {odd}}}\n  - {{local: '${{{{ {NAME}'}}\n"
    )
    Path("flows/a\x1b[31m\u202e::b\n.yaml").write_text(head + "steps: [{id: a, local: 1}]\n")
    Path("flows/ok.tramai-test.yaml").write_text(
        f"workflow: ends.yaml\ntests:\n  - name: {name}\n    inputs: {{x: {odd}}}\n"
        f"    expect: {{outputs: {{said: {odd}, z: {odd}}}}}\n"
    )
    return ids


def lines_of(ids: dict[str, str], *, each: bool = False) -> list[tuple[str, ...]]:
    """Command lines: every verb, on every run and file, with the worst texts in what can be typed.

    `each`: also with every text by itself.
    """
    files = sorted(os.path.join("flows", name) for name in os.listdir("flows") if "test" not in name)
    runs = list(ids.values())
    found: list[tuple[str, ...]] = []
    for run in runs:
        found += [
            ("show", run),
            ("show", run, "-v"),
            ("logs", run),
            ("diff", run),
            ("graph", run),
            ("graph", run, "--format", "svg"),
            ("export", run),
            ("export", run, "--json"),
            ("watch", run, "--timeout", "0s"),
        ]
        found += [
            ("resume", run, "--no-input"),
            ("show", run, "--json"),
            ("resolve", run, "bad", "--as", "failed", "--comment", ALL.replace("\0", "")),
        ]
    for file in files:
        found += [(verb, file) for verb in ("validate", "plan", "digest", "graph")]
        found += [("graph", file, "--format", form) for form in ("mermaid", "dot", "svg", "json")]
        found += [("validate", file, "--format", form) for form in ("github", "gitlab", "azure", "sarif", "junit")]
    found += [
        ("list",),
        ("status",),
        ("list", "--json"),
        ("doctor",),
        ("doctor", "--report"),
        ("store", "info"),
        ("store", "check"),
        ("plugin", "list"),
    ]
    found += [
        ("test", "flows"),
        ("schedule",),
        ("worker", "list"),
        ("explain", "TRM104"),
        ("schema", "step"),
        ("config", "show"),
    ]
    for text in (text.replace("\0", "") for text in (ALL, *(WORST if each else ()))):
        found += [
            (verb, text)
            for verb in (
                "show",
                "resume",
                "logs",
                "run",
                "validate",
                "explain",
                "graph",
                "nonsense",
                "help",
                "schema",
                "store",
                "init",
            )
        ]
        found += [
            (text,),
            ("--store", text, "list"),
            ("-C", text, "list"),
            ("--color", text, "list"),
            ("list", "--after", text),
        ]
        found += [
            ("run", files[0], "-i", text),
            ("run", files[0], "-i", f"{text}=1"),
            ("run", files[0], "--until", text),
            ("run", files[0], "--report", text),
            ("demo", "--dir", text),
            ("export", text),
            ("config", text),
            ("list", "--label", text),
            ("list", "--workflow", text),
        ]
        found += [
            ("approve", runs[2], "--comment", text, "--data", f"{text}={text}"),
            ("--env-file", text, "list"),
            ("test", ".", "-k", text),
        ]
    found += [
        ("rerun", ids["ends"]),
        ("convert", files[0]),
        ("fmt", "--check", "--diff", "flows"),
        ("completion", "bash"),
        ("help",),
        ("demo", "--dir", "demo"),
    ]
    found += [("export", run) for run in runs] + [("init", "new"), ("config", "show")]
    found += [
        ("cancel", ids["sleeps"], "--comment", ALL.replace("\0", "")),
        ("reject", ids["asks"], "--comment", ALL.replace("\0", "")),
    ]
    return found
