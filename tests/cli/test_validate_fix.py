"""`validate --fix`: what it writes, what it says, and its exit statuses."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import HELLO, document, write
from tests.cli.test_documents import check

Call = Callable[..., Result]
WRONG = "tramai: 1 # one\nname: x\nsteps:\n  - id: a\n    shel: ls   # list\n"
RIGHT = WRONG.replace("shel:", "shell:")
HALF = "tramai: 1\nname: x\nsteps:\n  - {id: a, shel: ls, timeout: 30}\n"


def read(name: str) -> str:
    return Path(name).read_bytes().decode()


def test_what_is_mended_is_said_and_the_rest_stays(tramai: Call) -> None:
    write("wrong.yaml", WRONG), write("hello.yaml", HELLO)
    result = tramai("validate", "--fix", "wrong.yaml", "hello.yaml")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "fixed[TRM104] wrong.yaml:5:5: unknown key `shel` in step `a`",
        "2 files checked, 1 fixed, no problems",
    ]
    assert (read("wrong.yaml"), read("hello.yaml")) == (RIGHT, HELLO)
    assert tramai("validate", "--fix", "wrong.yaml").stdout == "1 file checked, no problems\n"


def test_what_is_left_is_shown_in_the_new_text_and_is_1(tramai: Call) -> None:
    write("half.yaml", HALF)
    result = tramai("validate", "--fix", "half.yaml")
    assert result.exit_code == 1
    assert "1 fixed: 1 error, 0 warnings" in result.stdout
    assert "  - {id: a, shell: ls, timeout: 30}\n" in result.stdout
    assert read("half.yaml") == HALF.replace("shel:", "shell:")


def test_diff_shows_it_and_writes_nothing(tramai: Call) -> None:
    write("wrong.yaml", WRONG)
    result = tramai("validate", "--fix", "--diff", "wrong.yaml")
    assert result.exit_code == 1
    assert "-    shel: ls   # list\n+    shell: ls   # list\n" in result.stdout
    assert "1 can be fixed: 1 error" in result.stdout
    assert read("wrong.yaml") == WRONG


def test_the_document_says_what_was_mended_and_what_is_left(tramai: Call) -> None:
    write("half.yaml", HALF), write("hello.yaml", HELLO)
    result = tramai("validate", "--fix", "--diff", "half.yaml", "hello.yaml", "--json")
    assert result.exit_code == 1
    half, hello = check(document(result))["files"]
    assert [one["code"] for one in half["fixed"]] == ["TRM104"]
    assert half["diff"].startswith("--- a/half.yaml\n+++ b/half.yaml\n")
    assert (hello["fixed"], hello["diff"]) == ([], "")
    left = check(document(tramai("validate", "--fix", "half.yaml", "--json")))["files"][0]
    assert [one["code"] for one in left["problems"]] == ["TRM107"]
    assert "diff" not in left
    assert "fixed" not in document(tramai("validate", "half.yaml", "--json"))["files"][0]


def test_warnings_are_mended_with_strict(tramai: Call) -> None:
    text = "tramai: 1\nname: x\nsteps: [{id: a, local: {value: [1.10]}}]\n"
    write("warns.yaml", text)
    assert tramai("validate", "--fix", "warns.yaml").exit_code == 0
    assert read("warns.yaml") == text
    assert tramai("validate", "--fix", "--strict", "warns.yaml").exit_code == 0
    assert read("warns.yaml") == text.replace("1.10", '"1.10"')


def test_mode_link_line_ends_and_byte_order_mark_stay(tramai: Call) -> None:
    Path("real.yaml").write_bytes(b"\xef\xbb\xbf" + WRONG.replace("\n", "\r\n").encode())
    os.chmod("real.yaml", 0o640)
    os.symlink("real.yaml", "link.yaml")
    assert tramai("validate", "--fix", "link.yaml").exit_code == 0
    assert Path("real.yaml").read_bytes() == b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(os.stat("real.yaml").st_mode) == 0o640
    assert os.path.islink("link.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_cannot_be_written_is_3_and_stays(tramai: Call) -> None:
    write("wrong.yaml", WRONG)
    os.chmod("wrong.yaml", 0o444)
    result = tramai("validate", "--fix", "wrong.yaml")
    assert result.exit_code == 3
    assert "cannot write wrong.yaml" in result.stderr
    assert read("wrong.yaml") == WRONG


@pytest.mark.parametrize("form", ["github", "sarif", "junit"])
def test_other_formats_say_what_is_left(tramai: Call, form: str) -> None:
    write("half.yaml", HALF)
    result = tramai("validate", "--fix", "half.yaml", "--format", form)
    assert result.exit_code == 1
    assert "TRM107" in result.stdout
    assert "TRM104" not in result.stdout
