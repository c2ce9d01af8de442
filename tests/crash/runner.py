"""A runner that dies by SIGKILL at the nth commit of its store: `python -m tests.crash.runner …`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from tramai import engine, plan, workflow
from tramai.stores.sqlite import Sqlite


class Deadly(Sqlite):
    """A SQLite store that kills its process before or after its nth write."""

    at = 0
    after = False
    writes = 0

    def _strike(self, after: bool) -> None:
        if after:
            Deadly.writes += 1
        if Deadly.at and Deadly.writes == Deadly.at - (0 if after else 1) and Deadly.after is after:
            os.kill(os.getpid(), signal.SIGKILL)

    def commit(self, *args: Any, **kwargs: Any) -> int:
        self._strike(False)
        revision = super().commit(*args, **kwargs)
        self._strike(True)
        return revision

    def create(self, *args: Any, **kwargs: Any) -> Any:
        self._strike(False)
        made = super().create(*args, **kwargs)
        self._strike(True)
        return made


def main() -> None:
    """Arguments as one JSON object: action, db, file, inputs, run_id, at, after."""
    given = json.loads(sys.argv[1])
    Deadly.at, Deadly.after = given.get("at", 0), given.get("after", False)
    store = Deadly(given["db"])
    options = engine.Options(run_id=given["run_id"], logs=given.get("logs"))
    if given["action"] == "run":
        made = plan.of(workflow.load(given["file"]))
        result = engine.run(made, given["inputs"], store=store, options=options)
    else:
        result = engine.resume(given["run_id"], store=store, options=options)
    answer = {"status": result.status, "outputs": result.outputs, "error": result.error, "writes": Deadly.writes}
    print(json.dumps(answer))
    sys.exit(result.exit_status)


if __name__ == "__main__":
    main()
