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

    Exit status: 0 printed.
    """
    from click.shell_completion import get_completion_class

    from . import _documents
    from ._group import group

    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(group, {}, "tramai", "_TRAMAI_COMPLETE")
    script = made.source_template % made.source_vars()
    if session.json:
        session.emit(_documents.Completion(shell=shell, script=script))
    else:
        session.out.write(script)
    return 0
