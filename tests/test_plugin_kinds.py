"""Model providers, stores and observers of other packages: found, carried out, and harmless where they are broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tramai import kinds, provider
from tramai.cli import _observers
from tramai.errors import ConfigurationError, PluginUnusable
from tramai.step import StepError
from tramai.stores import open_store

from .plugin_install import broken, example, tramai, with_broken
from .written import codes, problems, ran

__all__ = ["broken", "example", "with_broken"]

WORKFLOW = "tramai: 1\nname: w\nsteps: [{id: a, local: 1}]\n"


def packaged(folder: Path, points: str) -> None:
    """A package with entry points and nothing else."""
    info = folder / "tramai_other-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tramai-other\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(points)


def test_what_a_broken_removal_left_hides_no_other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(tmp_path, "[tramai.steps]\nfine = other:Fine\n")
    for name, points in {"cut": "[tramai.steps]\nno value", "bare": "[tramai.steps]\nbare = bare:Bare\n"}.items():
        (tmp_path / f"{name}-1.dist-info").mkdir()
        (tmp_path / f"{name}-1.dist-info" / "entry_points.txt").write_text(points)
    (tmp_path / "~odd-1.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {one.name: (one.package, one.version) for one in kinds.added("steps")}
    assert found["fine"] == ("tramai-other", "2.0")
    assert "ticket" in found
    assert found["bare"] == ("?", "?")
    assert "no value" not in found


# Model providers.


def test_a_provider_is_asked() -> None:
    steps = "- id: a\n  ai: {model: 'parrot:3', prompt: hello}\n"
    result = ran(steps, "outputs: {said: '${{ steps.a.output }}'}")
    assert result.outputs == {"said": "hello hello hello"}


def test_an_unknown_provider_is_told_with_those_that_were_added() -> None:
    assert codes("- id: a\n  ai: {model: 'parot:3', prompt: hello}\n") == ["TRM331"]
    with pytest.raises(StepError) as caught:
        provider.find("nobody")
    assert "parrot" in str(caught.value.hint)
    assert "demo" in str(caught.value.hint)


@pytest.mark.usefixtures("with_broken")
def test_a_provider_that_cannot_be_loaded_is_an_error_where_it_is_used() -> None:
    ((code, message),) = problems("- id: a\n  ai: {model: 'mute:1', prompt: hello}\n")
    assert code == "TRM705"
    assert message.startswith("the model provider `mute` of the package tramai-broken 0.1 cannot be loaded: Module")
    with pytest.raises(StepError, match="cannot be loaded"):
        provider.find("mute")


def test_what_a_provider_raises_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = kinds.plugin("providers", "parrot").load()

    async def ask(self: Any, question: Any) -> Any:
        return {"bad": lambda: 1 / 0, "odd": lambda: "text"}[question.model]()

    monkeypatch.setattr(kind, "ask", ask)
    for model, found in {"bad": "plugin.ZeroDivisionError", "odd": "plugin.TypeError"}.items():
        result = ran(f"- id: a\n  ai: {{model: 'parrot:{model}', prompt: hello}}\n")
        assert result.error is not None
        assert result.error["type"] == found


def test_the_built_in_provider_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(tmp_path, "[tramai.providers]\ndemo = nowhere:Demo\nopenai = nowhere:Openai\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert type(provider.find("demo")).__module__ == "tramai.providers.demo"
    assert provider.added("demo") is None
    assert provider.added("openai") is None


# Stores.


def test_a_store_keeps_a_run_that_is_killed_and_resumed(tmp_path: Path, example: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "tramai: 1\nname: w\nsteps:\n  - {id: a, shell: echo a >> log}\n"
        "  - {id: b, shell: 'test -e once && exit; touch once; kill -KILL $PPID; sleep 60', replay: replayable}\n"
    )
    url = ("--store", "shelf:runs")
    found = tramai(tmp_path, "run", "w.yaml", *url, packages=(example,))
    assert found.returncode == -9
    found = tramai(tmp_path, "resume", "@last", *url, packages=(example,))
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "log").read_text() == "a\n"
    found = tramai(tmp_path, "list", *url, "--json", packages=(example,))
    assert [one["status"] for one in json.loads(found.stdout)["runs"]] == ["completed"]


@pytest.mark.usefixtures("with_broken")
def test_a_store_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(PluginUnusable, match=r"the store `nostore` of the package tramai-broken 0\.1 cannot be loaded"):
        open_store("nostore:x")
    with pytest.raises(ConfigurationError) as caught:
        open_store("nobody:x")
    assert "nostore:" in str(caught.value.hint)
    assert "shelf:" in str(caught.value.hint)


def test_two_stores_with_one_scheme_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(tmp_path, "[tramai.stores]\nshelf = other:Shelf\nmemory = other:Memory\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginUnusable, match=r"tramai-example 1\.0 .* and tramai-other 2\.0 "):
        open_store("shelf:x")
    assert type(open_store("memory:")).__module__ == "tramai.stores.memory"


# Observers.


def test_observers_that_the_settings_name_watch_a_run(tmp_path: Path, example: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    (tmp_path / "tramai.toml").write_text('observers = ["tally", "listener"]\n')
    found = tramai(tmp_path, "run", "w.yaml", packages=(example,))
    assert found.returncode == 0, found.stderr
    events = (tmp_path / "events.txt").read_text().split()
    assert (events[0], events[-1]) == ("RunStarted", "RunFinished")
    assert "StepFinished" in events
    assert "tramai.workflow.started" in (tmp_path / "signals.txt").read_text().split()


def test_what_an_observer_raises_never_reaches_the_run(tmp_path: Path, broken: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    (tmp_path / "tramai.toml").write_text('observers = ["raiser"]\n')
    found = tramai(tmp_path, "run", "w.yaml", packages=(broken,))
    assert (found.returncode, "never mind me" in found.stderr) == (0, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('observers = ["talli"]', "no installed package brings the observer `talli`"),
        ('observers = ["unmade"]', "the observer `unmade` of the package tramai-broken 0.1 cannot be made: RuntimeE"),
        ('observers = "tally"', "'observers' in tramai.toml must be a list of names"),
        ("observers = [1]", "'observers' in tramai.toml must be a list of names"),
    ],
)
def test_an_observer_that_is_not_to_be_had_stops_the_run_before_it_begins(
    text: str, said: str, tmp_path: Path, example: Path, broken: Path
) -> None:
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    (tmp_path / "tramai.toml").write_text(text + "\n")
    found = tramai(tmp_path, "run", "w.yaml", packages=(example, broken))
    assert found.returncode == 3
    assert said in found.stderr
    assert "Traceback" not in found.stderr
    (tmp_path / "tramai.toml").unlink()
    assert json.loads(tramai(tmp_path, "list", "--json").stdout)["runs"] == []


def test_a_function_is_an_observer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = kinds.Plugin("observers", "p", "builtins:print", "x", "1")
    assert _observers.instance(found) is print
    with pytest.raises(PluginUnusable, match="can neither be called"):
        _observers.instance(kinds.Plugin("observers", "p", "math:pi", "x", "1"))
