"""The plugin for pytest: files are collected, failures can be read, nobody else is disturbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.support import HELLO
from tramai.testing import pytest_plugin, suite

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ("-p", "tramai.testing.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a workflow, and pytest in processes of its own that loads our plugin."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (pytester.path / "hello.yaml").write_text(HELLO)
    return pytester


def test_the_endings_are_those_of_test_files() -> None:
    assert pytest_plugin.ENDINGS == suite.ENDINGS


def test_tests_are_collected_and_failures_say_what_and_where(project: pytest.Pytester) -> None:
    (project.path / "hello.tramai-test.yaml").write_text(
        "workflow: hello.yaml\ntests:\n"
        "  - {name: it greets, stubs: {shout: {output: A}}, expect: {outputs: {greeting: A}}}\n"
        "  - name: it greets wrongly\n    stubs: {shout: {output: A}}\n    expect:\n      outputs: {greeting: B}\n"
    )
    ran = project.runpytest_subprocess(*PLUGIN, "-v")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "hello.tramai-test.yaml::it greets PASSED*",
            "hello.tramai-test.yaml::it greets wrongly FAILED*",
            'error*TRM771*: outputs.greeting is "A", expected "B"',
            "*hello.tramai-test.yaml:7:27",
            "*outputs: {greeting: B}*",
        ]
    )
    assert "Traceback" not in ran.stdout.str()


def test_one_test_is_chosen_by_its_name(project: pytest.Pytester) -> None:
    (project.path / "hello.tramai-test.yaml").write_text(
        "workflow: hello.yaml\nallow: [shell]\ntests: [{name: one}, {name: two}]\n"
    )
    project.runpytest_subprocess(*PLUGIN, "-k", "two").assert_outcomes(passed=1, deselected=1)
    project.runpytest_subprocess(*PLUGIN, "hello.tramai-test.yaml::one").assert_outcomes(passed=1)


def test_a_file_that_is_not_valid_is_an_error_of_the_collection(project: pytest.Pytester) -> None:
    (project.path / "hello.tramai-test.yaml").write_text("workflow: hello.yaml\ntests: [{nmae: one}]\n")
    ran = project.runpytest_subprocess(*PLUGIN)
    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*TRM104*: unknown key `nmae`*", "*help: did you mean `name`?*"])


def test_a_stub_of_the_file_that_no_test_used_fails_the_last_one(project: pytest.Pytester) -> None:
    (project.path / "hello.tramai-test.yaml").write_text(
        "workflow: hello.yaml\nstubs: {shout: {output: 1}, greeting: {output: 2}}\n"
        "tests:\n  - {name: one, stubs: {greeting: {output: 3}}}\n  - {name: two, stubs: {greeting: {output: 3}}}\n"
    )
    ran = project.runpytest_subprocess(*PLUGIN)
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["*TRM774*: the stub `greeting` was never used"])


def test_tests_in_python_are_lent_a_workflow(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        def test_greets(tramai_run):
            ran = tramai_run("hello.yaml", inputs={"name": "you"}, stubs={"shout": {"output": "HEY"}})
            assert ran.outputs == {"greeting": "HEY"}
            assert ran.calls[0].given["env"] == {"TEXT": "Hello, you!"}

        def test_goes_on(tramai_run):
            assert tramai_run("hello.yaml", stubs={"shout": {"output": 1}}, crash_after="greeting").was_cut

        def test_reaches_outside(tramai_run):
            tramai_run("hello.yaml")
        """
    )
    ran = project.runpytest_subprocess(*PLUGIN, "-W", "error")
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["*`shout` would reach outside*"])


def test_who_does_not_use_it_pays_for_the_module_alone(tmp_path: Path) -> None:
    code = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import tramai.testing.pytest_plugin\n"
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('_')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert eval(done.stdout) == ["tramai", "tramai.testing", "tramai.testing.pytest_plugin"]


def test_it_is_announced_to_pytest() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["entry-points"]["pytest11"] == {"tramai": pytest_plugin.__name__}
