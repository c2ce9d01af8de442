"""Drawings of a plan: a tree for the terminal, Mermaid, Graphviz and JSON. Text from a file never becomes markup."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping

import msgspec

from .codec import Json
from .plan import Plan
from .step import Block, Control, Node


class Edge(msgspec.Struct, frozen=True):
    """`target` may begin when `source` is over; `label` names the block that is entered."""

    source: str
    target: str
    label: str | None = None


def render(plan: Plan, format: str) -> str:
    """The drawing as text; `format` is one of FORMATS."""
    return FORMATS[format](plan)


def tree(plan: Plan, *, ascii: bool = False, told: Mapping[str, str] | None = None) -> str:
    """Indented lines, a step each, with the blocks of containers between them. `told` is said behind the step."""
    told = told or {}
    strokes = ("|- ", "`- ", "|  ", "   ") if ascii else ("├─ ", "└─ ", "│  ", "   ")
    head = f"{visible(plan.workflow.name)}  version {visible(plan.workflow.version)}"
    first, *others = plan.workflow.blocks()
    lines = [head, *_branches(first[2], "", strokes, told)]
    for _, label, block in others:
        lines += [f"{label}:", *_branches(block, "", strokes, told)]
    return "\n".join(lines) + "\n"


_Strokes = tuple[str, str, str, str]


def _branches(block: Block, indent: str, strokes: _Strokes, told: Mapping[str, str]) -> Iterator[str]:
    width = max((len(node.id) for node in block), default=0)
    verbs = max((len(node.verb) for node in block), default=0) if told else 0
    for index, node in enumerate(block):
        last = index == len(block) - 1
        condition = f"   when {visible(node.when.text)}" if node.when is not None else ""
        line = f"{strokes[1 if last else 0]}{node.id.ljust(width)}  {node.verb.ljust(verbs)}"
        yield f"{indent}{line}{_said(node, told)}{condition}"
        yield from _inside(node, indent + strokes[3 if last else 2], strokes, told)


def _said(node: Node, told: Mapping[str, str]) -> str:
    return f"  {visible(told[node.id])}" if node.id in told else ""


def _inside(node: Node, indent: str, strokes: _Strokes, told: Mapping[str, str]) -> Iterator[str]:
    blocks = _blocks(node)
    for index, (label, block) in enumerate(blocks):
        last = index == len(blocks) - 1
        yield f"{indent}{strokes[1 if last else 0]}{visible(label)}:" + ("" if block.nodes else " nothing")
        yield from _branches(block, indent + strokes[3 if last else 2], strokes, told)


def edges(plan: Plan) -> tuple[Edge, ...]:
    """What may follow what, in order of the file."""
    found: list[Edge] = []
    first, *others = plan.workflow.blocks()
    before = _sequence(first[2], [], None, found)
    ends = list(before)
    for _, label, block in others:
        # What fails enters `catch`, whichever step it is; `finally` comes after everything.
        caught = label == "catch"
        ends += _sequence(block, [node.id for node in first[2]] if caught else ends, label, found)
    return tuple(found)


def _sequence(block: Block, before: list[str], label: str | None, found: list[Edge]) -> list[str]:
    """Add the edges of a block that is entered from `before`; the steps after which it is over."""
    for node in block:
        found.extend(Edge(source, node.id, label) for source in before)
        label = None
        before = _exits(node, found)
    return before


def _exits(node: Node, found: list[Edge]) -> list[str]:
    blocks = _blocks(node)
    exits: list[str] = []
    for label, block in blocks:
        exits.extend(_sequence(block, [node.id], label, found))
    # An `if` without `else` may run nothing.
    if not _decides(node) or not blocks:
        exits.append(node.id)
    return list(dict.fromkeys(exits))


def mermaid(plan: Plan) -> str:
    """A Mermaid flowchart."""
    lines = ["---", f"title: {_spelled(plan.workflow.name)}", "---", "flowchart TD"]
    for node in plan.nodes.values():
        opening, closing = ("{{", "}}") if isinstance(node.step, Control) else ("[", "]")
        lines.append(f'    s_{node.id}{opening}"{_entity(f"{node.id} · {node.verb}")}"{closing}')
    for edge in edges(plan):
        label = f'|"{_entity(edge.label)}"|' if edge.label is not None else ""
        lines.append(f"    s_{edge.source} -->{label} s_{edge.target}")
    return "\n".join(lines) + "\n"


def dot(plan: Plan) -> str:
    """A Graphviz digraph."""
    lines = [f"digraph {_quoted(plan.workflow.name)} {{", "    node [shape=box];"]
    for node in plan.nodes.values():
        shape = ", shape=hexagon" if isinstance(node.step, Control) else ""
        lines.append(f"    {_quoted(node.id)} [label={_quoted(f'{node.id} · {node.verb}')}{shape}];")
    for edge in edges(plan):
        label = f" [label={_quoted(edge.label)}]" if edge.label is not None else ""
        lines.append(f"    {_quoted(edge.source)} -> {_quoted(edge.target)}{label};")
    return "\n".join([*lines, "}"]) + "\n"


def document(plan: Plan) -> dict[str, Json]:
    """The `tramai.graph/1` document."""
    return {
        "schema": "tramai.graph/1",
        "name": plan.workflow.name,
        "version": plan.workflow.version,
        "digest": plan.digest,
        "nodes": [
            one
            for _, label, block in plan.workflow.blocks()
            for one in _nodes(plan, block, None, None if label == "steps" else label)
        ],
        "edges": [{"source": edge.source, "target": edge.target, "label": edge.label} for edge in edges(plan)],
    }


def _nodes(plan: Plan, block: Block, parent: str | None, label: str | None) -> Iterator[dict[str, Json]]:
    for node in block:
        line, column = plan.place(node.id) or (None, None)
        yield {
            "id": node.id,
            "verb": node.verb,
            "parent": parent,
            "block": label,
            "when": node.when.text if node.when is not None else None,
            "digest": plan.step_digests[node.id],
            "line": line,
            "column": column,
        }
        for name, inner in _blocks(node):
            yield from _nodes(plan, inner, node.id, name)


def _blocks(node: Node) -> list[tuple[str, Block]]:
    return [(label, block) for _, label, block in node.blocks()]


def _decides(node: Node) -> bool:
    """Whether one of its blocks runs in any case."""
    labels = [label for at, label, _ in node.blocks() if at[0] != "catch"]
    return bool(labels) and labels != ["then"]


def visible(text: str) -> str:
    """One line without control characters, so that a file cannot steer a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _entity(text: str) -> str:
    # Mermaid reads `#…;` as an entity and backticks in quotes as Markdown.
    safe = html.escape(visible(text).replace("#", "\0"), quote=True).replace("&", "#").replace("\0", "#35;")
    return safe.replace("`", "#96;")


def _spelled(text: str) -> str:
    """A text in YAML; without `##`, by which a CI finds commands in a log."""
    return json.dumps(visible(text)).replace("##", "#\\u0023")


def _quoted(text: str) -> str:
    return '"' + visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("##", "#&#35;") + '"'


FORMATS: dict[str, Callable[[Plan], str]] = {
    "tree": tree,
    "mermaid": mermaid,
    "dot": dot,
    "json": lambda plan: json.dumps(document(plan), indent=2, ensure_ascii=False) + "\n",
}
"""The drawings by the name their users type."""
