"""`env_file`, and what is said of secrets at the start of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import document, write

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def unset() -> Iterator[None]:
    """No variable of a test is left behind in this process."""
    os.environ.pop("TOKEN_FOR_TEST", None)
    yield
    os.environ.pop("TOKEN_FOR_TEST", None)


def workflow(source: str = "{env: TOKEN_FOR_TEST}") -> str:
    step = '{id: use, shell: {run: "echo x$TOKEN", env: {TOKEN: "${{ secrets.TOKEN }}"}}}'
    return write("secret.yaml", f"tramai: 1\nname: secret\nsecrets: {{TOKEN: {source}}}\nsteps:\n  - {step}\n")


def env_file(text: str = "TOKEN_FOR_TEST=open-sesame\n", mode: int = 0o600) -> None:
    Path(write(".env", text)).chmod(mode)


def test_an_env_file_is_not_read_unless_somebody_says_so(tramai: Call) -> None:
    env_file()
    assert tramai("run", workflow()).exit_code == 6


def test_the_env_file_of_the_configuration_is_a_source_of_secrets(tramai: Call) -> None:
    env_file()
    write("tramai.toml", 'env_file = ".env"\n')
    ran = tramai("run", workflow(), "-v")
    assert ran.exit_code == 0, ran.output
    assert "env_file" in ran.stderr
    assert "sesame" not in ran.output + tramai("logs", "@last").output
    assert "x***" in tramai("logs", "@last").output


def test_plan_and_validate_know_what_is_in_it(tramai: Call) -> None:
    file = workflow()
    write("tramai.toml", 'env_file = ".env"\n')
    assert document(tramai("plan", file, "--json"))["secrets"][0]["present"] is False
    assert "TRM391" in tramai("validate", file).output
    env_file()
    assert document(tramai("plan", file, "--json"))["secrets"][0]["present"] is True
    assert "TRM391" not in tramai("validate", file).output


def test_what_is_set_comes_before_the_file_and_a_file_that_is_not_there_is_none(
    tramai: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("tramai.toml", 'env_file = ".env"\n')
    monkeypatch.setenv("TOKEN_FOR_TEST", "from-outside")
    assert tramai("run", workflow()).exit_code == 0
    env_file("TOKEN_FOR_TEST=ab\n")
    assert tramai("run", workflow()).exit_code == 0


def test_a_file_of_secrets_that_others_may_read_is_told_at_every_start(tramai: Call) -> None:
    env_file(mode=0o644)
    ran = tramai("run", workflow(), "--env-file", ".env")
    assert ran.exit_code == 0
    assert ".env is open to others (mode 0644): chmod 600 .env" in ran.stderr
    Path(write("key", "open sesame")).chmod(0o640)
    assert (
        "secret `TOKEN` is open to others (mode 0640): key; chmod 600 key"
        in tramai("run", workflow("{file: key}")).stderr
    )


@pytest.mark.parametrize(("value", "status", "said"), [("abc", 6, "3 characters"), ("abcd", 0, "only 4 characters")])
def test_a_short_secret_is_refused_or_told(tramai: Call, value: str, status: int, said: str) -> None:
    file = workflow(f"{{command: [echo, {value}]}}")
    ran = tramai("run", file)
    assert ran.exit_code == status
    assert said in ran.stderr
    if status:
        assert "TRM604" in ran.stderr
        assert not Path(".tramai/logs").exists(), "nothing has run"


def test_a_short_secret_that_is_accepted_runs_and_is_not_masked(tramai: Call) -> None:
    assert tramai("run", workflow("{command: [echo, abc], short: true}")).exit_code == 0
    assert "xabc" in tramai("logs", "@last").output
