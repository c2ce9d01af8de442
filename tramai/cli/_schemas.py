"""The published JSON Schemas of the command line's documents: `python -m tramai.cli._schemas FOLDER` writes them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import UNSET

from . import (
    _config_documents,
    _demo_documents,
    _diff_documents,
    _documents,
    _export_documents,
    _file_documents,
    _gate_documents,
    _help_documents,
    _machine_documents,
    _plan_documents,
    _problem_documents,
    _schedule_documents,
    _store_documents,
    _test_documents,
    _worker_documents,
)
from ._encode import EVENTS


def schemas() -> dict[str, dict[str, Any]]:
    """Every document's JSON Schema, by the name before `.schema.json`."""
    named = {_tag(kind): _schema(kind) for kind in _DOCUMENTS}
    named["events"] = _events_schema()
    made: dict[str, dict[str, Any]] = json.loads(json.dumps(named))  # defaults may be tuples
    return made


MODULES = (
    _documents,
    _problem_documents,
    _plan_documents,
    _test_documents,
    _diff_documents,
    _gate_documents,
    _store_documents,
    _schedule_documents,
    _file_documents,
    _machine_documents,
    _worker_documents,
    _demo_documents,
    _config_documents,
    _help_documents,
    _export_documents,
)


_DOCUMENTS = (
    *_documents.DOCUMENTS,
    *_file_documents.DOCUMENTS,
    *_machine_documents.DOCUMENTS,
    *_worker_documents.DOCUMENTS,
    *_demo_documents.DOCUMENTS,
    *_config_documents.DOCUMENTS,
    *_help_documents.DOCUMENTS,
    *_export_documents.DOCUMENTS,
)


def _struct(name: str) -> Any:
    return next(found for module in MODULES if (found := getattr(module, name, None)) is not None)


def _tag(kind: Any) -> str:
    default = next(field.default for field in msgspec.structs.fields(kind) if field.name == "schema")
    return str(default).removeprefix("tramai.").removesuffix("/1")


def _schema(kind: Any) -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    body = parts.pop(root["$ref"].rsplit("/", 1)[1])
    _require_all(body, kind)
    for name, part in parts.items():
        _require_all(part, _struct(name))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"tramai.{_tag(kind)}/1"}
    body.pop("title", None)
    return {**head, **body, **({"$defs": parts} if parts else {})}


def _require_all(part: dict[str, Any], kind: Any) -> None:
    """A field with a default is always written, so readers may rely on it; only an UNSET one may be missing."""
    part["required"] = [field.encode_name for field in msgspec.structs.fields(kind) if field.default is not UNSET]


def _events_schema() -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components((_documents.Event,), ref_template="#/$defs/{name}")
    for part in parts.values():
        part["properties"] = {
            "seq": {"type": "integer", "minimum": 1},
            "schema": {"enum": [EVENTS]},
            **part["properties"],
        }
        part["required"] = ["seq", "schema", *part["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": EVENTS,
        "description": "One line of `run --json` and `resume --json`.",
        **{key: value for key, value in root.items() if key != "discriminator"},
        "$defs": parts,
    }


def write(folder: str) -> None:
    """Write every schema into a folder: of workflow and test files, and of every document."""
    import os

    from ..testing.reading import suite_schema
    from ..workflow import generate_schema

    for name, schema in {**schemas(), "workflow": generate_schema(), "test": suite_schema()}.items():
        with open(os.path.join(folder, f"{name}.schema.json"), "w", encoding="utf-8") as file:
            json.dump(schema, file, indent=2, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    import sys

    write(sys.argv[1])
