"""The plugin for pytest: workflow tests are collected as items, and tests in Python are lent `tramai_run`.

It is loaded in every run of pytest where tramai is installed, so nothing else of tramai is imported before a test file
or the fixture is used. `-p no:tramai` turns it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..errors import Problem
    from .ran import Ran
    from .reading import Loaded
    from .running import Outcome

ENDINGS = (".tramai-test.yaml", ".tramai-test.yml", ".tramai-test.toml")
"""`suite.ENDINGS`, without the import."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file of workflow tests."""
    if not file_path.name.lower().endswith(ENDINGS):
        return None
    collected: pytest.Collector = WorkflowTestFile.from_parent(parent, path=file_path)
    return collected


class Unmet(Exception):
    """A workflow test has failed, with these problems."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__(problems[0].message)


class WorkflowTestFile(pytest.File):
    """A `*.tramai-test.yaml` file."""

    loaded: Loaded
    outcomes: dict[int, Outcome]

    def collect(self) -> Iterator[pytest.Item]:
        """Its tests; a file that is not valid is an error of the collection."""
        from ..errors import ConfigurationError
        from . import reading, running

        self.outcomes = {}
        try:
            self.loaded = reading.check_file(str(self.path))
        except ConfigurationError as error:
            raise self.CollectError(error.message) from None
        if not self.loaded.sound:
            raise self.CollectError(self.tell(self.loaded.problems))
        for index, case in running.cases(self.loaded):
            yield WorkflowTestItem.from_parent(self, name=case.name, index=index)

    def tell(self, problems: tuple[Problem, ...]) -> str:
        """Problems as text, with the lines they are about."""
        from ._telling import tell

        return tell(problems, {self.loaded.document.file: self.loaded.document.text})


class WorkflowTestItem(pytest.Item):
    """One test of such a file."""

    def __init__(self, *, index: int, **rest: Any) -> None:
        super().__init__(**rest)
        self.index = index

    def runtest(self) -> None:
        """Run it; the last one of a file also looks for stubs of the file that nothing has used."""
        from . import running

        owner = self.parent
        assert isinstance(owner, WorkflowTestFile)
        outcome = owner.outcomes[self.index] = running.run(owner.loaded, self.index)
        problems = outcome.problems
        assert owner.loaded.suite is not None
        if len(owner.outcomes) == len(owner.loaded.suite.tests):
            problems += running.unused(owner.loaded, owner.outcomes.values())
        if problems:
            raise Unmet(problems)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong, in the words of `tramai test`."""
        if isinstance(excinfo.value, Unmet) and isinstance(self.parent, WorkflowTestFile):
            return self.parent.tell(excinfo.value.problems)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands."""
        assert isinstance(self.parent, WorkflowTestFile)
        position = self.parent.loaded.document.position(("tests", self.index, "name"))
        return self.path, position.line - 1, self.name


@pytest.fixture
def tramai_run(request: pytest.FixtureRequest) -> Callable[..., Ran]:
    """Run a workflow with stubs: `tramai_run("review.yaml", inputs={…}, stubs={…})` gives a `tramai.testing.Ran`.

    The path is looked for beside the test, then from the working folder. Takes what `tramai.testing.WorkflowTest`
    takes, and `crash_after`. A step that would reach outside without a stub fails the test.
    """

    def run(workflow: Any, *, crash_after: str | None = None, **given: Any) -> Ran:
        from .workflow_test import WorkflowTest

        if isinstance(workflow, (str, Path)):
            beside = request.path.parent / workflow
            workflow = beside if beside.is_file() else workflow
        ran = WorkflowTest(workflow, **given).run(crash_after=crash_after)
        if ran.problem is not None:
            hint = f" ({ran.problem.hint})" if ran.problem.hint else ""
            pytest.fail(f"{ran.problem.message}{hint}", pytrace=False)
        return ran

    return run
