"""Where secrets come from: the environment, files, what a program prints, the system's keyring."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError

from tramai import secret, workflow
from tramai.definition import SecretSource
from tramai.errors import ExtraMissing, SecretMissing, SecretTooShort
from tramai.interrupt import Interrupt

from .reading import HEAD


def value(source: SecretSource, base: Path) -> str:
    return secret.resolve({"S": source}, base=str(base))["S"]


def missing(source: SecretSource, base: Path) -> str:
    with pytest.raises(SecretMissing) as caught:
        value(source, base)
    assert caught.value.exit_status == 6
    return f"{caught.value.message}; {caught.value.hint}"


def program(folder: Path, body: str) -> SecretSource:
    file = folder / "teller"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return SecretSource(command=("./teller", "a b"))


def test_a_program_is_asked_without_a_shell_and_one_line_break_is_dropped(tmp_path: Path) -> None:
    assert value(program(tmp_path, 'printf "%s-%s\\n\\n" "$1" "$HOME"'), tmp_path) == f"a b-{os.environ['HOME']}\n"


def test_a_program_has_no_input(tmp_path: Path) -> None:
    assert "printed nothing" in missing(program(tmp_path, "cat"), tmp_path)


def test_a_program_that_fails_is_told_by_its_last_line_and_never_by_what_it_printed(tmp_path: Path) -> None:
    said = missing(program(tmp_path, "echo sesame; echo first >&2; echo not signed in >&2; exit 3"), tmp_path)
    assert said == "secret 'S' is not set (command ./teller); ./teller ended with exit status 3: not signed in"


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "no program no-such-program" in missing(SecretSource(command=("no-such-program",)), tmp_path)


def test_a_program_that_hangs_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "PATIENCE", 0.3)
    assert "had not answered" in missing(program(tmp_path, "sleep 60 & sleep 60"), tmp_path)


def test_a_request_to_stop_ends_the_waiting_for_a_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    stop = Interrupt()
    stop.set("signal")
    told = {
        "we were asked to stop before ./teller had answered": program(tmp_path, "sleep 60"),
        "pipe cannot be read: we were asked to stop": SecretSource(file="pipe"),
    }
    try:
        for reason, source in told.items():
            with pytest.raises(SecretMissing) as caught:
                secret.resolve({"S": source}, base=str(tmp_path), interrupt=stop)
            assert caught.value.hint == reason
    finally:
        stop.close()


def test_what_is_not_text_is_no_secret(tmp_path: Path) -> None:
    assert "not UTF-8" in missing(program(tmp_path, "printf '\\377\\376'"), tmp_path)


def test_a_file_may_stand_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text("sesame\r\n")
    assert value(SecretSource(file="~/token"), Path("/")) == "sesame"


def test_a_file_is_taken_as_it_is_but_for_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert value(SecretSource(file="key"), tmp_path) == "one\r\ntwo"


def test_a_file_that_cannot_be_a_secret_is_told_by_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(secret, "PATIENCE", 0.05)
    reasons = {
        "folder": "folder cannot be read: Is a directory",
        "bytes": "what is in bytes is not UTF-8",
        "/dev/zero": "/dev/zero has more than 1,048,576 bytes",
        "pipe": "pipe cannot be read: nothing was written to it within 0.05s",
        "empty": "write its value to empty",
        "none": "write its value to none",
    }
    for name, reason in reasons.items():
        assert missing(SecretSource(file=name), tmp_path).endswith(f"; {reason}")


def test_a_file_may_be_a_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"open-sesame\n")
    os.close(writer)
    try:
        assert value(SecretSource(file=f"/dev/fd/{reader}"), tmp_path) == "open-sesame"
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    ("name", "body", "argv"),
    [
        (
            "op",
            'test "$*" = "read op://work/github/token" && echo open-sesame',
            ("op", "read", "op://work/github/token"),
        ),
        (
            "sops",
            'test "$3" = \'["token"]\' && printf %s open-sesame',
            ("sops", "-d", "--extract", '["token"]', "secrets.yaml"),
        ),
    ],
)
def test_a_keeper_of_secrets_is_asked_by_its_own_command(
    name: str, body: str, argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert value(SecretSource(command=argv), tmp_path) == "open-sesame"


@pytest.mark.parametrize("text", ["a", "abc", "é€\U0001d11e"])
def test_a_value_that_cannot_be_masked_is_refused_unless_that_is_accepted(text: str, tmp_path: Path) -> None:
    (tmp_path / "pin").write_text(text, encoding="utf-8")
    with pytest.raises(SecretTooShort) as caught:
        value(SecretSource(file="pin"), tmp_path)
    assert (caught.value.code, caught.value.exit_status) == ("TRM604", 6)
    assert str(caught.value).startswith(f"secret 'S' has {len(text)} character")
    assert "{file: …, short: true}" in str(caught.value.hint)
    assert value(SecretSource(file="pin", short=True), tmp_path) == text


class Kept(KeyringBackend):
    """A keyring in memory."""

    priority = 1  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        if service == "locked":
            raise KeyringError("it is locked")
        return {("team/tramai", "github"): "sesame"}.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Kept()
    monkeypatch.setattr(keyring, "get_password", backend.get_password)


@pytest.mark.usefixtures("kept")
def test_an_entry_of_the_keyring_is_found_by_service_and_name(tmp_path: Path) -> None:
    assert value(SecretSource(keyring="team/tramai/github"), tmp_path) == "sesame"
    assert "keyring set team/tramai other" in missing(SecretSource(keyring="team/tramai/other"), tmp_path)
    assert "it is locked" in missing(SecretSource(keyring="locked/x"), tmp_path)


def test_without_its_extra_the_keyring_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ExtraMissing) as caught:
        value(SecretSource(keyring="a/b"), tmp_path)
    assert caught.value.hint == "pip install 'tramai[keyring]'"


def test_whether_a_secret_is_there_is_told_without_fetching_it(tmp_path: Path) -> None:
    source = program(tmp_path, "touch ran; echo sesame")
    assert secret.present(SecretSource(command=("sh", "-c", "x")), base=str(tmp_path))
    assert not secret.present(SecretSource(command=("no-such-program",)), base=str(tmp_path))
    secret.present(source, base=str(tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("{command: [op, read, x]}", []),
        ("{keyring: tramai/github}", []),
        ("{command: []}", ["TRM107"]),
        ("{command: op read x}", ["TRM106"]),
        ("{keyring: github}", ["TRM107"]),
        ("{env: A, keyring: a/b}", ["TRM306"]),
        ("{}", ["TRM306"]),
    ],
)
def test_a_source_is_checked_before_the_run(source: str, codes: list[str], tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    steps = 'steps: [{id: a, shell: {run: x, env: {S: "${{ secrets.S }}"}}}]\n'
    file.write_text(f"{HEAD}secrets: {{S: {source}}}\n{steps}")
    assert [problem.code for problem in workflow.check_file(str(file))[1]] == codes
