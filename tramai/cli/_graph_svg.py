"""A workflow drawn as SVG: boxes from top to bottom, blocks inside the step that holds them, colours for a run.

A picture and nothing else: no script, no link, no font or file from elsewhere; text from a file is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..graph import visible
from ..plan import Plan
from ..step import Block, Node
from ._drawing import Stands, fill
from ._terminal import cells, fit
from ._xml import content

CHARACTER, LINE, PAD, GAP = 7.8, 18, 10, 26
"""Pixels: of a character, a line of text, a margin, and between two steps."""
LONGEST = 60
"""Characters of a condition that are shown; ids are never cut."""


class Piece(NamedTuple):
    """A part of the drawing, whose own corner is at 0, 0."""

    width: float
    height: float
    drawn: str


def svg(plan: Plan, stands: Mapping[str, Stands]) -> str:
    """The drawing. `stands`: where a run stands at each step; empty for a file alone."""
    workflow = plan.workflow
    first, *others = workflow.blocks()
    head = _text([f"{visible(workflow.name)}  version {visible(workflow.version)}"], bold=True)
    pieces = [head, _sequence(first[2], stands)]
    pieces += [_framed([label], [("", block)], stands, dashed=True) for _, label, block in others]
    whole = _below(pieces, arrows=False)
    width, height = whole.width + 2 * PAD, whole.height + 2 * PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="13">\n'
        f"<title>{content(visible(workflow.name))}</title>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{_at(PAD, PAD, whole.drawn)}</svg>\n'
    )


def _sequence(block: Block, stands: Mapping[str, Stands]) -> Piece:
    nodes = [_step(node, stands) for node in block]
    return _below(nodes, arrows=True) if nodes else _text(["nothing"])


def _step(node: Node, stands: Mapping[str, Stands]) -> Piece:
    lines = [f"{node.id}  {node.verb}"]
    if node.when is not None:
        lines.append(f"when {fit(visible(node.when.text), LONGEST)}")
    stand = stands.get(node.id)
    if stand is not None:
        lines.append(stand.words)
    colour = fill(stand.status) if stand is not None else "#f6f8fa"
    blocks = [(label, block) for _, label, block in node.blocks()]
    if blocks:
        return _framed(lines, blocks, stands, colour=colour)
    text = _text(lines)
    box = f'<rect width="{text.width:.1f}" height="{text.height:.1f}" rx="4" fill="{colour}" stroke="#555"/>\n'
    return Piece(text.width, text.height, box + text.drawn)


def _framed(
    lines: Sequence[str],
    blocks: Sequence[tuple[str, Block]],
    stands: Mapping[str, Stands],
    *,
    colour: str = "#f6f8fa",
    dashed: bool = False,
) -> Piece:
    """A step that holds others: what it says above, its blocks side by side below."""
    head = _text(lines)
    inner = [_below([_text([label]), _sequence(block, stands)] if label else [_sequence(block, stands)], arrows=False)
             for label, block in blocks]  # fmt: skip
    row, x = "", float(PAD)
    for piece in inner:
        row += _at(x, head.height, piece.drawn)
        x += piece.width + PAD
    width = max(head.width, x)
    height = head.height + max(piece.height for piece in inner) + PAD
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    box = f'<rect width="{width:.1f}" height="{height:.1f}" rx="4" fill="#fff" stroke="#555"{dash}/>\n'
    band = f'<rect width="{width:.1f}" height="{head.height:.1f}" rx="4" fill="{colour}" stroke="#555"{dash}/>\n'
    return Piece(width, height, box + band + head.drawn + row)


def _below(pieces: Sequence[Piece], *, arrows: bool) -> Piece:
    """Pieces one below the other, in the middle, with arrows between them."""
    width, y, drawn = max(piece.width for piece in pieces), 0.0, ""
    for index, piece in enumerate(pieces):
        if index and arrows:
            drawn += f'<path d="M{width / 2:.1f} {y:.1f}v{GAP}" stroke="#555" fill="none" marker-end="url(#tip)"/>\n'
        y += GAP if index and arrows else (PAD if index else 0)
        drawn += _at((width - piece.width) / 2, y, piece.drawn)
        y += piece.height
    return Piece(width, y, drawn)


def _text(lines: Sequence[str], *, bold: bool = False) -> Piece:
    weight = ' font-weight="bold"' if bold else ""
    drawn = "".join(
        f'<text x="{PAD}" y="{PAD + LINE * number + 9}"{weight} xml:space="preserve">{content(visible(line))}</text>\n'
        for number, line in enumerate(lines)
    )
    widest = max(cells(visible(line)) for line in lines)
    return Piece(widest * CHARACTER + 2 * PAD, len(lines) * LINE + PAD, drawn)


def _at(x: float, y: float, drawn: str) -> str:
    return f'<g transform="translate({x:.1f} {y:.1f})">\n{drawn}</g>\n'
