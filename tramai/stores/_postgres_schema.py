"""The tables of the PostgreSQL store, and how an older format becomes the present one.

The format's number stands in `tramai_meta`; the number n is reached by running the first n migrations. A row's `body`
is the JSON text of the noun it keeps, and `sum` its checksum; the other columns are what SQL must see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ..errors import NotFound, StoreTooNew, StoreUnavailable
from ._postgres_connection import Db, Pool
from ._postgres_failures import Missing
from ._postgres_url import Place

# No foreign keys: checking one locks the row of the run, and a commit already writes the row that belongs to it.
# `head` and `lease` have room in their pages, so that what every commit and renewal writes moves within its page and
# touches no index. The end of the lease stands apart from what commits write: neither ever waits for the other. Its
# token stands in both, so that a commit and whoever ends the lease meet at one row. `used` of a blob grows whenever a
# write refers to it, so that nobody lets go of one that is just needed again.
_FIRST = """
CREATE TABLE {meta} (name text PRIMARY KEY, value text NOT NULL);
CREATE SEQUENCE {key} AS bigint;
CREATE FUNCTION {now}() RETURNS double precision LANGUAGE sql VOLATILE
    AS $$SELECT extract(epoch FROM clock_timestamp())::double precision$$;
COMMENT ON FUNCTION {now}() IS 'the only clock of the leases in these tables';
CREATE TABLE {run} (
    id bigint PRIMARY KEY,
    run_id text COLLATE "C" NOT NULL,
    reversed text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority bigint NOT NULL,
    created double precision NOT NULL,
    start_key text COLLATE "C",
    wake_at double precision,
    body text NOT NULL,
    sum bigint NOT NULL);
CREATE TABLE {head} (
    run bigint PRIMARY KEY,
    fence bigint NOT NULL,
    revision bigint NOT NULL,
    token text COLLATE "C",
    updated double precision NOT NULL,
    last_seq bigint NOT NULL,
    last_note bigint NOT NULL,
    body text NOT NULL,
    sum bigint NOT NULL) WITH (fillfactor = 60);
CREATE TABLE {lease} (
    run bigint PRIMARY KEY,
    fence bigint,
    token text COLLATE "C",
    owner text COLLATE "C",
    expires double precision) WITH (fillfactor = 60);
CREATE TABLE {record} (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    path text COLLATE "C" NOT NULL,
    mark text COLLATE "C" NOT NULL,
    value text,
    body text NOT NULL,
    sum bigint NOT NULL,
    PRIMARY KEY (run, seq));
CREATE TABLE {note} (
    run bigint NOT NULL, seq bigint NOT NULL, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (run, seq));
CREATE TABLE {label} (
    name text COLLATE "C" NOT NULL,
    created double precision NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    run bigint NOT NULL,
    PRIMARY KEY (name, created, run_id));
CREATE TABLE {blob} (sha text COLLATE "C" PRIMARY KEY, data bytea NOT NULL, used bigint NOT NULL DEFAULT 1);
CREATE TABLE {definition} (digest text COLLATE "C" PRIMARY KEY, body text NOT NULL, sum bigint NOT NULL);
CREATE UNIQUE INDEX "{prefix}run_by_id" ON {run} (run_id);
CREATE UNIQUE INDEX "{prefix}run_by_start_key" ON {run} (start_key) WHERE start_key IS NOT NULL;
CREATE INDEX "{prefix}run_by_suffix" ON {run} (reversed);
CREATE INDEX "{prefix}run_newest" ON {run} (created, run_id) WHERE status NOT IN ('moved', 'removed');
CREATE INDEX "{prefix}run_of_workflow" ON {run} (workflow, created, run_id) WHERE status NOT IN ('moved', 'removed');
CREATE INDEX "{prefix}run_in_status" ON {run} (status, created, run_id);
CREATE INDEX "{prefix}run_due" ON {run} (wake_at) WHERE status = 'sleeping';
CREATE INDEX "{prefix}run_claimable" ON {run} (queue, priority DESC, created) WHERE status IN ('ready', 'running');
CREATE UNIQUE INDEX "{prefix}record_completed" ON {record} (run, path) WHERE mark = 'completed';
"""

# For each group the runs that have a place or stand in line. Whoever changes a list counts `revision`, so that of two
# who decide by the same list one must decide anew.
_SECOND = """
CREATE TABLE {group} (name text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL, runs text[] COLLATE "C" NOT NULL);
"""

# What workers look for. `offered` is the end of the moment for which a run is offered to one of them alone.
_THIRD = """
ALTER TABLE {lease} ADD COLUMN offered double precision NOT NULL DEFAULT 0;
DROP INDEX {run_due};
CREATE INDEX "{prefix}run_wakes" ON {run} (queue, wake_at) WHERE status IN ('sleeping', 'waiting');
CREATE TABLE {worker} (
    id text COLLATE "C" PRIMARY KEY,
    started double precision NOT NULL,
    seen double precision NOT NULL,
    draining boolean NOT NULL,
    body text NOT NULL);
"""

# What schedulers keep: the schedules, and one row for each time of one that became something.
_FOURTH = """
CREATE TABLE {schedule} (
    id text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,
    body text NOT NULL,
    sum bigint NOT NULL);
CREATE TABLE {tick} (
    id text COLLATE "C" PRIMARY KEY,
    schedule text COLLATE "C" NOT NULL,
    at double precision NOT NULL,
    status text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    body text NOT NULL,
    sum bigint NOT NULL);
CREATE INDEX "{prefix}tick_by_time" ON {tick} (at);
CREATE INDEX "{prefix}tick_of_schedule" ON {tick} (schedule, at);
CREATE INDEX "{prefix}tick_fired" ON {tick} (schedule, at) WHERE status = 'fired';
CREATE INDEX "{prefix}tick_open" ON {tick} (status) WHERE status IN ('due', 'queued');
"""

MIGRATIONS: tuple[str, ...] = (_FIRST, _SECOND, _THIRD, _FOURTH)
"""What makes format n+1 of format n."""

TABLES = (
    *("meta", "key", "now", "run", "head", "lease", "record", "note", "label", "blob", "definition", "group"),
    *("worker", "schedule", "tick"),
)
"""What statements name: the tables, a sequence and a function."""
_PATIENCE = 600.0
_NO_FORMAT = "its tables are another program's, or damaged"


def names(place: Place) -> Mapping[str, str]:
    """What statements call the tables: each by its full, quoted name."""
    full = {name: f'"{place.schema}"."{place.prefix}{name}"' for name in (*TABLES, "run_due")}
    return full | {"prefix": place.prefix}


def script(place: Place, since: int = 0) -> str:
    """The statements that bring a store from a format (0: nothing there yet) to the present one."""
    called = names(place)
    steps = [migration.format_map(called).strip() for migration in MIGRATIONS[since:]]
    known = len(MIGRATIONS)
    meta = called["meta"]
    steps.append(
        f"INSERT INTO {meta} (name, value) VALUES ('format', '{known}') "  # noqa: S608 (names are checked)
        f"ON CONFLICT (name) DO UPDATE SET value = excluded.value;"
    )
    return "\n".join(steps) + "\n"


def ensure(pool: Pool, place: Place, *, create: bool) -> None:
    """See that the tables are there in the present format: made or migrated if need be. Newer ones are left alone."""
    there = found(pool, place)
    if there is None and not create:
        raise NotFound(kind="store", name=place.shown, url=place.shown)
    if _is_present(there):
        return
    pool.call(lambda db, _: _migrate(db, place), limit=_PATIENCE)


def found(pool: Pool, place: Place) -> int | None:
    """The number of the format there; None where there are no tables."""
    return pool.call(lambda db, _: _format(db, place))


def _format(db: Db, place: Place) -> int | None:
    meta = names(place)["meta"]
    try:
        rows = db.rows(f"SELECT value FROM {meta} WHERE name = 'format'")  # noqa: S608 (names are checked)
    except Missing:
        return None
    text = rows[0][0] if rows else ""
    if not text.isdigit():
        raise StoreUnavailable(what=_NO_FORMAT, hint="name another schema or prefix in the URL")
    return int(text)


def _is_present(there: int | None) -> bool:
    known = len(MIGRATIONS)
    if there is not None and there > known:
        raise StoreTooNew(found=there, known=known)
    return there == known


def _migrate(db: Db, place: Place) -> None:
    """In one transaction, by one of all who try at once: killed halfway, nothing happened."""
    key = hashlib.sha256(f"tramai {place.schema}.{place.prefix}".encode()).digest()[:8]
    db.script("BEGIN")
    db.rows("SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)")
    db.rows("SELECT pg_advisory_xact_lock(%s)", (int.from_bytes(key, "big", signed=True),))
    meta = names(place)["meta"]
    ((there, schema_there),) = db.rows(
        "SELECT to_regclass(%s) IS NOT NULL, to_regnamespace(%s) IS NOT NULL", (meta, f'"{place.schema}"')
    )
    if not schema_there:
        db.script(f'CREATE SCHEMA "{place.schema}"')
    now = _format(db, place) if there else None
    if not _is_present(now):
        db.script(script(place, now or 0))
    db.script("COMMIT")
