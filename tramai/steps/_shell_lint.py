"""What is dangerous in a script although it can be read: warnings, and only where there is hardly a doubt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..step import Finding

_DESTROYS = frozenset(("rm", "rmdir", "mv", "dd", "chmod", "chown", "chgrp", "truncate", "shred", "unlink", "wipefs"))
_BEFORE = frozenset(("sudo", "command", "exec", "time", "nice", "nohup", "then", "else", "do", "!", "{", "("))
_READERS = frozenset(("sh", "bash", "zsh", "dash", "python", "python3", "perl", "ruby", "node"))
_VARIABLE = re.compile(r"\$(?:\{(?!#)[A-Za-z_@*0-9][^}]*\}|[A-Za-z_]\w*|[@*0-9])|\$\((?!\()[^()]*\)|`[^`]*`")
_GITHUB = re.compile(r"\$\{?(GITHUB_(?:OUTPUT|ENV|PATH|STEP_SUMMARY))\}?|::set-output\b")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


class _Command(NamedTuple):
    """The words of one command, each with where it starts and the parts of it that no quotes hold."""

    words: list[tuple[int, str, str]]
    piped: bool
    """What the command before wrote goes into it."""


def findings(script: str) -> Iterator[Finding]:
    """Every finding, in order of the script."""
    before: list[str] = []
    for command in _commands(script):
        words = [word for _, word, _ in command.words]
        while words and (words[0] in _BEFORE or re.match(r"\w+=", words[0])):
            words = words[1:]
        if not words:
            continue
        if _is_destructive(words):
            yield from _unquoted(command, words[0])
        if command.piped and words[0] in _READERS and before and before[0] in ("curl", "wget"):
            start = command.words[0][0]
            what = f"what `{before[0]}` brings is run by `{words[0]}`, whatever it is"
            hint = "download it, compare its checksum, then run it"
            yield Finding(("run",), "TRM396", what, hint, "warning", (start, start + len(command.words[0][1])))
        before = words
    if found := _GITHUB.search(script):
        what = f"`{found[0]}` means nothing here"
        hint = "what a step prints is its output: print it, with `parse: json` as data"
        yield Finding(("run",), "TRM397", what, hint, "warning", found.span())


def _is_destructive(words: list[str]) -> bool:
    if words[0].rpartition("/")[2] in _DESTROYS or words[0].startswith("mkfs"):
        return True
    if words[0] == "git":
        return "push" in words and any(word in ("-f", "--force", "--delete", "-d") for word in words)
    return (words[0] == "find" and "-delete" in words) or (words[0] == "rsync" and "--delete" in words)


def _unquoted(command: _Command, name: str) -> Iterator[Finding]:
    for start, word, bare in command.words:
        found = _VARIABLE.search(bare)
        if found is not None and word != name:
            at = start + found.start()
            what = f"`{found[0]}` without quotes: `{name}` gets other names if the value has blanks or `*`"
            yield Finding(("run",), "TRM395", what, f'write "{found[0]}"', "warning", (at, at + len(found[0])))


def _commands(script: str) -> Iterator[_Command]:
    """The commands of a script. Bodies of here documents and comments are left out."""
    words: list[tuple[int, str, str]] = []
    piped = False
    for start, word, bare in _words(script):
        if word in ("\n", ";", "&", "&&", "||", "|", ";;", "(", ")", "|&"):
            if words:
                yield _Command(words, piped)
                words = []
            piped = word in ("|", "|&")
        else:
            words.append((start, word, bare))
    if words:
        yield _Command(words, piped)


_BREAK = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")


def _words(script: str) -> Iterator[tuple[int, str, str]]:
    """Where each word starts, the word, and the word with blanks for what stands in quotes."""
    at, size = 0, len(script)
    waiting: list[str] = []
    while at < size:
        char = script[at]
        if char == "\n" and waiting:
            yield at, "\n", ""
            at = _after(script, at, waiting)
            waiting = []
        elif char in " \t":
            at += 1
        elif script.startswith("\\\n", at):
            at += 2
        elif char == "#":
            end = script.find("\n", at)
            at = end if end >= 0 else size
        elif (found := _HEREDOC.match(script, at)) and not script.startswith("<<<", at):
            waiting.append(found[2])
            at = found.end()
        elif sign := _BREAK.match(script, at):
            yield at, sign[0], ""
            at = sign.end()
        else:
            start, at = at, _end_of_word(script, at)
            yield start, script[start:at], _bare(script[start:at])


def _after(script: str, at: int, names: list[str]) -> int:
    """Where the bodies of here documents are over."""
    for name in names:
        end = re.compile(rf"^\t*{re.escape(name)}$", re.M).search(script, at)
        at = end.end() if end else len(script)
    return at


def _end_of_word(script: str, at: int) -> int:
    while at < len(script) and script[at] not in " \t\n;&|)":
        char = script[at]
        if char == "\\":
            at += 1
        elif char in "'\"`":
            at = _closing(script, at, char)
        elif script.startswith("$((", at):
            end = script.find("))", at)
            at = end + 1 if end >= 0 else len(script)
        elif script.startswith("$(", at):
            at = _balanced(script, at + 1)
        elif char == "(":
            break
        at += 1
    return min(max(at, 1), len(script))


def _closing(script: str, at: int, quote: str) -> int:
    at += 1
    while at < len(script) and script[at] != quote:
        at += 2 if script[at] == "\\" and quote != "'" else 1
    return at


def _balanced(script: str, at: int) -> int:
    depth = 0
    while at < len(script):
        depth += (script[at] == "(") - (script[at] == ")")
        if depth == 0:
            return at
        at += 1
    return at


def _bare(word: str) -> str:
    """The word with blanks in place of quoted parts and of calculations."""
    blank = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|\$\(\(.*?\)\)", re.S)
    return blank.sub(lambda found: " " * len(found[0]), word)
