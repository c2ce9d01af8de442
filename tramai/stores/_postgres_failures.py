"""What failures of PostgreSQL mean to a call, and what a person may read of them: never the driver's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import CheckpointCorrupt, StoreUnavailable, TramaiError

if TYPE_CHECKING:
    import psycopg


class Lost(Exception):
    """The connection broke; if something was sent, nobody knows whether it was done."""

    def __init__(self, error: TramaiError, *, sent: bool = True) -> None:
        super().__init__()
        self.error = error
        self.sent = sent


class Again(Exception):
    """The server took the whole statement back, and it may be tried again."""

    def __init__(self, error: TramaiError) -> None:
        super().__init__()
        self.error = error


class Duplicate(Exception):
    """A unique index refused a row; nothing was written."""


class Missing(Exception):
    """The tables are not there."""


_TAKEN_BACK = {"40001", "40P01"}
# A statement prepared in another session of the server, behind a pooler; or prepared before a migration.
_PREPARED_ELSEWHERE = {"26000", "42P05", "0A000"}
# Ended by an operator, a crash or a shutdown; still starting; read-only, so no longer the primary.
_GONE = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "25006", "53300"}
_NOT_THERE = {"42P01", "3F000"}
_FAILURES: dict[str, tuple[str, str | None]] = {
    "42501": ("the user may not do this there", "let the owner of the tables apply the schema, and grant their use"),
    "53100": ("no space is left", "make room and resume; what was saved is intact"),
    "53200": ("the server is out of memory", None),
    "55P03": ("busy", "another session holds a lock; try again"),
    "57014": ("the server took too long", "try again"),
    "42883": ("a function of its schema is missing", "apply the schema again"),
    "54000": ("a value is too large for it", None),
    "22001": ("a value is too large for it", None),
}
_REFUSALS = (
    (("password", "authentication", "role ", "pg_hba.conf", "not permitted to log in"), "the server refused the login"),
    (("database ",), "there is no such database"),
    (("SSL", "certificate"), "no secure connection could be made"),
)
_ASK = "check the user, and the password in PGPASSWORD or ~/.pgpass"


def busy() -> StoreUnavailable:
    """The error when others write to the same run all the time."""
    return StoreUnavailable(what="busy", hint="others write to the same run all the time; try again")


def named(error: psycopg.Error, *, closed: bool) -> tuple[Exception, bool]:
    """What an error means to the call it met, and whether the connection is still good."""
    state = error.sqlstate or ""
    if state in _PREPARED_ELSEWHERE:
        return Again(StoreUnavailable(what="a pooler came between", hint="add pooler=transaction to its URL")), False
    if closed or state in _GONE or state[:2] == "08":
        return Lost(StoreUnavailable(what="the connection to the server was lost")), False
    if state == "23505":
        return Duplicate(), True
    if state in _NOT_THERE:
        return Missing(), True
    if state in _TAKEN_BACK:
        return Again(StoreUnavailable(what="busy", hint="others write at the same time; try again")), True
    return public(state), True


def public(state: str) -> TramaiError:
    """The error a person may read for an SQLSTATE."""
    if state[:2] == "XX" and state != "XX000":
        return CheckpointCorrupt(what="the database is damaged", run_id=None)
    what, hint = _FAILURES.get(state, (f"the database failed ({state or 'no SQLSTATE'})", None))
    return StoreUnavailable(what=what, hint=hint)


def refusal(error: psycopg.Error) -> StoreUnavailable | None:
    """Why the server wants no connection, where trying again is no use; None where it may be."""
    text = str(error)
    if "FATAL" not in text and "SSL" not in text:
        return None
    if any(word in text for word in ("starting up", "shutting down", "recovery", "too many", "remaining connection")):
        return None
    for words, what in _REFUSALS:
        if any(word in text for word in words):
            return StoreUnavailable(what=what, hint=_ASK if "login" in what else None)
    return None
