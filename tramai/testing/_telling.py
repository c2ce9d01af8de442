"""Problems of tests as plain text: message, place, hint; for pytest, which has a terminal of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import Position, Problem
from ..excerpt import excerpt


def tell(problems: Iterable[Problem], sources: Mapping[str, str]) -> str:
    """All of them. `sources` are texts of files by name; a file that is not among them is read."""
    return "\n\n".join(_one(problem, sources) for problem in problems)


def _one(problem: Problem, sources: Mapping[str, str]) -> str:
    first, *rest = problem.message.split("\n")
    lines = [f"{problem.severity}[{problem.code}]: {first}", *(f"  {line}" for line in rest)]
    if problem.position is not None:
        lines.append(_excerpt(problem.position, sources))
    for related in problem.related:
        lines += [f"note: {related.message}", _excerpt(related.position, sources)]
    if problem.hint:
        lines.append(f"   = help: {problem.hint}")
    return "\n".join(lines)


def _excerpt(position: Position, sources: Mapping[str, str]) -> str:
    text = sources.get(position.file)
    if text is None:
        try:
            with open(position.file, encoding="utf-8-sig", errors="replace", newline="") as file:
                text = file.read(2 << 20)
        except OSError:
            return f"  --> {position.file}:{position.line}:{position.column}"
    return excerpt(text, position)
