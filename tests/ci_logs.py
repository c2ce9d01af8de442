"""What the runners of CI systems obey in a log: written after their parsers, for tests of what we write into one."""

from __future__ import annotations

import re


def unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")


def commands(log: str) -> list[tuple[str, dict[str, str], str]]:
    """What a runner of GitHub Actions obeys in a log: both forms, and no word while commands are stopped.

    After `ActionCommandManager.TryProcessCommand` and `ActionCommand` of github.com/actions/runner.
    """
    found, stopped = [], ""
    for line in log.splitlines():
        new = re.match(r"::([^\s:]+)(?: ([^:]*))?::(.*)", line.lstrip())
        old = re.search(r"##\[([^\s\]]+)(?: ([^\]]*))?\](.*)", line)
        match = new or old
        if match is None:
            continue
        name = match[1]
        if stopped:
            if name == stopped:
                stopped = ""
            continue
        if name == "stop-commands":
            stopped = match[3]
            continue
        pairs = [pair.split("=", 1) for pair in (match[2] or "").split(",") if "=" in pair]
        found.append((name, {key.strip(): unescaped(value) for key, value in pairs}, unescaped(match[3])))
    return found


def azure_commands(log: str) -> list[tuple[str, dict[str, str], str]]:
    """What an agent of Azure Pipelines obeys: `##vso[…]` anywhere in a line."""
    found = []
    for line in log.splitlines():
        match = re.search(r"##vso\[([\w.]+)(?: ([^\]]*))?\](.*)", line)
        if match:
            pairs = [pair.split("=", 1) for pair in (match[2] or "").split(";") if pair]
            decoded = {key: re.sub("%5D", "]", re.sub("%3B", ";", value)) for key, value in pairs}
            found.append((match[1], decoded, match[3].replace("%0A", "\n").replace("%AZP25", "%")))
    return found
