"""What `doctor` has found as a text for a bug report: nothing in it tells who or where somebody is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ._config_show import masked
from ._machine_documents import HealthFinding
from ._run_markdown import fenced
from ._terminal import safe

_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/nix/", "/snap/", "/proc/")
_PATH = re.compile(r"(?<![\w./~])~?/(?!/)[^\s,;()'\"<>]+")
_HOST = re.compile(r"(://)(?:[^/@\s]*@)?(\[[^\]]*\]|[^/:?\s]+)")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def page(found: Iterable[HealthFinding]) -> str:
    """The report as Markdown; what is to be told by a person stands above it."""
    lines: list[str] = []
    section = None
    for one in found:
        if one.section != section:
            lines += ([""] if lines else []) + [one.section]
            section = one.section
        lines.append(f"  {one.state:<7}  {safe(one.name)}: {safe(anonymous(one.text))}")
        if one.hint and one.state in ("warning", "error"):
            lines.append(f"           help: {safe(anonymous(one.hint))}")
    about = [
        "What I did, what I expected, and what happened instead:",
        "<!-- the command, its output, and the workflow file if you can share it;"
        " `tramai export RUN` has all of a run -->",
        "What `tramai doctor` says here. Paths, names and hosts are left out; please read it before you send it.",
    ]
    return "\n\n".join([*about, fenced("\n".join(lines))]) + "\n"


def anonymous(text: str) -> str:
    """A text without secrets, hosts, the user's name and folders: of a path of the user only its end is kept."""
    text = _HOST.sub(lambda found: found[1] + (found[2] if found[2] in _LOCAL else "HOST"), masked(text))
    text = _PATH.sub(lambda found: _shortened(found[0]), text)
    for name in _names():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", text)
    return text


def _shortened(path: str) -> str:
    if path.startswith(_SYSTEM):
        return path
    return f"…/{os.path.basename(path.rstrip('/'))}"


def _names() -> set[str]:
    """Of the user and of this machine, as far as they are told from words."""
    import socket

    from ..results import user

    host = socket.gethostname()
    return {name for name in (user(), host, host.partition(".")[0]) if len(name) > 3 and name != "root"}
