"""The connections of the PostgreSQL store: a few, opened when needed, and what becomes of a call when one breaks.

No driver's text leaves this module: it can quote statements, values and passwords.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ConfigurationError, StoreUnavailable, TramaiError
from ._postgres_failures import Again, Lost, Missing, named, refusal
from ._postgres_url import Place

if TYPE_CHECKING:
    import psycopg

_T = TypeVar("_T")
Values = Mapping[str, Any] | tuple[Any, ...]

OPENING = 2.0
"""Seconds that a call keeps trying for a server that has never answered."""
PATIENCE = 30.0
"""Seconds that a call keeps trying when a connection broke, before it fails."""
LIMIT = 60.0
"""Seconds within which the server must answer a statement."""
_CONNECTING = 5.0
_LONGEST_PAUSE = 1.0

# A peer that vanished without a word is known dead within about ten seconds.
_DEFAULTS: dict[str, Any] = {
    "client_encoding": "utf8",
    "fallback_application_name": "tramai",
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# `on` unless it is one of the other values that flush before a commit is acknowledged.
_SESSION = """
SELECT set_config('statement_timeout', '60s', false), set_config('lock_timeout', '10s', false),
    set_config('idle_in_transaction_session_timeout', '10s', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
        false)"""


class Db:
    """One connection, lent to one call at a time."""

    def __init__(self, raw: psycopg.Connection[Any], place: Place) -> None:
        self._raw = raw
        self._place = place
        self.plain = place.pooled
        """Whether statements must not be prepared: each may meet another session of the server."""

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        """Run one statement; its rows. Lost, Again, Duplicate, Missing, or an error of ours."""
        _, bound = _driver()
        if isinstance(values, tuple):
            values = tuple(map(bound, values))
        elif values is not None:
            values = {name: bound(value) for name, value in values.items()}
        cursor = self._execute(query, values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def script(self, text: str) -> None:
        """Run statements that take no values and give no rows."""
        self._execute(text, None, binary=False)

    def until(self, limit: float) -> None:
        """Let the next statements take this many seconds."""
        self._raw.limit = limit  # type: ignore[attr-defined]

    def prepare(self) -> None:
        """Set the session up as the store needs it, or see that it is so where nothing may be set."""
        if self._raw.info.parameter_status("server_encoding") != "UTF8":
            raise StoreUnavailable(what="the database is not in UTF-8", hint="create it with ENCODING 'UTF8'")
        if not self._place.pooled:
            self.rows(_SESSION)
            return
        ((durable,),) = self.rows("SELECT current_setting('synchronous_commit') <> 'off'")
        if not durable:
            hint = "ALTER ROLE … SET synchronous_commit = on"
            raise StoreUnavailable(what="the server acknowledges commits before they are safe", hint=hint)

    @property
    def where(self) -> str:
        """The server and the database at its other end."""
        info = self._raw.info
        return f"{info.host}:{info.port}/{info.dbname}"

    @property
    def usable(self) -> bool:
        """Whether it is open and between transactions."""
        import psycopg

        return not self._raw.closed and self._raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def close(self) -> None:
        """Give it back to the server."""
        with contextlib.suppress(Exception):
            self._raw.close()

    def _execute(self, query: str, values: Values | None, *, binary: bool) -> psycopg.Cursor[Any]:
        import psycopg

        try:
            return self._raw.execute(query, values, binary=binary)
        except psycopg.Error as error:
            raise self._named(error) from None
        except _Overdue:
            self.close()
            raise Lost(StoreUnavailable(what="the server does not answer")) from None

    def _named(self, error: psycopg.Error) -> Exception:
        found, healthy = named(error, closed=bool(self._raw.closed))
        if not healthy:
            self.plain = self.plain or isinstance(found, Again)
            self.close()
        return found


class Pool:
    """A few connections, opened when needed; safe for all threads."""

    def __init__(self, place: Place, size: int) -> None:
        self._place = place
        self._turns = threading.BoundedSemaphore(size)
        self._idle: list[Db] = []
        self._open = True
        self._met = False
        self._worn_out = False
        self._plain = place.pooled

    def call(
        self,
        attempt: Callable[[Db, bool], _T],
        *,
        patience: float = PATIENCE,
        limit: float = LIMIT,
        followed: bool = False,
    ) -> _T:
        """Call `attempt(db, doubt)` until no connection breaks under it.

        `doubt` is true once a connection broke while something was under way: it may or may not have been done, and
        the attempt looks before it does it again. When patience runs out, the error. Patience is granted once: while
        the server stays away, later calls fail at their first try; not after a call that is `followed` by others who
        try the same with more patience.
        """
        began = time.monotonic()
        doubt, pause = False, 0.0
        while True:
            try:
                with self._lend(began + patience, limit) as db:
                    answer = attempt(db, doubt)
                self._met, self._worn_out = True, False
                return answer
            except Missing:
                hint = "another schema or prefix in the URL, or the schema must be applied"
                raise StoreUnavailable(what="its tables are not there", hint=hint) from None
            except Again as again:
                failure, behind = again.error, again.__context__
            except Lost as lost:
                failure, behind = lost.error, lost.__context__
                doubt = doubt or lost.sent
                self._forget()
            left = began + (patience if self._met else min(patience, OPENING)) - time.monotonic()
            if left <= 0.0 or self._worn_out:
                self._worn_out = self._worn_out or not followed
                failure.__context__ = behind  # for diagnostics
                raise failure from None
            time.sleep(min(pause, left))
            pause = min(max(pause * 2, 0.05), _LONGEST_PAUSE) * (0.5 + os.urandom(1)[0] / 255)

    def close(self) -> None:
        """Close what is idle now, and the others when they come back."""
        self._open = False
        self._forget()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    @contextmanager
    def _lend(self, end: float, limit: float) -> Iterator[Db]:
        if not self._turns.acquire(timeout=max(end - time.monotonic(), 0.0)):
            raise Lost(StoreUnavailable(what="busy", hint="all its connections are in use"), sent=False)
        try:
            db = self._take(end)
            try:
                db.until(limit)
                yield db
            finally:
                self._give(db)
        finally:
            self._turns.release()

    def _take(self, end: float) -> Db:
        if not self._open:
            raise StoreUnavailable(what="it is closed")
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        raw = connect(self._place, min(max(end - time.monotonic(), 0.0), _CONNECTING), plain=self._plain, met=self._met)
        db = Db(raw, self._place)
        try:
            db.prepare()
        except BaseException:
            db.close()
            raise
        return db

    def _give(self, db: Db) -> None:
        if db.plain and not self._plain:
            self._plain = True  # a pooler between us and the server: no other connection may prepare either
            self._forget()
        if self._open and db.usable:
            self._idle.append(db)
        else:
            db.close()

    def _forget(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()


def connect(place: Place, timeout: float, *, plain: bool, met: bool) -> psycopg.Connection[Any]:
    """A new connection; Lost when there may yet be one, an error of ours when not."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    kind, _ = _driver()
    try:
        settings = {**_DEFAULTS, **conninfo_to_dict(place.conninfo)}
        settings.setdefault("connect_timeout", max(round(timeout), 2))
        threshold = None if plain else 5
        raw: psycopg.Connection[Any] = kind.connect(**settings, autocommit=True, prepare_threshold=threshold)
        return raw
    except psycopg.ProgrammingError:
        hint = "see PostgreSQL's documentation of connection URIs"
        raise ConfigurationError(what="the URL of the store cannot be read", hint=hint) from None
    except psycopg.Error as error:
        found: TramaiError | None = refusal(error)
        if found is not None and not met:
            raise found from None
        hint = "check the host and the port in its URL, and that the server is up"
        raise Lost(found or StoreUnavailable(what="the server cannot be reached", hint=hint), sent=False) from None


class _Overdue(Exception):
    """The server has not answered in time."""


@functools.cache
def _driver() -> tuple[Any, Any]:
    """The class of our connections; and what binds integers of all sizes as one type, so that one plan does."""
    import psycopg
    from psycopg.types.numeric import Int8

    class Timed(psycopg.Connection[Any]):
        """A connection that does not wait for ever."""

        limit = LIMIT

        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            """Wait for the server, and look at the clock whenever the driver wakes up."""
            return super().wait(_in_time(gen, time.monotonic() + self.limit), *args, **kwargs)

    def bound(value: Any) -> Any:
        if type(value) is int:
            return Int8(value)
        return list(map(bound, value)) if type(value) is list else value

    return Timed, bound


def _in_time(gen: Any, end: float) -> Generator[Any, Any, Any]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if time.monotonic() > end:
                raise _Overdue
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value
