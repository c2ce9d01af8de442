"""A witness inside the database: triggers that write down every change of a run's header and journal as it happens.

The store keeps how a run stands, not all the ways it stood. So that a stale write shows even when a later one covers
it, the server itself notes each revision, fence and token, and how much of the lease was left.
"""

from __future__ import annotations

from typing import Any

import msgspec

_SQL = """
CREATE TABLE {schema}.chaos_witness (
    nr bigserial PRIMARY KEY, run bigint NOT NULL, kind text NOT NULL, fence bigint, revision bigint,
    token text, was_fence bigint, was_revision bigint, was_token text, lease_left double precision,
    records bigint);
CREATE FUNCTION {schema}.chaos_head() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    left_of double precision;
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO {schema}.chaos_witness (run, kind, fence, revision, token)
        VALUES (NEW.run, 'made', NEW.fence, NEW.revision, NEW.token);
        RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' THEN
        INSERT INTO {schema}.chaos_witness (run, kind, was_fence, was_revision, was_token)
        VALUES (OLD.run, 'gone', OLD.fence, OLD.revision, OLD.token);
        RETURN OLD;
    END IF;
    SELECT l.expires - {schema}.tramai_now() INTO left_of FROM {schema}.tramai_lease AS l
    WHERE l.run = OLD.run AND l.token = OLD.token;
    INSERT INTO {schema}.chaos_witness
        (run, kind, fence, revision, token, was_fence, was_revision, was_token, lease_left, records)
    VALUES (OLD.run, 'moved', NEW.fence, NEW.revision, NEW.token, OLD.fence, OLD.revision, OLD.token, left_of,
        NEW.last_seq - OLD.last_seq);
    RETURN NEW;
END $$;
CREATE TRIGGER chaos_head BEFORE INSERT OR UPDATE OR DELETE ON {schema}.tramai_head
    FOR EACH ROW EXECUTE FUNCTION {schema}.chaos_head();
CREATE FUNCTION {schema}.chaos_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.chaos_witness (run, kind) VALUES (OLD.run, 'record changed');
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER chaos_record BEFORE UPDATE OR DELETE ON {schema}.tramai_record
    FOR EACH ROW EXECUTE FUNCTION {schema}.chaos_record();
"""


class Seen(msgspec.Struct, frozen=True):
    """One change of a header (`made`, `moved`, `gone`), or that a record was changed, which never may be."""

    kind: str
    fence: int | None = None
    revision: int | None = None
    token: str | None = None
    was_fence: int | None = None
    was_revision: int | None = None
    was_token: str | None = None
    lease_left: float | None = None
    """Seconds for which the lease that the header named was still to run; None without one."""
    records: int | None = None
    """How many were added to the journal."""


def post(server: Any, schema: str) -> None:
    """Have a witness in a schema with the tables of a store."""
    server.sql(_SQL.format(schema=f'"{schema}"'))


def statements(server: Any, schema: str) -> dict[str, tuple[Seen, ...]]:
    """All that was seen, by run id, in order."""
    columns = ", ".join(f"w.{name}" for name in Seen.__struct_fields__)
    rows = server.sql(
        f'SELECT r.run_id, {columns} FROM "{schema}".chaos_witness AS w '
        f'JOIN "{schema}".tramai_run AS r ON r.id = w.run ORDER BY w.nr'
    )
    found: dict[str, list[Seen]] = {}
    for run_id, *values in rows:
        found.setdefault(run_id, []).append(Seen(*values))
    return {run_id: tuple(seen) for run_id, seen in found.items()}
