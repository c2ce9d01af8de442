"""The reference of verbs and keys on the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.conftest import document
from tests.cli.test_documents import check
from tramai import build, schema
from tramai.cli import _reference

Call = Callable[..., Result]


@pytest.mark.parametrize("verb", sorted(build.verbs()))
def test_every_verb_has_a_reference_with_all_its_keys(tramai: Call, verb: str) -> None:
    fields = build.verb_class(verb).__struct_encode_fields__
    shown = tramai("schema", "step", verb)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"steps[].{verb}  ")
    assert [field for field in fields if not any(line.startswith(f"{field}  (") for line in lines)] == []
    found = check(document(tramai("schema", "step", verb, "--json")))
    assert {one["key"] for one in found["keys"]} == set(fields)
    assert all(one["examples"] and one["description"] and one["type"] for one in found["keys"])
    assert found["replay"] == str(build.verb_class(verb).default_replay)


def test_types_defaults_and_examples_are_said(tramai: Call) -> None:
    text = tramai("schema", "step", "shell").stdout
    assert "parse  (one of json, jsonl, lines, text)\n" in text
    assert "max_output  (integer or text, default 1MiB)\n" in text
    assert "kill_after  (duration, default 10s)\n" in text
    assert "    ok_exit_codes: [0, 1]\n" in text
    assert "  short form: `shell: …` sets `run`\n" in text


def test_without_a_verb_all_are_listed_and_the_keys_around_them(tramai: Call) -> None:
    text = tramai("schema", "step").stdout
    assert [verb for verb in build.verbs() if f"\n{verb} " not in f"\n{text}"] == []
    assert "\nid  (text, required)\n" in text


def test_an_unknown_verb_is_4_and_the_nearest_is_named(tramai: Call) -> None:
    result = tramai("schema", "step", "shel")
    assert result.exit_code == 4
    assert "did you mean shell?" in result.stderr
    assert document(tramai("schema", "step", "shel", "--json"))["error"]["code"] == "TRM704"


def test_a_key_is_explained_where_it_stands(tramai: Call) -> None:
    text = tramai("explain", "retry").stdout
    assert text.startswith("steps[].retry  What happens when an attempt fails.\n")
    assert "\nmax_attempts  (integer, default 1)\n" in text
    assert tramai("explain", "`shell.parse`").stdout.startswith("steps[].shell.parse  ")
    assert tramai("explain", "steps.shell.parse").stdout == tramai("explain", "shell.parse").stdout
    assert tramai("explain", "inputs.minimum").stdout.startswith("inputs.minimum  ")


def test_other_places_of_a_key_are_named(tramai: Call) -> None:
    text = tramai("explain", "timeout").stdout
    assert text.startswith("steps[].timeout  ")
    assert "also: limits.timeout" in text
    assert "limits.timeout" in check(document(tramai("explain", "timeout", "--json")))["also"]


def test_an_unknown_key_is_4_and_the_nearest_is_named(tramai: Call) -> None:
    result = tramai("explain", "retri")
    assert result.exit_code == 4
    assert "did you mean retry?" in result.stderr
    assert tramai("explain", "zzz").exit_code == 4


def test_every_key_of_the_language_can_be_asked_for() -> None:
    whole = schema.workflow_schema()
    for name in (*whole["properties"], *whole["definitions"]["step"]["properties"]):
        if not name.startswith("$"):
            assert _reference.key(name) is not None, name
