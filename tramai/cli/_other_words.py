"""Names that commands have in other tools, for those who type them here."""

from __future__ import annotations

import os

WORDS = {
    "add": "init",
    "archive": "store prune",
    "begin": "run",
    "check": "validate",
    "clean": "store prune",
    "continue": "resume",
    "create": "init",
    "delete": "store prune",
    "describe": "show",
    "docs": "help",
    "down": "worker drain",
    "drain": "worker drain",
    "dry-run": "plan",
    "enqueue": "run --detach",
    "env": "config show",
    "example": "demo",
    "exec": "run",
    "execute": "run",
    "format": "fmt",
    "gc": "store prune",
    "get": "show",
    "health": "doctor",
    "history": "list",
    "info": "store info",
    "inspect": "show",
    "install": "plugin list",
    "invoke": "run",
    "journal": "show",
    "kill": "cancel",
    "launch": "run",
    "lint": "validate",
    "log": "logs",
    "ls": "list",
    "man": "help",
    "migrate": "store migrate",
    "new": "init",
    "preview": "plan",
    "prune": "store prune",
    "ps": "list",
    "queue": "run --detach",
    "quickstart": "demo",
    "replay": "resume",
    "restart": "rerun",
    "retry": "resume",
    "rm": "store prune",
    "runs": "list",
    "serve": "worker",
    "settings": "config show",
    "signal": "approve",
    "start": "run",
    "stop": "cancel",
    "submit": "run --detach",
    "tail": "logs",
    "terminate": "cancel",
    "trigger": "run",
    "up": "worker",
    "upgrade": "store migrate",
    "verify": "validate",
    "version": "--version",
    "view": "show",
    "wait": "watch",
}
"""The word of another tool, and what it is called here."""


def hint(word: str, commands: list[str]) -> str:
    """What was probably meant by a word that is no command."""
    import difflib

    ours = WORDS.get(word.lower())
    if ours is not None:
        return f"here that is 'tramai {ours}'"
    if word.endswith((".yaml", ".yml", ".toml")) or os.path.isfile(word):
        return f"did you mean 'tramai run {word}'?"
    near = difflib.get_close_matches(word.lower(), commands, n=1, cutoff=0.5)
    return f"did you mean 'tramai {near[0]}'?" if near else "tramai --help lists the commands"
