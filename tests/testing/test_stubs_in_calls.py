"""Stubs for steps of called workflows: by paths that go on behind the call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.support import checked, only, outcomes, written
from tramai.testing import WorkflowTest, running

POST = """\
tramai: 1
name: post
inputs: {text: {type: string}}
secrets: {TOKEN: {env: POST_TOKEN}}
steps:
  - id: render
    local: "<${{ inputs.text }}>"
  - id: send
    http: {post: "https://example.com/", json: "${{ steps.render.output }}", auth: {bearer: "${{ secrets.TOKEN }}"}}
    retry: {max_attempts: 2, delay: 1h}
    output: ${{ result.body.id }}
outputs: {id: "${{ steps.send.output }}"}
"""
OUTER = """\
tramai: 1
name: outer
steps:
  - id: each
    foreach:
      items: [1, 2]
      as: n
      do:
        - {id: tell, call: {workflow: ./post.yaml, with: {text: "n${{ n }}"}}}
  - id: last
    shell: echo x
outputs: {ids: "${{ steps.each.output | map(attribute='tell') | map(attribute='id') | list }}"}
"""
HEAD = "workflow: hello.yaml\ntests:\n  - name: one\n"


@pytest.fixture(autouse=True)
def post(tmp_path: Path) -> None:
    (tmp_path / "post.yaml").write_text(POST, encoding="utf-8")


def test_a_step_of_a_called_workflow_is_answered_and_what_it_was_given_is_known(tmp_path: Path) -> None:
    outcome = only(
        tmp_path,
        HEAD
        + """\
    stubs:
      tell > send: {each: [{output: a}, [{error: {type: http.503}}, {result: {status: 200, body: {id: b}}}]]}
      last: {output: x}
    expect:
      outputs: {ids: [a, b]}
      calls:
        - {step: tell > send, given: {json: <n1>, auth: {bearer: fake-TOKEN}}}
        - {step: "each[1].tell > send", attempt: 1}
        - {step: "each[*].tell > send", attempt: 2, given: {json: <n2>}}
        - last
      steps:
        each[0].tell > send: {attempts: 1, output: a}
        each[1].tell > send: {attempts: 2, output: b}
        tell > render: {status: succeeded}
""",
        OUTER,
    )
    assert [(problem.message, problem.position) for problem in outcome.problems] == []


def test_the_most_exact_of_several_names_wins(tmp_path: Path) -> None:
    found = outcomes(
        tmp_path,
        HEAD
        + "    stubs: {tell>send: {output: any}, 'each[1].tell > send': {output: second}, last: {output: 1}}\n"
        + "    expect: {outputs: {ids: [any, second]}}\n",
        OUTER,
    )
    assert [problem.message for problem in found[0].problems] == []


def test_a_step_inside_without_a_stub_is_refused_by_its_whole_name(tmp_path: Path) -> None:
    outcome = only(tmp_path, HEAD + "    stubs: {tell > render: {output: x}, last: {output: 1}}\n", OUTER)
    (problem,) = outcome.problems
    assert problem.code == "TRM772"
    assert problem.message.startswith("`each[0].tell > send` would reach outside")
    assert "add `tell > send` to `stubs`" in (problem.hint or "")
    assert problem.related[0].message == "step `tell` is here"


def test_a_call_without_any_stub_is_told_of_both_ways(tmp_path: Path) -> None:
    (problem,) = only(tmp_path, HEAD + "    stubs: {last: {output: 1}}\n", OUTER).problems
    assert "`tell > STEP` in `stubs` stands for a step of the workflow that it calls" in (problem.hint or "")


def test_a_stub_for_the_whole_call_goes_first_and_the_other_is_unused(tmp_path: Path) -> None:
    stubs = "{tell: {output: {id: z}}, tell > send: {output: a}, last: {output: 1}}"
    (problem,) = only(tmp_path, HEAD + f"    stubs: {stubs}\n", OUTER).problems
    assert (problem.code, "`tell > send` was never used" in problem.message) == ("TRM774", True)


@pytest.mark.parametrize(
    ("stubs", "said"),
    [
        ("{last > x: {output: 1}}", "step `last` calls no workflow"),
        ("{tell > sent: {output: 1}}", "in what `tell` calls, there is no step `sent`"),
        ("{tel > send: {output: 1}}", "there is no step `tel` in the workflow"),
        ("{each > send: {output: 1}}", "step `each` calls no workflow"),
        ("{tell > : {output: 1}}", "in what `tell` calls, `` is no step"),
        ("{tell>send>x: {output: 1}}", "in what `tell` calls, step `send` calls no workflow"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_before_anything_runs(tmp_path: Path, stubs: str, said: str) -> None:
    problems = checked(tmp_path, HEAD + f"    stubs: {stubs}\n", OUTER)
    assert [problem.code for problem in problems] == ["TRM773"]
    assert said in problems[0].message


def test_a_crash_anywhere_inside_and_outside_repeats_nothing(tmp_path: Path) -> None:
    outcome = only(
        tmp_path,
        HEAD
        + "    stubs: {tell > send: {each: [{output: a}, {output: b}]}, last: {output: 1}}\n"
        + "    expect: {outputs: {ids: [a, b]}}\n    crash_everywhere: true\n",
        OUTER,
    )
    assert [problem.message for problem in outcome.problems] == []
    assert outcome.crashes > 20


def test_calls_in_calls_and_gates_and_pauses_in_them(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(
        "tramai: 1\nname: deep\nsteps:\n  - {id: nap, delay: 3h}\n  - {id: ok, gate: {ask: go on?}}\n"
        "  - {id: act, shell: echo deep, when: '${{ steps.ok.output.decision == \"approved\" }}'}\n"
        "outputs: {said: '${{ steps.act.output }}'}\n",
        encoding="utf-8",
    )
    (tmp_path / "middle.yaml").write_text(
        "tramai: 1\nname: middle\nsteps: [{id: down, call: ./deep.yaml}]\n"
        "outputs: {said: '${{ steps.down.output.said }}'}\n",
        encoding="utf-8",
    )
    outer = "tramai: 1\nname: outer\nsteps: [{id: go, call: ./middle.yaml}]\n"
    outer += "outputs: {said: '${{ steps.go.output.said }}'}\n"
    loaded = written(
        tmp_path,
        HEAD
        + "    stubs: {go > down > act: {output: hi, takes: 5m}}\n"
        + "    answers: {go > down > ok: {decision: approve}}\n"
        + "    expect: {outputs: {said: hi}, steps: {go > down > act: {output: hi}}}\n"
        + "  - name: two\n    crash_everywhere: true\n"
        + "    stubs: {go > down > act: {output: hi}}\n    answers: {go > down > ok: {decision: approve}}\n",
        outer,
    )
    assert [problem.message for problem in loaded.problems] == []
    for index in range(2):
        assert [problem.message for problem in running.run(loaded, index).problems] == []


def test_a_run_is_not_cut_off_behind_a_step_of_another(tmp_path: Path) -> None:
    problems = checked(
        tmp_path,
        HEAD + "    stubs: {tell > send: {output: a}, last: {output: 1}}\n    crash_after: tell > send\n",
        OUTER,
    )
    assert [problem.code for problem in problems] == ["TRM778"]


def test_from_python_it_is_the_same(tmp_path: Path) -> None:
    written(tmp_path, HEAD, OUTER)
    ran = WorkflowTest(tmp_path / "hello.yaml", stubs={"tell > send": {"output": "a"}, "last": {"output": 1}}).run()
    assert ran.outputs == {"ids": ["a", "a"]}
    assert [call.step for call in ran.called("tell > send")] == ["tell > send"] * 2
    assert ran.step("each[0].tell > send") is not None
