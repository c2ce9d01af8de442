"""GitLab's job logs: parts that can be folded."""

from __future__ import annotations

import re
import time

from ._ci import Annotation


class GitLab:
    """Sections. GitLab takes annotations from report files only, and masks nothing at run time."""

    def __init__(self) -> None:
        self._count = 0
        self._name = ""

    def open(self, title: str) -> list[str]:
        """A section that is folded until somebody opens it."""
        self._count += 1
        self._name = f"tramai_{self._count}_" + re.sub(r"[^A-Za-z0-9_.-]", "_", title)[:60]
        return [f"\x1b[0Ksection_start:{int(time.time())}:{self._name}[collapsed=true]\r\x1b[0K{title}"]

    def close(self) -> list[str]:
        """The end of the section."""
        return [f"\x1b[0Ksection_end:{int(time.time())}:{self._name}\r\x1b[0K"]

    def annotation(self, one: Annotation) -> str | None:
        """There are none."""

    def mask(self, value: str) -> str | None:
        """There is no such line."""
