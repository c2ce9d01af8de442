"""Asks, decides or resumes, and dies by SIGKILL at the nth write to the store: `python -m tests.crash.gates …`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from tramai import deciding, engine
from tramai.store import Store
from tramai.stores import open_store

from ..written import Clockwork, planned

RUN = "gated"
WRITES = frozenset(("create", "claim", "commit", "post", "release"))
STEPS = """\
- id: before
  local: 1
- id: ok
  gate: {ask: now?, form: {properties: {note: {type: string}}}}
- id: after
  local: "${{ steps.ok.output.by }} said ${{ steps.ok.output.data.note }}"
"""
TOP = "outputs: {it: '${{ steps.after.output }}'}"


class Deadly:
    """A store whose nth write kills this process, before or after it is done."""

    def __init__(self, store: Store, at: int, after: bool) -> None:
        self._store, self._left, self._after = store, at, after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in WRITES:
            return found

        def strike(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = found(*args, **kwargs)
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return strike


def act(store: Any, phase: str) -> None:
    """One of three things that are done to the run, one after the other."""
    if phase == "ask":
        options = engine.Options(run_id=RUN)
        assert engine.run(planned(STEPS, TOP), {}, store=store, options=options).status == "waiting"
    elif phase == "decide":
        said = {"note": "yes"}
        deciding.decide(store, RUN, "ok", decision="approved", by="ann", data=said, clock=Clockwork())
    else:
        assert engine.resume(RUN, store=store).status == "completed"


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    act(Deadly(open_store(given["url"]), given["at"], given["after"]), given["phase"])
