"""`prompt_file`: a prompt in a file of its own is checked, kept and digested like one that is written in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tramai import engine, plan, plancache, workflow
from tramai.stores.memory import Memory

FLOW = """\
tramai: 1
name: ask
inputs: {topic: {type: string, default: ships}}
steps:
  - id: ask
    ai:
      model: "demo:echo"
      prompt_file: prompts/question.md
outputs: {said: "${{ steps.ask.output }}"}
"""
QUESTION = "Tell me about ${{ inputs.topic }}.\n{% if inputs.topic == 'ships' %}Briefly.{% endif %}\n"


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "question.md").write_text(QUESTION, encoding="utf-8")
    file = tmp_path / "ask.yaml"
    file.write_text(FLOW, encoding="utf-8")
    return file


def question(flow: Path) -> Path:
    return flow.parent / "prompts" / "question.md"


def said(flow: Path) -> str:
    result = engine.run(plan.load(str(flow)), {"topic": "ships"}, store=Memory())
    assert result.error is None
    return str(result.outputs["said"])  # type: ignore[index,call-overload]


def test_the_text_of_the_file_is_the_prompt_and_a_template(flow: Path) -> None:
    assert "Tell me about ships." in said(flow)
    assert "Briefly." in said(flow)


def test_a_run_needs_the_file_no_more_once_it_has_begun(flow: Path) -> None:
    made = plan.load(str(flow))
    question(flow).unlink()
    again = plan.restore(made.canonical)
    assert again.digest == made.digest
    result = engine.run(again, {"topic": "ships"}, store=Memory())
    assert "Tell me about ships." in str(result.outputs)


def test_the_digest_changes_with_the_text_and_not_with_its_line_ends(flow: Path) -> None:
    before = plan.load(str(flow)).digest
    question(flow).write_bytes(b"\xef\xbb\xbf" + QUESTION.replace("\n", "\r\n").encode())
    assert plan.load(str(flow)).digest == before
    question(flow).write_text(QUESTION.replace("Briefly", "At length"))
    assert plan.load(str(flow)).digest != before


def test_a_cached_plan_is_forgotten_when_the_prompt_changes(flow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(flow.parent / "cache"))
    plancache.save(str(flow), plan.load(str(flow)))
    assert plancache.load(str(flow)) is not None
    question(flow).write_text("Something else.")
    assert plancache.load(str(flow)) is None


def test_a_mistake_in_the_file_is_told_with_its_place_there(flow: Path) -> None:
    question(flow).write_text("One line.\nTell me about ${{ inputs.topc }}.\n")
    (found,) = workflow.check_file(str(flow))[1]
    assert (found.code, found.hint) == ("TRM208", "did you mean `inputs.topic`?")
    assert found.position is not None
    assert Path(found.position.file).name == "question.md"
    assert (found.position.line, found.position.column, found.position.end_column) == (2, 19, 30)


def test_a_secret_may_not_stand_in_a_prompt_file_either(flow: Path) -> None:
    flow.write_text(FLOW.replace("inputs:", "secrets: {KEY: {env: KEY}}\ninputs:"))
    question(flow).write_text("My key is ${{ secrets.KEY }}.")
    assert [found.code for found in workflow.check_file(str(flow))[1]] == ["TRM302"]


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, "there is no such file"), (b"", "it is empty"), (b" \n", "it is empty"), (b"\xff\xfe", "not UTF-8")],
)
def test_a_file_that_cannot_be_used_is_said_once(flow: Path, content: bytes | None, text: str) -> None:
    if content is None:
        question(flow).unlink()
    else:
        question(flow).write_bytes(content)
    (found,) = workflow.check_file(str(flow))[1]
    assert found.code == "TRM318"
    assert text in found.message
    assert found.position is not None
    assert (found.position.line, found.position.column) == (8, 20)


def test_a_near_name_is_suggested(flow: Path) -> None:
    flow.write_text(FLOW.replace("question.md", "questions.md"))
    (found,) = workflow.check_file(str(flow))[1]
    assert found.hint is not None
    assert "prompts/question.md" in found.hint


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("      prompt_file: prompts/question.md\n", "", "TRM105"),
        ("prompt_file: prompts/question.md", "prompt_file: ${{ inputs.topic }}.md", "TRM318"),
        ("prompt_file:", "prompt: hello\n      prompt_file:", "TRM319"),
    ],
)
def test_there_is_exactly_one_prompt(flow: Path, old: str, new: str, code: str) -> None:
    flow.write_text(
        FLOW.replace(old, new).replace(
            "inputs: {topic: {type: string, default: ships}}\n",
            "inputs: {topic: {type: string, description: x, default: ships}}\n",
        )
    )
    assert [found.code for found in workflow.check_file(str(flow))[1]] == [code]
