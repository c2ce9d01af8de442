"""`run` and `resume` with everyday flags, understood without click: it takes longer to import than such a run.

Whatever is not in the tables below goes to click, so there is one authority on what a command line means and one
place that words its errors; a test holds the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._session import Session

if TYPE_CHECKING:
    from ._start import Request

SWITCHES = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose", "--json": "json"}
VALUES = {name: name[2:] for name in ("--store", "--wait", "--lease", "--progress", "--color")}
OWN_SWITCHES = {
    "run": {"--ok-if-suspended": "ok_if_suspended"},
    "resume": {
        "--ok-if-suspended": "ok_if_suspended",
        "--as-started": "as_started",
        "--accept-changes": "accept_changes",
    },
}
OWN_VALUES = {
    "run": {"--inputs": "inputs_file", "--start-key": "start_key", "--until": "until"},
    "resume": {"--file": "file", "--until": "until"},
}
REPEATED = {
    "run": {"-i": "inputs", "--input": "inputs", "--label": "labels", "--report": "reports"},
    "resume": {"--report": "reports"},
}


def understand(session: Session) -> tuple[str, Request] | None:
    """The command and what it asks for, its global flags kept in the session; None for click to decide."""
    words = list(session.arguments)
    name = words.pop(0) if words else ""
    if name not in OWN_SWITCHES:
        return None
    flags: dict[str, object] = {}
    fields: dict[str, object] = {}
    lists: dict[str, list[str]] = {"inputs": [], "labels": [], "reports": []}
    rest: list[str] = []
    while words:
        word = words.pop(0)
        if word in SWITCHES:
            flags[SWITCHES[word]] = True
        elif word in OWN_SWITCHES[name]:
            fields[OWN_SWITCHES[name][word]] = True
        elif not word.startswith("-"):
            rest.append(word)
        elif not words or words[0].startswith("-"):
            return None
        elif word in VALUES:
            flags[VALUES[word]] = words.pop(0)
        elif word in OWN_VALUES[name]:
            fields[OWN_VALUES[name][word]] = words.pop(0)
        elif word in REPEATED[name]:
            lists[REPEATED[name][word]].append(words.pop(0))
        else:
            return None
    if len(rest) != 1 or ("as_started" in fields and {"accept_changes", "file"} & fields.keys()):
        return None
    return name, _request(session, name, rest[0], flags, fields, lists)


def _request(
    session: Session,
    name: str,
    what: str,
    flags: dict[str, object],
    fields: dict[str, object],
    lists: dict[str, list[str]],
) -> Request:
    from ._start import Request

    session.flags.update(flags)
    fields["file" if name == "run" else "run"] = what
    repeated = {name: tuple(found) for name, found in lists.items()}
    return Request(**repeated, **fields)  # type: ignore[arg-type]
