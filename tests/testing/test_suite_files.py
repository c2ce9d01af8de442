"""Mistakes in test files are found before anything runs, each in its place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.testing.support import HELLO, checked, places
from tramai.testing import reading, running
from tramai.testing.reading import suite_schema

ROOT = Path(__file__).resolve().parents[2]
EXPLAIN = ROOT / "tramai" / "explain"

HEAD = "workflow: hello.yaml\ntests:\n  - name: one\n"


@pytest.mark.parametrize(
    ("rest", "code", "line", "column", "hint"),
    [
        ("    stub: {shout: {output: A}}\n", "TRM104", 4, 5, "did you mean `stubs`?"),
        ("    expect: {outpts: {}}\n", "TRM104", 4, 14, "did you mean `outputs`?"),
        ("    expect: {status: complete}\n", "TRM107", 4, 22, "did you mean `completed`?"),
        ("    stubs: {shuot: {output: A}}\n", "TRM773", 4, 13, "did you mean `shout`?"),
        ("    stubs: {'shout[1].greeting': {output: A}}\n", "TRM773", 4, 13, "`greeting`"),
        ("    stubs: {shout: {}}\n", "TRM778", 4, 13, "add `output`, `result`, `error` or `each`"),
        ("    stubs: {shout: {output: A, error: {type: exit.1}}}\n", "TRM778", 4, 32, None),
        ("    stubs: {shout: {error: {type: exitt}}}\n", "TRM773", 4, 35, "did you mean `exit`?"),
        ("    stubs: {shout: {error: {}}}\n", "TRM105", 4, 28, None),
        ("    stubs: {shout: {takes: 5, output: 1}}\n", "TRM107", 4, 28, "5 what? write 5s or 5m"),
        ("    stubs: {shout: [{output: A}, {outptu: B}]}\n", "TRM104", 4, 35, "did you mean `output`?"),
        ("    inputs: {nmae: x}\n", "TRM779", 4, 20, "did you mean 'name'?"),
        ("    inputs: {name: [1]}\n", "TRM779", 4, 20, None),
        ("    secrets: {TOKEN: x}\n", "TRM773", 4, 15, "known: none"),
        ("    env: {A: x}\n", "TRM773", 4, 11, "known: none"),
        ("    allow: [shel]\n", "TRM773", 4, 13, "did you mean `shell`?"),
        ("    now: tomorrow\n", "TRM778", 4, 10, "write it as 2027-01-31T08:00:00Z"),
        ("    crash_after: shuot\n", "TRM773", 4, 18, "did you mean `shout`?"),
        ("    crash_after: shout\n    crash_everywhere: true\n", "TRM778", 5, 5, "make two tests of it"),
        ("    answers: {shout: {decision: approve}}\n", "TRM773", 4, 15, "only a `gate` with `ask` is answered"),
        ("    expect: {steps: {shuot: {status: failed}}}\n", "TRM773", 4, 22, "did you mean `shout`?"),
        ("    expect: {calls: [shuot]}\n", "TRM773", 4, 22, "did you mean `shout`?"),
        ("    expect: {calls: {shuot: 1}}\n", "TRM773", 4, 22, "did you mean `shout`?"),
        ("    expect: {error: {step: shuot}}\n", "TRM773", 4, 28, "did you mean `shout`?"),
        ("    expect: {error: {type: netwrk}}\n", "TRM773", 4, 28, "did you mean `network`?"),
        ("    expect: {that: ['${{ outptus.x == 1 }}']}\n", "TRM773", 4, 26, "did you mean `outputs`?"),
        (
            "    expect: {that: ['${{ steps.shuot.status == \"x\" }}']}\n",
            "TRM773",
            4,
            26,
            "did you mean `steps.shout`?",
        ),
        ("    expect: {that: ['${{ 1 + }}']}\n", "TRM201", 4, 30, None),
        ("    expect: {that: [outputs]}\n", "TRM207", 4, 21, "write ${{ outputs }}"),
        ("    wake: yes\n", "TRM106", 4, 11, "write true"),
        ("    resume: -1\n", "TRM107", 4, 13, None),
        ("  - name: one\n", "TRM778", 4, 11, "give each a name of its own"),
    ],
)
def test_a_mistake_is_found_in_its_place(
    tmp_path: Path, rest: str, code: str, line: int, column: int, hint: str | None
) -> None:
    found = checked(tmp_path, HEAD + rest)
    assert places(found) == [(code, line, column)], [problem.message for problem in found]
    if hint is not None:
        assert found[0].hint == hint


def test_a_test_file_needs_a_workflow_and_tests(tmp_path: Path) -> None:
    assert {problem.message for problem in checked(tmp_path, "x-note: 1\n")} == {
        "missing key `workflow` at the top level",
        "missing key `tests` at the top level",
    }
    assert places(checked(tmp_path, "workflow: hello.yaml\ntests: []\n")) == [("TRM107", 2, 8)]


def test_notes_are_free(tmp_path: Path) -> None:
    assert checked(tmp_path, "x-a: 1\n$schema: s\n" + HEAD + "    x-b: 2\n    allow: [shell]\n") == ()


def test_a_workflow_that_is_missing_or_wrong_is_said_in_its_place(tmp_path: Path) -> None:
    found = checked(tmp_path, "workflow: nowhere.yaml\ntests: [{name: a}]\n")
    assert places(found) == [("TRM780", 1, 11)]
    found = checked(tmp_path, HEAD, HELLO.replace("shell:", "shel:"))
    assert [problem.code for problem in found] == ["TRM104"]
    assert found[0].position is not None
    assert found[0].position.file.endswith("hello.yaml")


def test_toml_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "hello.yaml").write_text(HELLO)
    file = tmp_path / "hello.tramai-test.toml"
    file.write_text('workflow = "hello.yaml"\n[[tests]]\nname = "one"\nstubs.shout.output = "A"\n'
                    '[tests.expect]\noutputs.greeting = "B"\n')  # fmt: skip
    loaded = reading.load(str(file))
    outcome = running.run(loaded, 0)
    assert places(outcome.problems) == [("TRM771", 6, 20)]


def test_all_mistakes_are_told_in_one_pass(tmp_path: Path) -> None:
    found = checked(
        tmp_path,
        "workflow: hello.yaml\ntests:\n  - {name: a, inputs: {nmae: 1}}\n  - {name: b, stubs: {shuot: {output: 1}}}\n",
    )
    assert [problem.code for problem in found] == ["TRM779", "TRM773"]


def test_the_published_schema_of_test_files_is_fresh() -> None:
    kept = json.loads((ROOT / "schemas" / "test.schema.json").read_text(encoding="utf-8"))
    assert kept == suite_schema(), "python -m tramai.cli._schemas schemas"


def test_every_key_of_a_test_file_is_described() -> None:
    whole = suite_schema()
    named = {"top": whole, **whole["definitions"]}
    silent = [
        f"{name}.{key}"
        for name, part in named.items()
        for key, said in part.get("properties", {}).items()
        if not said.get("description")
    ]
    assert silent == []


# The pages of the codes.


def pages() -> list[Path]:
    return sorted(path for path in EXPLAIN.glob("TRM7??.md") if "TRM770" <= path.stem <= "TRM789")


def examples(path: Path, heading: str) -> list[list[str]]:
    """The test files of a section, each with the workflow that follows it."""
    section = re.split(r"^## (?:Wrong|Right)$", path.read_text(encoding="utf-8"), flags=re.M)
    body = section[1 if heading == "Wrong" else 2]
    found: list[list[str]] = []
    for block in re.findall(r"^```yaml\n(.*?)^```$", body, re.M | re.S):
        if "tests:" in block:
            found.append([block])
        else:
            found[-1].append(block)
    return found


def codes(folder: Path, blocks: list[str]) -> set[str]:
    test, *workflows = blocks
    (folder / "hello.yaml").write_bytes((ROOT / "workflows" / "hello.yaml").read_bytes())
    for text in workflows:
        named = re.match(r"# (\S+)\n", text)
        assert named is not None
        (folder / named[1]).write_text(text, encoding="utf-8")
    file = folder / "shown.tramai-test.yaml"
    file.write_text(test, encoding="utf-8")
    loaded = reading.check_file(str(file))
    if not loaded.sound:
        return {problem.code for problem in loaded.problems}
    return {problem.code for index, _ in running.cases(loaded) for problem in running.run(loaded, index).problems}


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_the_examples_of_a_page_are_wrong_and_right(path: Path, tmp_path: Path) -> None:
    wanted = "TRM104" if path.stem == "TRM770" else path.stem
    for blocks in examples(path, "Wrong"):
        assert codes(tmp_path, blocks) == {wanted}
    for blocks in examples(path, "Right"):
        assert codes(tmp_path, blocks) == set()
