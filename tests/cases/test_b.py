"""Expressions: conditions, what is undefined, types, skipped steps, awkward names."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from .support import call, problems, save, shown, text_of

# B01


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("true && ${{ false }}", "TRM207"),
        ("${{ false }} or so", "TRM207"),
        ("false", "TRM207"),
        ('${{ "false" }}', "TRM212"),
        ("${{ 0 }}", "TRM212"),
    ],
)
def test_a_condition_that_would_always_be_true_is_refused(when: str, code: str) -> None:
    save(f"- id: a\n  when: '{when}'\n  shell: touch ran")
    assert [problem["code"] for problem in problems("case.yaml")] == [code]
    assert not Path("ran").exists()


@pytest.mark.parametrize("when", ['"${{ false }} "', "|\n    ${{ false }}\n", '" ${{ inputs.no }}"'])
def test_white_space_around_a_condition_makes_nothing_true(when: str) -> None:
    save(f"- id: a\n  when: {when}\n  shell: touch ran", "inputs: {no: {type: boolean, default: false}}")
    assert call("run", "case.yaml").step_ends() == [("a", "skipped")]
    assert not Path("ran").exists()


@pytest.mark.parametrize("text", ["false", "0", "no", "", "true"])
def test_a_text_is_never_taken_for_a_condition(text: str) -> None:
    save(
        """
        - {id: say, shell: {argv: [printf, "%s", "${{ inputs.x }}"], parse: text}}
        - {id: a, when: "${{ inputs.x }}", shell: touch ran}
        """,
        "inputs: {x: {}}",
    )
    ended = call("run", "case.yaml", "-i", f"x={text}")
    assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "a", "expression")
    save(
        """
        - {id: say, shell: {argv: [printf, '"%s"', "${{ inputs.x }}"], parse: json}}
        - {id: a, when: "${{ steps.say.output }}", shell: touch ran}
        """,
        "inputs: {x: {}}",
    )
    ended = call("run", "case.yaml", "-i", f"x={text}")
    assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "a", "expression")
    assert not Path("ran").exists()


def test_a_condition_that_is_known_to_be_text_is_refused_before_the_run() -> None:
    save(
        '- {id: say, shell: {argv: [echo, "true"], parse: text}}\n- {id: a, when: "${{ steps.say.output }}", local: 1}'
    )
    assert [problem["code"] for problem in problems("case.yaml")] == ["TRM212"]


def test_a_boolean_input_is_true_or_false_and_nothing_else() -> None:
    save("- {id: a, when: '${{ inputs.go }}', shell: touch ran}", "inputs: {go: {type: boolean}}")
    assert call("run", "case.yaml", "-i", "go=false").step_ends() == [("a", "skipped")]
    for text in ("maybe", "no", "0", ""):
        ended = call("run", "case.yaml", "-i", f"go={text}")
        assert ended.status == 2
        assert "go" in ended.error["message"]
    assert not Path("ran").exists()


# B02


def test_a_name_that_does_not_exist_is_found_before_the_run() -> None:
    save(
        "- {id: wipe, shell: {run: 'touch ran; ls /tmp/x/\"$DIR\"', env: {DIR: '${{ state.dirr }}'}}}",
        "state: {dir: {initial: here}}",
    )
    (problem,) = problems("case.yaml")
    assert problem["code"] == "TRM208"
    assert "dirr" in problem["message"]
    assert problem["hint"] == "did you mean `state.dir`?"
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("use", "words"),
    [("state.it.dirr", "dirr"), ("state.it.none.b", "none"), ("state.it['dir'].b", "b"), ("state.it.list[7]", "7")],
)
def test_what_is_missing_at_run_time_starts_nothing(use: str, words: str) -> None:
    top = "state: {it: {initial: {dir: here, none: null, list: [1]}}}"
    save(f"- {{id: wipe, shell: {{run: 'touch ran', env: {{DIR: \"${{{{ {use} }}}}\"}}}}}}", top)
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "wipe", "expression")
    assert words in ended.error["message"]
    save(
        f"- {{id: pick, branch: {{select: \"${{{{ {use} }}}}\", cases: {{'1': []}}, "
        "default: [{id: a, shell: touch ran}]}}",
        top,
    )
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "pick", "expression")
    assert not Path("ran").exists()


def test_a_near_name_of_missing_data_is_told() -> None:
    save("- {id: a, local: '${{ state.it.dirr }}'}", "state: {it: {initial: {dir: here}}}")
    said = text_of("run", "case.yaml")
    assert "dirr" in said
    assert "`dir`" in said or "dir" in said.split("dirr", 1)[1]


def test_only_default_makes_nothing_of_what_is_missing() -> None:
    save(
        "- {id: a, local: 'x${{ state.it.dirr | default(\"\") }}x'}",
        "state: {it: {initial: {}}}\noutputs: {a: '${{ steps.a.output }}'}",
    )
    assert call("run", "case.yaml").outputs == {"a": "xx"}


# B03


def test_no_value_changes_its_type_on_the_way() -> None:
    kept = ["2", "007", "None", "[1, 2]", "1e3", "true", "null", " 1 ", 2, 2.5, [1, 2], {"a": None}, None, True]
    save(
        """
        - {id: a, local: "${{ state.all }}", save: {all: "${{ result }}"}}
        - {id: stop, shell: test -e go}
        - {id: b, local: "${{ steps.a.output }}", save: {all: "${{ state.all }}", one: "${{ state.all[0] }}"}}
        - {id: mixed, local: "${{ state.all[0] }}${{ state.all[8] }}"}
        """,
        """
        state: {all: {initial: KEPT}, one: {initial: null}}
        outputs: {all: "${{ state.all }}", one: "${{ state.one }}", mixed: "${{ steps.mixed.output }}"}
        """.replace("KEPT", json.dumps(kept)),
    )
    assert call("run", "case.yaml").status == 1
    Path("go").touch()
    ended = call("resume", "@last")
    assert json.dumps(ended.outputs["all"]) == json.dumps(kept)
    assert (ended.outputs["one"], ended.outputs["mixed"]) == ("2", "22")


# B05

SKIPPED = """
- {id: one, when: "${{ false }}", local: {value: {x: [1]}}}
- id: two
  parallel: {items: "${{ steps.one.output.x MORE }}", do: [{id: inner, local: "${{ item }}"}]}
"""


def test_the_output_of_a_skipped_step_is_its_default() -> None:
    save(SKIPPED.replace("MORE", "| default([7])"), "outputs: {it: '${{ steps.two.output }}'}")
    assert call("run", "case.yaml").outputs == {"it": [{"inner": 7}]}


def test_the_output_of_a_skipped_step_without_a_default_fails_its_reader() -> None:
    began = time.monotonic()
    save(SKIPPED.replace("MORE", ""))
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["step"]) == (1, "two")
    assert "step 'one' was skipped" in ended.error["message"]
    assert "{{" not in ended.error["message"]
    assert time.monotonic() - began < 5
    assert [step["status"] for step in shown()["steps"]][:1] == ["skipped"]


def test_the_output_of_a_failed_item_is_an_error_and_no_value() -> None:
    save(
        """
        - id: many
          foreach: {items: [0], on_error: collect, do: [{id: half, local: "${{ 1 // item }}"}]}
        - {id: read, local: "${{ steps.many.output[0].half }}"}
        """
    )
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["step"], ended.error["type"]) == (1, "read", "expression")


# B07


def test_a_dash_is_never_a_subtraction_of_names() -> None:
    save("- {id: fetch-data, local: 1}")
    assert [problem["code"] for problem in problems("case.yaml")] == ["TRM107"]
    save("- {id: fetch, local: 3}\n- {id: b, local: '${{ state.my-key }}'}", "state: {my-key: {initial: 1}}")
    (problem,) = problems("case.yaml")
    assert '["my-key"]' in problem["hint"] or "['my-key']" in problem["hint"]


def test_keys_that_are_names_of_methods_or_no_names_are_data() -> None:
    names = ["items", "keys", "get", "class", "a.b", "my-key", "schlüssel", "日本", "0"]
    quoted = ", ".join(f"'{name}': {{initial: of {name}}}" for name in names)
    dotted = ", ".join(f"state.{name}" for name in ("items", "keys", "get", "class", "schlüssel", "日本"))
    bracketed = ", ".join(f'state["{name}"]' for name in names)
    save(
        f"- {{id: a, local: '${{{{ [{dotted}] }}}}'}}\n- {{id: b, local: '${{{{ [{bracketed}] }}}}'}}",
        f"state: {{{quoted}}}\noutputs: {{a: '${{{{ steps.a.output }}}}', b: '${{{{ steps.b.output }}}}'}}",
    )
    assert call("run", "case.yaml").outputs == {
        "a": [f"of {name}" for name in names if name not in ("a.b", "my-key", "0")],
        "b": [f"of {name}" for name in names],
    }
