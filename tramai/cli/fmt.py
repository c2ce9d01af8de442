"""`tramai fmt`: put workflow files into canonical form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import CannotFormat, ConfigurationError, InvalidDefinition, TramaiError, UsageError
from ._group import verb
from ._session import Session

if TYPE_CHECKING:
    from ..document import Document
    from ..formatting import Formatted
    from ._file_documents import FormattedFile


@verb(
    "fmt", "tramai fmt", "tramai fmt review.yaml --diff", "tramai fmt workflows/ --check", "tramai fmt - < review.yaml"
)
@click.argument("paths", metavar="[PATHS]...", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option("--diff", "show_diff", is_flag=True, help="Write nothing; show what would change.")
@click.option("--fix", is_flag=True, help="Mend mechanical mistakes first, as `tramai validate --fix`.")
def command(session: Session, paths: tuple[str, ...], check: bool, show_diff: bool, fix: bool) -> int:
    """Put workflow files into canonical form: order of keys, indentation, quotes.

    PATHS are files or folders (the working folder if there are none); - reads
    standard input and prints the result. Comments stay with what they are
    about. A file is written only when it then has the same digest, the same data
    and the same comments; one with errors is not touched.

    Exit status: 0 done, 1 --check found a file that would change, or a file
    cannot be formatted, 3 a file has errors, or cannot be read or written.
    """
    from . import _file_documents, _paths

    wanted = _paths.files(paths or (".",))
    if "-" in wanted and len(wanted) > 1:
        raise UsageError(what="standard input is formatted alone", hint="tramai fmt - < FILE")
    jobs = [
        _Job(session, path, dry=check or show_diff, diff=show_diff, fix=fix, print_text=not check) for path in wanted
    ]
    files = [job.run() for job in jobs]
    if session.json:
        session.emit(_file_documents.Formatting(files=files))
    elif "-" not in wanted:
        session.note(_summary(files, dry=check or show_diff))
    worst = max((job.exit_status for job in jobs), default=0)
    changed = any(one.status == "formatted" for one in files)
    return worst or (1 if check and changed else 0)


class _Job:
    """One file."""

    def __init__(self, session: Session, path: str, *, dry: bool, diff: bool, fix: bool, print_text: bool) -> None:
        self.exit_status = 0
        self._session = session
        self._path = path
        self._dry = dry
        self._diff = diff
        self._fix = fix
        self._print_text = print_text

    def run(self) -> FormattedFile:
        """Format it, or say why not."""
        from . import _file_documents

        try:
            return self._format()
        except (CannotFormat, ConfigurationError, InvalidDefinition) as error:
            self.exit_status = error.exit_status
            return _file_documents.FormattedFile(file=self._path, status="refused", error=self._refuse(error))

    def _format(self) -> FormattedFile:
        from msgspec import UNSET

        from .. import document
        from . import _file_documents, _write

        source = document.read(self._path)
        self._session.sources[source.file] = source.text
        result, fixed = self._made(source)
        changed = result.text != source.text
        lines = _write.diff(self._path, source.text, result.text) if changed and self._diff else []
        stdin = self._path == "-"
        if changed and not self._dry and not stdin:
            mark = "\ufeff" if _write.has_mark(self._path) else ""
            _write.replace(self._path, mark + result.text)
        if not self._session.json:
            self._tell(result, changed, lines)
        return _file_documents.FormattedFile(
            file=self._path,
            status="formatted" if changed else "unchanged",
            note=result.note,
            fixed=fixed,
            diff="\n".join([*lines, ""]) if lines else "" if self._diff else UNSET,
            text=result.text if stdin and self._print_text else UNSET,
        )

    def _made(self, source: Document) -> tuple[Formatted, int]:
        from .. import fixes, formatting

        fixed = 0
        if self._fix:
            mended = fixes.mend(source)
            source, fixed = mended.document, len(mended.done)
        try:
            return formatting.format_document(source), fixed
        except formatting.Unwritable as error:
            raise CannotFormat(file=self._path, what=str(error)) from None

    def _tell(self, result: Formatted, changed: bool, diff: list[str]) -> None:
        from ._terminal import safe

        if self._path == "-" and not self._dry:
            self._session.out.write(result.text)
            return
        for line in diff:
            self._session.out.line(safe(line.rstrip("\r")))
        if changed and not self._diff:
            self._session.out.line(f"{'would be formatted' if self._dry else 'formatted'}: {safe(self._path)}")
        if changed and result.note:
            self._session.note(f"{safe(self._path)}: {result.note}")

    def _refuse(self, error: TramaiError) -> Any:
        from ._errors import document, text

        if not self._session.json:
            for line in [*text(self._session, error), ""]:
                self._session.err.line(line)
        return document(error, self._session).error


def _summary(files: list[FormattedFile], *, dry: bool) -> str:
    counts = {status: sum(one.status == status for one in files) for status in ("formatted", "unchanged", "refused")}
    words = {"formatted": "would change" if dry else "formatted", "unchanged": "unchanged", "refused": "not touched"}
    told = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    return f"{len(files)} file{'' if len(files) == 1 else 's'}: {told}"
