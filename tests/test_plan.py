"""The plan: canonical form, what it needs to run, places, and the way back from a store."""

import json
from pathlib import Path

import pytest

from tramai import plan
from tramai.step import Control

from .reading import HEAD, planned, sound

SMALL = HEAD + "steps:\n  - {id: one, local: 1}\n"


def test_the_canonical_form_expands_shorthand_and_applies_defaults() -> None:
    made = planned(HEAD + "steps:\n  - {id: one, shell: make, timeout: 1m30s}\n")
    assert json.loads(made.canonical) == {
        "tramai": 1,
        "name": "demo",
        "limits": {"max_step_executions": 1000, "max_parallel_branches": 16},
        "steps": [
            {
                "id": "one",
                "shell": {"run": "make", "ok_exit_codes": [0], "max_output": "1MiB", "kill_after": 10},
                "replay": "non_replayable",
                "timeout": 90,
            }
        ],
    }


def test_the_canonical_form_leaves_out_what_changes_nothing() -> None:
    made = planned(
        "$schema: s.json\ntramai: 1\nname: demo\ndescription: d\nx-a: 1\n"
        "inputs: {n: {default: 1, description: d, x-b: 2}}\n"
        "steps:\n  - {id: one, description: d, x-c: 3, local: {value: 1, x-d: 4}}\n"
    )
    assert "description" not in made.canonical
    assert "x-" not in made.canonical
    assert "$schema" not in made.canonical
    assert "version" not in made.canonical


def test_data_keeps_keys_that_are_left_out_elsewhere() -> None:
    made = planned(HEAD + "steps:\n  - {id: one, local: {value: {description: a, x-b: 1, $schema: c}}}\n")
    assert '"value":{"$schema":"c","description":"a","x-b":1}' in made.canonical


def test_a_plan_comes_back_from_its_canonical_form() -> None:
    made = plan.load(str(Path(__file__).parent / "data" / "everything.yaml"))
    again = plan.restore(made.canonical, made.workflow.version)
    assert again.canonical == made.canonical
    assert again.digest == made.digest
    assert again.workflow.version == made.workflow.version
    assert again.step_digests == made.step_digests
    for node in made.workflow.steps.walk():
        if not isinstance(node.step, Control):
            assert plan.plain(again.nodes[node.id].step) == plan.plain(node.step)
        assert (again.nodes[node.id].replay, again.nodes[node.id].timeout) == (node.replay, node.timeout)


def test_secret_names_are_inside_and_no_value_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    made = planned(HEAD + "secrets: {T: {env: TOKEN}}\nsteps:\n  - {id: one, local: 1}\n")
    assert '"secrets":{"T":{"env":"TOKEN"}}' in made.canonical
    assert "hunter2" not in made.definition().text + made.canonical


def test_the_definition_keeps_the_file_as_read() -> None:
    made = planned(SMALL + "# a comment\n")
    kept = made.definition()
    assert (kept.name, kept.version, kept.format, kept.file) == ("demo", "1", "yaml", "demo.yaml")
    assert kept.text.endswith("# a comment\n")
    assert kept.digest == made.digest


@pytest.mark.parametrize(
    ("step", "loop", "spawns"),
    [
        ("local: 1", False, False),
        ("shell: make", False, True),
        ("delay: 1s", False, False),
        ("gate: '${{ true }}'", False, False),
        ("http: {get: 'https://example.com'}", True, False),
        ("ai: {model: 'demo:echo', prompt: x}", False, False),
        ("ai: {model: 'openai:gpt-5', prompt: x}", True, False),
        ("foreach: {items: [1], do: [{id: in, local: 1}]}", False, False),
        ("parallel: {items: [1], do: [{id: in, local: 1}]}", False, False),
        ("parallel: {items: [1], do: [{id: in, shell: make}]}", True, True),
        ("branch: {if: '${{ true }}', then: [{id: in, http: {get: 'https://example.com'}}]}", True, False),
        ("foreach: {items: [1], do: [{id: in, local: 1}]}, timeout: 5s", True, False),
        ("local: {call: 'm:f'}, timeout: 5s", True, False),
        ("local: 1, timeout: 5s", False, False),
    ],
)
def test_a_plan_knows_what_it_needs(step: str, loop: bool, spawns: bool) -> None:
    made = planned(HEAD + f"steps:\n  - {{id: one, {step}}}\n")
    assert (made.needs_loop, made.spawns) == (loop, spawns)


@pytest.mark.parametrize(
    ("step", "computes"),
    [
        ("local: 1", True),
        ("foreach: {items: [1], do: [{id: in, local: 1}]}", True),
        ("shell: make", False),
        ("local: {call: 'm:f'}", False),
        ("local: 1, schema: {maximum: 2}, retry: {max_attempts: 2, delay: 5m}", False),
        ("foreach: {items: [1], do: [{id: in, local: 1, retry: {max_attempts: 2}}]}", False),
    ],
)
def test_who_may_share_a_process_only_computes_and_never_waits_in_it(step: str, computes: bool) -> None:
    assert planned(HEAD + f"steps:\n  - {{id: one, {step}}}\n").computes is computes


def test_a_run_whose_time_is_limited_spends_it_beside_no_other() -> None:
    steps = "steps:\n  - {id: one, local: 1}\n"
    assert planned(HEAD + "limits: {max_step_executions: 5}\n" + steps).computes
    assert not planned(HEAD + "limits: {timeout: 5s}\n" + steps).computes


def test_a_shell_step_with_a_timeout_needs_no_loop() -> None:
    assert not planned(HEAD + "steps:\n  - {id: one, shell: make, timeout: 5s}\n").needs_loop


def test_steps_have_their_place() -> None:
    made = planned(
        HEAD + "steps:\n  - id: one\n    local: 1\n  - id: all\n    foreach:\n      items: [1]\n      do:\n"
        "        - id: two\n          local: 1\n"
    )
    assert made.place("one") == (4, 5)
    assert made.place("two") == (10, 11)
    assert made.place("nine") is None
    assert plan.restore(made.canonical).place("one") is None


def test_the_outline_shows_depth_and_blocks() -> None:
    made = planned(
        HEAD + "steps:\n  - {id: one, local: 1}\n  - id: b\n    when: ${{ true }}\n    branch:\n"
        "      if: ${{ true }}\n      then: [{id: x, local: 1}, {id: y, shell: make}]\n"
        "      else: [{id: z, local: 1}]\n"
    )
    shown = [(row.depth, row.id, row.verb, row.label, row.condition, row.replay) for row in made.outline()]
    assert shown == [
        (0, "one", "local", None, None, "replayable"),
        (0, "b", "branch", None, "${{ true }}", "replayable"),
        (1, "x", "local", "then", None, "replayable"),
        (1, "y", "shell", None, None, "non_replayable"),
        (1, "z", "local", "else", None, "replayable"),
    ]


def test_a_step_digest_covers_what_is_inside_the_step() -> None:
    def digests(value: int) -> dict[str, str]:
        return planned(
            HEAD + f"steps:\n  - {{id: one, local: 1}}\n  - {{id: all, foreach: {{items: [1], "
            f"do: [{{id: in, local: {{value: {value}}}}}]}}}}\n"
        ).step_digests

    before, after = digests(1), digests(2)
    assert {id for id in before if before[id] != after[id]} == {"all", "in"}


def test_the_plan_of_a_workflow_is_made_once() -> None:
    made = plan.of(sound(SMALL))
    assert made.canonical is made.canonical
    assert plan.Plan(made.workflow, canonical=made.canonical).digest == made.digest
