"""`tramai export`: a whole run as one document, to keep or to attach to a ticket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ._group import verb
from ._session import Session
from ._terminal import safe

if TYPE_CHECKING:
    from ._export_documents import Export


@verb(
    "export",
    "tramai export @failed > ticket.md",
    "tramai export k3f9q2mz --format json -o run.json",
    "tramai export @last --json",
)
@click.argument("run", metavar="RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "md"]),
    help="json or md.  [default: md; json for a file that ends in .json, and with --json]",
)
@click.option("-o", "--output", "file", metavar="FILE", help="Write to this file, for your eyes alone (0600).")
def command(session: Session, run: str, form: str | None, file: str | None) -> int:
    """Write down all that the store has of a run: how it stands, its steps,
    attempts and events, inputs, state, outputs, the journal, the definition, and
    the last lines of attempts that failed.

    RUN is an id, the end of one, @last, @last:WORKFLOW or @failed. Markdown is
    for people and tickets, JSON for programs. Secrets are masked in it, as they
    are in the store. Nothing is changed.

    Exit status: 0 exported, 3 FILE cannot be written, 4 no such run, 7 store
    unusable.
    """
    from . import _export_documents, _select, _whole_run

    store = session.looking()
    run_id = session.run_id = _select.find(store, run)
    whole = _whole_run.of(store, run_id)
    form = form or ("json" if (file or "").lower().endswith(".json") or (session.json and not file) else "md")
    if form == "json" and file is None:
        session.emit(whole)
        return 0
    text = rendered(whole, form)
    if file is not None:
        from . import _write

        _write.private(file, text)
        session.note(f"written: {safe(file)}")
    elif not session.json:
        session.out.write(text)
    if session.json:
        told = None if file is not None else text
        session.emit(_export_documents.Exported(run_id=run_id, format=form, output=file, text=told))  # type: ignore[arg-type]
    return 0


def rendered(whole: Export, form: str) -> str:
    """The text of a file: a page of Markdown, or JSON on many lines."""
    if form == "md":
        from . import _run_markdown

        return _run_markdown.page(whole)
    import json

    import msgspec

    return json.dumps(msgspec.to_builtins(whole), indent=2, allow_nan=False) + "\n"
