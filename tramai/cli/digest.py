"""`tramai digest`: print the digest of workflow files."""

from __future__ import annotations

import click

from ._group import verb
from ._session import Session
from ._terminal import safe


@verb("digest", "tramai digest review.yaml", "tramai digest workflows/*.yaml --json")
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
def command(session: Session, files: tuple[str, ...]) -> int:
    """Print the digest of each workflow file: the same meaning, the same digest.

    Comments, key order, quotes, formatting, YAML or TOML, and the file's name do
    not change it; anything that changes what a run does, does.

    Exit status: 0 printed, 3 a file is invalid or cannot be read.
    """
    from . import _documents, _load

    found = []
    for file in files:
        made = _load.plan_of(session, file)
        found.append(
            _documents.Digested(
                file=file,
                name=made.workflow.name,
                version=made.workflow.version,
                digest=made.digest,
                steps=made.step_digests,
            )
        )
    if session.json:
        session.emit(_documents.Digest(files=found))
        return 0
    for one in found:
        session.out.line(f"{one.digest}  {safe(one.file)}")
        if session.verbose:
            for step, digest in one.steps.items():
                session.out.line(f"  {digest}  {step}")
    return 0
