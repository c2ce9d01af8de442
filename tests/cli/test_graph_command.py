"""`tramai graph`: where a run stands at each step, and a picture that is nothing but a picture."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import ROOT, document, write
from tests.test_graph import HOSTILE, TEXT

Call = Callable[..., Result]
RUN = """\
tramai: 1
name: drawn
steps:
  - id: each
    foreach: {items: [1, 0, 2], as: n, do: [{id: divide, local: "${{ 1 / n }}"}]}
  - {id: never, local: 1}
  - {id: no, when: "${{ 1 > 2 }}", local: 1}
"""
SVG = "{http://www.w3.org/2000/svg}"


def test_a_tree_of_a_run_says_where_each_step_stands(tramai: Call) -> None:
    assert tramai("run", write("drawn.yaml", RUN)).exit_code == 1
    lines = tramai("graph", "@last").stdout.splitlines()
    assert lines[1:] == [
        "├─ each   foreach  ✗ failed",
        "│  └─ do:",
        "│     └─ divide  local  ✗ failed, 1 of 2",
        "├─ never  local    · pending",
        "└─ no     local    · pending   when ${{ 1 > 2 }}",
    ]
    nodes = document(tramai("graph", "@last", "--json"))["nodes"]
    assert {node["id"]: node["status"] for node in nodes} == {
        "each": "failed", "divide": "failed", "never": "pending", "no": "pending",
    }  # fmt: skip


def test_of_a_file_it_says_nothing_of_the_kind(tramai: Call) -> None:
    write("drawn.yaml", RUN)
    assert "pending" not in tramai("graph", "drawn.yaml").stdout
    assert "classDef" not in tramai("graph", "drawn.yaml", "--format", "mermaid").stdout
    assert "status" not in document(tramai("graph", "drawn.yaml", "--json"))["nodes"][0]


def test_mermaid_and_graphviz_are_coloured(tramai: Call) -> None:
    tramai("run", write("drawn.yaml", RUN))
    drawn = tramai("graph", "@last", "--format", "mermaid").stdout
    assert "    class s_each,s_divide failed\n" in drawn
    assert "    class s_never,s_no pending\n" in drawn
    drawn = tramai("graph", "@last", "--format", "dot").stdout
    assert drawn.endswith("}\n")
    assert drawn.count("{") == drawn.count("}") == 1
    assert '"each" [style=filled' in drawn


def svg(result: Result) -> ET.Element:
    """The picture, which is one document of SVG with nothing alive in it."""
    assert result.exit_code == 0
    root = ET.fromstring(result.stdout)
    allowed = {"svg", "title", "defs", "marker", "path", "rect", "g", "text"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or name.endswith("href")}
    return root


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_a_picture_has_every_step_and_its_state(tramai: Call) -> None:
    tramai("run", write("drawn.yaml", RUN))
    said = texts(svg(tramai("graph", "@last", "--format", "svg")))
    assert said[0] == "drawn  version 1"
    for text in ("each  foreach", "divide  local", "failed, 1 of 2", "never  local", "pending", "do"):
        assert text in said


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "workflows").glob("*.yaml")))
def test_every_example_can_be_drawn_and_nothing_stands_outside(tramai: Call, name: str) -> None:
    if ".tramai-test." in name:
        pytest.skip("no workflow")
    root = svg(tramai("graph", str(ROOT / "workflows" / name), "--format", "svg"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    within(root, 0.0, 0.0, width, height)


def within(element: ET.Element, x: float, y: float, width: float, height: float) -> None:
    """Every box inside the picture, wherever its groups have moved it."""
    moved = re.fullmatch(r"translate\((\S+) (\S+)\)", element.attrib.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    if element.tag == f"{SVG}rect" and element.attrib["width"] != "100%":
        assert -0.5 <= x <= x + float(element.attrib["width"]) <= width + 0.5
        assert -0.5 <= y <= y + float(element.attrib["height"]) <= height + 0.5
    for inner in element:
        within(inner, x, y, width, height)


def test_text_of_a_file_is_text_in_a_picture(tramai: Call) -> None:
    result = tramai("graph", write("hostile.yaml", HOSTILE), "--format", "svg")
    said = texts(svg(result))
    assert any("<img src=x onerror=alert(1)>" in text for text in said)
    assert "\x1b" not in result.stdout
    assert "<img" not in result.stdout


def test_ids_are_never_cut_and_long_conditions_are(tramai: Call) -> None:
    name = "a" * 90
    text = f"tramai: 1\nname: long\nsteps:\n  - {{id: {name}, when: '${{{{ 1 + {'1 + ' * 60}1 > 2 }}}}', local: 1}}\n"
    said = texts(svg(tramai("graph", write("long.yaml", text), "--format", "svg")))
    assert f"{name}  local" in said
    assert max(len(text) for text in said if text.startswith("when")) <= 70


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="librsvg is not installed")
def test_a_renderer_reads_the_picture(tramai: Call) -> None:
    Path("drawn.svg").write_text(tramai("graph", write("t.yaml", TEXT), "--format", "svg").stdout, encoding="utf-8")
    subprocess.run(["rsvg-convert", "drawn.svg", "-o", "drawn.png"], check=True, timeout=60)
    assert Path("drawn.png").stat().st_size > 1000
