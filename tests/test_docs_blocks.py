"""Every fenced block of the documentation is held by something: run, checked, or named here with the reason why not."""

from __future__ import annotations

import ast
import configparser
import hashlib
import importlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from tests import test_docs
from tests.test_docs import PAGES, ROOT, blocks, name
from tramai.cli import _settings

NOT_RUN = {
    ("docs/architecture.md", ""): "a drawing",
    ("docs/reference/cli.md", ""): "options, as `--help` lists them; the house test compares them",
    ("docs/reference/stores/file.md", ""): "the beginning of a journal, cut",
    ("docs/reference/expressions.md", "jinja"): "a prompt; tests/test_filters.py evaluates the page",
}
"""Blocks without a language that is known, by page."""
LANGUAGES = {
    "yaml": "tests/test_docs.py",
    "yaml with a plugin": "tests/test_written_plugin.py",
    "toml": "tests/test_docs.py",
    "console checked": "tests/test_docs.py",
    "json value": "tests/test_markdown_store.py",
}
"""Languages that are held elsewhere; the others have a test here."""
RUN_BY = {
    "CONTRIBUTING.md": "tests/test_docs_blocks.py",
    "docs/reference/python-api.md": "tests/test_docs.py",
    "docs/reference/events.md": "tests/engine/test_signals.py",
    "docs/how-to/embed-in-a-service.md": "tests/test_embedding.py",
    "docs/how-to/use-python.md": "tests/test_docs_blocks.py",
    "docs/how-to/test-workflows.md": "tests/test_docs_blocks.py",
    "docs/how-to/write-a-plugin.md": "tests/test_written_plugin.py",
    "docs/how-to/write-a-store.md": "tests/test_written_store.py",
}
"""Which test runs the Python of a page."""
PROGRAMS = re.compile(
    r"tramai|python3?|pip|pytest|git|npm|docker|pipx|uvx?|shiv|curl|cat|cd|export|echo|mkdir|cp|sleep|kill|sort|wait"
    r"|for|do|done|until|if|then|fi|pg_dump|pg_restore|createdb|sqlite3|systemctl|\.venv/bin/(python|tramai)|\.ci/run"
)
"""What lines in blocks for a shell begin with."""


def of(*languages: str) -> list[Any]:
    return [
        pytest.param(name(path), body, id=f"{name(path)}:{line}")
        for path in PAGES
        for language, line, body in blocks(path)
        if language in languages
    ]


def test_no_block_is_held_by_nothing() -> None:
    here = {"console", "python", "json", "yml", "sh", "ini", "text"}
    loose = [
        f"{name(path)}:{line} {language!r}"
        for path in PAGES
        for language, line, _ in blocks(path)
        if language not in here and language not in LANGUAGES and (name(path), language) not in NOT_RUN
    ]
    assert loose == [], "give it a language that a test reads, or a reason in NOT_RUN"
    there = {(name(path), language) for path in PAGES for language, _, _ in blocks(path)}
    assert set(NOT_RUN) - there == set()
    assert all((ROOT / file).is_file() for file in {*LANGUAGES.values(), *RUN_BY.values()})


# Shells.


def commands(body: str) -> Iterator[str]:
    """The lines of a block that are typed, continued ones joined; of a transcript, those after a `$`."""
    lines = re.sub(r" *\\\n\s*", " ", body).splitlines()
    transcript = any(line.startswith("$ ") for line in lines)
    for line in lines:
        if line.startswith("$ ") or (line.strip() and not transcript):
            yield line.removeprefix("$ ")


@pytest.mark.parametrize(("page", "body"), of("console", "sh"))
def test_what_is_typed_is_shell_and_begins_with_a_program(page: str, body: str) -> None:
    typed = list(commands(body))
    script = "\n".join(line.replace("…", "x") for line in typed)
    done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    for line in typed:
        word = re.sub(r"^(\w+=\S+ +)+", "", line.strip()).split()[0]
        assert PROGRAMS.fullmatch(word) or re.match(r"#|\w+=", word), line


@pytest.mark.parametrize(("page", "body"), of("console"))
def test_what_a_console_shows_is_checked_or_is_a_file(page: str, body: str) -> None:
    """Output of a program stands in blocks that are `console checked`; here only `cat` shows something."""
    if not re.search(r"^\$ ", body, re.M):
        return
    for part in re.split(r"^\$ ", re.sub(r" *\\\n\s*", " ", body), flags=re.M)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        if any(shown):
            assert command.startswith("cat "), f"{command}\nits output is not checked: say `console checked`"


@pytest.mark.parametrize(("page", "body"), of("sh", "yml"))
def test_commands_inside_of_other_languages_exist(page: str, body: str) -> None:
    text = re.sub(r" *\\\n\s*", " ", body)
    for match in re.finditer(r"(?:^|run: |script: |- |&& |; |\$\()(tramai [^\n|>&;)]+)", text, re.M):
        test_docs.test_a_command_in_the_docs_exists_with_its_flags(
            re.sub(r'\$\{\{.*?\}\}|\$\w+|"', "x", match[1]).split(" # ")[0]
        )


# Settings and other files.


def settings() -> list[Any]:
    found = []
    for path in PAGES:
        for language, line, body in blocks(path):
            if language == "console" and (shown := re.search(r"^\$ cat tramai\.toml\n((?:(?!\$ ).*\n?)*)", body, re.M)):
                found.append(pytest.param(shown[1], id=f"{name(path)}:{line}"))
            if language == "text" and body.startswith("[http]"):
                found.append(pytest.param(body, id=f"{name(path)}:{line}"))
    return found


@pytest.mark.parametrize("text", settings())
def test_settings_that_are_shown_are_taken(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tramai.toml").write_text(text, encoding="utf-8")
    (tmp_path / ".env").touch()
    monkeypatch.chdir(tmp_path)
    taken = _settings.gather({}, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})
    assert any(str(tmp_path / "tramai.toml") in file for file in taken.files)


@pytest.mark.parametrize(("page", "body"), of("text"))
def test_other_toml_can_be_read_and_names_entry_points_that_exist(page: str, body: str) -> None:
    from tramai import kinds

    data = tomllib.loads(body)
    points = data.get("project", {}).get("entry-points", {})
    assert all(point.removeprefix("tramai.") in {*kinds.FAMILIES, "observers"} for point in points)


@pytest.mark.parametrize(("page", "body"), of("yml"))
def test_the_files_of_other_programs_are_yaml(page: str, body: str) -> None:
    assert YAML(typ="safe", pure=True).load(body)


def test_the_hooks_and_inputs_that_are_shown_exist() -> None:
    text = (ROOT / "docs" / "how-to" / "use-in-ci.md").read_text(encoding="utf-8")
    hooks = {
        hook["id"] for hook in YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    }
    assert set(re.findall(r"\{id: ([\w-]+)", text)) == hooks
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
    for language, _, body in blocks(ROOT / "docs" / "how-to" / "use-in-ci.md"):
        if language == "yml" and "uses: tramai/tramai@" in body:
            for job in YAML(typ="safe").load(body)["jobs"].values():
                for step in job["steps"]:
                    if str(step.get("uses", "")).startswith("tramai/"):
                        assert set(step.get("with", {})) <= set(action["inputs"])
            assert set(re.findall(r"steps\.\w+\.outputs\.([\w-]+)", body)) <= set(action["outputs"])


@pytest.mark.parametrize(("page", "body"), of("ini"))
def test_a_unit_starts_a_command_that_exists(page: str, body: str) -> None:
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(body)
    test_docs.test_a_command_in_the_docs_exists_with_its_flags(unit["Service"]["ExecStart"].replace("/usr/bin/", ""))


@pytest.mark.parametrize(("page", "body"), of("json"))
def test_json_is_json_and_a_document_meets_its_schema(page: str, body: str) -> None:
    data = json.loads(body)
    if isinstance(data, dict) and str(data.get("schema", "")).startswith("tramai."):
        kind = data["schema"].removeprefix("tramai.").partition("/")[0]
        schema = json.loads((ROOT / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(data, schema, cls=jsonschema.Draft202012Validator)


# Python.


@pytest.mark.parametrize(("page", "body"), of("python"))
def test_python_compiles_imports_what_exists_and_is_run_by_a_test(page: str, body: str) -> None:
    assert page in RUN_BY, "name the test that runs the Python of this page"
    assert Path(page).name in (ROOT / RUN_BY[page]).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.ImportFrom):
            module = f"tramai.{node.module}" if node.level == 2 else (node.module or "")
            if module.split(".")[0] == "tramai":
                found = importlib.import_module(module)
                assert [
                    one.name for one in node.names if not hasattr(found, one.name) and not submodule(found, one.name)
                ] == []


def submodule(package: Any, word: str) -> bool:
    try:
        importlib.import_module(f"{package.__name__}.{word}")
    except ModuleNotFoundError:
        return False
    return True


def ran(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": f"{folder}:{ROOT}"}
    line = [sys.executable, *words]
    done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shown(page: str, folder: Path) -> None:
    """Write down the files that a page shows."""
    for language, _, body in blocks(ROOT / page):
        if named := re.match(r"# (\S+\.(?:py|yaml|toml))\b[^\n]*\n", body):
            (folder / named[1]).write_text(body, encoding="utf-8")
        elif language == "yaml" and (title := re.search(r"^name: (\w+)$", body, re.M)):
            (folder / f"{title[1]}.yaml").write_text(body, encoding="utf-8")


def test_a_function_of_your_own_is_called(tmp_path: Path) -> None:
    shown("docs/how-to/use-python.md", tmp_path)
    orders = '[{"id": 1, "age": 30}, {"id": 2, "age": 3}]'
    said = ran(tmp_path, "-m", "tramai", "run", "late_orders.yaml", "-i", f"orders={orders}", "--json")
    assert json.loads(said.splitlines()[-1])["outputs"] == {"late": [{"id": 1, "age": 30}]}
    said = ran(tmp_path, "-m", "tramai", "run", "totals.yaml", "--json")
    assert json.loads(said.splitlines()[-1])["outputs"]["report"] == {"open": 1, "sum": 4, "ids": "2"}


def test_a_test_in_python_passes(tmp_path: Path) -> None:
    page = "docs/how-to/test-workflows.md"
    shown(page, tmp_path)
    code = next(body for language, _, body in blocks(ROOT / page) if language == "python")
    (tmp_path / "test_shown.py").write_text(code, encoding="utf-8")
    line = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shown.py"]
    if not any(one.name == "tramai" for one in importlib.metadata.entry_points(group="pytest11")):
        line += ["-p", "tramai.testing.pytest_plugin"]
    assert "1 passed" in ran(tmp_path, *line)


def test_the_step_that_contributors_are_shown_works(tmp_path: Path) -> None:
    """The step of CONTRIBUTING.md, loaded as the file that it would be."""
    code = next(body for language, _, body in blocks(ROOT / "CONTRIBUTING.md") if language == "python")
    shutil.copytree(ROOT / "tramai", tmp_path / "tramai", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tramai" / "steps" / "hash.py").write_text(code, encoding="utf-8")
    steps = "  - {id: one, hash: 'a ${{ 1 + 1 }}'}\noutputs: {is: '${{ steps.one.output }}'}\n"
    (tmp_path / "hash.yaml").write_text(f"tramai: 1\nname: hash\nsteps:\n{steps}", encoding="utf-8")
    (tmp_path / "schemas").mkdir()
    ran(tmp_path, "-m", "tramai.cli._schemas", "schemas")
    said = ran(tmp_path, "-m", "tramai", "run", "hash.yaml", "--json")
    assert json.loads(said.splitlines()[-1])["outputs"] == {"is": hashlib.sha256(b"a 2").hexdigest()}


def test_words_of_a_shell_are_split_as_a_shell_does() -> None:
    assert list(commands("a \\\n  b\n")) == ["a b"]
    assert list(commands("$ a\nsaid\n$ b 'c d'\n")) == ["a", "b 'c d'"]
