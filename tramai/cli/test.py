"""`tramai test`: run workflow tests, with stubs in the place of the world."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
import msgspec

from ..errors import ConfigurationError, UsageError
from ._group import verb
from ._session import Session

if TYPE_CHECKING:
    from ..testing.reading import Loaded
    from ..testing.running import Outcome
    from ..testing.suite import Case


class Report(msgspec.Struct):
    """One test file and what its tests found."""

    file: str
    loaded: Loaded | None
    error: ConfigurationError | None = None
    outcomes: list[Outcome] = []
    late: tuple = ()  # type: ignore[type-arg]
    """Problems of the file that are only known once all its tests have been run."""

    @property
    def sound(self) -> bool:
        """Whether its tests can be run."""
        return self.loaded is not None and self.loaded.sound


@verb(
    "test",
    "tramai test workflows/",
    "tramai test review.tramai-test.yaml -k conflict",
    "tramai test . --report junit=tests.xml",
    "tramai test . --list",
)
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@click.option("-k", "words", metavar="TEXT", multiple=True, help="Only tests with this text in their name or file.")
@click.option("--list", "listed", is_flag=True, help="Print the names of the tests, and run none.")
@click.option("--report", metavar="junit=FILE", help="Also write the results to a file.")
def command(session: Session, paths: tuple[str, ...], words: tuple[str, ...], listed: bool, report: str | None) -> int:
    """Run workflow tests, with stubs in the place of the world.

    PATHS are test files, or folders in which every *.tramai-test.yaml and
    *.tramai-test.toml is one. A test names what steps answer, and what must be
    true at the end. Steps that only compute really run; a step that reaches
    outside and has no stub fails the test before it does anything. Time passes
    at once. Nothing is kept.

    All files are checked before the first test runs.

    Exit status: 0 all passed, 1 a test failed, 2 no test, 3 a test file or its
    workflow is invalid, and no test was run.
    """
    from . import _paths

    target = _target(report)
    reports = [_read(session, file) for file in _paths.test_files(paths)]
    began = time.monotonic()
    sound = all(one.sound for one in reports)
    if not sound:
        _refuse(session, reports)
    elif listed:
        return _list(session, reports, words)
    else:
        _run(session, reports, words)
    _tell(session, reports, time.monotonic() - began)
    _annotate(session, reports)
    if target is not None:
        from ._test_junit import document

        _write(target, document(reports))
    if not sound:
        return 3
    return 0 if all(not one.late and all(outcome.passed for outcome in one.outcomes) for one in reports) else 1


def _target(report: str | None) -> str | None:
    if report is None:
        return None
    kind, _, file = report.partition("=")
    if kind != "junit" or not file:
        raise UsageError(what=f"--report {report} is not known", hint="write --report junit=FILE")
    return file


def _read(session: Session, path: str) -> Report:
    from ..testing import reading

    try:
        loaded = reading.check_file(path)
    except ConfigurationError as error:
        return Report(path, None, error)
    session.sources[loaded.document.file] = loaded.document.text
    return Report(path, loaded)


def _chosen(reports: list[Report], words: tuple[str, ...]) -> list[tuple[Report, list[tuple[int, Case]]]]:
    """The tests to run, file by file; UsageError when there is none."""
    from ..testing import running

    chosen = [(one, running.cases(one.loaded, words)) for one in reports if one.loaded is not None]
    if not any(cases for _, cases in chosen):
        raise UsageError(what=f"no test has {' or '.join(words)} in its name or file")
    return chosen


def _list(session: Session, reports: list[Report], words: tuple[str, ...]) -> int:
    """A line for each test, as `-k` finds it."""
    names = [(one.file, case.name) for one, cases in _chosen(reports, words) for _, case in cases]
    if session.json:
        from ._test_documents import Listed, ListedTest

        session.emit(Listed(tests=[ListedTest(file=file, name=name) for file, name in names]))
        return 0
    for file, name in names:
        session.out.line(f"{_safe(file)}::{_safe(name)}")
    return 0


def _annotate(session: Session, reports: list[Report]) -> None:
    """What is wrong, for the CI system that runs us."""
    from . import _ci

    system = None if session.json else _ci.wanted(session)
    if system is None:
        return
    from ._encode import finding
    from ._problem_reports import annotation, of_error

    found = [one for report in reports if report.error is not None for one in of_error(report.error)]
    for report in reports:
        early = report.loaded.problems if report.loaded is not None else ()
        for problem in (*early, *report.late, *(one for outcome in report.outcomes for one in outcome.problems)):
            found.append(annotation(finding(problem), problem.position.file if problem.position else report.file))
    for line in _ci.told(_ci.dialect(system), found):
        session.err.line(line)


def _run(session: Session, reports: list[Report], words: tuple[str, ...]) -> None:
    """Run the tests, and print each as it ends."""
    from ..testing import running

    for one, cases in _chosen(reports, words):
        assert one.loaded is not None
        assert one.loaded.suite is not None
        if cases and not (session.json or session.quiet):
            session.out.line(session.out.paint(_safe(one.file), "bold"))
        for index, _ in cases:
            outcome = running.run(one.loaded, index)
            one.outcomes = [*one.outcomes, outcome]
            _show(session, outcome)
        if len(cases) == len(one.loaded.suite.tests):
            one.late = running.unused(one.loaded, one.outcomes)
            _problems(session, one.late)


def _show(session: Session, outcome: Outcome) -> None:
    from ._clockface import took
    from ._glyphs import glyph

    if session.json or (session.quiet and outcome.passed):
        return
    sign = glyph(session.out, "succeeded" if outcome.passed else "failed")
    crashes = f", {outcome.crashes} crashes" if outcome.crashes else ""
    tail = session.out.paint(f"({took(outcome.seconds)}{crashes})", "dim")
    session.out.line(f"  {sign} {_safe(outcome.name)}  {tail}")
    _problems(session, outcome.problems)


def _problems(session: Session, problems: tuple) -> None:  # type: ignore[type-arg]
    if session.json:
        return
    from ._errors import problem_blocks

    for block in problem_blocks(session, problems, terminal=session.out):
        for line in block:
            session.out.line(line)


def _refuse(session: Session, reports: list[Report]) -> None:
    """Print what is wrong with the files."""
    if session.json:
        return
    from ._errors import text

    for one in reports:
        if one.error is not None:
            for line in [*text(session, one.error), ""]:
                session.out.line(line)
        elif one.loaded is not None:
            _problems(session, one.loaded.problems)


def _tell(session: Session, reports: list[Report], seconds: float) -> None:
    """The document, or the last lines."""
    if session.json:
        session.emit(_document(reports, seconds))
        return
    from ._clockface import took

    if not all(one.sound for one in reports):
        bad = sum(not one.sound for one in reports)
        session.out.line(f"no test was run: {_count(bad, 'file')} of {len(reports)} cannot be used")
        return
    outcomes = [outcome for one in reports for outcome in one.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    for file, missed in _missed(reports).items():
        if missed and not session.quiet:
            session.out.line(f"not reached by any test of {_safe(file)}: {', '.join(missed)}")
    said = f"{_count(len(outcomes), 'test')}: {len(outcomes) - failed} passed, {failed} failed"
    late = sum(len(one.late) for one in reports)
    extra = f", {_count(late, 'unused stub')}" if late else ""
    session.out.line(f"{said}{extra} in {took(seconds)}")


def _missed(reports: list[Report]) -> dict[str, tuple[str, ...]]:
    """By workflow file: the steps that no test of any file came to."""
    from ..testing import running
    from ..testing.reading import workflow_path

    groups: dict[str, list[Report]] = {}
    for one in reports:
        if one.loaded is not None and one.loaded.suite is not None and one.outcomes:
            groups.setdefault(workflow_path(one.loaded.suite, one.file), []).append(one)
    found = {}
    for file, group in groups.items():
        first = group[0].loaded
        assert first is not None
        found[file] = running.missed(first, [outcome for one in group for outcome in one.outcomes])
    return found


def _document(reports: list[Report], seconds: float) -> object:
    from ..testing.reading import workflow_path
    from . import _encode
    from ._test_documents import Tested, TestedFile, Tests

    missed = _missed(reports)
    files = []
    for one in reports:
        loaded = one.loaded
        where = workflow_path(loaded.suite, one.file) if loaded is not None and loaded.suite is not None else None
        problems = (*loaded.problems, *one.late) if loaded is not None else ()
        tests = [
            Tested(
                name=outcome.name,
                line=outcome.position.line,
                column=outcome.position.column,
                status="passed" if outcome.passed else "failed",
                seconds=round(outcome.seconds, 4),
                crashes=outcome.crashes,
                problems=[_encode.finding(problem) for problem in outcome.problems],
            )
            for outcome in one.outcomes
        ]
        found = [_encode.finding(problem) for problem in problems]
        if one.error is not None:
            found = [_encode.unplaced(one.error)]
        files.append(
            TestedFile(
                file=one.file, workflow=where, problems=found, tests=tests, missed=list(missed.get(where or "", ()))
            )
        )
    outcomes = [outcome for one in reports for outcome in one.outcomes]
    passed = sum(outcome.passed for outcome in outcomes)
    return Tests(passed=passed, failed=len(outcomes) - passed, seconds=round(seconds, 4), files=files)


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationError(what=f"--report: {path} cannot be written: {error.strerror}") from None


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _safe(text: str) -> str:
    from ._terminal import safe

    return safe(text)
