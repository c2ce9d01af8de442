"""The house rules: where things stand, what stands beside them, and that everything written down is still true."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tramai
from tramai import kinds, workflow
from tramai.errors import TramaiError
from tramai.portable import Portable
from tramai.provider import Provider
from tramai.step import Control, Step
from tramai.store import Store

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tramai"
EXPLAIN = PACKAGE / "explain"
MODULES = sorted(PACKAGE.rglob("*.py"))
CODE = re.compile(r"\bTRM\d{3}\b")

HEAVY = {"httpx", "jsonschema", "jinja2", "ruamel", "sqlite_utils", "rich", "asyncio", "subprocess", "psycopg", "mcp"}
HEAVY |= {"opentelemetry"}
LONGEST_MODULE = 400
LONGEST_FUNCTION = 80

STEPS = kinds.names("steps")
STORES = kinds.names("stores")
PROVIDERS = kinds.names("providers")
ALL_KINDS = [(family, name) for family in kinds.FAMILIES for name in kinds.names(family)]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def walk_up(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from walk_up(below)


@functools.cache
def error_classes() -> tuple[type[TramaiError], ...]:
    for found in pkgutil.walk_packages(tramai.__path__, "tramai."):
        # `testing` is for pytest, which wants to be the first to load it.
        if not found.name.endswith("__main__") and not found.name.startswith("tramai.testing"):
            importlib.import_module(found.name)
    ours = {kind for kind in walk_up(TramaiError) if kind.__module__.startswith("tramai.")}
    return tuple(sorted({TramaiError, *ours}, key=lambda kind: kind.__qualname__))


@functools.cache
def used_codes() -> dict[str, str]:
    """Every code in the package's source, with a file that has it."""
    found: dict[str, str] = {}
    for path in MODULES:
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            found.setdefault(code, relative(path))
    return found


# File name, verb, class.


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_frozen_struct_named_as_its_file(name: str) -> None:
    kind = kinds.find("steps", name)
    assert kind.__name__ == name.capitalize()
    assert issubclass(kind, Step)
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.forbid_unknown_fields
    verb = "walk" if issubclass(kind, Control) else "run"
    assert verb in vars(kind), f"{name} has no `{verb}` of its own"
    assert inspect.iscoroutinefunction(vars(kind)[verb])
    assert kind.__doc__, f"{name} has no docstring: it is what an editor shows"
    if kind.scalar is not None:
        assert kind.scalar in kind.__struct_encode_fields__


@pytest.mark.parametrize("name", STEPS)
def test_every_setting_of_a_step_is_described(name: str) -> None:
    kind = kinds.find("steps", name)
    settings = workflow.generate_schema()["definitions"][kind.__name__]["properties"]
    assert [field for field, said in settings.items() if not said.get("description")] == []


def protocol_names(protocol: type) -> set[str]:
    return {name for name in dir(protocol) if not name.startswith("_")} | set(protocol.__annotations__)


@pytest.mark.parametrize("name", STORES)
def test_a_store_has_every_method_of_the_contract(name: str) -> None:
    kind = kinds.find("stores", name)
    assert kind.__name__ == name.capitalize()
    missing = {wanted for wanted in protocol_names(Store) - {"url"} if not hasattr(kind, wanted)}
    assert missing == set()


@pytest.mark.parametrize("name", STORES)
def test_whole_runs_can_be_brought_to_a_store(name: str) -> None:
    kind = kinds.find("stores", name)
    assert {wanted for wanted in protocol_names(Portable) - {"url"} if not hasattr(kind, wanted)} == set()


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_can_be_asked(name: str) -> None:
    kind = kinds.find("providers", name)
    assert kind.__name__ == name.capitalize()
    assert inspect.iscoroutinefunction(kind.ask)
    assert protocol_names(Provider) <= set(dir(kind))


@pytest.mark.parametrize(("family", "name"), ALL_KINDS)
def test_a_kind_says_in_its_first_line_what_it_is(family: str, name: str) -> None:
    text = (PACKAGE / family / f"{name}.py").read_text(encoding="utf-8")
    spelled = f"`{name}`" if family == "steps" else f"`{name}:"
    assert text.startswith(f'"""{spelled}'), f"{family}/{name}.py begins with its word: {spelled}"


# What stands beside a kind.


@pytest.mark.parametrize(("family", "name"), ALL_KINDS)
def test_every_kind_has_a_test_file(family: str, name: str) -> None:
    assert list((ROOT / "tests").rglob(f"test_{name}*.py")), f"write tests/test_{name}.py"


@pytest.mark.parametrize(("family", "name"), ALL_KINDS)
def test_every_kind_has_a_page(family: str, name: str) -> None:
    page = ROOT / "docs" / "reference" / family / f"{name}.md"
    assert page.is_file(), f"write {relative(page)}"
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert f"reference/{family}/{name}.md" in index, f"link {relative(page)} from docs/README.md"


@pytest.mark.parametrize("name", STEPS)
def test_the_page_of_a_step_names_every_setting(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "steps" / f"{name}.md").read_text(encoding="utf-8")
    fields = kinds.find("steps", name).__struct_encode_fields__
    assert [field for field in fields if f"`{field}" not in page] == []


@functools.cache
def example_verbs() -> dict[str, str]:
    found: dict[str, str] = {}
    files = [path for path in (ROOT / "workflows").glob("*.yaml") if ".tramai-test." not in path.name]
    # What only an installed package can show has its example there.
    for path in sorted([*files, *(ROOT / "tests" / "plugins" / "example").glob("*.yaml")]):
        loaded, problems = workflow.check_file(str(path))
        assert loaded is not None, problems
        for node in loaded.steps.walk():
            found.setdefault(node.verb, path.name)
    return found


@pytest.mark.parametrize("name", STEPS)
def test_every_step_has_an_example(name: str) -> None:
    assert name in example_verbs(), f"use `{name}` in a file of workflows/"


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_offline_provider_has_an_example(name: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "workflows").glob("*.yaml")]
    assert any(f"{name}:" in text for text in texts), f"use a model of `{name}:` in a file of workflows/"


# Published schemas.


def test_the_workflow_schema_is_fresh() -> None:
    kept = json.loads((ROOT / "schemas" / "workflow.schema.json").read_text(encoding="utf-8"))
    assert kept == workflow.generate_schema(), "python -m tramai.cli._schemas schemas"


def test_every_schema_is_a_schema() -> None:
    from jsonschema import Draft202012Validator

    found = sorted((ROOT / "schemas").glob("*.schema.json"))
    assert found
    for path in found:
        Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))


def test_the_language_reference_is_fresh() -> None:
    from tramai.cli import _language

    page = (ROOT / "docs" / "reference" / "language.md").read_text(encoding="utf-8")
    assert page == _language.filled(page), "python -m tramai.cli._language docs/reference/language.md"
    assert all(f"### `{verb}`" in page for verb in STEPS)


def test_the_index_of_error_codes_is_fresh() -> None:
    from tramai.cli import _error_index

    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert page == _error_index.page(), "python -m tramai.cli._error_index docs/reference/errors.md"
    assert sorted(re.findall(r"^\| \[(TRM\d+)\]", page, re.M)) == [path.stem for path in explained()]


# Errors.


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_text_a_code_an_exit_status_and_a_page(kind: type[TramaiError]) -> None:
    text = " ".join((kind.__doc__ or "").split())
    assert text, "the docstring is what the user reads"
    assert not text.endswith(".")
    assert CODE.fullmatch(kind.code)
    assert kind.exit_status in {1, 2, 3, 4, 5, 6, 7, 70}
    assert (EXPLAIN / f"{kind.code}.md").is_file(), f"write tramai/explain/{kind.code}.md"


def test_no_two_errors_share_a_code() -> None:
    seen: dict[str, str] = {}
    for kind in error_classes():
        if "code" in vars(kind):
            assert seen.setdefault(kind.code, kind.__name__) == kind.__name__, f"{kind.code} twice"


def test_every_code_in_use_is_explained() -> None:
    missing = {code: file for code, file in used_codes().items() if not (EXPLAIN / f"{code}.md").is_file()}
    assert missing == {}


def test_every_explained_code_is_in_use() -> None:
    assert sorted({path.stem for path in EXPLAIN.glob("*.md")} - set(used_codes())) == []


def explained() -> list[Path]:
    return sorted(EXPLAIN.glob("*.md"))


def fences(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a Markdown text: language and content."""
    found = re.findall(r"^( *)(`{3,})([a-z]*)[^\n]*\n(.*?)^\1\2[ ]*$", text, re.M | re.S)
    return [(language, body) for _, _, language, body in found]


def example(path: Path, heading: str) -> list[tuple[str, str]]:
    parts = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert heading in sections, f"{relative(path)} has no `## {heading}`"
    return fences(sections[heading])


@pytest.mark.parametrize("path", explained(), ids=lambda path: path.stem)
def test_an_explanation_has_a_title_a_text_a_wrong_and_a_right_example(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    assert re.fullmatch(r"# \S.*\S", title)
    assert rest.split("## Wrong")[0].strip(), "say what it means and what to do"
    assert example(path, "Wrong")
    assert example(path, "Right")


def static() -> list[Path]:
    # TRM116 is about a file of more than 1 MiB, which no page can show.
    # What these say depends on the machine; tests/test_surroundings.py and tests/test_shell_sandbox.py look at it.
    apart = {"TRM116", "TRM328", "TRM339", "TRM377", "TRM390", "TRM391", "TRM392"}
    return [path for path in explained() if "TRM101" <= path.stem <= "TRM399" and path.stem not in apart]


POST = """\
tramai: 1
name: post
inputs: {text: {type: string}, dry_run: {type: boolean, default: true}}
secrets: {TOKEN: {env: POST_TOKEN}}
steps:
  - {id: send, shell: {run: './send.sh "$TEXT"', env: {TEXT: "${{ inputs.text }}", TOKEN: "${{ secrets.TOKEN }}"}}}
"""
"""A file that examples may call."""
ASK = """\
tramai: 1
name: ask
description: Asks somebody.
steps:
  - {id: person, gate: {ask: Go on?}}
"""
"""And one that asks people."""


def problems_of(block: tuple[str, str], folder: Path) -> set[str]:
    language, body = block
    assert language in {"yaml", "toml"}, f"a {language or 'plain'} block cannot be checked"
    file = folder / f"example.{language}"
    file.write_text(body, encoding="utf-8")
    (folder / "post.yaml").write_text(POST, encoding="utf-8")
    (folder / "ask.yaml").write_text(ASK, encoding="utf-8")
    (folder / "question.md").write_text("How are you?\n", encoding="utf-8")
    (folder / "risk.json").write_text('{"enum": ["low", "high"]}', encoding="utf-8")
    found, problems = workflow.check_file(str(file))
    return {problem.code for problem in (*problems, *(workflow.advise(found) if found is not None else ()))}


@pytest.mark.parametrize("path", static(), ids=lambda path: path.stem)
def test_a_wrong_example_has_exactly_that_problem(path: Path, tmp_path: Path) -> None:
    for block in example(path, "Wrong"):
        assert problems_of(block, tmp_path) == {path.stem}


@pytest.mark.parametrize("path", static(), ids=lambda path: path.stem)
def test_a_right_example_has_no_problem(path: Path, tmp_path: Path) -> None:
    for block in example(path, "Right"):
        assert problems_of(block, tmp_path) == set()


# Commands.


def commands() -> list[str]:
    from tramai.cli._group import SUMMARIES

    return sorted(SUMMARIES)


@pytest.mark.parametrize("name", commands())
def test_every_command_is_a_module_with_a_page_and_a_test(name: str) -> None:
    module = importlib.import_module(f"tramai.cli.{name}")
    assert module.command.name == name
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert re.search(rf"^#+ .*`?(tramai )?{name}\b", page, re.M), f"docs/reference/cli.md has no section on {name}"
    assert re.search(rf"""["']{name}["']""", all_tests()), f"no test calls {name}"


@functools.cache
def all_tests() -> str:
    return " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", commands())
def test_every_flag_of_a_command_is_on_its_page(name: str) -> None:
    from tramai.cli._group import GlobalFlag

    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    command: Any = importlib.import_module(f"tramai.cli.{name}").command
    verbs = getattr(command, "commands", {})
    for verb in verbs:
        assert f"### `tramai {name} {verb}" in page, f"docs/reference/cli.md has no section on {name} {verb}"
    for parameter in (parameter for one in (command, *verbs.values()) for parameter in one.params):
        if parameter.param_type_name == "option" and not isinstance(parameter, GlobalFlag):
            long = max(parameter.opts, key=len)
            assert f"{long}" in page, f"docs/reference/cli.md does not name {long} of {name}"


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in commands() if not re.search(rf"`(tramai )?{name}\b", readme)] == []


# Shape of the code.


def test_imports_go_down_only() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    if not program.is_file():
        pytest.skip("import-linter is not installed: pip install -e '.[test]'")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_has_a_layer() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    named = {name.strip() for layer in layers for name in re.split(r"[|:]", layer)}
    top = {f"tramai.{path.stem}" for path in PACKAGE.glob("*.py") if path.stem not in {"__init__", "__main__"}}
    folders = {f"tramai.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    assert sorted((top | folders) - named) == [], "give it a place under [tool.importlinter] in pyproject.toml"


def test_kinds_never_import_each_other() -> None:
    for family, name in ALL_KINDS:
        siblings = {other for other in kinds.names(family) if other != name}
        for node in ast.walk(tree(PACKAGE / family / f"{name}.py")):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                wanted = {(node.module or "").split(".")[0], *(alias.name for alias in node.names if not node.module)}
                assert not wanted & siblings, f"{family}/{name}.py imports {wanted & siblings}"


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_module_is_too_long() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {file: count for file, count in lines.items() if count > LONGEST_MODULE} == {}


def test_no_function_is_too_long() -> None:
    found = {
        f"{relative(path)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in MODULES
        for node in functions(path)
    }
    assert {name: count for name, count in found.items() if count > LONGEST_FUNCTION} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [relative(path) for path in MODULES if path.stat().st_size and not ast.get_docstring(tree(path))]
    assert silent == []


def at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, those under TYPE_CHECKING left out."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from at_import([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from at_import([*node.body, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from at_import(node.body)


def imported(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return {node.module.split(".")[0]}
    return set()


def path_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    for found in (path.with_suffix(".py"), path / "__init__.py"):
        if found.is_file():
            return found
    return None


def ours_imported(path: Path, node: ast.stmt) -> Iterator[Path]:
    """The files of the package that a statement imports."""
    if not isinstance(node, ast.ImportFrom):
        return
    parts = relative(path).removesuffix(".py").removesuffix("/__init__").split("/")
    if node.level:
        up = node.level - (path.name == "__init__.py")
        parts = parts[: len(parts) - up] if up else parts
        base = ".".join([*parts, *([node.module] if node.module else [])])
    else:
        base = node.module or ""
    if base.split(".")[0] == "tramai":
        for name in (base, *(f"{base}.{alias.name}" for alias in node.names)):
            found = path_of(name)
            if found is not None:
                yield found


def loaded_with(roots: list[Path]) -> set[Path]:
    """Every file of the package that is loaded when these are imported."""
    seen: set[Path] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in at_import(tree(path).body):
            waiting.extend(ours_imported(path, node))
    return seen


def test_heavy_libraries_are_imported_where_they_are_needed() -> None:
    roots = [path for path in PACKAGE.glob("*.py") if path.stem == "__main__" or not path.stem.startswith("_")]
    roots += [PACKAGE / family / f"{name}.py" for family, name in ALL_KINDS]
    roots += [PACKAGE / "cli" / f"{name}.py" for name in (*commands(), "entry")]
    found = [
        f"{relative(path)}:{node.lineno} imports {', '.join(sorted(imported(node) & HEAVY))}"
        for path in sorted(loaded_with(roots))
        for node in at_import(tree(path).body)
        if imported(node) & HEAVY
    ]
    assert found == []


def test_names_say_what_a_module_is_about() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
    assert [relative(path) for path in MODULES if path.stem.strip("_") in vague] == []


# What must not be in the tree.


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    names = [ROOT / name for name in listed.stdout.decode("utf-8", "surrogateescape").split("\0") if name]
    return [path for path in names if path.is_file() and not path.is_symlink()]


def test_nothing_points_at_the_machine_it_was_written_on() -> None:
    # Put together here, so that this file does not hold what it looks for.
    words = ("/work" + "/main", "/work" + "/shared", "shared" + "/design", "shared" + "/facts", "shared" + "/cases")
    words += ("/tmp" + "/v/", "/tmp" + "/contracts", "/home" + "/user/", "co-authored" + "-by:", "generated" + " with ")
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace").lower()
        found += [f"{relative(path)}: {word}" for word in words if word in text]
    assert found == []


def test_no_run_or_cache_is_kept_with_the_source() -> None:
    parts = {".tramai", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "dist", "build"}
    assert [relative(path) for path in tracked() if parts & set(path.relative_to(ROOT).parts)] == []
