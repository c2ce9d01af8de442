"""`doctor --report`: a text for a bug report that tells nobody who or where its author is."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.conftest import document, write
from tests.cli.test_documents import check
from tramai.cli._doctor_report import anonymous

Call = Callable[..., Result]


def test_it_is_a_page_with_every_finding(tramai: Call) -> None:
    result = tramai("doctor", "--report")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("What I did, what I expected")
    assert "## " not in result.stdout
    for one in check(document(tramai("doctor", "--report", "--json")))["findings"]:
        assert f"  {one['state']:<7}  {one['name']}: " in result.stdout


def test_nothing_in_it_tells_who_or_where(tramai: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tramai.results.user", lambda: "ada.lovelace")
    monkeypatch.setattr(socket, "gethostname", lambda: "engine-7.example.org")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://u:pw-canary@models.acme.example/v1")
    write("tramai.toml", 'store = "file:ada.lovelace/runs"\n')
    text = tramai("doctor", "--report").stdout
    for canary in ("canary", "ada.lovelace", "engine-7", "acme", os.getcwd(), os.path.expanduser("~/")):
        assert canary not in text
    assert "OPENAI_API_KEY" in text


def test_an_unusable_machine_is_1(tramai: Call) -> None:
    write("broken.db", "this is no database, whatever its name says\n" * 40)
    result = tramai("doctor", "--report", "--store", "sqlite:broken.db")
    assert result.exit_code == 1
    assert "error    store: " in result.stdout
    assert tramai("doctor", "--report", "--store", "nonsense:").exit_code in (1, 3)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/home/ada/work/flows/.tramai/tramai.db can be written", "…/tramai.db can be written"),
        ("sqlite:/srv/acme/runs.db (default)", "sqlite:…/runs.db (default)"),
        ("~/secret/place/key.txt", "…/key.txt"),
        ("/usr/bin/git", "/usr/bin/git"),
        ("postgresql://me:pw@db.acme.example:5432/flows?password=xyzzy", "postgresql://HOST:5432/flows?password=***"),
        ("http://127.0.0.1:8080/v1 and http://localhost/", "http://127.0.0.1:8080/v1 and http://localhost/"),
        ("https://proxy.acme.example:3128", "https://HOST:3128"),
        ("60s (tramai.toml: wait)", "60s (tramai.toml: wait)"),
        ("sqlite:.tramai/tramai.db", "sqlite:.tramai/tramai.db"),
    ],
)
def test_a_text_keeps_what_helps(text: str, kept: str) -> None:
    assert anonymous(text) == kept
