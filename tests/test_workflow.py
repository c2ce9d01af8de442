"""From a file to a workflow: one pass, every problem, plain values as written."""

from pathlib import Path

import pytest

from tramai import workflow
from tramai.errors import ConfigurationError, InvalidDefinition
from tramai.step import Replay

from .reading import HEAD, codes, examine, said, sound

STEP = "steps:\n  - {id: one, local: 1}\n"


def test_a_workflow_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(HEAD + STEP)
    found = workflow.load(str(file))
    assert (found.name, found.version, found.file) == ("demo", "1", str(file))
    assert [node.id for node in found.steps] == ["one"]


def test_an_invalid_file_raises_with_all_its_problems(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(HEAD + "stps: 1\n" + STEP.replace("local", "locl"))
    with pytest.raises(InvalidDefinition) as caught:
        workflow.load(str(file))
    assert [problem.code for problem in caught.value.problems] == ["TRM104", "TRM104"]
    assert caught.value.exit_status == 3


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError):
        workflow.load(str(tmp_path / name))


def test_independent_problems_are_all_told_in_one_pass_in_order_of_the_file() -> None:
    text = HEAD + (
        "inputs: {n: {type: int}}\n"
        "limits: {timeout: 30}\n"
        "steps:\n"
        "  - id: one\n    shel: make\n"
        "  - id: two\n    local: ${{ inputs.m }}\n"
        "  - id: two\n    local: ${{ steps.nine.output }}\n    retry: {max_attempts: many}\n"
        "  - id: four\n    local: ${{ steps.one.output }}\n"
        "outputs: {a: '${{ steps.tow.output }}'}\n"
    )
    found = examine(text)[1]
    assert [problem.code for problem in found] == [
        "TRM107", "TRM107", "TRM104", "TRM208", "TRM211", "TRM203", "TRM106", "TRM203",
    ]  # fmt: skip
    lines = [problem.position.line for problem in found if problem.position is not None]
    assert lines == sorted(lines)


def test_a_step_that_cannot_be_read_is_still_known_to_others() -> None:
    text = HEAD + "steps:\n  - {id: one, shel: make}\n  - {id: two, local: '${{ steps.one.output }}'}\n"
    assert codes(text) == ["TRM104"]


def test_steps_inside_a_broken_container_are_still_known_to_others() -> None:
    text = HEAD + (
        "steps:\n  - id: all\n    branch: {if: '${{ true }}', thn: [{id: inner, local: 1}]}\n"
        "  - {id: two, local: '${{ steps.inner.output | default(1) }}'}\n"
    )
    assert codes(text) == ["TRM104"]


def test_an_input_that_cannot_be_read_is_still_declared() -> None:
    assert codes(HEAD + "inputs: {n: {type: int}}\nsteps:\n  - {id: one, local: '${{ inputs.n }}'}\n") == ["TRM107"]


def test_plain_words_stay_text_where_text_is_wanted() -> None:
    found = sound(
        HEAD + "version: 1.10\nenv: {COUNTRY: NO, DATE: 2024-01-15, TIME: 22:30:00, MODE: 010, ON: true}\n"
        "inputs: {on: {type: string, default: off}, code: {type: string, enum: [01, 1.0], default: 01}}\n"
        "steps:\n  - id: on\n    branch:\n      select: ${{ inputs.on }}\n"
        "      cases: {no: [], 200: [], true: [{id: inner, local: 1}]}\n      default: []\n"
    )
    assert found.version == "1.10"
    assert {name: value.text for name, value in found.env.items()} == {
        "COUNTRY": "NO", "DATE": "2024-01-15", "TIME": "22:30:00", "MODE": "010", "ON": "true",
    }  # fmt: skip
    assert found.inputs["on"].default == "off"
    assert (found.inputs["code"].enum, found.inputs["code"].default) == (["01", "1.0"], "01")
    assert next(iter(found.steps)).step.blocks()[1][1] == "200"


def test_untyped_data_is_what_it_looks_like() -> None:
    found = sound(
        HEAD
        + "state: {s: {initial: {a: true, b: no, c: 12345678901234567890, d: 2024-13-45, e: ~, f: 1_000}}}\n"
        + STEP
    )
    assert found.state["s"].initial == {
        "a": True, "b": "no", "c": 12345678901234567890, "d": "2024-13-45", "e": None, "f": "1_000",
    }  # fmt: skip


def test_a_whole_float_in_data_is_an_integer_as_in_the_canonical_form() -> None:
    found = sound(HEAD + "steps:\n  - {id: one, local: {value: {a: 1.0, b: [2.5, 3.0]}}}\n")
    assert repr(next(iter(found.steps)).step.value.data) == "{'a': 1, 'b': [2.5, 3]}"


def test_the_scalar_form_and_the_long_form_are_one() -> None:
    short = sound(HEAD + "steps:\n  - {id: one, shell: make}\n  - {id: two, delay: 10m}\n")
    long = sound(HEAD + "steps:\n  - {id: one, shell: {run: make}}\n  - {id: two, delay: {for: 10m}}\n")
    assert [node.step for node in short.steps] == [node.step for node in long.steps]


def test_free_keys_are_free_where_the_language_says() -> None:
    found = sound(
        "$schema: https://example.com/s.json\ntramai: 1\nname: demo\nx-team: ops\n"
        "inputs: {n: {default: 1, x-note: 1}}\n"
        "steps:\n  - {id: one, x-owner: me, shell: {run: make, x-why: 1, env: {}}}\n"
        "  - {id: two, http: {get: 'https://example.com', headers: {x-trace: 'on'}}}\n"
    )
    assert list(found.steps.nodes[1].step.headers) == ["x-trace"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "limits: {x-note: 1}\n" + STEP,
        HEAD + "state: {n: {initial: 0, x-note: 1}}\n" + STEP,
        HEAD + "steps:\n  - {id: one, local: 1, retry: {x-note: 1}}\n",
    ],
)
def test_free_keys_are_unknown_elsewhere(text: str) -> None:
    assert codes(text) == ["TRM104"]


def test_every_step_knows_its_place() -> None:
    found = sound(
        HEAD
        + "steps:\n  - id: a\n    branch:\n      select: x${{ 1 }}\n".replace("x${{ 1 }}", "${{ 1 }}")
        + "      cases: {'1': [{id: b, local: 1}]}\n      default:\n        - id: c\n          parallel:\n"
        "            items: [1]\n            do: [{id: d, local: 1}]\n"
    )
    assert {node.id: node.at for node in found.steps.walk()} == {
        "a": ("steps", 0),
        "b": ("steps", 0, "branch", "cases", "1", 0),
        "c": ("steps", 0, "branch", "default", 0),
        "d": ("steps", 0, "branch", "default", 0, "parallel", "do", 0),
    }


def test_an_alias_used_twice_gives_two_steps() -> None:
    text = HEAD + (
        "steps:\n  - id: a\n    parallel:\n      branches:\n"
        "        x: &body\n          - {id: b, local: 1}\n        y: *body\n"
    )
    assert said(text) == ["TRM211 step id `b` is used twice"]


@pytest.mark.parametrize(
    "step",
    ["local:", "when:\n    local: 1", "timeout: ~\n    local: 1", "local: {value: ~}", "shell: {run: make, cwd: }"],
)
def test_an_empty_value_is_not_taken_for_no_value(step: str) -> None:
    assert codes(HEAD + f"steps:\n  - id: one\n    {step}\n") == ["TRM106"]


def test_null_is_a_value_where_any_data_is_wanted() -> None:
    found = sound(
        HEAD + "inputs: {n: {default: ~}}\nstate: {n: {initial: ~}}\n"
        "steps:\n  - {id: one, http: {post: 'https://example.com', json: ~}}\n"
    )
    assert found.inputs["n"].default is None
    assert found.state["n"].initial is None
    assert next(iter(found.steps)).step.json.data is None


def test_a_newer_language_is_the_only_thing_said() -> None:
    assert said("tramai: 3\nname: [1]\nnew: thing\n") == [
        "TRM122 this file needs tramai ≥ 3; this is a tramai for version 1 of the language"
    ]


@pytest.mark.parametrize("value", ["0", "-1", "1.0", "true", '"1"', "[1]", "~", "9999999999999999999999"])
def test_a_version_of_the_language_that_is_none_is_refused(value: str) -> None:
    assert codes(f"tramai: {value}\nname: demo\n{STEP}")[0] in {"TRM106", "TRM107"}


def test_replay_is_the_steps_own_word_or_its_verbs() -> None:
    found = sound(HEAD + "steps:\n  - {id: one, shell: make}\n  - {id: two, shell: make, replay: idempotent}\n")
    assert [node.replay for node in found.steps] == [Replay.NON_REPLAYABLE, Replay.IDEMPOTENT]


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "- 1\n", "null", "text", "\x00", "{", "a: b: c", "\ufeff"])
def test_a_file_that_is_no_workflow_has_a_problem_with_a_place(text: str) -> None:
    found, problems = examine(text)
    assert found is None
    assert problems
    assert all(problem.position is not None for problem in problems)


def test_braces_of_other_tools_pass_untouched() -> None:
    found = sound(
        HEAD + 'steps:\n  - id: one\n    shell: docker ps --format "{{.ID}}" ${HOME} }}\n'
        '  - id: two\n    ai:\n      model: demo:echo\n      prompt: \'Answer {"a": {"b": 1}} for ${HOME}\'\n'
    )
    assert [node.verb for node in found.steps] == ["shell", "ai"]


def test_a_broken_common_key_does_not_hide_what_else_is_wrong_with_its_step() -> None:
    step = "  - id: one\n    shell: echo ${{ inputs.x }}\n    timeout: 30\n    retries: 2\n"
    assert sorted(problem.code for problem in examine(HEAD + "steps:\n" + step)[1]) == ["TRM104", "TRM107", "TRM301"]
