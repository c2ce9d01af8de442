"""`concurrency` in a file: part of what a workflow is, in every form, and told where its group is wrong."""

from __future__ import annotations

import pytest

from tests.reading import planned, said, sound
from tramai import plan
from tramai.concurrency import Concurrency

HEAD = "tramai: 1\nname: demo\ninputs: {host: {type: string}}\n"
STEPS = 'steps:\n  - {id: one, local: "${{ inputs.host }}"}\n'
RULE = 'concurrency: {group: "deploy-${{ inputs.host }}"}\n'


def test_a_group_has_room_for_one_and_the_next_waits_unless_the_file_says_otherwise() -> None:
    rule = sound(HEAD + RULE + STEPS).concurrency
    assert isinstance(rule, Concurrency)
    assert (rule.group.text, rule.limit, rule.on_conflict) == ("deploy-${{ inputs.host }}", 1, "queue")


def test_a_scalar_is_the_text_that_was_written() -> None:
    rule = sound(HEAD + "concurrency: {group: 1.10}\n" + STEPS).concurrency
    assert rule is not None
    assert rule.group.text == "1.10"


def test_it_is_part_of_what_the_digest_is_taken_of() -> None:
    digests = {
        planned(HEAD + rule + STEPS).digest
        for rule in (
            "",
            RULE,
            RULE.replace("deploy", "other"),
            RULE.replace("}\n", ", limit: 2}\n"),
            RULE.replace("}\n", ", on_conflict: skip}\n"),
        )
    }
    assert len(digests) == 5
    spelled_out = RULE.replace("}\n", ", limit: 1, on_conflict: queue}\n")
    assert planned(HEAD + spelled_out + STEPS).digest == planned(HEAD + RULE + STEPS).digest


def test_a_workflow_without_it_has_the_digest_that_it_always_had() -> None:
    assert "concurrency" not in planned(HEAD + STEPS).data


def test_toml_says_the_same_as_yaml() -> None:
    toml = (
        'tramai = 1\nname = "demo"\n[inputs.host]\ntype = "string"\n[concurrency]\n'
        'group = "deploy-${{ inputs.host }}"\n[[steps]]\nid = "one"\nlocal = "${{ inputs.host }}"\n'
    )
    assert planned(toml, format="toml").digest == planned(HEAD + RULE + STEPS).digest


def test_it_comes_back_from_the_canonical_form() -> None:
    made = planned(HEAD + RULE.replace("}\n", ", limit: 3, on_conflict: cancel_running}\n") + STEPS)
    again = plan.restore(made.canonical)
    assert again.digest == made.digest
    assert again.workflow.concurrency == made.workflow.concurrency


@pytest.mark.parametrize(
    ("read", "code"),
    [
        ("state.n", "TRM393"),
        ("steps.one.output", "TRM393"),
        ("secrets.S", "TRM393"),
        ("env.E", "TRM393"),
        ("run.id", "TRM393"),
        ("run.started_by", "TRM393"),
        ("run", "TRM393"),
        ("run.wrkflow", "TRM393"),
        ("result", "TRM210"),
        ("error.type", "TRM210"),
        ("item", "TRM202"),
        ("inputs.hots", "TRM208"),
        ("inputs.host | shout", "TRM206"),
    ],
)
def test_what_is_not_known_before_the_run_is_told_once(read: str, code: str) -> None:
    problems = said(HEAD + 'concurrency: {group: "deploy-${{ ' + read + ' }}"}\n' + STEPS)
    assert [problem.partition(" ")[0] for problem in problems if "used nowhere" not in problem] == [code]


def test_an_input_that_may_be_missing_needs_a_default_here_too() -> None:
    optional = HEAD.replace("string}", "string, optional: true}")
    steps = STEPS.replace("inputs.host", "inputs.host | default('')")
    assert [problem[:6] for problem in said(optional + RULE + steps)] == ["TRM205"]
    assert said(optional + RULE.replace("inputs.host", "inputs.host | default('all')") + steps) == []


def test_an_input_that_is_read_by_the_group_alone_is_used() -> None:
    assert said(HEAD + RULE + "steps:\n  - {id: one, local: 1}\n") == []
