"""A hundred processes that take runs from one store until there are none: `python -m tests.faults.claimers …`.

The argument is a JSON object: url, processes, runs. The answer tells who took what, in the order in which it was taken.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from tramai.pool import Wanted, pooled
from tramai.store import Change, Holder, Status, Store
from tramai.stores import open_store
from tramai.testing._store_given import new_run

from .racers import forked

_LOOKS = 5
"""So many looks in a row that find nothing are the end: what others are just being offered may come up again."""
_WORK = 0.3
"""Seconds for which whoever has taken a run is busy with it, as a slot would be."""


def main() -> None:
    """Have all of them take, and print what came of it."""
    given = json.loads(sys.argv[1])
    url, processes, runs = given["url"], given["processes"], given["runs"]
    open_store(url).close()
    with forked(processes, url, _take) as crowd:
        store = pooled(open_store(url))
        for number in range(runs):
            store.enqueue(new_run(f"r{number:05}", created=float(number)), now=time.time())
        answers = crowd.play((), lambda: None)
    taken = sorted((line for answer in answers for line in answer["taken"]), key=lambda line: (line[2], line[0]))
    ended = [store.get(f"r{number:05}") for number in range(runs)]
    store.close()
    print(
        json.dumps(
            {
                "taken": taken,
                "errors": [answer["text"] for answer in answers if "text" in answer],
                "completed": sum(run.status is Status.COMPLETED for run in ended),
                "fences": sorted({run.fence for run in ended}),
            }
        )
    )


def _take(store: Store) -> dict[str, Any]:
    runs, owner, taken, empty = pooled(store), f"w{os.getpid()}", list[tuple[str, str, float]](), 0
    while empty < _LOOKS:
        found = runs.take(
            Wanted(), limit=1, owner=owner, holder=Holder.here(), ttl=120.0, now=time.time(), most_claims=5
        )
        empty = 0 if found else empty + 1
        for one in found:
            assert one.lease is not None
            taken.append((one.run_id, owner, one.lease.acquired))
        time.sleep(_WORK)
        for one in found:
            assert one.lease is not None
            store.commit(one.lease, Change(now=time.time(), status=Status.COMPLETED, release=True))
    return {"kind": "done", "taken": taken}


if __name__ == "__main__":
    main()
