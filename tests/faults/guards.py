"""The guards that keep the promise, each with the change of text that takes it away and the tests that must notice."""

# ruff: noqa: E501 (what is looked for in a file is as long as it is there)

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One guard less."""

    guard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Arguments of pytest."""


CONTRACT = "tests/test_{}_store.py"
FILE, MARKDOWN, SQLITE, POSTGRES = (CONTRACT.format(kind) for kind in ("file", "markdown", "sqlite", "postgres"))
CUT = "tests/faults/test_power_cut.py"

MUTATIONS = (
    Mutation(
        "sqlite: the fence, token and owner of a commit",
        "tramai/stores/_sqlite_commit.py",
        "AND fence=? AND lease_token=? AND lease_owner=? AND",
        "AND (fence=? OR 1) AND (lease_token=? OR 1) AND (lease_owner=? OR 1) AND",
        (SQLITE, "-k", "replaced"),
    ),
    Mutation(
        "sqlite: the fence of a commit alone",
        "tramai/stores/_sqlite_commit.py",
        "AND fence=? AND",
        "AND (fence=? OR 1) AND",
        (SQLITE, "-k", "wrong_lease"),
    ),
    Mutation(
        "sqlite: the end of the lease of a commit",
        "tramai/stores/_sqlite_commit.py",
        "AND lease_expires>?",
        "AND (lease_expires>? OR 1)",
        (SQLITE, "-k", "too_late"),
    ),
    Mutation(
        "sqlite: at its very end a lease is over",
        "tramai/stores/_sqlite_commit.py",
        "AND lease_expires>?",
        "AND lease_expires>=?",
        (SQLITE, "-k", "too_late"),
    ),
    Mutation(
        "sqlite: one completed record for a path",
        "tramai/stores/_rows.py",
        "slot = 0 if record.mark is Mark.COMPLETED else record.seq",
        "slot = record.seq",
        (SQLITE, "-k", "completed_once"),
    ),
    Mutation(
        "sqlite: every commit is flushed",
        "tramai/stores/_sqlite_connection.py",
        'raw.execute("PRAGMA synchronous=FULL")',
        'raw.execute("PRAGMA synchronous=NORMAL")',
        (CUT, "-k", "acknowledged and sqlite"),
    ),
    Mutation(
        "sqlite: a write transaction begins as one",
        "tramai/stores/_sqlite_connection.py",
        'self._cursor.execute("BEGIN IMMEDIATE")\n        except FAILED as error:\n            self._begin_later(error)',
        'self._cursor.execute("BEGIN")\n        except FAILED as error:\n            self._begin_later(error)',
        ("tests/faults/test_races.py", "-k", "first_look"),
    ),
    Mutation(
        "groups: a place ends with its lease",
        "tramai/places.py",
        "    return rules.active(run.lease, now) or _stands(run, now)\n",
        "    return True\n",
        (SQLITE, "-k", "holds_no_place"),
    ),
    Mutation(
        "groups: whoever was created earlier comes first",
        "tramai/places.py",
        "if _inside(other) or _age(other) < _age(run))",
        "if _inside(other))",
        (SQLITE, "-k", "order_of_creation"),
    ),
    Mutation(
        "file, markdown: one decides about a place at a time",
        "tramai/stores/_folder_store.py",
        "with self._guarded(write=True), self._place.turn(), self._leased(lease) as kept:",
        "with self._guarded(write=True), self._leased(lease) as kept:",
        (FILE, "-k", "eight_processes or eight_threads or two_have_a_place"),
    ),
    Mutation(
        "postgres: a place is taken by the list that was read",
        "tramai/stores/_postgres_sql.py",
        "WHERE g.revision = %(g_was)s",
        "WHERE true OR %(g_was)s = 0",
        (POSTGRES, "-k", "eight_processes or eight_threads or two_have_a_place"),
    ),
    Mutation(
        "file, markdown: token and fence of a writer",
        "tramai/rules.py",
        "        and stored.token == given.token\n        and stored.owner == given.owner\n        and stored.fence == given.fence\n",
        "",
        (FILE, "-k", "replaced"),
    ),
    Mutation(
        "file, markdown: the end of a writer's lease",
        "tramai/rules.py",
        "        and stored.expires > now\n    )",
        "    )",
        (MARKDOWN, "-k", "too_late"),
    ),
    Mutation(
        "file, markdown: a commit is checked at all",
        "tramai/stores/_folder_store.py",
        "if not rules.current(kept.run.lease, lease, change.now):",
        "if False:",
        ("tests/faults/test_stopped.py", "-k", "writes_nothing and markdown"),
    ),
    Mutation(
        "file, markdown: one completed record for a path",
        "tramai/stores/_folder_store.py",
        "if done and (",
        "if False and (",
        (FILE, "-k", "completed_once"),
    ),
    Mutation(
        "file, markdown: the lock of a run",
        "tramai/stores/_files.py",
        "            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)\n        except BlockingIOError:\n            self._wait()",
        "            pass\n        except BlockingIOError:\n            self._wait()",
        ("tests/faults/test_races.py", "-k", "sixteen and file or one_key and file"),
    ),
    Mutation(
        "file: an entry is flushed",
        "tramai/stores/_file_run.py",
        "            flush(self._handle, data_only=True)\n",
        "",
        (CUT, "-k", "acknowledged and file"),
    ),
    Mutation(
        "file, markdown: a new file is flushed before it has its name",
        "tramai/stores/_files.py",
        "            write(handle, data, 0)\n            flush(handle)\n",
        "            write(handle, data, 0)\n",
        (CUT, "-k", "acknowledged"),
    ),
    Mutation(
        "markdown: the folder is flushed after a file was replaced",
        "tramai/stores/_files.py",
        "            raise\n        self.flush()\n        return made",
        "            raise\n        return made",
        (CUT, "-k", "acknowledged and markdown"),
    ),
    Mutation(
        "file, markdown: the folder of all runs is flushed after a new run",
        "tramai/stores/_folder_place.py",
        "            self._above.move(self._name, root, segment(run_id))\n            root.flush()\n",
        "            self._above.move(self._name, root, segment(run_id))\n",
        (CUT, "-k", "acknowledged"),
    ),
    Mutation(
        "file, markdown: a new file is nobody else's (O_EXCL)",
        "tramai/stores/_files.py",
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL",
        "os.O_WRONLY | os.O_CREAT",
        ("tests/faults/test_files.py",),
    ),
    Mutation(
        "file, markdown: no symbolic link is followed (O_NOFOLLOW)",
        "tramai/stores/_files.py",
        "flags |= os.O_NOFOLLOW | os.O_CLOEXEC",
        "flags |= os.O_CLOEXEC",
        ("tests/test_file_faults.py", "-k", "link"),
    ),
    Mutation(
        "file: a line's checksum",
        "tramai/stores/_sealed.py",
        "if sha.encode(\"ascii\") != data[space + 1 : begin - 1]:",
        "if False:",
        ("tests/test_file_faults.py", "-k", "flipped"),
    ),
    Mutation(
        "file: what was acknowledged may not be cut off (the head as a witness)",
        "tramai/stores/_file_run.py",
        "            confirmed(head, self._handle, self.run_id, size)\n",
        "",
        ("tests/test_file_faults.py", "-k", "put_back"),
    ),
    Mutation(
        "file: a torn last entry is cut off before the next",
        "tramai/stores/_file_run.py",
        "            os.ftruncate(self._handle, fold.length)\n            flush(self._handle)\n",
        "",
        ("tests/faults/test_files.py", "-k", "torn"),
    ),
    Mutation(
        "file: a renewal moves the end of the lease",
        "tramai/stores/_file_lease.py",
        "return lease if lease is None or last is None else replace(lease, expires=last.expires)",
        "return lease",
        (FILE, "-k", "only_lasts"),
    ),
    Mutation(
        "markdown: a start key outlives the checkpoint of its run",
        "tramai/stores/markdown.py",
        "        self._refuse_if_remembered(key, sound)\n",
        "",
        (MARKDOWN, "-k", "outlives_its_checkpoint"),
    ),
    Mutation(
        "all: retention removes only what is over",
        "tramai/retention.py",
        "OVER = (Status.COMPLETED, Status.CANCELLED, Status.DEAD)",
        "OVER = (Status.COMPLETED, Status.CANCELLED, Status.DEAD, Status.FAILED)",
        ("tests/test_memory_store.py", "-k", "can_go_on_stays"),
    ),
    Mutation(
        "postgres: the fence and token of a commit",
        "tramai/stores/_postgres_sql.py",
        "WHERE h.run = %(key)s AND h.fence = %(was_fence)s AND h.token = %(was_token)s\n    AND h.revision = %(was_revision)s AND",
        "WHERE h.run = %(key)s AND (h.fence = %(was_fence)s OR TRUE) AND (h.token = %(was_token)s OR TRUE)\n    AND (h.revision = %(was_revision)s OR TRUE) AND",
        (POSTGRES, "-k", "replaced"),
    ),
    Mutation(
        "postgres: the end of the lease of a commit",
        "tramai/stores/_postgres_sql.py",
        "AND l.owner = %(was_owner)s AND l.expires > {now}()\n    RETURNING",
        "AND l.owner = %(was_owner)s\n    RETURNING",
        (POSTGRES, "-k", "too_late"),
    ),
    Mutation(
        "all: a claim raises the fence",
        "tramai/rules.py",
        "fence = run.fence + 1\n",
        "fence = run.fence\n",
        (SQLITE, FILE, "-k", "higher_fence"),
    ),
    Mutation(
        "all: an active lease keeps others out",
        "tramai/rules.py",
        "    if lease is None or not active(lease, now):\n        return\n",
        "    return\n",
        ("tests/faults/test_races.py", "-k", "sixteen and sqlite"),
    ),
    Mutation(
        "all: a dead holder is known to be dead",
        "tramai/holder.py",
        'return found[0] in ("Z", "X") or found[1] != self.start',
        "return False",
        (SQLITE, "-k", "known_dead or killed_holder"),
    ),
    Mutation(
        "all: only the start time tells a process from a later one of its id",
        "tramai/holder.py",
        'return found[0] in ("Z", "X") or found[1] != self.start',
        'return found[0] in ("Z", "X")',
        (SQLITE, "-k", "known_dead"),
    ),
    Mutation(
        "all: each run has a generation of its own",
        "tramai/rules.py",
        "generation=os.urandom(16).hex(),",
        'generation="0" * 32,',
        (SQLITE, "-k", "generation"),
    ),
    Mutation(
        "all: a run of another generation is not taken for the one that comes back",
        "tramai/stores/_whole.py",
        " and there.generation == run.generation",
        "",
        (SQLITE, "-k", "another_life"),
    ),
    Mutation(
        "all: the journal has no gap",
        "tramai/rules.py",
        "        if record.seq != last:\n            raise CheckpointConflict\n",
        "",
        (SQLITE, FILE, "-k", "no_gap"),
    ),
    Mutation(
        "engine: `started` is recorded before an effect",
        "tramai/host.py",
        "            await self.durable(pure=False)\n        left = None",
        "        left = None",
        ("tests/crash/test_mid_step.py", "-k", "blocks_the_run"),
    ),
    Mutation(
        "engine: an open attempt that is not safe to repeat blocks the run",
        "tramai/recovery.py",
        "if record.policy == Replay.NON_REPLAYABLE and not can_be_asked(plan, record):",
        "if False:",
        ("tests/crash/test_mid_step.py", "-k", "blocks_the_run"),
    ),
    Mutation(
        "engine: a step waits until its end is durable",
        "tramai/bookkeeping.py",
        "        self.journal.add(record)\n        await self.durable(pure=pure)\n",
        "        self.journal.add(record)\n",
        ("tests/engine", "tests/crash", "-k", "durable or killed or commit or before_an_effect"),
    ),
    Mutation(
        "engine: records go out in the order they were made",
        "tramai/journal.py",
        "            records=tuple(records),\n",
        "            records=tuple(reversed(records)),\n",
        ("tests/engine/test_engine.py",),
    ),
    Mutation(
        "engine: nothing is written after the lease was lost",
        "tramai/journal.py",
        "            self.fenced = True\n            raise\n",
        "            raise\n",
        ("tests/faults/test_stopped.py", "-k", "hears_once"),
    ),
    Mutation(
        "engine: the local deadline ends the work when nobody can renew",
        "tramai/keeper.py",
        '        if self.expired:\n            self._interrupt.set("lease_lost")\n            return None\n',
        "",
        ("tests/engine", "tests/test_postgres_faults.py", "tests/test_keeper.py", "-k", "lease"),
    ),
    Mutation(
        "engine: a lease is renewed",
        "tramai/keeper.py",
        "if sent - self._renewed >= self._ttl / 3:",
        "if False:",
        ("tests/faults/test_stopped.py", "-k", "keeps_its_lease"),
    ),
    Mutation(
        "engine: a resume ends the children that an earlier runner left",
        "tramai/session.py",
        "if resumed and _process.end_survivors(",
        "if False and _process.end_survivors(",
        ("tests/faults/test_stopped.py", "-k", "no_child and file"),
    ),
    Mutation(
        "engine: the idempotency key is the same on every attempt",
        "tramai/bookkeeping.py",
        'f"{self.run_id}\\0{path}"',
        'f"{self.run_id}\\0{path}{self._fence}"',
        ("tests/faults/test_stopped.py", "-k", "no_child and file"),
    ),
    Mutation(
        "postgres: the fence, token and revision of a commit among others",
        "tramai/stores/_postgres_many.py",
        "AND h.fence = d.was_fence AND h.token = d.was_token AND h.revision = d.was_revision",
        "",
        ("tests/test_postgres_shared.py", "-k", "every_guard"),
    ),
    Mutation(
        "postgres: the owner and the end of the lease of a commit among others",
        "tramai/stores/_postgres_many.py",
        "AND l.owner = d.was_owner AND l.expires > {{now}}()",
        "",
        ("tests/test_postgres_shared.py", "-k", "every_guard"),
    ),
    Mutation(
        "postgres: of several that are claimed each stands as it was read",
        "tramai/stores/_postgres_many.py",
        "AND h.fence = d.was_fence AND h.revision = d.was_revision\n    AND h.token IS NOT DISTINCT FROM d.was_token AND l.expires IS NOT DISTINCT FROM d.was_expires",
        "",
        ("tests/test_postgres_shared.py", "-k", "taken_meanwhile"),
    ),
    Mutation(
        "chaos: the fence, token, owner, revision and end of the lease of a commit",
        "tramai/stores/_postgres_sql.py",
        "AND h.fence = %(was_fence)s AND h.token = %(was_token)s\n    AND h.revision = %(was_revision)s AND l.run = h.run AND l.owner = %(was_owner)s AND l.expires > {now}()",
        "AND l.run = h.run",
        ("tests/chaos/test_chaos.py",),
    ),
    Mutation(
        "postgres: a run sleeps by the clock of the store",
        "tramai/stores/postgres.py",
        "own_clock = True",
        "own_clock = False",
        ("tests/test_store_clock.py",),
    ),
)  # fmt: skip
