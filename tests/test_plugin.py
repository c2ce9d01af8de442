"""`plugin`: steps of another package, as they are checked, carried out, interrupted, and missed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tramai import build, engine, kinds, plan, plancache, schema, workflow
from tramai.errors import PluginUnusable
from tramai.formatting import convert_document
from tramai.step import Replay, StepError
from tramai.steps import _plugin_kind
from tramai.stores.memory import Memory
from tramai.translating import translated

from .plugin_install import HERE, broken, environment, example, tramai, with_broken
from .written import RUN, again, codes, ends, planned, ran

__all__ = ["broken", "example", "with_broken"]

TICKET = """\
- id: open
  plugin:
    use: ticket
    with:
      title: red
      board: {{file: {file}}}
"""


def test_what_tests_see_of_the_example_is_what_its_project_file_says() -> None:
    project = tomllib.loads((HERE / "example" / "pyproject.toml").read_text())["project"]
    wanted = "\n".join(
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in found.items())])
        for group, found in project["entry-points"].items()
    )
    info = HERE / "example" / "tramai_example-1.0.dist-info"
    assert (info / "entry_points.txt").read_text().strip() == wanted
    assert f"Version: {project['version']}\n" in (info / "METADATA").read_text()


# What a file says.


def test_settings_are_read_as_the_step_type_wants_them(tmp_path: Path) -> None:
    made = planned(
        TICKET.format(file="f") + "      labels: [1.10, no, 010]\n      copies: 2\n      pause: 1m30s\n"
        "      fields: {a: 1.0, b: no}\n"
    )
    step: Any = made.nodes["open"].step
    assert step.inner.labels == ("1.10", "no", "010")
    assert (step.inner.copies, step.inner.pause, step.inner.board.file.text) == (2, 90.0, "f")
    assert {name: value.data for name, value in step.inner.fields.items()} == {"a": 1, "b": "no"}


def test_what_is_not_installed_is_said_once_and_expressions_are_checked_all_the_same() -> None:
    steps = "- id: a\n  plugin: {use: pager, with: {x: '${{ steps.b.output }}'}}\n"
    assert sorted(codes(steps)) == ["TRM203", "TRM399"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_module", "cannot be loaded: ModuleNotFoundError: No module named 'tramai_broken.nowhere'"),
        ("exits", "cannot be loaded: SystemExit: not today"),
        ("no_step", "is no subclass of tramai.step.Step"),
        ("holder", "holds steps, which a plugin cannot"),
        ("hiding", "has a field `output` that hides a part of Step: call it `output_`, and rename it"),
        ("idle", "has no method `run`"),
        ("loose", "is not frozen, or takes unknown settings: class …(Step, frozen=True, kw_only=True)"),
        ("odd", "has settings that no schema can describe: no JSON Schema is known for <class 'complex'>"),
    ],
)
@pytest.mark.usefixtures("with_broken")
def test_a_step_type_that_cannot_be_used_is_an_error_where_it_is_used(name: str, why: str) -> None:
    from .written import problems

    ((code, message),) = problems(f"- id: a\n  plugin: {{use: {name}}}\n")
    assert code == "TRM430"
    assert message.startswith(f"the step `{name}` of the package tramai-broken 0.1 {why}")
    assert _plugin_kind.unusable(name) is not None


@pytest.mark.usefixtures("with_broken")
def test_a_check_that_raises_is_told_at_the_step() -> None:
    from .written import problems

    said = "the step type `bad_check` is broken: `check` raised RuntimeError: no idea"
    assert problems("- id: a\n  plugin: {use: bad_check}\n") == [("TRM430", said)]


@pytest.mark.usefixtures("with_broken")
def test_whatever_a_class_is_asked_it_may_raise() -> None:
    from .written import problems

    found = problems("- id: a\n  plugin: {use: all_bad}\n- {id: b, local: '${{ steps.a.output.x }}'}\n")
    assert {code for code, _ in found} == {"TRM430"}
    asked = ("replay", "pure", "needs_loop", "reaches", "attached")
    raised = "raised RuntimeError: do not ask me"
    assert [said for _, said in found] == [f"the step type `all_bad` is broken: `{name}` {raised}" for name in asked]
    ((code, said),) = problems("- id: a\n  plugin: {use: all_bad, with: {wanted: 13}}\n")
    assert (code, said) == ("TRM107", "LookupError: no 13")


@pytest.mark.usefixtures("with_broken")
def test_an_output_that_cannot_be_made_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = _plugin_kind.load("noisy")

    def output(self: Any, result: Any) -> Any:
        raise RuntimeError("do not ask me")

    monkeypatch.setattr(kind, "output", output)
    result = ran("- id: a\n  plugin: {use: noisy}\n")
    assert result.error is not None
    assert result.error["type"] == "plugin.RuntimeError"


def test_what_a_module_prints_does_not_spoil_a_document(tmp_path: Path, broken: Path) -> None:
    (tmp_path / "w.yaml").write_text("tramai: 1\nname: w\nsteps: [{id: a, plugin: {use: noisy}}]\n")
    found = tramai(tmp_path, "validate", "w.yaml", "--json", packages=(broken,))
    assert json.loads(found.stdout)["schema"] == "tramai.validation/1"
    assert "hello from the package" in found.stderr


@pytest.mark.usefixtures("with_broken")
def test_what_is_broken_and_not_used_harms_nothing(tmp_path: Path) -> None:
    assert codes(TICKET.format(file="f")) == []
    assert _plugin_kind.unusable("ticket") is None
    assert _plugin_kind.unusable("pager") is None


def test_two_packages_with_one_name_are_both_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "tramai_other-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tramai-other\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[tramai.steps]\nticket = other:Ticket\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginUnusable, match=r"brought by tramai-example 1\.0 .* and tramai-other 2\.0 "):
        kinds.plugin("steps", "ticket")
    assert codes(TICKET.format(file="f")) == ["TRM430"]


def test_a_secret_stands_where_the_step_type_takes_one() -> None:
    top = "secrets: {KEY: {env: KEY}}"
    steps = TICKET.format(file="f")
    assert codes(steps + "      token: ${{ secrets.KEY }}\n", top) == []
    assert codes(steps + "      body: ${{ secrets.KEY }}\n", top) == ["TRM302"]
    unknown = "- id: a\n  plugin: {use: pager, with: {x: '${{ secrets.KEY }}'}}\n"
    assert codes(unknown, top) == ["TRM399"]


@pytest.mark.usefixtures("with_broken")
def test_a_step_type_that_says_nothing_of_secrets_takes_them_anywhere() -> None:
    made = planned("- id: a\n  plugin: {use: raises, with: {what: value}}\n")
    assert made.nodes["a"].step.sinks == {"with"}


# Its identity.


def test_the_digest_covers_the_name_the_edition_and_the_settings() -> None:
    steps = TICKET.format(file="f")
    first = planned(steps)
    assert json.loads(first.canonical)["steps"][0]["plugin"]["use"] == "ticket@1"
    assert json.loads(first.canonical)["steps"][0]["plugin"]["with"]["pause"] == 0
    assert planned(steps + "      pause: 0s\n").digest == first.digest
    assert planned(steps + "      copies: 2\n").digest != first.digest
    assert planned(steps.replace("ticket", "ticket")).digest == first.digest
    assert plan.restore(first.canonical).digest == first.digest


def test_another_edition_has_another_digest_and_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = _plugin_kind.load("ticket")
    first = planned(TICKET.format(file="f"))
    monkeypatch.setattr(kind, "edition", 2)
    assert planned(TICKET.format(file="f")).digest != first.digest
    restored = plan.restore(first.canonical)
    assert restored.digest == first.digest
    with pytest.raises(Exception, match="is here in edition 2; the run was started with edition 1") as caught:
        restored.able()
    assert (caught.value.code, caught.value.exit_status) == ("TRM706", 3)  # type: ignore[attr-defined]


def test_settings_that_the_package_refuses_by_now_do_not_go_on() -> None:
    first = planned(TICKET.format(file="f"))
    older = first.canonical.replace('"copies":1', '"copies":9')
    assert older != first.canonical
    with pytest.raises(Exception, match="does not take the settings any more"):
        plan.restore(older).able()


def test_a_plan_with_a_plugin_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "w.yaml"
    file.write_bytes((HERE / "example" / "ticket.yaml").read_bytes())
    plancache.save(str(file), plan.load(str(file)))
    assert plancache.load(str(file)) is None
    assert not (tmp_path / "tramai").exists()


def test_a_file_is_the_same_in_the_other_format(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_bytes((HERE / "example" / "ticket.yaml").read_bytes())
    other = tmp_path / "w.toml"
    from tramai import document

    other.write_text(convert_document(document.read(str(file)), "toml").text)
    assert plan.load(str(other)).digest == plan.load(str(file)).digest


def test_the_published_schema_stays_as_it_is() -> None:
    before = json.dumps(schema.workflow_schema())
    planned(TICKET.format(file="f"))
    assert json.dumps(schema.workflow_schema()) == before
    given = workflow.generate_schema()["definitions"]["Plugin"]["properties"]
    assert sorted(given) == ["use", "with"]
    assert given["with"]["type"] == "object"


# What it does.


def test_the_value_is_the_output(tmp_path: Path) -> None:
    file = tmp_path / "tickets.jsonl"
    store = Memory()
    result = ran(
        TICKET.format(file=file) + "      body: '{% for n in [1, 2] %}${{ n }}{% endfor %}'\n"
        "      fields: {a: '${{ 1 + 1 }}'}\n",
        "outputs: {t: '${{ steps.open.output }}'}",
        store=store,
    )
    assert (result.status, result.outputs) == ("completed", {"t": {"number": 1, "title": "red"}})
    assert json.loads(file.read_text())["body"] == "12"
    assert json.loads(file.read_text())["fields"] == {"a": 2}
    assert store.journal(RUN)[0].policy == Replay.NON_REPLAYABLE


def test_what_it_raises_is_a_failure_of_the_step(tmp_path: Path) -> None:
    steps = TICKET.format(file=tmp_path / "f").replace("title: red", "title: boom")
    result = ran(steps)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["type"] == "plugin.KeyError"
    assert result.error["message"].startswith("ticket raised KeyError: 'boom' (ticket.py:")
    caught = ran(steps + "  catch: [{on: ['plugin.*'], output: 0}]\n", "outputs: {t: '${{ steps.open.output }}'}")
    assert (caught.status, caught.outputs) == ("completed", {"t": 0})


@pytest.mark.parametrize(
    ("use", "settings", "kind"),
    [
        ("raises", "{what: value}", "plugin.ValueError"),
        ("raises", "{what: time}", "timeout"),
        ("wrong_end", "{}", "plugin.TypeError"),
        ("no_json", "{}", "invalid_output"),
    ],
)
@pytest.mark.usefixtures("with_broken")
def test_every_bad_end_has_a_type(use: str, settings: str, kind: str) -> None:
    result = ran(f"- id: a\n  plugin: {{use: {use}, with: {settings}}}\n")
    assert result.error is not None
    assert result.error["type"] == kind


def test_a_type_of_its_own_is_one_of_a_plugin() -> None:
    for given, kind in {"busy": "plugin.busy", "http.503": "http.503", "plugin.Mine": "plugin.Mine"}.items():
        with pytest.raises(StepError) as caught, translated("x"):
            raise StepError(given, "no")
        assert caught.value.type == kind


def test_a_run_does_not_go_on_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Memory()
    steps = "- {id: wait, delay: 2h}\n" + TICKET.format(file=tmp_path / "f")
    assert ran(steps, store=store).status == "sleeping"
    monkeypatch.setattr(kinds, "_added", lambda family, path: ())
    from tramai.errors import TramaiError

    from .written import Clockwork

    with pytest.raises(TramaiError, match="step type 'ticket' is brought by no installed package") as caught:
        engine.resume(RUN, store=store, clock=Clockwork(9e9))
    assert caught.value.code == "TRM706"
    assert "open" not in ends(store)
    monkeypatch.undo()
    assert engine.resume(RUN, store=store, clock=Clockwork(9e9)).status == "completed"


def test_a_run_that_is_over_can_be_looked_at_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Memory()
    assert ran(TICKET.format(file=tmp_path / "f"), store=store).status == "completed"
    monkeypatch.setattr(kinds, "_added", lambda family, path: ())
    assert again(store).status == "completed"
    restored = engine.restore(store, store.get(RUN))
    assert restored.outline()[0].verb == "plugin"
    assert isinstance(restored.nodes["open"].step, build.verb_class("plugin"))


# By the command line, in processes of their own.

WORKFLOW = """\
tramai: 1
name: tickets
inputs: {pause: {type: boolean, default: false}}
steps:
  - id: first
    plugin: {use: ticket, with: {title: one, board: {file: tickets.jsonl}}}
  - id: second
    plugin: {use: ticket, with: {title: two, board: {file: tickets.jsonl}, pause: PAUSE}}
outputs: {number: "${{ steps.second.output.number }}"}
"""


def write(folder: Path, pause: str = "0s") -> Path:
    file = folder / "tickets.yaml"
    file.write_text(WORKFLOW.replace("PAUSE", pause))
    return file


def test_it_is_validated_run_and_resumed(tmp_path: Path, example: Path, broken: Path) -> None:
    write(tmp_path)
    packages = (example, broken)
    found = tramai(tmp_path, "validate", "tickets.yaml", packages=packages)
    assert (found.returncode, found.stderr) == (0, ""), found.stdout
    found = tramai(tmp_path, "plan", "tickets.yaml", packages=packages)
    assert "reaches outside: plugin ticket" in found.stdout
    found = tramai(tmp_path, "run", "tickets.yaml", "--json", packages=packages)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1])["outputs"] == {"number": 2}
    found = tramai(tmp_path, "resume", "@last", "--json", packages=packages)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "tickets.jsonl").read_text().count("\n") == 2
    assert tramai(tmp_path, "show", "@last").returncode == 0
    found = tramai(tmp_path, "validate", "tickets.yaml")
    assert found.returncode == 1
    assert "no installed package brings the step type `ticket`" in found.stdout


def test_killed_in_mid_step_it_is_not_done_twice(tmp_path: Path, example: Path) -> None:
    write(tmp_path, pause="1h")
    tickets = tmp_path / "tickets.jsonl"
    running = subprocess.Popen(
        [sys.executable, "-m", "tramai", "run", "tickets.yaml", "--lease", "1s"],
        cwd=tmp_path,
        env=environment(tmp_path, (example,)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (tickets.exists() and tickets.read_text().count("\n") == 2):
            assert running.poll() is None
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    found = tramai(tmp_path, "resume", "@last", packages=(example,))
    assert found.returncode == 5, found.stderr
    assert "second" in found.stderr
    assert tickets.read_text().count("\n") == 2
    told = ["--as", "completed", "--output", '{"number": 2}']
    found = tramai(tmp_path, "resolve", "@last", "second", *told, packages=(example,))
    assert found.returncode == 0, found.stderr
    found = tramai(tmp_path, "resume", "@last", "--json", packages=(example,))
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1])["outputs"] == {"number": 2}
    assert [json.loads(line)["title"] for line in tickets.read_text().splitlines()] == ["one", "two"]


def test_workflow_tests_stub_it_and_crash_everywhere(tmp_path: Path, example: Path) -> None:
    (tmp_path / "ticket.yaml").write_bytes((HERE / "example" / "ticket.yaml").read_bytes())
    (tmp_path / "ticket.tramai-test.yaml").write_text(
        "workflow: ticket.yaml\n"
        "tests:\n"
        "  - name: a ticket is opened\n"
        "    secrets: {BOARD_TOKEN: abcdefgh}\n"
        "    stubs:\n"
        "      test: {result: {exit_code: 1, stdout: a, stderr: '', truncated: false}}\n"
        "      report: {output: {number: 3}}\n"
        "    expect: {outputs: {ticket: 3}}\n"
        "    crash_everywhere: true\n"
    )
    found = tramai(tmp_path, "test", "ticket.tramai-test.yaml", packages=(example,))
    assert found.returncode == 0, found.stdout
    assert "1 passed" in found.stdout


def test_what_never_ends_is_cancelled_by_its_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    kind = _plugin_kind.load("ticket")

    async def run(self: Any, ctx: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(kind, "run", run)
    monkeypatch.setattr(kind, "straight", False)
    result = ran(TICKET.format(file="f") + "  timeout: 50ms\n")
    assert result.error is not None
    assert result.error["type"] == "timeout"


def test_a_secret_in_what_it_raises_or_gives_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "canary-of-sixteen")
    kind = _plugin_kind.load("ticket")

    async def run(self: Any, ctx: Any) -> Any:
        raise ValueError(f"no {ctx.text(self.token)}")

    monkeypatch.setattr(kind, "run", run)
    store = Memory()
    steps = TICKET.format(file="f") + "      token: ${{ secrets.KEY }}\n"
    result = ran(steps, "secrets: {KEY: {env: KEY}}", store=store)
    assert result.error is not None
    assert result.error["message"].startswith("ticket raised ValueError: no ***")
    assert "canary" not in repr(store.journal(RUN)) + repr(store.notes(RUN))


def test_a_run_without_plugins_looks_for_none(tmp_path: Path, example: Path) -> None:
    (tmp_path / "w.yaml").write_text("tramai: 1\nname: w\nsteps: [{id: a, local: 1}]\n")
    for _ in range(2):  # with and without a plan that was kept
        found = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "tramai", "run", "w.yaml", "--store", "memory:"],
            cwd=tmp_path,
            env=environment(tmp_path, (example,)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        loaded = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines() if "|" in line}
        assert "tramai.kinds" in loaded
        assert {name for name in loaded if name.startswith(("importlib.metadata", "tramai_example"))} == set()
        assert "tramai.steps.plugin" not in loaded
