"""Markup in what is shown, and paths in names: no server here, but pages, reports, terminals, and files by name."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import HELLO
from tramai.engine import Options
from tramai.errors import TramaiError
from tramai.stores import open_store

from .support import call, save, text_of

Call = Callable[..., Result]
MARKUP = "<img src=x onerror=alert(1)> http://a/</a><b>x</b> [x](javascript:alert(1)) |`| \x1b[31m\x1b]0;t\x07 &lt;"

# P01


def test_markup_of_others_is_text_in_pages_reports_and_terminals(
    tramai: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    Path("markup.txt").write_text(MARKUP, encoding="utf-8")
    file = save(
        """\
- {id: says, shell: "cat markup.txt; cat markup.txt >&2"}
- {id: stops, gate: {check: "${{ false }}", reason: "${{ steps.says.output.stdout }}"}}
""",
        name="<b>case.yaml",
    )
    reports = ["--report", "md=report.md", "--report", "junit=report.xml", "--report", "json=report.json"]
    run = tramai("run", file, *reports)
    assert run.exit_code == 10
    for text in (page.read_text(encoding="utf-8"), Path("report.md").read_text(encoding="utf-8")):
        assert "\x1b" not in text
        # What stands in code, in fences or between backticks, is text for every reader of Markdown.
        read = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", re.sub(r"^(`{3,})[^`]*\n.*?^\1", "", text, flags=re.M | re.S))
        assert not re.search(r"<(img|b)\b", read)
        assert "](javascript:" not in read
    assert "onerror" in "".join(ET.parse("report.xml").getroot().itertext())
    assert json.loads(Path("report.json").read_text(encoding="utf-8"))
    for words in (("show", "@last"), ("list",), ("logs", "@last"), ("status",)):
        shown = text_of(*words)
        assert "\x1b" not in shown, words
        assert "\x07" not in shown, words
    assert "onerror" in text_of("logs", "@last")


# P02

PATHS = [
    "../../outside",
    "..%2f..%2fx",
    "..\\..\\x",
    "/etc/passwd",
    ".locks",
    "a/../../outside",
    "outside\0x",
    "..",
    "-",
]


def files() -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in Path("..").rglob("*") if path.is_file() and "cache" not in path.parts
    }


@pytest.mark.parametrize("kind", ["sqlite:here/runs.db", "file:here/runs", "markdown:here/runs"])
def test_a_path_in_the_place_of_a_run_leads_nowhere(kind: str, tmp_path: Path) -> None:
    Path("hello.yaml").write_text(HELLO, encoding="utf-8")
    assert call("run", "hello.yaml", "--store", kind).status == 0
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "outside" / "run.json").write_text("{}", encoding="utf-8")
    (tmp_path / "outside.md").write_text("# outside\n", encoding="utf-8")
    os.symlink(tmp_path / "outside", "here/link")
    before = files()
    for path in [*PATHS, "../link", str(tmp_path / "outside")]:
        for words in (["show"], ["logs"], ["resume"], ["cancel", "-y"], ["rerun"], ["diff"], ["watch"]):
            ended = text_of(*words, "--store", kind, "--no-input", "--", path)
            assert re.search(r"TRM(704|701|101|118)", ended), (words, path, ended)
        assert {name: text for name, text in files().items() if before.get(name) != text} == {}, path
        assert set(files()) == set(before), path


@pytest.mark.parametrize("kind", ["sqlite:here/runs.db", "file:here/runs", "markdown:here/runs", "memory:"])
@pytest.mark.parametrize(
    "run_id", ["../../outside", "/tmp/outside", "a/b", "..", ".", "a\0b", "é🚀", "with space", "x" * 300]
)
def test_an_id_of_your_own_is_kept_as_it_is_or_refused_and_never_a_path(kind: str, run_id: str, tmp_path: Path) -> None:
    import tramai as api

    Path("hello.yaml").write_text(HELLO, encoding="utf-8")
    store = open_store(kind)
    before = set(files())
    try:
        api.run(api.load("hello.yaml"), store=store, options=Options(run_id=run_id))
        assert store.get(run_id).run_id == run_id
        assert [run.run_id for run in store.page(limit=5)[0]] == [run_id]
    except TramaiError:
        assert store.page(limit=5)[0] == ()
    finally:
        store.close()
    made = set(files()) - before
    assert all(name.startswith("../work/here/") for name in made), made


@pytest.mark.parametrize("path", PATHS)
def test_a_path_in_the_place_of_a_word_leads_nowhere(path: str) -> None:
    for words in (["explain"], ["schema"], ["help"], ["completion"]):
        ended = text_of(*words, "--", path)
        assert "root:" not in ended
        assert re.search(r"error\[TRM70[14]\]", ended), (words, ended)
