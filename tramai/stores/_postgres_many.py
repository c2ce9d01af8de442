"""Writes to several runs in one statement of PostgreSQL: each is accepted or refused for itself, by its own fence.

The rows of all of them come as JSON texts. What a write hangs on is the row of its own run in `moved`, so one that is
refused writes nothing, and takes nothing from its neighbours.
"""

# ruff: noqa: S608 (what is put into statements are the checked names of tables)

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._postgres_write import Write, text_of

_HEAD = {"key": "bigint", "revision": "bigint", "last_seq": "bigint", "last_note": "bigint", "body": "text"}
_HEAD |= {"sum": "bigint", "was_fence": "bigint", "was_revision": "bigint", "was_token": "text"}
_RUN = {"workflow": "text", "digest": "text", "status": "text", "wake_at": "float8", "run_body": "text"}
_RUN |= {"run_sum": "bigint"}
_LEASE = {"fence": "bigint", "token": "text", "owner": "text", "expires": "float8", "lease_fence": "bigint"}
_CLAIMS = {**_HEAD, **_RUN, **_LEASE, "updated": "float8", "was_expires": "float8"}
_COMMITS = {**_HEAD, **_RUN, "was_owner": "text", "ends": "boolean", "changes": "boolean"}
_RECORDS = {"run": "bigint", "seq": "bigint", "path": "text", "mark": "text", "value": "text", "body": "text"}
_RECORDS |= {"sum": "bigint"}
_NOTES = {"run": "bigint", "seq": "bigint", "body": "text", "sum": "bigint"}

_ONES = "(ARRAY(SELECT key FROM d))"
"""The runs; named beside the join, so that each table is met by its index whatever its statistics say."""


def _given(name: str, columns: Mapping[str, str]) -> str:
    return f"json_to_recordset(%({name})s::json) AS d ({', '.join(f'{key} {kind}' for key, kind in columns.items())})"


_MOVED = "revision = d.revision, last_seq = d.last_seq, last_note = d.last_note, body = d.body, sum = d.sum"
_SET_RUN = f"""part_run AS (UPDATE {{run}} AS r SET workflow = d.workflow, digest = d.digest, status = d.status,
    wake_at = d.wake_at, body = d.run_body, sum = d.run_sum FROM d JOIN moved ON moved.run = d.key
    WHERE r.id = d.key AND r.id = ANY{_ONES}"""
CLAIM = f"""WITH d AS MATERIALIZED (SELECT * FROM {_given("writes", _CLAIMS)}),
    found AS (SELECT h.run FROM d JOIN {{head}} AS h ON h.run = d.key JOIN {{lease}} AS l ON l.run = d.key
    WHERE h.run = ANY{_ONES} AND l.run = ANY{_ONES} AND h.fence = d.was_fence AND h.revision = d.was_revision
    AND h.token IS NOT DISTINCT FROM d.was_token AND l.expires IS NOT DISTINCT FROM d.was_expires
    ORDER BY d.key FOR UPDATE OF h, l),
    moved AS (UPDATE {{head}} AS h SET {_MOVED}, updated = d.updated, fence = d.fence, token = d.token
    FROM d JOIN found ON found.run = d.key WHERE h.run = d.key AND h.run = ANY{_ONES} RETURNING h.run),
    part_lease AS (UPDATE {{lease}} AS l SET fence = d.lease_fence, token = d.token, owner = d.owner,
    expires = d.expires, offered = 0 FROM d JOIN moved ON moved.run = d.key
    WHERE l.run = d.key AND l.run = ANY{_ONES}),
    {_SET_RUN})
    SELECT run FROM moved"""
"""Take the leases of runs that still are as they were read; those of which that is so."""
COMMIT = f"""WITH d AS MATERIALIZED (SELECT * FROM {_given("writes", _COMMITS)}),
    moved AS (UPDATE {{head}} AS h SET {_MOVED}, updated = {{now}}(),
    token = CASE WHEN d.ends THEN NULL ELSE h.token END
    FROM d JOIN {{lease}} AS l ON l.run = d.key WHERE h.run = d.key AND h.run = ANY{_ONES} AND l.run = ANY{_ONES}
    AND h.fence = d.was_fence AND h.token = d.was_token AND h.revision = d.was_revision
    AND l.owner = d.was_owner AND l.expires > {{now}}() RETURNING h.run),
    part_lease AS (UPDATE {{lease}} AS l SET fence = NULL, token = NULL, owner = NULL, expires = NULL, offered = 0
    FROM d JOIN moved ON moved.run = d.key WHERE d.ends AND l.run = d.key AND l.run = ANY{_ONES}),
    {_SET_RUN} AND d.changes),
    part_records AS (INSERT INTO {{record}} (run, seq, path, mark, value, body, sum)
    SELECT d.* FROM moved JOIN {_given("records", _RECORDS)} USING (run)),
    part_notes AS (INSERT INTO {{note}} (run, seq, body, sum)
    SELECT d.* FROM moved JOIN {_given("notes", _NOTES)} USING (run))
    SELECT run FROM moved"""
"""Commit under several leases; the runs whose commit was accepted."""


def claims(writes: Sequence[Write]) -> dict[str, str]:
    """The values of CLAIM."""
    return {"writes": text_of([{name: write.given[name] for name in _CLAIMS} for write in writes])}


def shareable(write: Write) -> bool:
    """Whether a commit can stand beside others: it brings neither large texts nor a definition."""
    return set(write.parts) <= {"go on", "end", "lease", "run", "records", "notes"}


def commits(writes: Sequence[Write]) -> dict[str, str]:
    """The values of COMMIT."""
    headers, records, notes = [], [], []
    for write in writes:
        header = {name: write.given.get(name) for name in _COMMITS}
        headers.append({**header, "ends": write.parts[0] == "end", "changes": "run" in write.parts})
        more, noted = write.tail.listed(run=write.head.key)
        records += more
        notes += noted
    return {"writes": text_of(headers), "records": text_of(records), "notes": text_of(notes)}
