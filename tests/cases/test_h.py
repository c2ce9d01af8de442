"""Branch: what a value is compared with, no match, and what is not chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .support import attempts, call, content, problems, save, shown

# H01

CASES = """
- id: pick
  branch:
    select: ${{ state.x }}
    cases:
      200: [{id: in_number, local: number}]
      true: [{id: in_true, local: boolean}]
      "null": [{id: in_null, local: nothing}]
      a: [{id: in_a, local: letter}]
    default: [{id: other, local: other}]
"""


@pytest.mark.parametrize(
    ("x", "taken"),
    [
        (200, "in_number"),
        ("200", "in_number"),
        (True, "in_true"),
        ("true", "in_true"),
        (None, "in_null"),
        ("a", "in_a"),
        (" a ", "other"),
        ("A", "other"),
        (False, "other"),
        (20, "other"),
    ],
)
def test_a_value_meets_the_case_with_its_json_text(x: object, taken: str) -> None:
    save(CASES, f"state: {{x: {{initial: {json.dumps(x)}}}}}\noutputs: {{it: '${{{{ steps.pick.output }}}}'}}")
    assert list(call("run", "case.yaml").outputs["it"]) == [taken]


def test_a_null_as_a_key_must_say_that_it_is_text() -> None:
    save(CASES.replace('"null":', "null:"), "state: {x: {initial: 1}}")
    assert [problem["code"] for problem in problems("case.yaml")] == ["TRM117"]


# H03


def test_no_case_names_the_value_and_the_cases_and_can_be_mended() -> None:
    steps = "- {id: one, shell: echo x >> effects}\n- {id: pick, branch: {select: '${{ inputs.x }}', cases: CASES}}"
    top = "inputs: {x: {type: string}}"
    save(steps.replace("CASES", "{yes: [], no: []}"), top)
    ended = call("run", "case.yaml", "-i", "x=maybe")
    assert (ended.status, ended.error["message"]) == (1, "no case 'maybe' (cases: yes, no)")
    save(steps.replace("CASES", "{yes: [], no: [], maybe: [{id: mended, shell: echo y >> effects}]}"), top)
    assert call("resume", "@last").status == 5
    assert call("resume", "@last", "--accept-changes").status == 0
    assert content("effects").split() == ["x", "y"]


def test_only_the_chosen_block_is_evaluated_and_the_choice_is_made_once() -> None:
    save(
        """
        - id: pick
          branch:
            select: ${{ state.way }}
            cases:
              left:
                - {id: turn, local: right, save: {way: "${{ result }}"}}
                - id: work
                  shell: 'echo x >> tries; test "$(wc -l < tries)" = 3'
                  retry: {max_attempts: 2, delay: 0s}
              right:
                - {id: broken, local: "${{ 1 // 0 }}"}
                - {id: effect, shell: touch ran}
            default: [{id: missing, local: "${{ state.none.such }}"}]
        """,
        "state: {way: {initial: left}, none: {initial: {}}}\noutputs: {it: '${{ steps.pick.output | list }}'}",
    )
    assert call("run", "case.yaml").status == 1
    assert call("resume", "@last").outputs == {"it": ["turn", "work"]}
    assert attempts(shown())["pick[left].work"] == ["failed", "failed", "succeeded"]
    assert not Path("ran").exists()
