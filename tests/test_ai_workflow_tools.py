"""`ai` with workflows as tools: each use is a run of its own, bound by what its caller may do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ai_script import Scripted, says, wants
from tests.engine.support import RUN
from tramai import engine, inputs, plan, provider, workflow
from tramai.interrupt import Interrupt
from tramai.plan import Plan
from tramai.provider import Answer
from tramai.step import Replay, StepError
from tramai.store import Status
from tramai.stores.memory import Memory
from tramai.testing.workflow_test import WorkflowTest

CHILD = """\
tramai: 1
name: look up
description: Finds an order.
inputs:
  n: {type: integer, minimum: 1, description: Its number.}
  mood: {enum: [good, bad], default: good}
steps:
  - {id: double, local: "${{ inputs.n * 2 }}"}
  - {id: check, gate: {check: "${{ inputs.mood == 'good' }}", reason: a bad mood}}
outputs: {twice: "${{ steps.double.output }}"}
"""
PARENT = """\
tramai: 1
name: parent
steps:
  - id: ask
    ai:
      model: openai:one
      prompt: Go.
      tools:
        - workflow: ./child.yaml
    output: ${{ result }}
outputs: {got: "${{ steps.ask.output }}"}
"""

Install = Callable[..., Scripted]


@pytest.fixture
def store() -> Memory:
    return Memory()


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(*answers: Answer | StepError) -> Scripted:
        service = Scripted(*answers)
        monkeypatch.setattr(provider, "find", lambda name: service)
        return service

    return install


def write(folder: Path, child: str = CHILD, parent: str = PARENT) -> Path:
    (folder / "child.yaml").write_text(child, encoding="utf-8")
    (folder / "parent.yaml").write_text(parent, encoding="utf-8")
    return folder / "parent.yaml"


def start(path: Path | Plan, store: Memory, **options: Any) -> engine.Result:
    made = path if isinstance(path, Plan) else plan.load(str(path))
    given = inputs.bind(made.workflow.inputs, {})
    return engine.run(made, given, store=store, options=engine.Options(run_id=RUN, **options))


def called(store: Memory) -> list[str]:
    return [run.run_id for run in reversed(store.page(limit=50)[0]) if run.started_by.startswith("run ")]


def problems(path: Path) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in workflow.check_file(str(path))[1]]


TOLD = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1, "description": "Its number."},
        "mood": {"enum": ["good", "bad"], "default": "good"},
    },
    "additionalProperties": False,
    "required": ["n"],
}


def test_a_use_is_a_run_of_its_own_and_its_outputs_are_the_answer(
    script: Install, tmp_path: Path, store: Memory
) -> None:
    service = script(wants(("look_up", {"n": 4}), ("look_up", {"n": 5})), says("8 and 10"))
    result = start(write(tmp_path), store)
    assert result.status == "completed", result.error
    (tool,) = service.asked[0].tools
    assert (tool.name, tool.description, tool.schema) == ("look_up", "Finds an order.", TOLD)
    assert [(turn.text, turn.failed) for turn in service.turns] == [('{"twice": 8}', False), ('{"twice": 10}', False)]
    runs = [store.get(run_id) for run_id in called(store)]
    assert [(run.workflow, run.status, run.outputs) for run in runs] == [
        ("look up", Status.COMPLETED, '{"twice":8}'),
        ("look up", Status.COMPLETED, '{"twice":10}'),
    ]
    calls = result.outputs["got"]["calls"]
    assert [call["run_id"] for call in calls] == [run.run_id for run in runs]
    assert [call["workflow"] for call in calls] == ["./child.yaml", "./child.yaml"]
    assert store.get(RUN).step_executions == 5


def test_a_plan_from_a_store_tells_the_model_the_same(script: Install, tmp_path: Path, store: Memory) -> None:
    made = plan.load(str(write(tmp_path)))
    again = plan.restore(made.canonical)
    assert again.digest == made.digest
    service = script(wants(("look_up", {"n": 1})), says("done"))
    assert start(again, store).status == "completed"
    assert service.asked[0].tools[0].schema == TOLD
    assert service.asked[0].tools[0].description == "Finds an order."


def test_what_the_model_is_told_is_part_of_the_digest(tmp_path: Path) -> None:
    before = plan.load(str(write(tmp_path))).digest
    assert plan.load(str(write(tmp_path, CHILD.replace("Its number.", "Its key.")))).digest != before
    assert plan.load(str(write(tmp_path, CHILD.replace("* 2", "* 3")))).digest != before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 4, "mood": "bad"}, "failed: step 'check': a bad mood"),
        ({"n": 0}, "the arguments do not fit: /n: "),
        ({}, "lacks the key `n`"),
        ({"n": 4, "m": 1}, "has the unknown key `m`"),
    ],
)
def test_what_goes_wrong_is_an_answer_for_the_model(
    script: Install, tmp_path: Path, store: Memory, arguments: dict[str, Any], said: str
) -> None:
    service = script(wants(("look_up", arguments)), says("I see."))
    assert start(write(tmp_path), store).status == "completed"
    (turn,) = service.turns
    assert turn.failed
    assert said in turn.text


def test_a_tool_that_would_wait_long_is_cancelled_and_said_to_be_none(
    script: Install, tmp_path: Path, store: Memory
) -> None:
    service = script(wants(("look_up", {"n": 4})), says("I see."))
    child = CHILD.replace("  - {id: double", "  - {id: pause, delay: 2h}\n  - {id: double")
    assert start(write(tmp_path, child), store).status == "completed"
    assert "sleeps for longer than anybody waits here" in service.turns[0].text
    assert [store.get(run_id).status for run_id in called(store)] == [Status.CANCELLED]


def test_a_name_and_a_description_may_be_given_by_the_caller(script: Install, tmp_path: Path, store: Memory) -> None:
    service = script(says("done"))
    entry = "- {workflow: ./child.yaml, name: find, description: Finds it.}"
    start(write(tmp_path, parent=PARENT.replace("- workflow: ./child.yaml", entry)), store)
    (tool,) = service.asked[0].tools
    assert (tool.name, tool.description) == ("find", "Finds it.")


def test_what_a_tool_uses_counts_and_is_stopped_by_the_limits_of_its_caller(
    script: Install, tmp_path: Path, store: Memory
) -> None:
    child = CHILD.replace("  - {id: double", '  - {id: think, ai: {model: "openai:two", prompt: Hm.}}\n  - {id: double')
    service = script(wants(("look_up", {"n": 4})), says("hm"), says("never"))
    parent = PARENT.replace("steps:", "limits: {max_tokens: 30}\nsteps:", 1)
    result = start(write(tmp_path, child, parent), store)
    assert result.error is not None
    assert (result.status, result.error["type"]) == ("failed", "limit")
    assert len(service.asked) == 2
    assert store.get(RUN).tokens == 30
    assert store.get(RUN).cost_usd == 0.5


def test_the_permits_of_the_caller_bind_the_tool(script: Install, tmp_path: Path, store: Memory) -> None:
    child = CHILD.replace("  - {id: double", "  - {id: list, shell: ls}\n  - {id: double")
    path = write(tmp_path, child, PARENT.replace("steps:", "permits: {}\nsteps:", 1))
    assert problems(path) == [("TRM386", "scripts are not permitted")]


def test_it_may_be_repeated_if_all_that_it_does_may_be(tmp_path: Path) -> None:
    assert plan.load(str(write(tmp_path))).nodes["ask"].replay is Replay.REPLAYABLE
    child = CHILD.replace("  - {id: double", "  - {id: list, shell: ls}\n  - {id: double")
    made = plan.load(str(write(tmp_path, child)))
    assert made.nodes["ask"].replay is Replay.NON_REPLAYABLE
    assert made.spawns


@pytest.mark.parametrize(
    ("child", "entries", "found"),
    [
        (CHILD, "[{workflow: ./parent.yaml}]", [("TRM315", "`./parent.yaml` would call itself")]),
        (CHILD, "[{workflow: ./chold.yaml}]", [("TRM315", "cannot read the called workflow")]),
        (
            CHILD.replace("description: Finds an order.\n", ""),
            "[{workflow: ./child.yaml}]",
            [("TRM253", "nothing tells")],
        ),
        (
            CHILD.replace("  - {id: double", "  - {id: person, gate: {ask: Yes?}}\n  - {id: double"),
            "[{workflow: ./child.yaml}]",
            [("TRM254", "asks people (step `person`)")],
        ),
        (CHILD, "[{workflow: ./child.yaml}, {workflow: ./child.yaml}]", [("TRM251", "two tools `look_up`")]),
        (CHILD, "[{workflow: ./child.yaml, tools: [a]}]", [("TRM250", "`tools` means nothing to a workflow")]),
        (CHILD, "[{workflow: ./child.yaml, mcp: a, tools: [a]}]", [("TRM250", "this one has both")]),
        (CHILD, "[{name: x}]", [("TRM250", "this one has neither")]),
        (CHILD, "[{mcp: a}]", [("TRM252", "it is not said which tools")]),
        (CHILD, "[{mcp: a, tools: ['*', b]}]", [("TRM252", "stands for every tool")]),
        (CHILD, "[{mcp: a, tools: [b], name: x}]", [("TRM250", "`name` means nothing to an MCP server")]),
        (CHILD, "[{mcp: 'a b', tools: [b]}]", [("TRM336", "is no name of a server")]),
        (CHILD, "[{mcp: {url: 'ftp://x'}, tools: [b]}]", [("TRM334", "the scheme `ftp` is never requested")]),
        (CHILD, "[{mcp: a, tools: [b]}, {mcp: c, tools: [b]}]", [("TRM251", "two tools `b`")]),
        (CHILD, "[{mcp: a, tools: [b]}, {mcp: c, tools: [b], prefix: c_}]", []),
    ],
)
def test_what_is_wrong_with_tools_is_said_before_the_run(
    tmp_path: Path, child: str, entries: str, found: list[tuple[str, str]]
) -> None:
    parent = PARENT.replace("      tools:\n        - workflow: ./child.yaml", f"      tools: {entries}")
    seen = problems(write(tmp_path, child, parent))
    assert len(seen) == len(found)
    for (code, message), (wanted, said) in zip(seen, found, strict=True):
        assert code == wanted
        assert said in message


def test_a_number_of_calls_without_tools_means_nothing(tmp_path: Path) -> None:
    parent = PARENT.replace("      tools:\n        - workflow: ./child.yaml", "      max_tool_calls: 3")
    assert [code for code, _ in problems(write(tmp_path, parent=parent))] == ["TRM250"]


def test_the_built_in_model_uses_every_tool_once_or_as_the_prompt_says(tmp_path: Path, store: Memory) -> None:
    parent = PARENT.replace("openai:one", "demo:tools")
    result = start(write(tmp_path, parent=parent), store)
    assert [call["arguments"] for call in result.outputs["got"]["calls"]] == [{"n": 1, "mood": "good"}]
    assert result.outputs["got"]["text"] == '{"twice": 2}'
    lines = 'prompt: |\n        Go on:\n        use look_up {"n": 3}\n        use look_up {"n": 5}'
    other = Memory()
    result = start(write(tmp_path, parent=parent.replace("prompt: Go.", lines)), other)
    assert [call["arguments"]["n"] for call in result.outputs["got"]["calls"]] == [3, 5]
    assert result.outputs["got"]["text"] == '{"twice": 6}\n{"twice": 10}'


def test_the_built_in_model_answers_a_schema_with_what_the_last_tool_gave(tmp_path: Path, store: Memory) -> None:
    schema = "schema: {type: object, required: [twice], properties: {twice: {type: integer}}}"
    parent = PARENT.replace("openai:one", "demo:tools").replace("prompt: Go.", f"prompt: Go.\n      {schema}")
    assert start(write(tmp_path, parent=parent), store).outputs["got"]["value"] == {"twice": 2}


def test_a_test_stubs_the_whole_step(tmp_path: Path) -> None:
    path = write(tmp_path)
    ran = WorkflowTest(path, stubs={"ask": {"result": {"text": "eight", "calls": [{"tool": "look_up"}]}}}).run()
    assert ran.status == "completed"
    assert ran.outputs["got"]["text"] == "eight"
    (call,) = ran.calls
    assert call.given["tools"] == [{"workflow": "./child.yaml"}]
    json.dumps(call.given)


def test_a_test_needs_a_stub_though_the_model_is_built_in(tmp_path: Path) -> None:
    path = write(tmp_path, parent=PARENT.replace("openai:one", "demo:tools"))
    refused = WorkflowTest(path).run()
    assert refused.problem is not None
    assert refused.problem.code == "TRM772"
    ran = WorkflowTest(path, allow=["ask"]).run()
    assert ran.outputs["got"]["text"] == '{"twice": 2}'


SLOW = CHILD.replace("  - {id: double", "  - {id: wait, shell: test -e go || sleep 600}\n  - {id: double")


@pytest.mark.parametrize("looped", [False, True])
def test_a_tool_that_is_stopped_with_its_step_is_cancelled_and_a_resume_begins_anew(
    tmp_path: Path, store: Memory, looped: bool
) -> None:
    more = "replay: replayable" + ("\n    timeout: 60s" if looped else "")
    parent = PARENT.replace("openai:one", "demo:tools").replace("    output:", f"    {more}\n    output:")
    path = write(tmp_path, SLOW, parent)
    stop = Interrupt()
    timer = threading.Timer(1.0, lambda: stop.set("signal"))
    timer.start()
    assert start(path, store, interrupt=stop, cwd=str(tmp_path)).status == "interrupted"
    timer.join()
    (first,) = called(store)
    assert store.get(first).status is Status.CANCELLED
    (tmp_path / "go").touch()
    result = engine.resume(RUN, store=store, options=engine.Options(cwd=str(tmp_path)))
    assert result.status == "completed", result.error
    assert [store.get(run_id).status for run_id in called(store)] == [Status.CANCELLED, Status.COMPLETED]


def test_what_a_crash_has_left_is_cancelled_by_the_next_use(script: Install, tmp_path: Path, store: Memory) -> None:
    class Crash(BaseException):
        pass

    script(wants(("look_up", {"n": 4})), Crash())
    path = write(tmp_path)
    with pytest.raises(Crash):
        start(path, store)
    service = script(wants(("look_up", {"n": 5})), says("done"))
    result = engine.resume(RUN, store=store)
    assert result.status == "completed", result.error
    assert service.turns[0].text == '{"twice": 10}'
    assert [store.get(run_id).outputs for run_id in called(store)] == ['{"twice":8}', '{"twice":10}']
