"""Drawings of a plan, and that no text in a file can become markup, a command or an escape sequence."""

import json
import shutil
import subprocess

import pytest

from tramai import graph

from .reading import HEAD, planned

TEXT = (
    HEAD
    + """\
steps:
  - {id: one, local: 1}
  - id: choice
    when: ${{ steps.one.output == 1 }}
    branch:
      if: ${{ true }}
      then: [{id: a, local: 1}, {id: b, local: 1}]
  - id: all
    parallel:
      branches:
        left: [{id: c, local: 1}]
        right: [{id: d, local: 1}]
  - {id: end, local: 1}
"""
)
HOSTILE = (
    HEAD.replace("demo", '"<b>\\"];x[`#"')
    + """\
steps:
  - id: choice
    branch:
      select: ${{ run.id }}
      cases:
        '<img src=x onerror=alert(1)>': [{id: a, local: 1}]
        "\\"] --> evil[\\"": [{id: b, local: 1}]
        "\\e[31mred\\n%% comment": [{id: c, local: 1}]
        '#quot; `code`': []
        '\\" ; rm': []
"""
)


def test_a_tree_shows_steps_blocks_and_conditions() -> None:
    assert (
        graph.tree(planned(TEXT))
        == """\
demo  version 1
├─ one     local
├─ choice  branch   when ${{ steps.one.output == 1 }}
│  └─ then:
│     ├─ a  local
│     └─ b  local
├─ all     parallel
│  ├─ left:
│  │  └─ c  local
│  └─ right:
│     └─ d  local
└─ end     local
"""
    )


def test_a_tree_can_be_drawn_without_line_characters() -> None:
    drawn = graph.tree(planned(TEXT), ascii=True)
    assert drawn.isascii()
    assert "|  `- then:" in drawn


def test_edges_say_what_may_follow_what() -> None:
    assert [(edge.source, edge.target, edge.label) for edge in graph.edges(planned(TEXT))] == [
        ("one", "choice", None),
        ("choice", "a", "then"),
        ("a", "b", None),
        ("b", "all", None),
        ("choice", "all", None),
        ("all", "c", "left"),
        ("all", "d", "right"),
        ("c", "end", None),
        ("d", "end", None),
    ]


def test_the_json_document_has_places_and_digests() -> None:
    made = planned(TEXT)
    found = json.loads(graph.render(made, "json"))
    assert found["schema"] == "tramai.graph/1"
    assert found["digest"] == made.digest
    inner = next(node for node in found["nodes"] if node["id"] == "c")
    assert (inner["parent"], inner["block"], inner["verb"]) == ("all", "left", "local")
    assert (inner["line"], inner["column"]) == made.place("c")
    assert inner["digest"] == made.step_digests["c"]


def test_mermaid_has_a_node_for_every_step_and_no_reserved_word() -> None:
    drawn = graph.mermaid(planned(TEXT))
    assert '    s_end["end · local"]' in drawn.split("\n")
    assert '    s_choice -->|"then"| s_a' in drawn.split("\n")


@pytest.mark.parametrize("format", sorted(graph.FORMATS))
def test_text_from_a_file_never_becomes_markup(format: str) -> None:
    drawn = graph.render(planned(HOSTILE), format)
    assert "\x1b" not in drawn
    assert "\n%%" not in drawn
    if format == "mermaid":
        body = drawn.split("---\n")[2]
        assert "<" not in body
        assert "`" not in body
        assert all(line.count('"') in (0, 2) for line in body.split("\n"))
    if format == "json":
        json.loads(drawn)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_drawing() -> None:
    drawn = graph.dot(planned(HOSTILE))
    done = subprocess.run(["dot", "-Tplain"], input=drawn, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_quotes_and_backslashes_are_escaped_for_graphviz() -> None:
    drawn = graph.dot(planned(HOSTILE))
    for line in drawn.split("\n"):
        unescaped = line.replace("\\\\", "").replace('\\"', "")
        assert unescaped.count('"') % 2 == 0


def test_what_is_caught_and_what_comes_last_is_drawn() -> None:
    text = (
        HEAD
        + """\
steps:
  - {id: one, local: 1, catch: [{do: [{id: note, local: 1}]}]}
catch: [{do: [{id: alarm, local: 1}], output: {}}]
finally: [{id: tidy, local: 1}]
"""
    )
    made = planned(text)
    assert graph.tree(made).splitlines()[1:] == [
        "└─ one  local",
        "   └─ catch:",
        "      └─ note  local",
        "catch:",
        "└─ alarm  local",
        "finally:",
        "└─ tidy  local",
    ]
    assert {(edge.source, edge.target, edge.label) for edge in graph.edges(made)} == {
        ("one", "note", "catch"),
        ("one", "alarm", "catch"),
        ("one", "tidy", "finally"),
        ("note", "tidy", "finally"),
        ("alarm", "tidy", "finally"),
    }
    assert [(node["id"], node["block"]) for node in graph.document(made)["nodes"]] == [
        ("one", None),
        ("note", "catch"),
        ("alarm", "catch"),
        ("tidy", "finally"),
    ]
