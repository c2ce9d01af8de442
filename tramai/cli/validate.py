"""`tramai validate`: find every mistake in workflow files, and mend the mechanical ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import ConfigurationError, UsageError
from ._group import verb
from ._session import Session

if TYPE_CHECKING:
    from ..document import Document
    from ..errors import Problem
    from ._documents import File
    from ._terminal import Terminal

FORMATS = ("text", "json", "github", "gitlab", "azure", "sarif", "junit")


@verb(
    "validate", "tramai validate review.yaml", "tramai validate workflows/ --strict",
    "tramai validate workflows/ --format github", "tramai validate review.yaml --fix",
)  # fmt: skip
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@click.option("--format", "form", type=click.Choice(FORMATS), help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
@click.option("--strict", is_flag=True, help="Warnings count as errors; with --fix, they are mended too.")
@click.option("--fix", is_flag=True, help="Mend mechanical mistakes in the files; everything else stays.")
@click.option("--diff", "show_diff", is_flag=True, help="With --fix: show the changes, write nothing.")
@click.option("-o", "--output", metavar="FILE", help="Write the report to a file.")
def command(
    session: Session,
    paths: tuple[str, ...],
    form: str | None,
    strict: bool,
    fix: bool,
    show_diff: bool,
    output: str | None,
) -> int:
    """Find every mistake in workflow files, without running anything.

    PATHS are files, folders, or - for standard input. In a folder, the *.yaml,
    *.yml and *.toml files with a top-level `tramai` key are checked, and files
    of workflow tests (*.tramai-test.yaml, *.tramai-test.toml).

    All independent problems of a file are found in one pass; the text shows at
    most 20 of each file. `tramai explain CODE` explains one.

    --fix mends misspelt keys, `yes` for true, numbers without quotes, missing
    ${{ }} and the like. A fix is made only when the file then says exactly that
    and nothing worse; comments and all other bytes stay.

    Exit status: 0 no errors (left), 1 errors (with --strict also warnings), 3 a
    path cannot be read or written.
    """
    form = _form(session, form, fix=fix, show_diff=show_diff, paths=paths)
    from . import _paths

    session.variables()
    shown = _buffer() if output is not None else session.out
    checks = [_Check(session, path, shown if form == "text" else None) for path in _paths.files(paths, tests=True)]
    for one in checks:
        one.look(fix=fix, strict=strict, show_diff=show_diff)
    files = [one.report for one in checks]
    _print(session, form, checks, shown, strict=strict)
    if output is not None:
        from . import _write

        _write.replace(output, shown.stream.detach().getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    found = [problem.severity for report in files for problem in report.problems]
    if any(one.failed for one in checks):
        return 3
    return 1 if "error" in found or (strict and found) else 0


def _form(session: Session, form: str | None, *, fix: bool, show_diff: bool, paths: tuple[str, ...]) -> str:
    if show_diff and not fix:
        raise UsageError(what="--diff shows what --fix would change", hint="tramai validate --fix --diff PATHS...")
    if fix and "-" in paths:
        raise UsageError(what="--fix changes files; standard input is none", hint="name a file")
    if form not in (None, "json") and session.json:
        raise UsageError(what=f"--json and --format {form} are two formats", hint="keep one of them")
    if form == "json":
        session.flags["json"] = True
    return "json" if session.json else form or "text"


def _buffer() -> Terminal:
    """A stream for a report that goes to a file: UTF-8 without colours."""
    import io

    from ._terminal import Terminal

    return Terminal(io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline=""), colour="never")


class _Check:
    """One file: looked at, mended if wished, and what is to be said of it."""

    def __init__(self, session: Session, path: str, out: Terminal | None) -> None:
        self.path = path
        self.failed = False
        self.source: Document | None = None
        self.problems: tuple[Problem, ...] = ()
        self._session = session
        self._out = out

    def look(self, *, fix: bool, strict: bool, show_diff: bool) -> None:
        """Read and check the file, and make the report."""
        from msgspec import UNSET

        from .. import document, plan, workflow
        from . import _documents, _encode, _paths

        fixed: Any = UNSET
        diff: Any = UNSET
        try:
            self.source = document.read(self.path)
            self._session.sources[self.source.file] = self.source.text
            if _paths.is_test(self.path):
                found, self.problems = None, _of_tests(self.source)
            else:
                found, self.problems = workflow.examine(self.source)
            if fix and not _paths.is_test(self.path):
                done, diff = self._mend(strict=strict, show_diff=show_diff)
                fixed = [_encode.finding(one) for one in done]
                found, self.problems = workflow.examine(self.source)
        except ConfigurationError as error:
            self._fail(error)
            return
        if found is not None:
            from .. import surroundings

            more = (*workflow.advise(found), *surroundings.problems(found, providers=self._session.settings.providers))
            self.problems = tuple(sorted((*self.problems, *more), key=lambda problem: problem.sort_key()))
        if self._out is not None:
            self._tell()
        sound = found is not None and not any(problem.severity == "error" for problem in self.problems)
        made = found if sound else None
        self.report = _documents.File(
            file=self.path,
            name=made.name if made else None,
            version=made.version if made else None,
            digest=plan.of(made).digest if made and self._session.json else None,  # only the document shows it
            problems=[_encode.finding(problem) for problem in self.problems],
            fixed=fixed,
            diff=diff if show_diff else UNSET,
        )

    def _mend(self, *, strict: bool, show_diff: bool) -> tuple[tuple[Problem, ...], str]:
        """What was mended, and the diff. The file is written unless the diff is all that is wanted."""
        from .. import fixes
        from . import _write

        assert self.source is not None
        mended = fixes.mend(self.source, warnings=strict)
        lines = _write.diff(self.path, self.source.text, mended.document.text) if mended.done else []
        if mended.done and not show_diff:
            mark = "\ufeff" if _write.has_mark(self.path) else ""
            _write.replace(self.path, mark + mended.document.text)
        self._tell_fixed(mended.done, lines if show_diff else None)
        if not show_diff:
            self.source = mended.document
            self._session.sources[self.source.file] = self.source.text
        return mended.done, "\n".join(lines) + "\n" if lines else ""

    def _tell_fixed(self, done: tuple[Problem, ...], diff: list[str] | None) -> None:
        from ._terminal import safe

        if self._out is None:
            return
        if diff is not None:
            for line in diff:
                self._out.line(safe(line.rstrip("\r")))
            return
        for one in done:
            place = f"{safe(self.path)}:{one.position.line}:{one.position.column}" if one.position else safe(self.path)
            self._out.line(f"{self._out.paint('fixed', 'green')}[{one.code}] {place}: {safe(one.message)}")

    def _fail(self, error: ConfigurationError) -> None:
        from . import _documents
        from ._errors import text

        self.failed = True
        finding = _documents.Finding(
            code=error.code, severity="error", message=error.message, hint=error.hint, line=None, column=None,
            end_line=None, end_column=None, path="", related=[],
        )  # fmt: skip
        self.report = _documents.File(file=self.path, name=None, version=None, digest=None, problems=[finding])
        if not self._session.json:
            for line in [*text(self._session, error), ""]:
                self._session.err.line(line)

    def _tell(self) -> None:
        from ._errors import problem_blocks

        assert self._out is not None
        for block in problem_blocks(self._session, self.problems, terminal=self._out):
            for line in block:
                self._out.line(line)
        if self._session.verbose and not self.problems:
            self._out.line(f"ok  {self.path}")


def _of_tests(source: Document) -> tuple[Problem, ...]:
    """What is wrong with a file of workflow tests; its workflow is a file of its own."""
    from ..testing import reading

    return tuple(
        problem
        for problem in reading.examine(source).problems
        if problem.position is None or problem.position.file == source.file
    )


def _print(session: Session, form: str, checks: list[_Check], out: Terminal, *, strict: bool) -> None:
    files = [one.report for one in checks]
    if form == "json":
        from . import _documents
        from ._encode import dump

        out.line(dump(_documents.Validation(files=files)))
    elif form in ("github", "azure"):
        from . import _ci, _problem_reports

        for line in _problem_reports.lines(files, _ci.dialect(form)):
            out.line(line)
        session.note(_summary(files))
    elif form == "gitlab":
        from . import _problem_reports

        out.line(_problem_reports.code_quality(files))
    elif form == "junit":
        from . import _junit

        out.line(_junit.document(files, strict=strict))
    elif form == "sarif":
        from . import _sarif

        out.line(_sarif.document(files, _edits(checks)))
    else:
        out.line(_summary(files))


def _edits(checks: list[_Check]) -> Any:
    """The edits of every problem that has some, by file, code and pointer."""
    from .. import fixes

    found = {}
    for one in checks:
        for problem in one.problems:
            if one.source is not None and problem.fix and (edits := fixes.edits(one.source, problem)):
                found[one.path, problem.code, problem.path] = (problem.hint or "", edits)
    return found


def _summary(files: list[File]) -> str:
    severities = [problem.severity for report in files for problem in report.problems]
    errors, warnings = severities.count("error"), severities.count("warning")
    said = f"{_count(len(files), 'file')} checked"
    fixed = sum(len(report.fixed) for report in files if isinstance(report.fixed, list))
    dry = any(isinstance(report.diff, str) for report in files)
    said += f", {fixed} {'can be fixed' if dry else 'fixed'}" if fixed else ""
    if not severities:
        return f"{said}, no problems"
    return f"{said}: {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
