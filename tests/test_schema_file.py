"""A JSON Schema in a file of its own is checked, kept and digested like one that is written in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tramai import engine, plan, plancache, workflow
from tramai.stores.memory import Memory

RISK = '{"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}}'
PLACE = "{$ref: schemas/risk.json}"
FLOW = f"""\
tramai: 1
name: judge
state:
  last: {{initial: {{risk: low}}, schema: {PLACE}}}
steps:
  - id: judge
    ai: {{model: "demo:echo", prompt: Judge it., schema: {PLACE}}}
    save: {{last: "${{{{ result.value }}}}"}}
  - id: all
    local: ${{{{ [steps.judge.output] }}}}
    schema: {{type: array, items: {PLACE}}}
outputs:
  risk: ${{{{ steps.judge.output.risk }}}}
"""


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "risk.json").write_text(RISK, encoding="utf-8")
    file = tmp_path / "judge.yaml"
    file.write_text(FLOW, encoding="utf-8")
    return file


def written(flow: Path, text: str, name: str = "risk.json") -> None:
    (flow.parent / "schemas" / name).write_text(text, encoding="utf-8")


def problems(flow: Path) -> list[tuple[str, int, str]]:
    """Code, line and message of each problem."""
    _, found = workflow.check_file(str(flow))
    return [(one.code, one.position.line if one.position else 0, one.message) for one in found]


def test_it_judges_what_is_given_and_what_is_said_of_it(flow: Path) -> None:
    result = engine.run(plan.load(str(flow)), {}, store=Memory())
    assert result.error is None
    assert result.outputs == {"risk": "low"}
    flow.write_text(FLOW.replace("output.risk", "output.rsk"))
    assert [code for code, _, _ in problems(flow)] == ["TRM209"]


def test_the_digest_is_that_of_the_schema_written_in_place(flow: Path) -> None:
    inside = flow.parent / "inside.yaml"
    inside.write_text(FLOW.replace(PLACE, RISK))
    assert plan.load(str(flow)).digest == plan.load(str(inside)).digest
    written(flow, RISK.replace('"high"', '"middle", "high"'))
    assert plan.load(str(flow)).digest != plan.load(str(inside)).digest


def test_a_run_needs_the_file_no_more_once_it_has_begun(flow: Path) -> None:
    made = plan.load(str(flow))
    (flow.parent / "schemas" / "risk.json").unlink()
    again = plan.restore(made.canonical)
    assert again.digest == made.digest
    assert engine.run(again, {}, store=Memory()).outputs == {"risk": "low"}


def test_a_plan_that_is_kept_is_not_used_after_the_file_has_changed(
    flow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = plan.load(str(flow))
    plancache.save(str(flow), made)
    kept = plancache.load(str(flow))
    assert kept is not None
    assert kept.digest == made.digest
    written(flow, RISK.replace('"low", ', '"none", "low", '))
    assert plancache.load(str(flow)) is None


@pytest.mark.parametrize("name", ["risk.yaml", "risk.toml", "risk.schema.json"])
def test_it_may_be_in_any_of_the_formats(flow: Path, name: str) -> None:
    toml = 'type = "object"\nrequired = ["risk"]\n[properties.risk]\nenum = ["low", "high"]\n'
    written(flow, toml if name.endswith("toml") else RISK, name)
    before = plan.load(str(flow)).digest
    flow.write_text(FLOW.replace("risk.json", name))
    assert plan.load(str(flow)).digest == before


def test_a_whole_schema_may_refer_to_places_of_its_own(flow: Path) -> None:
    text = '{"$ref": "#/$defs/risk", "$defs": {"risk": ' + RISK + "}}"
    written(flow, text, "own.json")
    flow.write_text(
        FLOW.replace("{type: array, items: {$ref: schemas/risk.json}}", "{}").replace("risk.json", "own.json")
    )
    assert engine.run(plan.load(str(flow)), {}, store=Memory()).outputs == {"risk": "low"}
    flow.write_text(FLOW.replace("items: {$ref: schemas/risk.json}", "items: {$ref: schemas/own.json}"))
    ((code, line, message),) = problems(flow)
    assert (code, line) == ("TRM369", 11)
    assert "refers to places of its own" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ('{"type": objec"}', "it is not JSON"),
        ('{"type": "objec"}', "`objec` is no type"),
        ('{"type": "object", "type": "array"}', "duplicate key"),
        ('["a"]', "mapping"),
        ('{"items": {"$ref": "other.json"}}', "it refers to another file"),
        ("[" * 100_000, "nested too deep"),
        ('{"description": "' + "x" * (1 << 20) + '"}', "larger than 1 MiB"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_once(flow: Path, text: str, said: str) -> None:
    written(flow, text)
    ((code, line, message),) = problems(flow)
    assert (code, line) == ("TRM369", 4)
    assert said in message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("schemas/rsk.json", "there is no such file"),
        ("schemas", "is a directory"),
        ('"https://example.com/risk.json"', "nothing is fetched"),
        ('"schemas/risk.json#/$defs/a"', "a place inside another file"),
        ('"${{ run.id }}.json"', "takes no expression"),
    ],
)
def test_a_reference_that_leads_to_no_file_is_refused(flow: Path, name: str, said: str) -> None:
    flow.write_text(FLOW.replace("schemas/risk.json", name))
    ((code, _, message),) = problems(flow)
    assert code == "TRM369"
    assert said in message


def test_nothing_stands_beside_a_reference_to_a_file(flow: Path) -> None:
    flow.write_text(FLOW.replace("items: {$ref: schemas/risk.json}", "items: {$ref: schemas/risk.json, title: a}"))
    ((code, line, message),) = problems(flow)
    assert (code, line) == ("TRM369", 11)
    assert "nothing else can stand beside it" in message


@pytest.mark.parametrize("name", ["default", "enum", "const", "examples", "risk"])
def test_a_property_may_have_the_name_of_a_keyword(flow: Path, name: str) -> None:
    given = f"{{schema: {{type: object, properties: {{{name}: {PLACE}}}}}}}"
    flow.write_text(
        f"tramai: 1\nname: w\nsteps: [{{id: a, local: {{value: {{{name}: {{risk: high}}}}}}, {given[1:-1]}}}]\n"
    )
    assert problems(flow) == []
    assert engine.run(plan.load(str(flow)), {}, store=Memory()).status == "completed"
    flow.write_text(flow.read_text().replace("high", "none"))
    assert engine.run(plan.load(str(flow)), {}, store=Memory()).status == "failed"


def test_a_name_that_no_file_can_have_is_refused_where_it_stands(flow: Path) -> None:
    steps = [
        r'{id: a, local: 1, schema: {$ref: "a\0b.json"}}',
        r'{id: b, call: "a\0b.yaml"}',
        r'{id: c, ai: {model: "demo:echo", prompt_file: "a\0b.md"}}',
    ]
    flow.write_text("tramai: 1\nname: w\nsteps:\n" + "".join(f"  - {step}\n" for step in steps))
    found = problems(flow)
    assert [(code, line) for code, line, _ in found] == [("TRM369", 4), ("TRM315", 5), ("TRM318", 6)]
    assert all("no file can have this name" in message for _, _, message in found)


def test_what_is_taken_from_files_is_bounded(flow: Path) -> None:
    written(flow, '{"enum": ["' + "x" * 900_000 + '"]}')
    items = ", ".join([PLACE] * 20)
    flow.write_text(f"tramai: 1\nname: w\nsteps: [{{id: a, local: 1, schema: {{anyOf: [{items}]}}}}]\n")
    found = [(code, message) for code, _, message in problems(flow) if code == "TRM369"]
    assert len(found) == 2
    assert all("comes to more than 16 MiB" in message for _, message in found)
