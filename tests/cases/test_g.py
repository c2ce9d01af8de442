"""Fan-out: empty lists, order, partial failure, items of the wrong type."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from .support import alive, attempts, call, content, eventually, measure, save, shown

# G01


def test_an_empty_list_in_the_middle_and_at_the_end() -> None:
    save(
        """
        - {id: none, parallel: {items: "${{ [] }}", do: [{id: x, local: "${{ item }}"}]}}
        - {id: count, local: "${{ steps.none.output | length }}", save: {all: "${{ steps.none.output }}"}}
        - {id: last, foreach: {items: [], do: [{id: y, local: "${{ item }}"}]}}
        """,
        """
        state: {all: {initial: [7]}}
        outputs: {none: "${{ steps.none.output }}", count: "${{ steps.count.output }}", all: "${{ state.all }}",
                  last: "${{ steps.last.output }}"}
        """,
    )
    assert call("run", "case.yaml").outputs == {"none": [], "count": 0, "all": [], "last": []}


# G02


@pytest.mark.parametrize("window", [4, 2, 1])
def test_results_keep_the_order_of_the_items(window: int) -> None:
    save(
        f"""
        - id: fan
          parallel:
            items: [3, 1, 2, 0]
            max: {window}
            do:
              - id: x
                shell:
                  run: echo "$N" >> order; sleep "0.$N"; echo "$((N * 10))"
                  env: {{N: "${{{{ item }}}}"}}
                  parse: json
        """,
        "outputs: {it: '${{ steps.fan.output | map(attribute=\"x\") | list }}'}",
    )
    ended = call("run", "case.yaml")
    assert ended.outputs == {"it": [30, 10, 20, 0]}
    begun = [line["path"] for line in ended.lines if line["type"] == "step.started" and line["verb"] == "shell"]
    assert begun == [f"fan[{index}].x" for index in range(4)]
    if window == 1:
        assert content("order").split() == ["3", "1", "2", "0"]


# G04

SIBLINGS = """
- id: fan
  parallel:
    items: [0, 1, 2, 3]
    max: 3
    HOW
    do:
      - id: x
        shell:
          run: |
            echo "$N" >> begun; echo $$ >> pids
            if [ "$N" = 1 ]; then sleep 0.3; exit 3; fi
            REST
          env: {N: "${{ item }}"}
          kill_after: 500ms
          parse: text
"""


def test_fail_fast_ends_the_siblings_and_begins_no_more() -> None:
    save(SIBLINGS.replace("HOW", "fail_fast: true").replace("REST", "sleep 60 & wait"))
    began = time.monotonic()
    ended = call("run", "case.yaml")
    assert time.monotonic() - began < 5
    assert (ended.status, ended.error["path"], ended.error["type"]) == (1, "fan[1].x", "exit.3")
    assert sorted(content("begun").split()) == ["0", "1", "2"]
    eventually(lambda: not any(alive(int(pid)) for pid in content("pids").split()), 2.0)
    run = shown()
    assert run["status"] == "failed"
    assert {step["path"]: step["status"] for step in run["steps"]} == {
        "fan": "failed",
        "fan[0].x": "cancelled",
        "fan[1].x": "failed",
        "fan[2].x": "cancelled",
    }


def test_collect_leaves_an_error_in_its_place_and_says_how_many() -> None:
    save(
        SIBLINGS.replace("HOW", "on_error: collect").replace("REST", 'echo "did $N"')
        + '  output: "${{ [result.items, result.failed] }}"\n',
        "outputs: {it: '${{ steps.fan.output[0] }}', failed: '${{ steps.fan.output[1] }}'}",
    )
    outputs = call("run", "case.yaml").outputs
    assert outputs["failed"] == 1
    assert [item.get("x") for item in outputs["it"]] == ["did 0", None, "did 2", "did 3"]
    error = outputs["it"][1]["error"]
    assert (error["type"], error["path"], error["exit_code"]) == ("exit.3", "fan[1].x", 3)
    assert [status for _, (status,) in sorted(attempts(shown()).items()) if _ != "fan"] == [
        "succeeded", "failed", "succeeded", "succeeded",
    ]  # fmt: skip


# G06


@pytest.mark.parametrize(
    ("items", "kind"),
    [("abc", "a string"), ({"a": 1}, "an object"), (None, "null"), (5, "a number"), ("[1,2]", "a string")],
)
@pytest.mark.parametrize("verb", ["parallel", "foreach"])
def test_what_is_no_list_fails_before_any_item(items: object, kind: str, verb: str) -> None:
    save(
        f"- {{id: fan, {verb}: {{items: '${{{{ state.xs }}}}', do: [{{id: x, shell: touch ran}}]}}}}",
        f"state: {{xs: {{initial: {json.dumps(items)}}}}}",
    )
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["message"]) == (1, f"`items` expected a list, got {kind}")
    assert not Path("ran").exists()


def test_three_thousand_items_run_in_bounded_memory() -> None:
    save(
        "- {id: fan, parallel: {items: '${{ inputs.xs }}', do: [{id: x, local: '${{ item * 2 }}'}]}}",
        "inputs: {xs: {type: array}}\nlimits: {max_step_executions: 4000}\n"
        "outputs: {n: '${{ steps.fan.output | length }}', last: '${{ steps.fan.output[2999].x }}'}",
    )
    Path("inputs.json").write_text(json.dumps({"xs": [*range(3000)]}))
    ended = measure("run", "case.yaml", "--inputs", "inputs.json", "-q")
    assert (ended.status, ended.out.split()) == (0, ["last:", "5998", "n:", "3000"])
    assert ended.megabytes < 150
