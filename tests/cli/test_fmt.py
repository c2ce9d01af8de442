"""`tramai fmt`: what it writes, what it leaves alone, and its exit statuses."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import HELLO, document, write
from tests.cli.test_documents import check

Call = Callable[..., Result]
UGLY = "name: x\n# one\ntramai: 1\nsteps:\n- local: 1\n  id:   a\n"
PRETTY = "# one\ntramai: 1\nname: x\nsteps:\n  - id: a\n    local: 1\n"
INVALID = "tramai: 1\nname: x\nsteps:\n  - {id: a, shel: ls}\n"


def read(name: str) -> str:
    return Path(name).read_bytes().decode()


def test_files_are_put_into_canonical_form_and_named(tramai: Call) -> None:
    write("ugly.yaml", UGLY), write("pretty.yaml", PRETTY)
    result = tramai("fmt", "ugly.yaml", "pretty.yaml")
    assert result.exit_code == 0
    assert result.stdout == "formatted: ugly.yaml\n"
    assert result.stderr == "2 files: 1 formatted, 1 unchanged\n"
    assert (read("ugly.yaml"), read("pretty.yaml")) == (PRETTY, PRETTY)
    assert tramai("fmt", "ugly.yaml").stdout == ""


def test_without_paths_the_folder_is_formatted(tramai: Call) -> None:
    Path("deep").mkdir()
    write("deep/ugly.yaml", UGLY), write("other.yaml", "a:   1\n")
    assert tramai("fmt").exit_code == 0
    assert (read("deep/ugly.yaml"), read("other.yaml")) == (PRETTY, "a:   1\n")


def test_check_writes_nothing_and_is_1_when_a_file_would_change(tramai: Call) -> None:
    write("ugly.yaml", UGLY), write("pretty.yaml", PRETTY)
    result = tramai("fmt", "--check", "ugly.yaml", "pretty.yaml")
    assert result.exit_code == 1
    assert result.stdout == "would be formatted: ugly.yaml\n"
    assert read("ugly.yaml") == UGLY
    assert tramai("fmt", "--check", "pretty.yaml").exit_code == 0


def test_diff_shows_what_would_change(tramai: Call) -> None:
    write("ugly.yaml", UGLY)
    result = tramai("fmt", "--diff", "ugly.yaml")
    assert result.exit_code == 0
    assert result.stdout.startswith("--- a/ugly.yaml\n+++ b/ugly.yaml\n@@ ")
    assert "\n-  id:   a\n" in result.stdout
    assert read("ugly.yaml") == UGLY
    assert tramai("fmt", "--diff", "--check", "ugly.yaml").exit_code == 1


def test_standard_input_goes_to_standard_output(tramai: Call) -> None:
    result = tramai("fmt", "-", stdin=UGLY)
    assert (result.exit_code, result.stdout, result.stderr) == (0, PRETTY, "")
    assert tramai("fmt", "-", "--check", stdin=UGLY).exit_code == 1
    assert document(tramai("fmt", "-", "--json", stdin=UGLY))["files"][0]["text"] == PRETTY
    assert tramai("fmt", "-", stdin=INVALID).exit_code == 3
    assert tramai("fmt", "-", "x.yaml", stdin=UGLY).exit_code == 2


def test_a_file_with_errors_is_3_and_not_touched_while_others_are(tramai: Call) -> None:
    write("invalid.yaml", INVALID), write("ugly.yaml", UGLY)
    result = tramai("fmt", "invalid.yaml", "missing.yaml", "ugly.yaml")
    assert result.exit_code == 3
    assert "error[TRM104]" in result.stderr
    assert "no such file: missing.yaml" in result.stderr
    assert (read("invalid.yaml"), read("ugly.yaml")) == (INVALID, PRETTY)


def test_mistakes_can_be_mended_first(tramai: Call) -> None:
    write("invalid.yaml", INVALID)
    assert tramai("fmt", "--fix", "invalid.yaml").exit_code == 0
    assert read("invalid.yaml") == INVALID.replace("shel", "shell")


def test_what_cannot_be_written_anew_is_1(tramai: Call) -> None:
    text = f"%YAML 1.2\n---\n{UGLY}"
    write("odd.yaml", text)
    result = tramai("fmt", "odd.yaml")
    assert result.exit_code == 1
    assert "error[TRM730]: odd.yaml stays as it is" in result.stderr
    assert read("odd.yaml") == text


def test_nothing_to_format_is_2(tramai: Call) -> None:
    assert tramai("fmt").exit_code == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_cannot_be_written_is_3(tramai: Call) -> None:
    write("ugly.yaml", UGLY)
    os.chmod("ugly.yaml", 0o444)
    assert tramai("fmt", "ugly.yaml").exit_code == 3
    assert read("ugly.yaml") == UGLY


def test_mode_links_line_ends_and_byte_order_mark_stay(tramai: Call) -> None:
    Path("real.yaml").write_bytes(b"\xef\xbb\xbf" + UGLY.replace("\n", "\r\n").encode())
    os.chmod("real.yaml", 0o750)
    os.symlink("real.yaml", "link.yaml")
    assert tramai("fmt", "link.yaml").exit_code == 0
    assert Path("real.yaml").read_bytes() == b"\xef\xbb\xbf" + PRETTY.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(os.stat("real.yaml").st_mode) == 0o750
    assert os.path.islink("link.yaml")
    assert [name for name in os.listdir() if "tmp" in name] == []


@pytest.mark.parametrize("flags", [(), ("--check",), ("--diff",), ("--fix",)])
def test_the_document_says_what_became_of_each_file(tramai: Call, flags: tuple[str, ...]) -> None:
    write("ugly.yaml", UGLY), write("pretty.yaml", PRETTY), write("bad.yaml", "tramai: 1\nname: x\n")
    result = tramai("fmt", "ugly.yaml", "pretty.yaml", "bad.yaml", "--json", *flags)
    assert result.exit_code == 3
    files = check(document(result))["files"]
    assert [one["status"] for one in files] == ["formatted", "unchanged", "refused"]
    assert files[2]["error"]["code"] == "TRM105"
    assert ("diff" in files[0]) == ("--diff" in flags)
    assert result.stderr == ""


def test_the_note_tells_why_keys_were_not_put_in_order(tramai: Call) -> None:
    write("w.yaml", "tramai: 1\nname: x\nx-env: &e {A:   b}\nsteps: [{id: a, shell: {run: x, env: *e}}]\n")
    result = tramai("fmt", "w.yaml")
    assert result.exit_code == 0
    assert "which its anchors need" in result.stderr
    write("w.yaml", HELLO)
    assert json.loads(tramai("fmt", "w.yaml", "--json").stdout)["files"][0]["note"] is None


def test_a_write_that_fails_is_3_and_leaves_the_file(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write("ugly.yaml", UGLY)
    monkeypatch.setattr(os, "replace", full)
    result = tramai("fmt", "ugly.yaml")
    assert result.exit_code == 3
    assert "cannot write ugly.yaml: no space left on device" in result.stderr
    assert read("ugly.yaml") == UGLY
    assert os.listdir() == ["ugly.yaml"]


def test_a_run_goes_on_after_its_file_was_formatted_fixed_or_converted(tramai: Call) -> None:
    write(
        "w.yaml", "name: x\ntramai: 1\nsteps:\n- shell: echo one >> ran\n  id: one\n- {shell: exit 3, id: two} # why\n"
    )
    assert tramai("run", "w.yaml").exit_code == 1
    for arguments in (("fmt", "w.yaml"), ("fmt", "--fix", "w.yaml"), ("validate", "--fix", "w.yaml")):
        assert tramai(*arguments).exit_code == 0
        assert tramai("resume", "@last").exit_code == 1, "the definition counts as unchanged"
    assert tramai("convert", "w.yaml", "--to", "toml", "-o", "w.toml").exit_code == 0
    assert tramai("resume", "@last", "--file", "w.toml").exit_code == 1
    assert read("ran") == "one\n"
