"""Mechanical mistakes are mended in the text, and no fix does harm."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tramai import document, fixes, workflow
from tramai.document import Document

MISTAKES = Path(__file__).parent / "mistakes"
HEAD = "tramai: 1\nname: x\ninputs: {a: {type: boolean, default: true}, name: {type: string, default: x}}\n"


def read(text: str, form: str = "yaml") -> Document:
    return document.parse(text, file=f"x.{form}")


def mended(text: str, form: str = "yaml", *, warnings: bool = False) -> str:
    return fixes.mend(read(text, form), warnings=warnings).document.text


@functools.cache
def with_fixes() -> tuple[str, ...]:
    found = []
    for path in sorted(MISTAKES.iterdir()):
        _, problems = workflow.examine(document.parse(path.read_bytes(), file=path.name))
        if any(problem.fix for problem in problems):
            found.append(path.name)
    return tuple(found)


def test_a_fix_mends_its_mistake_and_makes_no_other() -> None:
    for name in with_fixes():
        source = document.parse((MISTAKES / name).read_bytes(), file=name)
        _, before = workflow.examine(source)
        result = fixes.mend(source)
        assert result.left == workflow.examine(result.document)[1], name
        known = {(problem.code, problem.pointer) for problem in before}
        assert [problem for problem in result.left if (problem.code, problem.pointer) not in known] == [], name
        if result.done:
            assert len(result.left) < len(before), name
        else:
            assert result.document.text == source.text, name
        again = fixes.mend(result.document)
        assert (again.done, again.document.text) == ((), result.document.text), name


def test_most_of_them_are_mended() -> None:
    names = with_fixes()
    sources = {name: document.parse((MISTAKES / name).read_bytes(), file=name) for name in names}
    done = [name for name, source in sources.items() if fixes.mend(source, warnings=True).done]
    assert len(done) >= 22
    assert len(done) >= len(names) - 3


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("    whne: ${{ true }} # why\n    local: 1", "    when: ${{ true }} # why\n    local: 1"),
        ('    "whne": ${{ true }}\n    local: 1', '    "when": ${{ true }}\n    local: 1'),
        ("    when: always\n    local: 1", None),
        ("    when: inputs.a && true\n    local: 1", "    when: ${{ inputs.a and true }}\n    local: 1"),
        ("    whne: inputs.a\n    local: 1", "    when: ${{ inputs.a }}\n    local: 1"),
        ("    whne: yes\n    local: 1", None),
        (
            "    shel: echo ${{ inputs.name }}",
            "    shell: {run: 'echo \"$NAME\"', env: {NAME: \"${{ inputs.name }}\"}}",
        ),
        (
            "    parallel: {fail_fast: True, branches: {b: [{id: two, local: 1}]}}",
            "    parallel: {fail_fast: true, branches: {b: [{id: two, local: 1}]}}",
        ),
        ("    local: {value: True}", None),
        ("    local: 1\n    retry: {max_attempts: 010}", None),
        ("    shell: {run: make, prase: text}", "    shell: {run: make, parse: text}"),
        ("    local: 1\n    replay: Replayable", "    local: 1\n    replay: replayable"),
        ("    local: 1\n    replay: 'Replayable'", "    local: 1\n    replay: 'replayable'"),
        ("    local: {value: [010, 0x1f, +12]}", '    local: {value: ["010", "0x1f", "+12"]}'),
        (
            "    local:\n      value:\n        mode: 0o17 # octal",
            '    local:\n      value:\n        mode: "0o17" # octal',
        ),
        ("    when: inputs.a\n    local: 1", "    when: ${{ inputs.a }}\n    local: 1"),
        ("    when: true\n    local: 1", "    when: ${{ true }}\n    local: 1"),
        (
            "    when: ${{ inputs.a && !inputs.a || inputs.name === 'a && b' }}\n    local: 1",
            "    when: ${{ inputs.a and not inputs.a or inputs.name == 'a && b' }}\n    local: 1",
        ),
        (
            "    parallel: {fail_fast: yes, branches: {b: [{id: two, local: 1}]}}",
            "    parallel: {fail_fast: true, branches: {b: [{id: two, local: 1}]}}",
        ),
        (
            "    parallel: {fail_fast: OFF, branches: {b: [{id: two, local: 1}]}}",
            "    parallel: {fail_fast: false, branches: {b: [{id: two, local: 1}]}}",
        ),
        (
            "    shell: echo ${{ inputs.name }} # say it",
            "    shell: {run: 'echo \"$NAME\"', env: {NAME: \"${{ inputs.name }}\"}} # say it",
        ),
        (
            "    shell: |\n      echo ${{ inputs.name }}\n      true\n\n  # the end",
            '    shell:\n      run: |\n        echo "$NAME"\n        true\n      env:\n'
            "        NAME: ${{ inputs.name }}\n\n  # the end",
        ),
        (
            "    shell:\n      run: >-\n        echo\n        '${{ inputs.name }}' # x\n      env:\n        A: b\n"
            "    timeout: 5s",
            None,
        ),
        (
            "    shell:\n      # why\n      run: |-\n        echo '${{ inputs.name }}'\n      env:\n        A: b\n"
            "    timeout: 5s",
            "    shell:\n      # why\n      run: |-\n        echo ''\"$NAME\"''\n      env:\n        A: b\n"
            "        NAME: ${{ inputs.name }}\n    timeout: 5s",
        ),
        ("    shell: |\n      cat <<E\n      ${{ inputs.name }}\n      E", None),
        ("    local: 1\n    timeout: 30", None),
        ("    local: 1\n    retry: &r {max_attempts: '3'}\n  - {id: two, local: 1, retry: *r}", None),
    ],
)  # fmt: skip
def test_only_the_mistake_is_written_anew(wrong: str, right: str | None) -> None:
    text = f"{HEAD}steps:\n  - id: one\n{wrong}\n"
    assert mended(text) == (text if right is None else f"{HEAD}steps:\n  - id: one\n{right}\n")
    crlf = text.replace("\n", "\r\n")
    assert mended(crlf) == mended(text).replace("\n", "\r\n")


def test_toml_is_mended_in_place_too() -> None:
    text = (
        'tramai = 1\nname = "x" # name\n[inputs.name]\ntpye = "string"\ndefault = "x"\n\n'
        '[[steps]]\nid = "one"\nshell = "echo ${{ inputs.name }}" # say\n\n'
        '[[steps]]\nid = "two"\nretry = { max_attempts = "3" }\n[steps.shell]\n'
        'run = """\necho ${{ inputs.name }}\n"""\n'
        'prase = "text" # t\n\n[[steps]]\nid = "three"\n[steps.shell]\nrun = \'echo "${{ inputs.name }}"\'\n'
        '[steps.shell.env]\nA = "b"\n'
    )
    assert mended(text, "toml") == (
        'tramai = 1\nname = "x" # name\n[inputs.name]\ntype = "string"\ndefault = "x"\n\n'
        '[[steps]]\nid = "one"\nshell = { run = \'echo "$NAME"\', env = { NAME = "${{ inputs.name }}" } } # say\n\n'
        '[[steps]]\nid = "two"\nretry = { max_attempts = 3 }\n[steps.shell]\nrun = """\necho "$NAME"\n"""\n'
        'parse = "text" # t\nenv = { NAME = "${{ inputs.name }}" }\n\n'
        '[[steps]]\nid = "three"\n[steps.shell]\nrun = \'echo "${NAME}"\'\n'
        '[steps.shell.env]\nA = "b"\nNAME = "${{ inputs.name }}"\n'
    )


def test_the_fix_of_a_warning_is_made_only_if_wished() -> None:
    text = f"{HEAD}steps:\n  - {{id: one, local: {{value: [1.10]}}}}\n"
    assert mended(text) == text
    assert mended(text, warnings=True) == text.replace("1.10", '"1.10"')


def test_a_key_that_could_be_two_has_no_fix() -> None:
    _, problems = workflow.examine(
        read("tramai: 1\nname: x\ninputs: {a: {mLength: 1}}\nsteps: [{id: one, local: 1}]\n")
    )
    assert [problem.fix for problem in problems if problem.code == "TRM104"] == [None]


def test_a_misspelt_twin_of_a_key_that_is_there_has_no_fix() -> None:
    _, problems = workflow.examine(read(f"{HEAD}setps: []\nsteps:\n  - id: one\n    local: 1\n"))
    assert [problem.fix for problem in problems if problem.code == "TRM104"] == [None]


def test_a_fix_is_a_json_patch() -> None:
    _, problems = workflow.examine(
        read(f"{HEAD}steps:\n  - id: one\n    shell: {{run: 'echo ${{{{ inputs.name }}}}'}}\n")
    )
    assert json.loads(json.dumps(problems[0].fix)) == [
        {"op": "replace", "path": "/steps/0/shell/run", "value": 'echo "$NAME"'},
        {"op": "add", "path": "/steps/0/shell/env", "value": {"NAME": "${{ inputs.name }}"}},
    ]


KEYS = [
    "shel: make",
    "local: 1",
    "whne: ${{ true }}",
    "timeout: 5s",
    "tmeout: 5s",
    "when: inputs.a",
    "x-n: 010",
    "parse: 1",
]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.sampled_from(KEYS), unique=True, max_size=4), min_size=1, max_size=3))
def test_whatever_is_mended_is_no_worse_and_stays_so(steps: list[list[str]]) -> None:
    text = HEAD + "steps:\n"
    for number, keys in enumerate(steps):
        text += f"  - id: s{number}\n" + "".join(f"    {key} # {number}\n" for key in keys)
    source = read(text)
    _, before = workflow.examine(source)
    result = fixes.mend(source)
    known = {(problem.code, problem.pointer) for problem in before}
    fixed = {str(operation["path"]) for problem in result.done for operation in problem.fix or ()}
    new = [problem for problem in result.left if (problem.code, problem.pointer) not in known]
    assert [problem for problem in new if problem.path in fixed] == []
    assert result.document.text.count("#") == text.count("#")
    assert fixes.mend(result.document).document.text == result.document.text
