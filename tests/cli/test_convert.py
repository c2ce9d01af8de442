"""`tramai convert`: the same workflow in the other format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import HELLO, document, write
from tests.cli.test_documents import check

Call = Callable[..., Result]


def test_it_is_printed(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    result = tramai("convert", "hello.yaml", "--to", "toml")
    assert result.exit_code == 0
    assert 'name = "hello"\n' in result.stdout
    write("hello.toml", result.stdout)
    digests = tramai("digest", "hello.yaml", "hello.toml").stdout.split()
    assert digests[0] == digests[2]
    assert tramai("convert", "-", "--to", "yaml", stdin=result.stdout).stdout.startswith("tramai: 1\nname: hello\n")


def test_it_goes_to_a_file(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    result = tramai("convert", "hello.yaml", "--to", "toml", "-o", "hello.toml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "hello.yaml written to hello.toml" in result.stderr
    assert tramai("run", "hello.toml").exit_code == 0


@pytest.mark.parametrize("output", [(), ("-o", "hello.toml")])
def test_the_document_says_what_was_made(tramai: Call, output: tuple[str, ...]) -> None:
    write("hello.yaml", HELLO)
    found = check(document(tramai("convert", "hello.yaml", "--to", "toml", *output, "--json")))
    assert (found["text"] is None) == bool(output)
    assert found["lost"] == []
    assert found["digest"] == document(tramai("digest", "hello.yaml", "--json"))["files"][0]["digest"]


def test_a_null_is_1_with_its_place(tramai: Call) -> None:
    write("null.yaml", "tramai: 1\nname: x\nsteps:\n  - id: a\n    local: {value: {b: [1, null]}}\n")
    result = tramai("convert", "null.yaml", "--to", "toml", "-o", "null.toml")
    assert result.exit_code == 1
    assert (
        "error[TRM731]: null.yaml cannot be converted to TOML: TOML has no null\n  --> null.yaml:5:28" in result.stderr
    )
    assert not Path("null.toml").exists()


def test_the_same_format_is_2(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    assert tramai("convert", "hello.yaml", "--to", "yaml").exit_code == 2
    assert tramai("convert", "hello.yaml").exit_code == 2
    assert tramai("convert", "hello.yaml", "--to", "json").exit_code == 2


def test_errors_and_files_that_cannot_be_read_or_written_are_3(tramai: Call) -> None:
    write("hello.yaml", HELLO)
    write("invalid.yaml", "tramai: 1\nname: x\n")
    assert tramai("convert", "invalid.yaml", "--to", "toml").exit_code == 3
    assert tramai("convert", "missing.yaml", "--to", "toml").exit_code == 3
    result = tramai("convert", "hello.yaml", "--to", "toml", "-o", "no/folder.toml")
    assert result.exit_code == 3
    assert "cannot write no/folder.toml" in result.stderr


def test_a_comment_without_a_place_is_named(tramai: Call) -> None:
    write(
        "c.yaml",
        "tramai: 1\nname: x\nsteps:\n  - id: a\n    local:\n      value: [1, [2,\n        # deep\n        3]]\n",
    )
    result = tramai("convert", "c.yaml", "--to", "toml")
    assert result.exit_code == 0
    if "# deep" not in result.stdout:
        assert "c.yaml:7: no place in TOML for this comment: # deep" in result.stderr


@pytest.mark.parametrize(("output", "hint"), [("hello.yaml", "hello.toml"), ("sub/x.YML", "sub/x.toml")])
def test_a_name_that_says_the_other_format_is_2_and_nothing_is_overwritten(
    tramai: Call, output: str, hint: str
) -> None:
    write("hello.yaml", HELLO)
    result = tramai("convert", "hello.yaml", "--to", "toml", "-o", output)
    assert (result.exit_code, f"name it {hint}" in result.stderr) == (2, True)
    assert Path("hello.yaml").read_text(encoding="utf-8") == HELLO
    assert tramai("convert", "hello.yaml", "--to", "toml", "-o", "any.thing").exit_code == 0
