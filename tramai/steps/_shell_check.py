"""What can be wrong with the settings of `shell`, and how a script with expressions is written instead."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import size
from ..step import Finding
from . import _child_env

if TYPE_CHECKING:
    from .shell import Shell

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TAKEN = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "IFS", "PWD", "UID", "SHELL", "ENV", "BASH_ENV", "OUTPUT"}


def findings(step: Shell) -> Iterator[Finding]:
    """Everything wrong with these settings beyond their schema."""
    if (step.run_ is None) == (step.argv is None):
        hint = "write `run: …` for a script, `argv: […]` for a program without a shell"
        both = "not both" if step.run_ is not None else "and has neither"
        yield Finding((), "TRM310", f"a shell step needs either `run` or `argv`, {both}", hint)
    if step.run_ is not None:
        yield from _templated(step, step.run_)
        if "$" in step.run_ or "|" in step.run_ or "::set-output" in step.run_:
            from ._shell_lint import findings as lint

            yield from lint(step.run_)
    yield from _child_env.findings(step.env, ("env",))
    yield from _child_env.findings(step.files, ("files",))
    for name in step.files.keys() & step.env.keys():
        yield Finding(("files", name), "TRM379", f"{name} is in `env` as well", "choose another name for one of them")
    if step.resources is not None:
        from ._shell_limits import findings as limits

        yield from limits(step.resources)
    yield from _programs(step)
    if size.parse(step.max_output) < 1:
        yield Finding(("max_output",), "TRM314", "`max_output` must be at least one byte", "write a size such as 1MiB")


def _templated(step: Shell, script: str) -> Iterator[Finding]:
    start = script.find("${{")
    if start < 0:
        return
    found = _EXPRESSION.search(script)
    end = found.end() if found else start + 3
    text = "an expression in `run` would become part of the script"
    hint, fix = _rewritten(step, script)
    yield Finding(("run",), "TRM301", text, hint, range=(start, end), fix=fix)


def _rewritten(step: Shell, script: str) -> tuple[str, dict[str, Any] | None]:
    """The hint and the fix: the script with variables, and the `env` that gives them their values."""
    names: dict[str, str] = {}

    def name_of(expression: str) -> str:
        if expression not in names:
            words = _WORD.findall(expression.partition("|")[0].partition("[")[0]) or ["value"]
            name = words[-1].upper()
            if name in _TAKEN and len(words) > 1 and words[-2] not in ("inputs", "steps", "state"):
                name = f"{words[-2]}_{words[-1]}".upper()
            while name in _TAKEN or name in step.env or name in names.values():
                name += "_VALUE" if name in _TAKEN else "_2"
            names[expression] = name
        return names[expression]

    parts, at = [], 0
    for found in _EXPRESSION.finditer(script):
        parts.append(script[at : found.start()])
        parts.append(_quoted(name_of(found[1].strip()), _quote_at("".join(parts))))
        at = found.end()
    parts.append(script[at:])
    if not names:
        return "close the expression with }} and move it to `env`", None
    mended = "".join(parts)
    new = mended.strip()
    shown = (
        new if len(new) <= 200 and "\n" not in new else next(line for line in new.split("\n") if "$" in line).strip()
    )
    env = ", ".join(f'{name}: "${{{{ {expression} }}}}"' for expression, name in names.items())
    hint = f"write {shown} and give the value by env: {{{env}}}"
    if "${{" in mended or "<<" in script or "#" in script:
        return hint, None  # in a here document or a comment the quotes would be wrong
    return hint, {"run": mended, "env": {name: f"${{{{ {expression} }}}}" for expression, name in names.items()}}


def _quote_at(script: str) -> str:
    """The quote that is open at the end of a piece of script; here documents and comments are not looked into."""
    quote, at = "", 0
    while at < len(script):
        char = script[at]
        if char == "\\" and quote != "'":
            at += 1
        elif not quote and char in "'\"":
            quote = char
        elif char == quote:
            quote = ""
        at += 1
    return quote


def _quoted(name: str, quote: str) -> str:
    if quote == '"':
        return f"${{{name}}}"
    return f"'\"${name}\"'" if quote else f'"${name}"'


def _programs(step: Shell) -> Iterator[Finding]:
    if step.argv is None or not step.argv[0].constant:
        return
    program = step.argv[0].text
    if " " in program.strip() and "/" not in program and len(step.argv) == 1:
        words = ", ".join(program.split())
        what = f"`{program[:60]}` is taken as the name of one program, blanks included"
        yield Finding(("argv", 0), "TRM389", what, f"write argv: [{words}]", "warning")
    if not program.strip():
        yield Finding(("argv", 0), "TRM310", "the program's name is empty", "the first item of `argv` is the program")
    elif step.allow is not None and not _spelled(program, step.allow):
        yield Finding(("argv", 0), "TRM311", f"the program {program} is not in `allow`", "add it, or call another one")
    elif program in step.deny or os.path.basename(program) in step.deny:
        yield Finding(("argv", 0), "TRM311", f"the program {program} is in `deny`", "call another program")


def _spelled(program: str, entries: tuple[str, ...]) -> bool:
    from ..program import spelled

    return any(spelled(program, entry) for entry in entries)
