"""What a shell asks when somebody presses Tab. Whatever goes wrong, it says nothing and is quick about it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping

import click

from ._candidates import Candidate, of
from ._group import GlobalFlag, Group, group
from ._session import Session
from ._terminal import safe

PATIENCE = 2.0
"""Seconds after which nothing is said: a store may be away."""
_SPECIAL = re.compile(r"[^\w@%+=:,./~-]", re.ASCII)


def answer(env: Mapping[str, str]) -> int:
    """Print the candidates for the command line in COMP_LINE, which ends where the cursor is; always 0."""
    try:
        _bound()
        shell = env["_TRAMAI_COMPLETE"].partition("_")[0]
        words, word = split(env.get("COMP_LINE", ""))
        found = candidates(words[1:], word)
        lines = [_line(one, shell, word, env.get("COMP_BREAKS", "")) for one in found]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt):  # noqa: BLE001, S110 - an edge: nobody wants a message in the middle of a line
        pass
    return 0


def _bound() -> None:
    import signal

    def give_up(*_: object) -> None:
        os._exit(0)

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)


def split(line: str) -> tuple[list[str], str]:
    """The whole words before the cursor, and the one it stands in, without quotes; an open quote is closed."""
    from click.shell_completion import split_arg_string

    words = split_arg_string(line)
    if not line or (line[-1].isspace() and split_arg_string(line + "x")[-1] == "x"):
        return words, ""
    return words[:-1], words[-1] if words else ""


def candidates(words: list[str], word: str) -> Iterable[Candidate]:
    """What may stand for `word` after these words, which follow `tramai`."""
    session = Session(words)
    context = _context(session, words)
    try:
        parameter, stem = _parameter(context, words, word)
        if isinstance(parameter, click.Option) and words and words[-1] in parameter.opts:
            context = _context(session, words[:-1])  # a flag without its value spoils what stands before it
        if parameter is None:
            return _names(context, word)
        session.begin()
        found = of(parameter, context, stem, session)
        if found is None:
            found = [Candidate(one.value, one.help or "") for one in parameter.shell_complete(context, stem)]
        return [one for one in found if one.value.startswith(stem) or one.kind not in ("plain", "part")]
    finally:
        session.close()


def _context(session: Session, words: list[str]) -> click.Context:
    """The context of the command that the words have come to."""
    context = group.make_context("tramai", words.copy(), resilient_parsing=True, obj=session)
    while isinstance(context.command, click.Group):
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        if not rest:
            break
        name, command, rest = context.command.resolve_command(context, rest)
        if command is None:
            break
        context = command.make_context(name, rest, parent=context, resilient_parsing=True)
    return context


def _parameter(context: click.Context, words: list[str], word: str) -> tuple[click.Parameter | None, str]:
    """The parameter whose value is to be completed, and as much of it as is there; None for names of flags or verbs."""
    params = context.command.get_params(context)
    options = [one for one in params if isinstance(one, click.Option) and not one.is_flag]
    if word.startswith("--") and "=" in word:
        name, _, stem = word.partition("=")
        return next((one for one in options if name in one.opts), None), stem
    if words and (found := next((one for one in options if words[-1] in one.opts), None)) is not None:
        return found, word
    if word.startswith("-") and "--" not in words:
        return None, word
    for one in params:
        given = context.get_parameter_source(one.name or "") is click.core.ParameterSource.COMMANDLINE
        if isinstance(one, click.Argument) and (one.nargs == -1 or not given):
            return one, word
    return None, word


def _names(context: click.Context, word: str) -> list[Candidate]:
    """Names of flags, or of commands with their summaries."""
    if word.startswith("-"):
        flags = [one for one in context.command.get_params(context) if isinstance(one, click.Option)]
        flags.sort(key=lambda one: isinstance(one, GlobalFlag))
        return [
            Candidate(name, (one.help or "").partition("  [")[0])
            for one in flags
            for name in one.opts
            if name.startswith(word) and (name.startswith("--") or word == "-")
        ]
    if isinstance(context.command, Group):
        from ._group import SUMMARIES

        return [Candidate(name, summary) for name, summary in SUMMARIES.items() if name.startswith(word)]
    if isinstance(context.command, click.Group):
        verbs = context.command.commands
        return [Candidate(name, one.short_help or "") for name, one in verbs.items() if name.startswith(word)]
    return []


def _line(one: Candidate, shell: str, word: str, breaks: str) -> str:
    """A candidate as its shell takes it."""
    value, help = safe(one.value), " ".join(safe(one.help).split())
    if value != one.value:
        return ""  # it cannot be typed
    if shell == "bash" and one.kind in ("plain", "part"):
        # What bash replaces begins behind the last character at which it breaks words.
        start = max((word.rfind(char) for char in breaks if char in ":="), default=-1) + 1
        whole = word[: len(word) - len(_stem(word))] + value
        value = _SPECIAL.sub(lambda found: "\\" + found[0], whole[start:] if start else whole)
    return f"{one.kind}\t{value}\t{help}"


def _stem(word: str) -> str:
    """The part of a word that a candidate stands for: of `--flag=value`, the value."""
    return word.partition("=")[2] if word.startswith("--") and "=" in word else word
