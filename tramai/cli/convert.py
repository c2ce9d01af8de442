"""`tramai convert`: write a workflow file in the other format."""

from __future__ import annotations

import click

from ..errors import CannotConvert, UsageError
from ._group import verb
from ._session import Session


@verb("convert", "tramai convert review.yaml --to toml -o review.toml", "tramai convert - --to yaml < review.toml")
@click.argument("file", metavar="FILE")
@click.option("--to", type=click.Choice(["toml", "yaml"]), required=True, help="toml or yaml.")
@click.option("-o", "--output", metavar="FILE", help="Write it to a file.")
def command(session: Session, file: str, to: str, output: str | None) -> int:
    """Write a workflow file as TOML or YAML, with the same digest.

    The result is read again before it is given away: same digest, same data.
    Comments are carried over; those without a place there are named on standard
    error. Texts of several lines stay readable.

    Exit status: 0 done, 1 it cannot be said in that format, 2 it is in that
    format already, 3 it has errors, or a file cannot be read or written.
    """
    from .. import document, formatting
    from . import _file_documents, _write
    from ._terminal import safe

    source = document.read(file)
    session.sources[source.file] = source.text
    if source.format == to:
        raise UsageError(what=f"{file} is {to.upper()} already", hint="tramai fmt puts a file into canonical form")
    if output is not None:
        _refuse_name(output, to)
    try:
        made = formatting.convert_document(source, to)
    except formatting.Unwritable as error:
        raise CannotConvert(file=file, to=to.upper(), what=str(error), position=error.position) from None
    if output is not None:
        _write.replace(output, made.text)
    if session.json:
        session.emit(
            _file_documents.Conversion(
                file=file,
                to="toml" if to == "toml" else "yaml",
                digest=made.digest,
                output=output,
                text=made.text if output is None else None,
                lost=[_file_documents.Lost(line=one.line, text=one.text) for one in made.lost],
            )
        )
        return 0
    if output is None:
        session.out.write(made.text)
    else:
        session.note(f"{safe(file)} written to {safe(output)}, digest {made.digest[:8]} in both")
    for one in made.lost:
        session.err.line(
            f"warning: {safe(file)}:{one.line}: no place in {to.upper()} for this comment: {safe(one.text)}"
        )
    return 0


def _refuse_name(output: str, to: str) -> None:
    """The name of a file says its format: one that says the other could not be read again, even as the source."""
    stem, dot, ending = output.rpartition(".")
    said = {"yaml": "yaml", "yml": "yaml", "toml": "toml"}.get(ending.lower()) if dot else None
    if said not in (None, to):
        what = f"--output: {output} is read as {str(said).upper()}, and would hold {to.upper()}"
        raise UsageError(what=what, hint=f"name it {stem}.{to}")
