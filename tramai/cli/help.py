"""`tramai help`: a topic, or the help of a command, offline."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from ..errors import NotFound
from ._group import SUMMARIES, verb
from ._session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "topics")
ALIASES = {
    "approvals": "gates",
    "approve-a-gate": "gates",
    "catch": "failures",
    "configuration": "settings",
    "cron": "schedules",
    "errors": "failures",
    "exit": "exit-codes",
    "exit-status": "exit-codes",
    "exitcodes": "exit-codes",
    "finally": "failures",
    "github-actions": "ci",
    "language": "workflow",
    "providers": "models",
    "queues": "workers",
    "go-on": "resuming",
    "recovery": "replay",
    "resumes": "resuming",
    "retry": "failures",
    "retries": "failures",
    "runs": "selectors",
    "store-urls": "stores",
    "templates": "expressions",
    "verbs": "steps",
}
"""Other words for topics."""


@verb("help", "tramai help", "tramai help expressions", "tramai help exit-codes", "tramai help store move")
@click.argument("words", metavar="[TOPIC|COMMAND]", nargs=-1)
def command(session: Session, words: tuple[str, ...]) -> int:
    """Explain a topic on one page, or print the help of a command. Works offline.

    Without either, topics and commands are listed. The name of a step's verb
    prints its reference, as `tramai schema step` does, and an error code its
    page, as `tramai explain` does.

    Exit status: 0 explained, 4 no such topic or command.
    """
    if not words:
        return _list(session)
    asked = "-".join(words).lower()
    if words[0] in SUMMARIES:
        return _command(session, words)
    topic = ALIASES.get(asked, asked)
    if topic in topics():
        return _topic(session, topic)
    other = _elsewhere(asked) if len(words) == 1 else None
    if other is None:
        raise NotFound(kind="help topic or command", name=" ".join(words), hint=_near(asked))
    return other(session)


def topics() -> dict[str, str]:
    """Every topic with its title, by name."""
    names = sorted(entry[:-3] for entry in os.listdir(FOLDER) if entry.endswith(".md"))
    return {name: read(name).partition("\n")[0].removeprefix("# ").strip() for name in names}


def read(name: str) -> str:
    """The page of a topic, as Markdown."""
    with open(os.path.join(FOLDER, f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def _list(session: Session) -> int:
    known = topics()
    if session.json:
        return _emit(session, "list", None, None)
    width = max(map(len, known))
    session.out.line(session.out.paint("Topics, for tramai help TOPIC:", "bold"))
    for name, title in known.items():
        session.out.line(f"  {name.ljust(width)}  {title}")
    session.out.line()
    session.out.line(session.out.paint("Commands, for tramai help COMMAND:", "bold"))
    width = max(map(len, SUMMARIES))
    for name, summary in SUMMARIES.items():
        session.out.line(f"  {name.ljust(width)}  {summary}")
    session.out.line()
    session.out.line("tramai explain CODE explains an error, tramai schema step VERB the keys of a step.")
    return 0


def _topic(session: Session, name: str) -> int:
    from . import _pages

    if session.json:
        return _emit(session, "topic", name, read(name))
    for line in _pages.render(read(name), session.out, width=min(session.out.width, 80)):
        session.out.line(line)
    return 0


def _command(session: Session, words: tuple[str, ...]) -> int:
    from ._group import group

    context = group.make_context("tramai", [], resilient_parsing=True)
    found: click.Command = group
    for word in words:
        inner = found.get_command(context, word) if isinstance(found, click.Group) else None
        if inner is None:
            raise NotFound(kind="command", name=" ".join(words), hint=_near_verb(found, context.command_path, word))
        found, context = inner, inner.make_context(word, [], parent=context, resilient_parsing=True)
    text = found.get_help(context)
    if session.json:
        return _emit(session, "command", " ".join(words), text)
    session.out.line(text)
    return 0


def _near_verb(found: click.Command, path: str, word: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, getattr(found, "commands", {}), n=1, cutoff=0.5)
    said = f"tramai help {path.removeprefix('tramai ')}"
    return f"did you mean '{said} {near[0]}'?" if near else f"{said} shows what it has"


def _emit(session: Session, kind: str, name: str | None, text: str | None) -> int:
    from ._help_documents import Help, Topic

    known = [Topic(name=one, title=title) for one, title in topics().items()]
    commands = [Topic(name=one, title=summary) for one, summary in SUMMARIES.items()]
    session.emit(Help(kind=kind, name=name, text=text, topics=known, commands=commands))  # type: ignore[arg-type]
    return 0


def _elsewhere(asked: str) -> Callable[[Session], int] | None:
    """What another command explains: a verb of steps, an error code."""
    from .. import kinds

    if asked in kinds.names("steps"):
        from . import schema

        return lambda session: schema.reference(session, asked)
    if re.fullmatch(r"trm\d+", asked):
        from . import explain

        return lambda session: explain.show(session, asked)
    return None


def _near(asked: str) -> str:
    import difflib

    from .. import kinds

    known = [*topics(), *SUMMARIES, *ALIASES, *kinds.names("steps")]
    near = difflib.get_close_matches(asked, known, n=1)
    return f"did you mean 'tramai help {near[0]}'?" if near else "tramai help lists topics and commands"
