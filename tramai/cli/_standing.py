"""Where a run and its steps stand, seen from outside: in a run that nobody carries, nothing is running."""

from __future__ import annotations

import json

from ..store import Run

# What a step is whose end is not recorded, by where its run stands; else it stands as its run does.
_OPEN = {"ready": "interrupted", "completed": "cancelled", "failed": "cancelled", "dead": "failed"}


class Standing:
    """How a run stands; `interrupted` when it is stored as running and its runner is gone."""

    def __init__(self, run: Run, now: float) -> None:
        self.word = "interrupted" if run.stale(now) else run.status.value
        error = json.loads(run.error) if run.error is not None else None
        self._failed_at = str(error.get("path") or "") if isinstance(error, dict) else ""

    def of_open_step(self, path: str) -> str:
        """How a step stands whose end is not recorded: it runs, or it holds what failed, sleeps or was stopped."""
        if self.word == "failed" and f"{self._failed_at}[".startswith(f"{path}["):
            return "failed"
        return _OPEN.get(self.word, self.word)
