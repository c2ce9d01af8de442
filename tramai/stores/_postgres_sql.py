"""The statements of the PostgreSQL store. Every write is one statement, so that nobody ever holds a lock between two.

Each begins with the UPDATE of the run's moving half, which finds its row only if nothing has happened that the writer
does not know of, and under the writer's lease where it needs one. All that follows hangs on that row: what did not
find it writes nothing.
"""

# ruff: noqa: S608 (what is put into statements are the checked names of tables)

from __future__ import annotations

from . import _postgres_many as many
from ._postgres_ear import HINT, channel
from ._postgres_rows import HEAD, LEASE, RUN
from ._postgres_schema import names
from ._postgres_url import Place

_MOVED = "revision = %(revision)s, last_seq = %(last_seq)s, last_note = %(last_note)s, body = %(body)s, sum = %(sum)s"
# The fence. Whoever takes or ends the lease writes `head` too, so that two writers meet at its row, whose newest
# version counts. The end of the lease is compared with the server's clock, whatever the caller believes.
_HELD = """FROM {lease} AS l WHERE h.run = %(key)s AND h.fence = %(was_fence)s AND h.token = %(was_token)s
    AND h.revision = %(was_revision)s AND l.run = h.run AND l.owner = %(was_owner)s AND l.expires > {now}()
    RETURNING h.run"""
_GO_ON = f"moved AS (UPDATE {{head}} AS h SET {_MOVED}, updated = {{now}}() {_HELD})"
_END = f"moved AS (UPDATE {{head}} AS h SET {_MOVED}, updated = {{now}}(), token = NULL {_HELD})"
# Without a lease: the run stands exactly as it was read, and so does the lease that was judged to be over.
_FOUND = """found AS (SELECT h.run FROM {head} AS h JOIN {lease} AS l ON l.run = h.run
    WHERE h.run = %(was_key)s AND h.fence = %(was_fence)s AND h.revision = %(was_revision)s
    AND h.token IS NOT DISTINCT FROM %(was_token)s AND l.expires IS NOT DISTINCT FROM %(was_expires)s FOR UPDATE)"""
_SETTLE = f"""{_FOUND}, moved AS (UPDATE {{head}} AS h SET {_MOVED}, updated = %(updated)s, fence = %(fence)s,
    token = %(token)s FROM found WHERE h.run = found.run RETURNING h.run)"""
_CREATE = """moved AS (INSERT INTO {run}
    (id, run_id, reversed, workflow, digest, status, queue, priority, created, start_key, wake_at, body, sum)
    VALUES (%(key)s, %(run_id)s, %(reversed)s, %(workflow)s, %(digest)s, %(status)s, %(queue)s, %(priority)s,
    %(created)s, %(start_key)s, %(wake_at)s, %(run_body)s, %(run_sum)s) RETURNING id AS run)"""
# Another life in the place of a run: its rows go, and those of the new one come under a key of their own.
_GONE = ", ".join(
    f"gone_{name} AS (DELETE FROM {{{name}}} AS t USING found WHERE t.run = found.run)"
    for name in ("head", "lease", "record", "note")
)
_REPLACE = f"""{_FOUND}, {_GONE}, gone_label AS (DELETE FROM {{label}} AS t USING found WHERE t.run = found.run
    AND t.name = ANY(%(was_labels)s::text[]) AND t.created = %(was_created)s AND t.run_id = %(run_id)s
    AND NOT (t.created = %(created)s AND t.name = ANY(%(labels)s::text[]))),
    moved AS (UPDATE {{run}} AS r SET id = %(key)s, workflow = %(workflow)s, digest = %(digest)s, status = %(status)s,
    queue = %(queue)s, priority = %(priority)s, created = %(created)s, start_key = %(start_key)s,
    wake_at = %(wake_at)s, body = %(run_body)s, sum = %(run_sum)s FROM found WHERE r.id = found.run
    RETURNING r.id AS run)"""
# A place in a group: its list is still the one that was decided by, and then the run as above.
_LISTED = """listed AS (INSERT INTO {group} AS g (name, revision, runs) VALUES (%(g_name)s, 1, %(g_runs)s::text[])
    ON CONFLICT (name) DO UPDATE SET revision = g.revision + 1, runs = excluded.runs WHERE g.revision = %(g_was)s
    RETURNING g.name)"""
_ENTER = f"{_LISTED}, {_SETTLE.replace('FOR UPDATE', 'AND EXISTS (SELECT FROM listed) FOR UPDATE')}"
_FIRST = {"enter": _ENTER, "go on": _GO_ON, "end": _END, "settle": _SETTLE, "create": _CREATE, "replace": _REPLACE}

_PARTS = {
    "head": """INSERT INTO {head} (run, fence, revision, token, updated, last_seq, last_note, body, sum)
    SELECT moved.run, %(fence)s, %(revision)s, %(token)s, %(updated)s, %(last_seq)s, %(last_note)s, %(body)s, %(sum)s
    FROM moved""",
    "first lease": """INSERT INTO {lease} (run, fence, token, owner, expires)
    SELECT moved.run, %(lease_fence)s, %(token)s, %(owner)s, %(expires)s FROM moved""",
    "lease": """UPDATE {lease} AS l SET fence = %(lease_fence)s, token = %(token)s, owner = %(owner)s,
    expires = %(expires)s, offered = 0 FROM moved WHERE l.run = moved.run""",
    "run": """UPDATE {run} AS r SET workflow = %(workflow)s, digest = %(digest)s, status = %(status)s,
    wake_at = %(wake_at)s, body = %(run_body)s, sum = %(run_sum)s FROM moved WHERE r.id = moved.run""",
    "records": """INSERT INTO {record} (run, seq, path, mark, value, body, sum) SELECT moved.run, r.* FROM moved,
    json_to_recordset(%(records)s::json)
    AS r (seq bigint, path text, mark text, value text, body text, sum bigint)""",
    "notes": """INSERT INTO {note} (run, seq, body, sum) SELECT moved.run, n.* FROM moved,
    json_to_recordset(%(notes)s::json) AS n (seq bigint, body text, sum bigint)""",
    "blobs": """INSERT INTO {blob} AS kept (sha, data) SELECT b.sha, b.data FROM moved,
    unnest(%(b_sha)s::text[], %(b_data)s::bytea[]) AS b (sha, data) ORDER BY b.sha
    ON CONFLICT (sha) DO UPDATE SET used = kept.used + 1,
    data = CASE WHEN kept.data = excluded.data THEN kept.data ELSE excluded.data END""",
    "definition": """INSERT INTO {definition} (digest, body, sum)
    SELECT %(d_digest)s, %(d_body)s, %(d_sum)s FROM moved ON CONFLICT (digest) DO NOTHING""",
    "labels": """INSERT INTO {label} (name, created, run_id, run)
    SELECT l, %(created)s, %(run_id)s, moved.run FROM moved, unnest(%(labels)s::text[]) AS l
    ON CONFLICT (name, created, run_id) DO UPDATE SET run = excluded.run""",
}

_HEADER = ", ".join(
    ["{now}()", *(f"r.{name}" for name in RUN), *(f"h.{name}" for name in HEAD), *(f"l.{name}" for name in LEASE)]
)
# LEFT JOIN: a run without its other half is a damaged one, not one that never was.
_OF_RUN = "FROM {run} AS r LEFT JOIN {head} AS h ON h.run = r.id LEFT JOIN {lease} AS l ON l.run = r.id"

# What comes up, queue by queue, each look down one index. What others are just looking at is passed over: they have
# marked it as offered, or are about to. The clock is asked once, or no index would serve.
_CLOCK = "clock AS MATERIALIZED (SELECT {now}() AS t)"
_NOW = "(SELECT t FROM clock)"
_FREE = f"(l.expires IS NULL OR l.expires <= {_NOW}) AND l.offered <= {_NOW}"
_ONLY = """NOT r.run_id = ANY(%(without)s::text[]) AND (cardinality(%(labels)s::text[]) = 0 OR EXISTS (
    SELECT FROM {label} AS b WHERE b.name = ANY(%(labels)s::text[]) AND b.created = r.created
    AND b.run_id = r.run_id))"""
_LOOK = "SELECT r.id, r.priority, r.created FROM {run} AS r JOIN {lease} AS l ON l.run = r.id WHERE r.queue = q.name"
_UP = f"""up AS (SELECT found.* FROM unnest(%(queues)s::text[]) AS q (name), LATERAL (
    ({_LOOK} AND r.status IN ('ready', 'running') AND {_FREE} AND {_ONLY}
    ORDER BY r.priority DESC, r.created LIMIT %(look)s)
    UNION ALL ({_LOOK} AND r.status IN ('sleeping', 'waiting') AND r.wake_at <= {_NOW} AND {_FREE} AND {_ONLY}
    ORDER BY r.wake_at LIMIT %(look)s)) AS found)"""
# An offer need not outlive a crash: it is the one write here that waits for no flush.
_OFFER = f"""WITH {_CLOCK}, {_UP}, hasty AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
    picked AS (SELECT l.run FROM up JOIN {{lease}} AS l ON l.run = up.id WHERE {_FREE}
    ORDER BY up.priority DESC, up.created, up.id LIMIT %(limit)s FOR UPDATE OF l SKIP LOCKED),
    offered AS (UPDATE {{lease}} AS l SET offered = {_NOW} + %(offered)s FROM picked, hasty WHERE l.run = picked.run
    RETURNING l.run)"""
_FIRST_WAKE = f"""(SELECT min(first.wake_at) FROM unnest(%(queues)s::text[]) AS q (name), LATERAL (
    SELECT r.wake_at FROM {{run}} AS r WHERE r.queue = q.name AND r.status IN ('sleeping', 'waiting')
    AND r.wake_at > {_NOW} ORDER BY r.wake_at LIMIT 1) AS first)"""
_FIRST_END = f"""(SELECT min(l.expires) FROM {{run}} AS r JOIN {{lease}} AS l ON l.run = r.id
    WHERE r.status = 'running' AND r.queue = ANY(%(queues)s::text[]) AND l.expires > {_NOW})"""


class Sql:
    """The statements over the tables of one store."""

    def __init__(self, place: Place) -> None:
        self.names = names(place)
        self._channel = channel(place)
        self._made: dict[tuple[str, ...], str] = {}
        either = "run_id = %(run_id)s OR start_key = %(start_key)s"
        self.get = self._named(f"SELECT {_HEADER} {_OF_RUN} WHERE r.run_id = %s")
        self.get_either = self._named(f"SELECT {_HEADER} {_OF_RUN} WHERE r.{either.replace('OR ', 'OR r.')}")
        self.get_head = self._named(
            "SELECT r.id, h.last_seq, h.last_note, h.body, h.sum "
            "FROM {run} AS r LEFT JOIN {head} AS h ON h.run = r.id WHERE r.run_id = %s"
        )
        self.before = self._named(f"SELECT {{now}}(), nextval('{{key}}'), EXISTS (SELECT FROM {{run}} WHERE {either})")
        self.renew = self._named(
            "UPDATE {lease} AS l SET expires = {now}() + %(ttl)s FROM {run} AS r WHERE r.run_id = %(run_id)s "
            "AND l.run = r.id AND l.fence = %(fence)s AND l.token = %(token)s AND l.owner = %(owner)s "
            "AND l.expires > {now}() RETURNING l.expires, r.body"
        )
        self.records = self._named(
            "SELECT seq, path, mark, value, body, sum FROM {record} "
            "WHERE run = %s AND seq BETWEEN %s AND %s ORDER BY seq"
        )
        self.notes = self._named(
            "SELECT seq, body, sum FROM {note} WHERE run = %s AND seq BETWEEN %s AND %s ORDER BY seq"
        )
        self.blobs = self._named("SELECT sha, data FROM {blob} WHERE sha = ANY(%s::text[])")
        self.definition = self._named("SELECT body, sum FROM {definition} WHERE digest = %s")
        self.match = self._named(
            "SELECT run_id FROM {run} WHERE reversed >= %s AND reversed < %s ORDER BY reversed LIMIT %s"
        )

        self.group = self._named("SELECT revision, runs FROM {group} WHERE name = %s")
        self.get_all = self._named(f"SELECT {_HEADER} {_OF_RUN} WHERE r.run_id = ANY(%s::text[])")
        self.list = self._named(f"WITH {_LISTED} SELECT name FROM listed")

        self._for_workers()
        self._for_operators()

    def _for_workers(self) -> None:
        """What gives out runs, and who is there to take them."""
        self.offer = self._named(f"{_OFFER} SELECT {_HEADER} {_OF_RUN} JOIN offered ON offered.run = r.id")
        self.claim_many = self._named(many.CLAIM)
        self.commit_many = self._named(many.COMMIT)
        self.held = self._named(
            f"SELECT {_HEADER} {_OF_RUN} WHERE r.status = 'running' AND r.queue = ANY(%(queues)s::text[]) "
            "AND l.expires > {now}() AND starts_with(l.owner, %(host)s) AND NOT r.run_id = ANY(%(without)s::text[])"
        )
        self.wake = self._named(
            f"WITH {_CLOCK}, {_UP} SELECT CASE WHEN EXISTS (SELECT FROM up) THEN 0 ELSE least({_FIRST_WAKE}, "
            f"{_FIRST_END}) - (SELECT t FROM clock) END"
        )
        self.backlog = self._named(
            "SELECT q.place, (SELECT count(*) FROM (SELECT FROM {run} AS r WHERE r.queue = q.name "
            "AND r.status IN ('ready', 'running') AND r.status = 'ready' LIMIT %(most)s) AS waiting) "
            "FROM unnest(%(queues)s::text[]) WITH ORDINALITY AS q (name, place) ORDER BY q.place"
        )
        self.beat = self._named(
            "WITH forgotten AS (DELETE FROM {worker} WHERE seen < {now}() - 86400 AND id <> %(id)s) "
            "INSERT INTO {worker} AS w (id, started, seen, draining, body) "
            "VALUES (%(id)s, %(started)s, {now}(), false, %(body)s) ON CONFLICT (id) DO UPDATE SET seen = {now}(), "
            "draining = w.draining AND w.started = excluded.started, started = excluded.started, body = excluded.body "
            "RETURNING draining"
        )
        self.workers = self._named("SELECT id, body, {now}() - seen, draining FROM {worker} ORDER BY id")
        self.drain = self._named(
            "UPDATE {worker} SET draining = true WHERE id = %s RETURNING id, body, {now}() - seen, draining"
        )
        self.leave = self._named("DELETE FROM {worker} WHERE id = %s")

    def _for_operators(self) -> None:
        """What looks at everything."""
        bodies = " UNION ALL ".join(f"SELECT body FROM {{{name}}}" for name in ("run", "head", "record", "note"))
        self.unused_blobs = self._named(
            f"""WITH used AS (
                SELECT (regexp_matches(body, '"@([0-9a-f]{{{{64}}}})"', 'g'))[1] AS sha FROM ({bodies}) AS b
                WHERE body LIKE '%"@%' UNION SELECT substr(value, 2) FROM {{record}} WHERE value LIKE '@%')
            SELECT b.sha, b.used FROM {{blob}} AS b LEFT JOIN used USING (sha) WHERE used.sha IS NULL"""
        )
        self.drop_blobs = self._named(
            "DELETE FROM {blob} AS b USING unnest(%(sha)s::text[], %(used)s::bigint[]) AS u (sha, used) "
            "WHERE b.sha = u.sha AND b.used = u.used RETURNING length(b.data)"
        )
        self.lock = self._named("LOCK TABLE {definition} IN SHARE ROW EXCLUSIVE MODE")
        self.drop_definitions = self._named(
            "DELETE FROM {definition} AS d WHERE NOT EXISTS (SELECT FROM {run} AS r WHERE r.digest = d.digest "
            "AND r.status NOT IN ('moved', 'removed')) "
            "AND NOT EXISTS (SELECT FROM {schedule} AS s WHERE s.digest = d.digest) RETURNING length(d.body)"
        )
        self.counts = self._named("SELECT status, count(*) FROM {run} GROUP BY status")
        self.format = self._named("SELECT value FROM {meta} WHERE name = 'format'")
        self.state = """SELECT (SELECT sum(pg_total_relation_size(t))::bigint FROM unnest(%(tables)s::regclass[]) AS t),
            (SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND relation = ANY(%(tables)s::regclass[])),
            current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')"""
        self.damaged_blobs = self._named("SELECT sha FROM {blob} WHERE encode(sha256(data), 'hex') <> sha")
        stray = "SELECT '{0}', count(*) FROM {{{0}}} AS t WHERE NOT EXISTS (SELECT FROM {{run}} WHERE id = t.run)"
        parts = ("head", "lease", "record", "note", "label")
        self.strays = self._named(" UNION ALL ".join(map(stray.format, parts)))

    def write(self, kind: str, *parts: str) -> str:
        """A write of a kind (`create`, `go on`, `end`, `settle`, `replace`), with the parts that hang on it."""
        made = self._made.get((kind, *parts))
        if made is None:
            more = [f"part{place} AS ({_PARTS[part]})" for place, part in enumerate(parts) if part != HINT]
            said = f", pg_notify('{self._channel}', '')" if HINT in parts else ""
            made = self._named(f"WITH {', '.join([_FIRST[kind], *more])} SELECT run{said} FROM moved")
            self._made[kind, *parts] = made
        return made

    def page(self, *filters: str) -> str:
        """The query of a page; each combination of filters goes down one index, backwards."""
        lead = "b" if "label" in filters else "r"
        source = f"{_OF_RUN} JOIN {{label}} AS b ON b.run = r.id" if lead == "b" else _OF_RUN
        column = {"status": "r.status", "workflow": "r.workflow", "label": "b.name"}
        conditions = "".join(f" AND {column[name]} = %({name})s" for name in filters)
        if "status" not in filters:
            conditions += " AND r.status NOT IN ('moved', 'removed')"
        return self._named(
            f"SELECT {_HEADER} {source} WHERE ({lead}.created, {lead}.run_id) < (%(created)s, %(run_id)s){conditions} "
            f"ORDER BY {lead}.created DESC, {lead}.run_id DESC LIMIT %(limit)s"
        )

    def _named(self, statement: str) -> str:
        return statement.format_map(self.names)
