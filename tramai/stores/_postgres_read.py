"""What the PostgreSQL store tells: headers, journals, events, definitions, pages. Each row is checked as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import rules
from ..errors import CheckpointCorrupt, NotFound
from ..store import Definition, Note, Record, Run, Status
from . import _postgres_rows as columns
from . import _rows as rows
from ._postgres_connection import Db, Pool
from ._postgres_rows import Header
from ._postgres_sql import Sql

_GLANCE = 2.0
"""Seconds that a look for a cancel request may take: it comes again soon."""


class Reading:
    """What `Postgres` has of `Store` that writes nothing."""

    url: str
    _sql: Sql
    _pool: Pool
    _beats: Pool
    _faults: tuple[Mapping[str, str], ...]

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody wants it cancelled: one small row by index."""
        head = self._beats.call(lambda db, _: self._head(db, run_id), patience=_GLANCE, limit=_GLANCE / 2)
        return head.moving.cancel_requested

    def get(self, run_id: str) -> Run:
        """The header, checked against its checksums."""
        return self._pool.call(lambda db, _: self._whole(db, self._header(db, run_id).run))

    def journal(self, run_id: str) -> tuple[Record, ...]:
        """All records in order, each checked against its checksum, and none missing."""

        def attempt(db: Db, doubt: bool) -> tuple[Record, ...]:
            head = self._head(db, run_id)
            found = db.rows(self._sql.records, (head.key, 0, head.last_seq))
            fetch = self._fetcher(db, [text for row in found for text in row[3:5]])
            records = [columns.record_of(run_id, head.key, row, fetch) for row in found]
            return rows.in_order(run_id, records, head.last_seq)

        return self._pool.call(attempt)

    def notes(self, run_id: str) -> tuple[Note, ...]:
        """The event list in order, checked likewise."""

        def attempt(db: Db, doubt: bool) -> tuple[Note, ...]:
            head = self._head(db, run_id)
            found = db.rows(self._sql.notes, (head.key, 0, head.last_note))
            if len(found) != head.last_note:
                text = f"run {run_id} has {len(found)} of its {head.last_note} events"
                raise CheckpointCorrupt(what=text, run_id=run_id)
            fetch = self._fetcher(db, [row[1] for row in found])
            return tuple(rows.note_of(run_id, head.key, row[1:], seq, fetch) for seq, row in enumerate(found, 1))

        return self._pool.call(attempt)

    def definition(self, digest: str) -> Definition:
        """The source first kept for a digest."""
        found = self._pool.call(lambda db, _: db.rows(self._sql.definition, (name_of(digest),)))
        if not found:
            raise NotFound(kind="definition", name=digest)
        return rows.definition_of(digest, found[0])

    def page(
        self,
        *,
        limit: int,
        after: str | None = None,
        status: Status | None = None,
        workflow: str | None = None,
        label: str | None = None,
    ) -> tuple[tuple[Run, ...], str | None]:
        """Newest first, by index; see `Store.page`."""
        rules.check_limit(limit)
        created, run_id = rules.cursor_place(after)
        filters = {"status": status and status.value, "workflow": name_of(workflow), "label": name_of(label)}
        given = {name: value for name, value in filters.items() if value is not None}
        values = {"created": created, "run_id": name_of(run_id), "limit": limit + 1, **given}

        def attempt(db: Db, doubt: bool) -> tuple[tuple[Run, ...], str | None]:
            found = db.rows(self._sql.page(*given), values)
            runs, faults = [], []
            for row in found[:limit]:
                try:
                    runs.append(self._whole(db, columns.header_of(row).run))
                except CheckpointCorrupt as error:
                    faults.append({"run_id": columns.name_of(row[2]), "what": error.message})
            self._faults = tuple(faults)
            if len(found) <= limit:
                return tuple(runs), None
            last = found[limit - 1]
            return tuple(runs), rules.cursor_text(last[columns.CREATED], columns.name_of(last[2]))

        return self._pool.call(attempt)

    def faults(self) -> tuple[Mapping[str, str], ...]:
        """Bad headers met by the last `page`."""
        return self._faults

    def match(self, suffix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Ids that end with the text, by an index of the ids read backwards."""
        start = columns.name(suffix[::-1])
        values = (start, start + columns.AFTER_ALL, limit)
        found = self._pool.call(lambda db, _: db.rows(self._sql.match, values))
        return tuple(columns.name_of(row[0]) for row in found)

    # What follows is done over one connection, in the middle of a call.

    def _header(self, db: Db, run_id: str) -> Header:
        """The header, long texts still apart."""
        found = db.rows(self._sql.get, (name_of(run_id),))
        if not found:
            raise NotFound(kind="run", name=run_id)
        return columns.header_of(found[0])

    def _head(self, db: Db, run_id: str) -> rows.Head:
        found = db.rows(self._sql.get_head, (name_of(run_id),))
        if not found:
            raise NotFound(kind="run", name=run_id)
        return rows.head_of(run_id, found[0])

    def _whole(self, db: Db, run: Run) -> Run:
        texts = [text for text in (run.inputs, run.outputs, run.error) if text and text[0] == "@"]
        return rows.whole(run, self._fetcher(db, texts)) if texts else run

    def _fetcher(self, db: Db, texts: list[Any]) -> rows.Fetch:
        """Fetches what the texts refer to, all at once."""
        wanted = columns.references(texts)
        found = dict(db.rows(self._sql.blobs, (wanted,))) if wanted else {}
        return found.get


def name_of(text: str | None) -> str | None:
    """A name as its column holds it; None for none."""
    return None if text is None else columns.name(text)
