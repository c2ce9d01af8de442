"""A PostgreSQL server for the time of a measurement: in a folder of its own on the disk, with its flushes on."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any


def programs() -> str | None:
    """The folder of `initdb` and `postgres`; None where there is none."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("initdb") or "")]
    return found[-1] or None


@contextlib.contextmanager
def server(**settings: str) -> Iterator[str | None]:
    """The URL of a new server, with these settings; None, and that is said, where there can be none."""
    folder_of_programs = programs()
    if folder_of_programs is None:
        print("there is no initdb: PostgreSQL is left out\n")
        yield None
        return
    folder = tempfile.mkdtemp(prefix="tramai-bench-pg-")
    who: dict[str, Any] = {}
    if os.geteuid() == 0:  # the server refuses to be root
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **who}
    make = [f"{folder_of_programs}/initdb", "-D", "data", "-U", "tramai", "-A", "trust", "-E", "UTF8", "--locale=C"]
    subprocess.run(make, check=True, **shared)
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [f"{folder_of_programs}/postgres", "-D", "data", "-p", str(port), "-k", folder]
    process = subprocess.Popen([*command, "-c", "listen_addresses=127.0.0.1", *given], **shared)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        time.sleep(1.0)  # it listens a moment before it lets anybody in
        yield f"postgresql://tramai@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
