"""What `validate` says of the machine it runs on: always warnings, and no code of the workflow is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tramai import surroundings, workflow

from .reading import HEAD

EXPLAIN = Path(__file__).resolve().parent.parent / "tramai" / "explain"


def around(folder: Path, text: str) -> list[str]:
    file = folder / "flow.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    found = surroundings.problems(workflow.load(str(file)), base=str(folder))
    assert all(problem.severity == "warning" and problem.position for problem in found)
    return [f"{problem.code} {problem.message}; {problem.hint}" for problem in found]


def calling(name: str) -> str:
    return f"steps:\n  - {{id: a, local: {{call: '{name}'}}}}\n"


@pytest.mark.parametrize(
    "name", ["checks:score", "checks:Rule", "checks:LIMIT", "checks:alias", "pack.part:run", "json:loads"]
)
def test_a_function_that_is_there_is_found_without_running_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(
        "from os import path as alias\nLIMIT: int = 3\ndef score(): ...\nclass Rule: ...\nraise SystemExit('ran')\n"
    )
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "part.py").write_text("async def run(): ...\n")
    assert around(tmp_path, calling(name)) == []


def test_a_function_that_is_not_there_is_told_with_a_near_name_or_how_to_look(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def score(): ...\n")
    assert around(tmp_path, calling("checks:scroe")) == [
        "TRM390 `scroe` is not seen in checks.py; did you mean `score`?"
    ]
    (said,) = around(tmp_path, calling("checks:zz"))
    assert said.endswith("look with python -c 'from checks import zz'")
    (said,) = around(tmp_path, calling("no_such_module:f"))
    assert said.startswith("TRM390 no module `no_such_module` is found here")


@pytest.mark.parametrize("text", ["from os import *\n", "if True:\n    def score(): ...\n", "def score(:\n"])
def test_what_a_source_does_not_show_is_not_doubted(text: str, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(text)
    assert around(tmp_path, calling("checks:score")) == []


def test_secrets_are_looked_for_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "secrets: {A: {env: CASE_A}, B: {file: b.txt}}\nsteps:\n  - {id: a, local: 1}\n"
    monkeypatch.delenv("CASE_A", raising=False)
    assert [line.partition(";")[0] for line in around(tmp_path, text)] == [
        "TRM391 secret `A` is not set here (environment variable CASE_A)",
        "TRM391 secret `B` is not set here (file b.txt)",
    ]
    monkeypatch.setenv("CASE_A", "long-enough")
    (tmp_path / "b.txt").write_text("x")
    (tmp_path / "b.txt").chmod(0o400)
    assert around(tmp_path, text) == []


@pytest.mark.parametrize(
    ("source", "value", "said"),
    [
        ("{env: CASE_A}", "abc", "TRM604 secret 'A' has 3 characters, too few to be masked (environment variable"),
        ("{env: CASE_A, short: true}", "abc", ""),
        ("{env: CASE_A}", "abcd", "TRM605 secret `A` has only 4 characters: it is masked in other words, too; use"),
        ("{env: CASE_A}", "abcdefgh", ""),
    ],
)
def test_a_short_secret_is_told_before_a_run(
    source: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASE_A", value)
    found = around(tmp_path, f"secrets: {{A: {source}}}\nsteps:\n  - {{id: a, local: 1}}\n")
    assert len(found) == bool(said)
    assert "".join(found).startswith(said)


@pytest.mark.parametrize(("mode", "wanted"), [(0o600, 0), (0o400, 0), (0o640, 1), (0o604, 1), (0o666, 1)])
def test_a_file_of_secrets_that_others_may_read_is_told(mode: int, wanted: int, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("open sesame")
    (tmp_path / "key").chmod(mode)
    found = around(tmp_path, "secrets: {A: {file: key}}\nsteps:\n  - {id: a, local: 1}\n")
    told = f"TRM606 the file of secret `A` is open to others (mode {mode:04o}): key; chmod 600 key"
    assert found == [told] * wanted


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-tests")


def test_an_extra_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = "{{id: {}, ai: {{model: 'openai:gpt-5', prompt: x}}}}"
    text = f"steps:\n  - {ask.format('a')}\n  - {ask.format('b')}\n"
    monkeypatch.setattr(surroundings, "_installed", lambda module: False)
    (said,) = around(tmp_path, text)
    assert said.endswith("pip install 'tramai[ai]'")
    monkeypatch.setattr(surroundings, "_installed", lambda module: True)
    assert around(tmp_path, text) == []


@pytest.mark.parametrize("code", ["TRM390", "TRM391", "TRM392", "TRM621"])
def test_the_pages_are_true(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "_installed", lambda module: module == "statistics")
    monkeypatch.setenv("HOME", "/home/somebody")
    wrong, right = re.findall(r"```yaml\n(.*?)```", (EXPLAIN / f"{code}.md").read_text(encoding="utf-8"), re.S)
    for text, wanted in ((wrong, [code]), (right, [])):
        found = around(tmp_path, text.partition("name: example\n")[2])
        assert [line.partition(" ")[0] for line in found] == wanted


def test_an_agent_that_is_not_installed_is_told_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (EXPLAIN / "TRM339.md").read_text(encoding="utf-8")
    wrong, right = re.findall(r"```yaml\n.*?^steps:\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert around(tmp_path, "steps:\n" + wrong) == [
        "TRM339 the agent `codex` is not installed here; npm install -g @openai/codex"
    ]
    assert around(tmp_path, "steps:\n" + right) == []
    (tmp_path / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "codex").chmod(0o755)
    assert around(tmp_path, "steps:\n" + wrong) == []


def test_a_model_without_a_key_is_a_warning_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    ask = "{{id: {}, ai: {{model: 'openai:gpt-5', prompt: x}}}}"
    (said,) = around(tmp_path, f"steps:\n  - {ask.format('a')}\n  - {ask.format('b')}\n")
    assert said.startswith("TRM620")
    assert "OPENAI_API_KEY is not set" in said


def test_a_provider_of_the_configuration_is_known(tmp_path: Path) -> None:
    text = "steps:\n  - {id: a, ai: {model: 'local:smollm', prompt: x}}\n"
    (said,) = around(tmp_path, text)
    assert said.startswith("TRM621")
    assert "[providers.local]" in said
    made = workflow.load(str(tmp_path / "flow.yaml"))
    given = {"local": {"kind": "openai", "base_url": "http://127.0.0.1:8080/v1"}}
    assert surroundings.problems(made, providers=given) == ()
