"""What docs/reference/stability.md promises is kept: nothing that was there is gone or means something else.

`tests/data/promised.json` is what was promised. What comes new is added to it before a release, by
`python -m tests.test_stability`; a change or removal there is a break, and belongs at the top of the changelog.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tramai
from tramai.errors import TramaiError
from tramai.results import EXIT

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).parent / "data" / "promised.json"
WRITTEN = ("workflow", "test")
"""Schemas of what people write. The others are of what is read: there, it is others who rely on what is said."""
PYTHON = (
    "tramai.load",
    "tramai.run",
    "tramai.resume",
    "tramai.open_store",
    "tramai.engine.rerun",
    "tramai.engine.Options",
    "tramai.engine.Result",
    "tramai.workflow.load",
    "tramai.workflow.check_file",
    "tramai.plan.of",
    "tramai.inputs.bind",
    "tramai.deciding.look",
    "tramai.deciding.decide",
    "tramai.recovery.resolve",
    "tramai.moving.copy",
    "tramai.moving.move",
    "tramai.interrupt.Interrupt.set",
    "tramai.testing.WorkflowTest",
    "tramai.step.Done",
    "tramai.step.StepError",
    "tramai.provider.Answer",
)

# What there is today.


def schemas() -> dict[str, Any]:
    found = sorted((ROOT / "schemas").glob("*.schema.json"))
    return {path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8")) for path in found}


def definitions(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    return {"": schema, **inner}


def type_of(said: Any) -> str:
    """The type of a field in a word; whatever an enumeration has is a word of it."""
    if said is True or not isinstance(said, dict):
        return "any"
    if "$ref" in said:
        return str(said["$ref"]).rpartition("/")[2]
    if "anyOf" in said:
        return " or ".join(sorted(type_of(one) for one in said["anyOf"]))
    if "enum" in said:
        return "word"
    kind = said.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(sorted(kind))
    return f"array of {type_of(said.get('items', True))}" if kind == "array" else str(kind)


def read_documents() -> dict[str, dict[str, str]]:
    """Of every document that is printed: each field, its type, and `!` when it is always there."""
    found: dict[str, dict[str, str]] = {}
    for name, schema in schemas().items():
        if name in WRITTEN:
            continue
        fields = found.setdefault(name, {})
        for inner, said in definitions(schema).items():
            for field, its in said.get("properties", {}).items():
                always = "!" if field in said.get("required", []) else ""
                fields[f"{inner}.{field}".lstrip(".")] = type_of(its) + always
    return found


def written_files() -> dict[str, dict[str, Any]]:
    """Of every file that people write: each key, whether it must be there, and the words that it may be."""
    found: dict[str, dict[str, Any]] = {}
    for name in WRITTEN:
        keys = found.setdefault(name, {})
        for inner, said in definitions(schemas()[name]).items():
            for key, its in said.get("properties", {}).items():
                words = [word for word in its.get("enum", []) if isinstance(word, str)] if isinstance(its, dict) else []
                keys[f"{inner}.{key}".lstrip(".")] = {"must": key in said.get("required", []), "words": words}
    return found


def options() -> dict[str, list[str]]:
    """The long options of every command."""
    from tramai.cli._group import SUMMARIES

    found: dict[str, list[str]] = {}
    for name in SUMMARIES:
        command: Any = importlib.import_module(f"tramai.cli.{name}").command
        verbs = {name: command} | {f"{name} {verb}": one for verb, one in getattr(command, "commands", {}).items()}
        for spelled, one in verbs.items():
            words = {word for parameter in one.params for word in parameter.opts if word.startswith("--")}
            found[spelled] = sorted(words)
    return found


@functools.cache
def classes() -> tuple[type[TramaiError], ...]:
    for found in pkgutil.walk_packages(tramai.__path__, "tramai."):
        if not found.name.endswith("__main__") and not found.name.startswith("tramai.testing"):
            importlib.import_module(found.name)
    importlib.import_module("tramai.testing.reading")  # of the testing package the part that commands use

    def below(kind: type[TramaiError]) -> Iterator[type[TramaiError]]:
        for inner in kind.__subclasses__():
            yield inner
            yield from below(inner)

    return tuple(kind for kind in {TramaiError, *below(TramaiError)} if kind.__module__.startswith("tramai."))


def codes() -> dict[str, int | None]:
    """Every code, and the exit status of its class, where it has one."""
    statuses = {kind.code: kind.exit_status for kind in classes() if "code" in vars(kind)}
    return {path.stem: statuses.get(path.stem) for path in sorted((ROOT / "tramai" / "explain").glob("*.md"))}


def found_by(name: str) -> Any:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def parameters(name: str) -> dict[str, str]:
    """The parameters of a function or class, and whether each must be given."""
    signature = inspect.signature(found_by(name))
    return {
        one.name: "must" if one.default is one.empty else "may"
        for one in signature.parameters.values()
        if one.kind is not one.VAR_KEYWORD
    }


MADE: dict[str, Callable[[], Any]] = {
    "documents": read_documents,
    "files": written_files,
    "options": options,
    "codes": codes,
    "python": lambda: {name: parameters(name) for name in PYTHON},
}


@functools.cache
def promised() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept


# What was promised.


def test_no_field_of_a_document_is_gone_or_of_another_type() -> None:
    now = read_documents()
    changed = {
        f"{name}: {field}": (was, now.get(name, {}).get(field))
        for name, fields in promised()["documents"].items()
        for field, was in fields.items()
        if now.get(name, {}).get(field) not in {was, was + "!"}
    }
    assert changed == {}


def test_every_document_names_its_schema_and_number() -> None:
    for name, schema in schemas().items():
        if name not in WRITTEN and "schema" in schema.get("properties", {}):
            assert re.fullmatch(rf"tramai\.{name}/\d+", schema["title"]), name
            assert schema["properties"]["schema"]["enum"] == [schema["title"]], name
            assert "schema" in schema["required"], name


def test_a_file_that_was_valid_stays_so() -> None:
    now = written_files()
    broken = []
    for name, keys in promised()["files"].items():
        for key, was in keys.items():
            its = now[name].get(key)
            if its is None or (its["must"] and not was["must"]) or set(was["words"]) - set(its["words"]):
                broken.append((name, key, was, its))
        # A key that comes new cannot be one that every older file lacks.
        older = {key.rpartition(".")[0] for key in keys}
        new = set(now[name]) - set(keys)
        broken += [(name, key) for key in new if now[name][key]["must"] and key.rpartition(".")[0] in older]
    assert broken == []


def test_no_command_and_no_option_is_gone() -> None:
    now = options()
    gone = {name: sorted(set(words) - set(now.get(name, []))) for name, words in promised()["options"].items()}
    assert {name: words for name, words in gone.items() if words or name not in now} == {}


def test_no_code_is_gone_or_ends_differently() -> None:
    now = codes()
    assert {code: was for code, was in promised()["codes"].items() if code not in now or now[code] != was} == {}


def test_every_exit_status_is_in_the_table_and_the_table_is_as_it_was() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8").partition("## Exit codes\n")[2]
    table = [line for line in page.partition("\n\n`validate`")[0].splitlines() if re.match(r"\| \d", line)]
    said = {int(word) for line in table for word in re.findall(r"\d+", line.split("|")[1])}
    assert said == {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 70, 129, 130, 141, 143}
    used = {kind.exit_status for kind in classes()} | set(EXIT.values())
    assert used - said == set()


@pytest.mark.parametrize("name", PYTHON)
def test_what_python_calls_takes_what_it_took(name: str) -> None:
    was, now = promised()["python"][name], parameters(name)
    assert {one for one in was if one not in now} == set()
    assert {one for one in now if now[one] == "must" and was.get(one) != "must"} == set()


def test_the_page_of_the_python_api_names_what_is_promised() -> None:
    pages = [ROOT / "docs" / "reference" / "python-api.md", *(ROOT / "docs" / "how-to").glob("write-a-*.md")]
    text = " ".join(path.read_text(encoding="utf-8") for path in pages)
    assert [name for name in PYTHON if not re.search(rf"\b{name.rpartition('.')[2]}\b", text)] == []


def test_the_page_says_nothing_of_a_version_that_is_not_the_one_here() -> None:
    text = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")
    assert tramai.__version__.startswith("0."), "rewrite what the page says of versions before 1.0.0"
    assert "Until 1.0.0" in text
    assert "DeprecationWarning" in text


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name: make() for name, make in MADE.items()}, indent=1, sort_keys=True) + "\n")
