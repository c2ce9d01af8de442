"""What `doctor` says of the environment, of settings, and of programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from ._machine_documents import HealthFinding
from ._session import Session

_WAL_SAFE = (3, 51, 3)
"""From this version on writers of SQLite may meet the start of a new log."""


def environment(session: Session) -> Iterator[HealthFinding]:
    """Versions, the platform, the terminal."""
    import platform
    import sqlite3

    from .. import __version__

    def found(name: str, text: str, state: str = "ok", hint: str | None = None) -> HealthFinding:
        return HealthFinding(section="environment", name=name, state=state, text=text, hint=hint)  # type: ignore[arg-type]

    yield found("tramai", __version__)
    yield found("python", f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})")
    libc = " ".join(platform.libc_ver()).strip()
    yield found("platform", f"{platform.system()} {platform.release()} {platform.machine()} {libc}".strip())
    lock = (
        "" if sqlite3.sqlite_version_info >= _WAL_SAFE else "; writers take a lock of ours, as it is older than 3.51.3"
    )
    yield found("sqlite", f"{sqlite3.sqlite_version}, synchronous FULL, WAL{lock}")
    out = session.out
    how = f"{'a terminal' if out.tty else 'no terminal'}, {'colour' if out.coloured else 'no colour'}"
    yield found("output", f"{how}, {'Unicode' if out.unicode else 'ASCII only'}")
    if sys.flags.optimize:
        yield found("optimize", "Python runs with -O", "warning", "start it without -O and PYTHONOPTIMIZE")


def settings(session: Session) -> Iterator[HealthFinding]:
    """The files that were read, and where each setting comes from."""
    from ..stores import shown
    from ._settings import DEFAULTS

    found = session.settings
    for file in found.files:
        yield HealthFinding(section="settings", name="file", state="ok", text=_near(file))
    values = {"store": shown(found.store), **{key: found.text(key) for key in DEFAULTS}}
    if found.retention is not None:
        values["retention"] = found.text("retention")
    for key, value in values.items():
        origin = "default" if key == "store" and found.store_is_default else found.origin(key)
        yield HealthFinding(section="settings", name=key, state="ok", text=f"{value} ({origin})")
    if found.observers:
        yield HealthFinding(section="settings", name="observers", state="ok", text=", ".join(found.observers))


def _near(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def programs(*, check: bool) -> Iterator[HealthFinding]:
    """What steps start, and what makes them safer; with `check`, whether a sandbox can be made."""
    import shutil

    from ..steps import _shell_sandbox

    wanted = {
        "bash": ("warning", "scripts run by `sh -eu`, without pipefail", "install bash"),
        "git": ("absent", "not on PATH", None),
        "bwrap": ("absent", "not on PATH: `sandbox: true` of shell needs it", "install bubblewrap"),
    }
    for name, (state, text, hint) in wanted.items():
        path = shutil.which(name)
        if path is not None and name == "bwrap" and check and (said := _shell_sandbox.tried(path)) is not None:
            text, hint = f"{path} cannot make a sandbox here: {said}", "allow user namespaces"
            yield HealthFinding(section="programs", name=name, state="warning", text=text, hint=hint)
        elif path is not None:
            yield HealthFinding(section="programs", name=name, state="ok", text=path)
        else:
            yield HealthFinding(section="programs", name=name, state=state, text=text, hint=hint)  # type: ignore[arg-type]
