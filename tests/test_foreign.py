"""Templates of other tools: told where they were hardly meant as text, mended where that is sure, else left alone."""

from __future__ import annotations

import pytest

from tramai import document, fixes

from .reading import HEAD, examine, sound

HAVE = "inputs: {x: {type: string}}\nenv: {TOKEN: a}\n"


def file(step: str) -> str:
    return f"{HEAD}{HAVE}steps:\n  - {{id: one, local: '${{{{ inputs.x }}}}'}}\n  - {step}\n"


@pytest.mark.parametrize(
    ("step", "mended"),
    [
        ("{id: a, ai: {model: 'demo:echo', prompt: 'Say {{ inputs.x }}!'}}", "'Say ${{ inputs.x }}!'"),
        ("{id: a, ai: {model: 'demo:echo', prompt: 'Say ${inputs.x}'}}", "'Say ${{ inputs.x }}'"),
        ("{id: a, local: '$ {{ steps.one.output }}'}", "${{ steps.one.output }}"),
        ("{id: a, local: inputs.x}", "${{ inputs.x }}"),
        ("{id: a, local: {value: {deep: ['{{inputs.x}}']}}}", "${{ inputs.x }}"),
    ],
)
def test_what_is_sure_is_mended(step: str, mended: str) -> None:
    found = examine(file(step))[1]
    assert [(problem.code, problem.severity) for problem in found] == [("TRM260", "warning")]
    done = fixes.mend(document.parse(file(step).encode(), file="demo.yaml"), warnings=True)
    assert mended in done.document.text
    assert examine(done.document.text)[1] == ()


@pytest.mark.parametrize(
    "step",
    [
        "{id: a, ai: {model: 'demo:echo', prompt: 'Say {{ inputs.x | upper }}'}}",
        "{id: a, shell: {argv: [echo, $HOME]}}",
        "{id: a, http: {get: 'https://e.com', headers: {A: 'Bearer $TOKEN'}}}",
        "{id: a, ai: {model: 'demo:echo', prompt: '{# note #} x'}}",
    ],
)
def test_what_is_not_sure_is_told_only(step: str) -> None:
    found = examine(file(step))[1]
    assert [problem.code for problem in found] == ["TRM260"]
    assert found[0].fix is None


@pytest.mark.parametrize(
    "step",
    [
        "{id: a, ai: {model: 'demo:echo', prompt: 'Pay $5, {{ name }}, ${HOME} and $$${{ inputs.x }} to {{.ID}}'}}",
        "{id: a, http: {get: 'https://e.com', query: {q: 'price in $USD'}}}",
        "{id: a, shell: {argv: [sh, -c, 'echo $HOME']}}",
        "{id: a, shell: {argv: [run.sh, steps.json, env.yaml]}}",
        "{id: a, local: 'inputs.y is not declared'}",
        "{id: a, shell: 'echo ${HOME} {{ x }} ${#a[@]}'}",
    ],
)
def test_text_is_left_alone(step: str) -> None:
    sound(file(step))
