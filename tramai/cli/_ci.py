"""The CI system around us: how it is known, and what it is told of a run besides the lines of its log."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from ._terminal import safe

if TYPE_CHECKING:
    from ..plan import Plan
    from ._ci_report import Reporter
    from ._session import Session

SIGNS = {"github": ("GITHUB_ACTIONS", "true"), "gitlab": ("GITLAB_CI", "true"), "azure": ("TF_BUILD", "true")}
"""The variable by which a system says that it runs us, and its value."""
MOST = 10
"""Annotations of one kind that GitHub shows of a step; more than these is a flood anywhere."""
CLOSEST = ("Runner.Worker", "Agent.Worker")
"""The processes that read the log of a job, and hide in it what they were told to."""


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is shown beside the code or at the top of a job. `severity`: error, warning or notice."""

    severity: str
    title: str
    text: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None


class Dialect(Protocol):
    """How one system is spoken to: lines of its log that it obeys."""

    def open(self, title: str) -> list[str]:
        """Lines that begin a part of the log which can be folded."""
        ...

    def close(self) -> list[str]:
        """Lines that end it."""
        ...

    def annotation(self, one: Annotation) -> str | None:
        """The line that makes an annotation; None where there are none."""
        ...

    def mask(self, value: str) -> str | None:
        """The line after which a value is hidden in the log; None where there is none."""
        ...


def found(env: Mapping[str, str] = os.environ) -> str | None:
    """The system that runs us, by its variable."""
    for name, (variable, value) in SIGNS.items():
        if env.get(variable, "").lower() == value:
            return name
    return None


def wanted(session: Session) -> str | None:
    """The system that is to be spoken to: the one that `progress` names, or with `auto` the one that is there."""
    from ..errors import TramaiError

    try:
        progress = session.settings.text("progress")
    except (TramaiError, OSError):  # the settings are what is wrong
        return None
    if progress in SIGNS:
        return progress
    return found() if progress == "auto" else None


def dialect(name: str) -> Dialect:
    """How the system of that name is spoken to."""
    if name == "github":
        from ._github import GitHub

        return GitHub()
    if name == "azure":
        from ._azure import Azure

        return Azure()
    from ._gitlab import GitLab

    return GitLab()


def told(dialect: Dialect, annotations: Iterable[Annotation], *, whole: bool = False) -> list[str]:
    """The lines for annotations: errors first, of a kind no more than are shown (all, if `whole`), and their number."""
    by_kind: dict[str, list[Annotation]] = {"error": [], "warning": [], "notice": []}
    for one in annotations:
        by_kind[one.severity].append(one)
    lines, counts = [], []
    for kind, ones in by_kind.items():
        made = [line for one in ones[: None if whole else MOST] if (line := dialect.annotation(one)) is not None]
        lines += made
        if made and len(ones) > MOST:
            what = "this log has all" if whole else "tramai show has all"
            counts.append(f"{len(ones)} {kind}s; {MOST} of them are shown as annotations, {what}")
    return lines + counts


def masks(dialect: Dialect, values: Iterable[str]) -> list[str]:
    """The lines that hide values in the log; none where somebody else than the system may read them.

    Such a line has the value in it. It may be written only where the system reads it first: not into a file, and not
    into a pipe to another program.
    """
    parts = {part.strip() for value in values for part in (value, *value.splitlines())}
    lines = [line for part in sorted(parts) if len(part) > 3 and (line := dialect.mask(part)) is not None]
    return lines if lines and read_by_system() else []


def read_by_system() -> bool:
    """Whether standard error is a pipe that leads to the system itself, through every process that started us."""
    try:
        ours = os.fstat(2)
        if not stat.S_ISFIFO(ours.st_mode):
            return False
        process = os.getppid()
        while process > 1:
            name, parent = _process(process)
            if name in CLOSEST:
                return True
            theirs = os.stat(f"/proc/{process}/fd/2")
            if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino):
                return False
            process = parent
    except (OSError, ValueError, IndexError):
        pass
    return False


def _process(number: int) -> tuple[str, int]:
    """The name of a process, and who started it."""
    with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
        head, _, rest = file.read().rpartition(")")
    return head.partition("(")[2], int(rest.split()[1])


def near(file: str, root: str | None) -> str:
    """The path from the root of the repository, as these systems want it."""
    if root and not file.startswith("<"):
        path = os.path.relpath(os.path.abspath(file), root)
        if not path.startswith(".."):
            return path.replace(os.sep, "/")
    return file


def root() -> str | None:
    """The folder that the repository is in."""
    for name in ("GITHUB_WORKSPACE", "BUILD_SOURCESDIRECTORY", "CI_PROJECT_DIR"):
        if os.environ.get(name):
            return os.environ[name]
    return None


def title_of(path: str, verb: str) -> str:
    """What the part of a step is called."""
    return safe(f"{path} ({verb})")


def reporter(session: Session, plan: Plan | None) -> Reporter | None:
    """Whoever tells the system of a run; None where there is none."""
    name = wanted(session)
    if name is None:
        return None
    from ._ci_report import Reporter

    return Reporter(session, name, dialect(name), plan)
