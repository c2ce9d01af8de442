"""A runner that somebody stops: `python -m tests.faults.stoppable …`, a JSON object: url, folder, run_id, game, lease.

`store`: make the run, say so, wait for a line, then try every write a lease allows. `engine`: run a whole workflow.
`inside`: make the run, and stop in the middle of a commit, holding whatever lock a commit holds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tramai import build, engine, plan, rules
from tramai.errors import TramaiError
from tramai.store import Change, Holder, Lease, Status, Store
from tramai.stores import open_store
from tramai.testing._store_given import done, new_run

WAITS = plan.of(
    build.build(
        {
            "tramai": 1,
            "name": "waits",
            "inputs": {"folder": {"type": "string"}},
            "steps": [
                {
                    "id": "effect",
                    "replay": "idempotent",
                    "shell": {
                        # The first attempt never ends by itself, whatever comes; a later one finds `go`.
                        "run": 'echo $$ >> "$FOLDER/pids"; echo "$TRAMAI_IDEMPOTENCY_KEY" >> "$FOLDER/keys"\n'
                        'if [ ! -e "$FOLDER/go" ]; then sleep 300 & echo $! >> "$FOLDER/pids"; wait; fi; echo done',
                        "env": {"FOLDER": "${{ inputs.folder }}"},
                        "parse": "text",
                    },
                },
                {"id": "last", "local": "${{ steps.effect.output }}"},
            ],
            "outputs": {"last": "${{ steps.last.output }}"},
        }
    )
)


def main() -> None:
    """Play one game."""
    given = json.loads(sys.argv[1])
    store = open_store(given["url"])
    game = {"store": _store, "engine": _engine, "inside": _inside}[given["game"]]
    game(store, given["run_id"], given["folder"], given["lease"])


def _store(store: Store, run_id: str, folder: str, ttl: float) -> None:
    del folder
    run, lease = store.create(new_run(run_id), owner="first", holder=Holder.here(), ttl=ttl, now=time.time())
    assert lease is not None
    _say({"held": run.revision})
    sys.stdin.readline()
    _say({name: _what_comes_of(write) for name, write in late_writes(store, lease).items()})


def late_writes(store: Store, lease: Lease) -> dict[str, Callable[[], Any]]:
    """Everything that somebody who believes in his lease may try."""
    now = time.time()
    believed = replace(lease, expires=now + 3600.0)
    last = Change(now=now, records=(done(1, "late"),), status=Status.COMPLETED, release=True)
    return {
        "commit": lambda: store.commit(lease, Change(now=now, records=(done(1, "late"),))),
        "commit as if it were never over": lambda: store.commit(believed, Change(now=lease.acquired + 0.1)),
        "the last commit": lambda: store.commit(lease, last),
        "renew": lambda: store.renew(lease, ttl=30.0, now=now),
        "renew as if in time": lambda: store.renew(believed, ttl=30.0, now=lease.acquired + 0.1),
        "release": lambda: store.release(lease, now=now),
    }


def _what_comes_of(write: Callable[[], Any]) -> str:
    try:
        write()
    except TramaiError as error:
        return type(error).__name__
    return "accepted"


def _engine(store: Store, run_id: str, folder: str, ttl: float) -> None:
    options = engine.Options(run_id=run_id, lease=ttl, cwd=folder)
    result = engine.run(WAITS, {"folder": folder}, store=store, options=options)
    _say({"status": result.status, "exit_status": result.exit_status, "error": result.error})


def _inside(store: Store, run_id: str, folder: str, ttl: float) -> None:
    del folder
    _, lease = store.create(new_run(run_id), owner="first", holder=Holder.here(), ttl=ttl, now=time.time())
    assert lease is not None
    _say({"pid": os.getpid()})
    follows = rules.follows

    def stop(last: int, records: Any) -> int:
        os.kill(os.getpid(), signal.SIGSTOP)
        return follows(last, records)

    rules.follows = stop  # every store asks it between its look at the lease and its write
    _say({"revision": store.commit(lease, Change(now=time.time(), records=(done(1),)))})


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
