"""One mistake a file: `mistakes/` holds the file, its first comment lines what must be said about it.

    # error[CODE] LINE:COLUMN-END message, or warning[CODE] …
    #   LINE:COLUMN message of the other place
    #   = hint

END is a column of the same line, or LINE:COLUMN.
"""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tramai import document, workflow
from tramai.errors import Problem

FOLDER = Path(__file__).parent / "mistakes"
FILES = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", FILES)
def test_a_mistake_is_said_once_in_its_place(name: str) -> None:
    content = (FOLDER / name).read_bytes()
    found, problems = workflow.examine(document.parse(content, file=name))
    problems = (*problems, *(workflow.advise(found) if found is not None else ()))
    lines = content.decode().split("\n")
    expected = list(takewhile(lambda line: line.startswith(("# error[", "# warning[", "#   ")), lines))
    said = [line.replace("\n", "\\n") for problem in problems for line in spell(problem)]
    assert said == expected
    assert len(problems) == 1
    assert (found is None) == (problems[0].severity == "error")


def test_there_are_enough_of_them_in_both_formats() -> None:
    assert len(FILES) >= 330
    assert sum(name.endswith(".toml") for name in FILES) >= 30


def spell(problem: Problem) -> Iterator[str]:
    """The comment lines for a problem."""
    at = problem.position
    assert at is not None
    end = f"{at.end_column}" if at.end_line == at.line else f"{at.end_line}:{at.end_column}"
    yield f"# {problem.severity}[{problem.code}] {at.line}:{at.column}-{end} {problem.message}"
    for other in problem.related:
        yield f"#   {other.position.line}:{other.position.column} {other.message}"
    if problem.hint:
        yield f"#   = {problem.hint}"
