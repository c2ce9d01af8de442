"""The table of known traps: complete, and true about where its tests are."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS = re.findall(r"^\| ([A-P]\d\d) \| ([^|]+) \| ([^|]+) \|$", (HERE / "README.md").read_text(), re.MULTILINE)
NAMED = {name for _, _, where in ROWS for name in re.findall(r"`(tests/\S+?::\w+)`", where)}


def test_every_case_has_a_row_with_tests_or_a_reason() -> None:
    ids = [id for id, _, _ in ROWS]
    assert len(ids) == len(set(ids)) == 82
    assert ids == sorted(ids)
    for id, kind, where in ROWS:
        assert kind.strip(), id
        assert "::" in where or "does not apply: " in where, id


def test_every_test_that_is_named_exists() -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in {name.partition("::")[0] for name in NAMED}}
    for name in sorted(NAMED):
        file, _, function = name.partition("::")
        assert re.search(rf"^\s*(async )?def {function}\(", texts[file], re.MULTILINE), name


def test_every_test_here_is_named() -> None:
    here = {
        f"tests/cases/{path.name}::{function}"
        for path in HERE.glob("test_*.py")
        if path != Path(__file__)
        for function in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert here - NAMED == set()
