"""`tramai completion`: print the completion script of a shell."""

from __future__ import annotations

import click

from ._group import verb
from ._session import Session

SHELLS = ("bash", "zsh", "fish")


@verb(
    "completion",
    "tramai completion bash > ~/.local/share/bash-completion/completions/tramai",
    "tramai completion zsh > ~/.zfunc/_tramai",
    "tramai completion fish > ~/.config/fish/completions/tramai.fish",
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
def command(session: Session, shell: str) -> int:
    """Print the completion script of bash, zsh or fish.

    It completes commands, flags, workflow files, their inputs and steps, runs
    (newest first), steps of a run, topics, codes and names of schemas. What
    cannot be known at once is not completed, and no error is ever shown.

    Exit status: 0 printed.
    """
    from . import _documents, _shell_scripts

    script = _shell_scripts.SCRIPTS[shell]
    if session.json:
        session.emit(_documents.Completion(shell=shell, script=script))
    else:
        session.out.write(script)
    return 0
