"""What every store decides alike about whole runs: which are taken in, and what a tombstone keeps."""

from __future__ import annotations

from .. import rules
from ..errors import CheckpointConflict, NotInThatState
from ..portable import Bundle
from ..store import Mark, Run, RunExists, Status


def check_bundle(bundle: Bundle) -> None:
    """Refuse a bundle that is no whole run."""
    run, definition = bundle.run, bundle.definition
    rules.named("run id", run.run_id)
    if run.start_key is not None:
        rules.named("start key", run.start_key)
    if run.lease is not None:
        raise ValueError("a run that is taken in has no lease")
    if definition is None and not run.status.tombstone:
        raise ValueError("a run is taken in with its definition")
    if definition is not None and definition.digest != run.digest:
        raise ValueError("the definition is not that of the run")
    rules.follows(0, bundle.records)
    done = [record.path for record in bundle.records if record.mark is Mark.COMPLETED]
    if len(set(done)) < len(done):
        raise CheckpointConflict
    if [note.seq for note in bundle.notes] != list(range(1, len(bundle.notes) + 1)):
        raise CheckpointConflict


def replaces(there: Run, run: Run) -> bool:
    """Whether a run that is taken in replaces the one there: a closed one of the same life, if it is later.

    False when the one there is this very arrival, RunExists otherwise.
    """
    closed = there.status in (Status.MOVED, Status.ARRIVING) and there.generation == run.generation
    over = run.status.terminal and not run.status.tombstone  # a life ends once, so this is how it ended
    if closed and (there.revision < run.revision or (over and there.status is Status.MOVED)):
        return True
    if closed and there.status is Status.ARRIVING and there.revision == run.revision:
        return False
    raise RunExists(run_id=run.run_id)


def buried(run: Run, *, revision: int, status: Status, now: float) -> Run:
    """The tombstone of a run."""
    if not status.tombstone:
        raise ValueError(f"a tombstone is moved or removed, not {status.value}")
    if run.status.tombstone:
        raise NotInThatState(run_id=run.run_id, status=run.status.value, what="only its name is left")
    rules.nobody_holds(run, now)
    if run.revision != revision:
        raise CheckpointConflict
    return Run(
        run_id=run.run_id,
        generation=run.generation,
        workflow=run.workflow,
        version=run.version,
        digest=run.digest,
        status=status,
        inputs="{}",
        cwd="",
        file=None,
        fence=run.fence + 1,
        revision=run.revision + 1,
        created=run.created,
        updated=now,
        finished=now if run.finished is None else run.finished,
        start_key=run.start_key,
    )
