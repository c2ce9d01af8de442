"""`tramai plan`: what is known of a run before it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.cli.conftest import document, write

Call = Callable[..., Result]
WHOLE = """\
tramai: 1
name: whole
limits: {max_step_executions: 20, timeout: 2h}
inputs:
  hosts: {type: array, items: {type: string}, default: [a, b]}
  kind: {type: string, default: small}
  dry: {type: boolean, default: false}
  late: {type: string, optional: true}
secrets: {TOKEN: {env: TOKEN_FOR_TEST}}
steps:
  - id: big
    local: ${{ inputs.kind == "big" }}
  - id: notify
    when: ${{ steps.big.output }}
    http: {post: "https://example.com/${{ inputs.kind }}", auth: {bearer: "${{ secrets.TOKEN }}"}}
    retry: {max_attempts: 3}
    timeout: 30s
    verify: ${{ false }}
  - id: each
    foreach:
      items: ${{ inputs.hosts }}
      as: host
      do:
        - {id: ping, shell: {argv: [ping, "${{ host }}"]}, replay: replayable, retry: {max_attempts: 2}}
  - id: choose
    branch:
      select: ${{ inputs.kind }}
      cases:
        small: [{id: little, local: 1}]
        big: [{id: much, local: 1}]
      default: []
  - id: ask
    ai: {model: "demo:echo", prompt: x}
    verify: {shell: ./asked, replay: replayable, output: "${{ true }}"}
    replay: non_replayable
  - id: later
    when: ${{ steps.ask.output == "x" }}
    local: 1
"""


def planned(tramai: Call, *arguments: str) -> dict[str, Any]:
    write("whole.yaml", WHOLE)
    result = tramai("plan", "whole.yaml", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return document(result)


def step(found: dict[str, Any], id: str) -> dict[str, Any]:
    return next(one for one in found["steps"] if one["id"] == id)


def test_conditions_that_the_inputs_decide_are_decided(tramai: Call) -> None:
    assert step(planned(tramai), "notify")["decided"] is False
    assert step(planned(tramai, "-i", "kind=big"), "notify")["decided"] is True
    assert step(planned(tramai), "later")["decided"] is None


def test_a_branch_says_which_block_is_taken(tramai: Call) -> None:
    def taken(*arguments: str) -> dict[str, Any]:
        return {block["label"]: block["taken"] for block in step(planned(tramai, *arguments), "choose")["blocks"]}

    assert taken() == {"small": True, "big": False, "default": False}
    assert taken("-i", "kind=other") == {"small": False, "big": False, "default": True}


def test_loops_over_known_lists_are_counted(tramai: Call) -> None:
    assert step(planned(tramai), "each")["turns"] == 2
    assert step(planned(tramai, "-i", 'hosts:=["a","b","c"]'), "each")["turns"] == 3


def test_step_executions_are_estimated_against_the_limit(tramai: Call) -> None:
    assert planned(tramai)["executions"] == {"least": 5, "most": 8, "limit": 20}
    assert planned(tramai, "-i", "kind=big")["executions"] == {"least": 6, "most": 11, "limit": 20}
    write("whole.yaml", WHOLE)
    text = tramai("plan", "whole.yaml", "-i", 'hosts:=["1","2","3","4","5","6","7","8","9"]').stdout
    assert "12 to 22 step executions, of at most 20: retries and loops may reach the limit; limits: timeout 2h" in text


def test_a_step_says_what_it_does_outside_and_how_often_and_how_it_is_verified(tramai: Call) -> None:
    found = planned(tramai, "-i", "kind=big")
    notify, ask = step(found, "notify"), step(found, "ask")
    assert notify["reaches"] == "POST https://example.com/big"
    assert (notify["max_attempts"], notify["timeout"], notify["verify"]) == (3, 30.0, "${{ false }}")
    assert (ask["reaches"], ask["verify"]) == ("model demo:echo", "shell")
    assert step(found, "each")["blocks"][0]["steps"][0]["reaches"] == "ping ${{ host }}"


def test_no_secret_is_shown(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_FOR_TEST", "secret-canary")
    write("whole.yaml", WHOLE)
    shown = tramai("plan", "whole.yaml").stdout + tramai("plan", "whole.yaml", "--json").stdout
    assert "canary" not in shown
    assert planned(tramai)["secrets"] == [
        {"name": "TOKEN", "source": "environment variable TOKEN_FOR_TEST", "present": True}
    ]


def test_people_read_the_same(tramai: Call) -> None:
    write("whole.yaml", WHOLE)
    lines = [" ".join(line.split()) for line in tramai("plan", "whole.yaml").stdout.splitlines()]
    assert "├─ notify http skipped when ${{ steps.big.output }} is false" in lines
    assert "├─ each foreach 2 times" in lines
    assert "│ ├─ small: taken" in lines
    assert "│ └─ default: not taken nothing" in lines
    assert "├─ ask ai non_replayable reaches outside: model demo:echo verify shell" in lines
    assert "5 to 8 step executions, of at most 20; limits: timeout 2h" in lines


def test_permits_that_would_be_enough_are_inferred(tramai: Call) -> None:
    found = planned(tramai)["permits"]
    assert found == {
        "declared": False,
        "enough": {"shell": ["bash", "ping"], "http": ["example.com"]},
        "unknown": [],
        "missing": [],
    }
    assert "would be enough: permits: {shell: [bash, ping], http: [example.com]}" in tramai("plan", "whole.yaml").stdout


def test_what_is_not_permitted_is_said_before_the_run(tramai: Call) -> None:
    file = "tramai: 1\nname: p\npermits: {http: [a.example.com]}\n"
    file += "inputs: {u: {type: string, default: 'https://b.example.com/'}}\n"
    file += (
        "steps:\n  - {id: one, http: {get: 'https://a.example.com/'}}\n  - {id: two, http: {get: '${{ inputs.u }}'}}\n"
    )
    write("p.yaml", file)
    text = tramai("plan", "p.yaml").stdout
    assert "needs permits: {http: [a.example.com]}" in text
    assert "only the run will know: the http of two" in text


def test_a_called_workflow_is_part_of_the_plan(tramai: Call) -> None:
    write(
        "child.yaml",
        "tramai: 1\nname: child\ninputs: {n: {type: integer}}\nsteps:\n"
        "  - {id: big, when: '${{ inputs.n > 3 }}', shell: echo}\nfinally:\n  - {id: last, shell: echo}\n",
    )
    write("p.yaml", "tramai: 1\nname: p\nsteps:\n  - {id: sub, call: {workflow: child.yaml, with: {n: 1}}}\n")
    found = document(tramai("plan", "p.yaml", "--json"))
    (sub,) = found["steps"]
    assert sub["reaches"] == "runs child.yaml"
    (block,) = sub["blocks"]
    assert [(one["id"], one["decided"]) for one in block["steps"]] == [("big", False), ("last", None)]
    assert found["executions"] == {"least": 2, "most": 2, "limit": 1000}
