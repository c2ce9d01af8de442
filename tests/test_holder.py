"""Who holds a lease: dead only if it is certain, by real processes, in namespaces of their own and hidden ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tramai.errors import LeaseHeld
from tramai.holder import Holder
from tramai.stores import open_store

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")

TAKES = """
import sys, time
from tramai.store import Holder
from tramai.stores import open_store
from tramai.testing._store_given import new_run
store = open_store(sys.argv[1])
store.create(new_run("r1", created=time.time()), owner="inside", holder=Holder.here(), ttl=60.0, now=time.time())
print("held", flush=True)
sys.stdin.read()
"""
APART = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]


def namespaces() -> bool:
    """Whether this user may make a PID namespace, as a container has one."""
    try:
        return subprocess.run([*APART, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_a_run_of_another_container_of_the_same_host_name_is_not_taken_from_it(tmp_path: Path) -> None:
    if not namespaces():
        pytest.skip("unshare --pid is not allowed here")
    url = f"sqlite:{tmp_path / 'shared.db'}"
    inside = subprocess.Popen(
        [*APART, sys.executable, "-c", TAKES, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert inside.stdout is not None
        assert inside.stdout.readline() == "held\n"
        store = open_store(url)
        run = store.get("r1")
        assert run.lease is not None
        assert run.lease.holder.host == os.uname().nodename
        with pytest.raises(LeaseHeld):
            store.claim("r1", owner="outside", holder=Holder.here(), ttl=60.0, now=run.lease.acquired + 1.0)
        store.close()
    finally:
        inside.communicate("")


def test_a_process_that_ended_is_known_dead_and_one_that_goes_on_is_not() -> None:
    there = Holder.here()
    assert not there.known_dead()
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        stat = Path(f"/proc/{child.pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
        of_child = replace(there, pid=child.pid, start=stat[19])
        assert not of_child.known_dead()
        assert replace(of_child, start=str(int(stat[19]) + 1)).known_dead()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert of_child.known_dead()  # nobody has asked for its exit status yet
    finally:
        child.kill()
        child.communicate()
    assert of_child.known_dead()


@pytest.mark.parametrize("start", ["", "1"])
def test_a_process_that_is_hidden_from_this_user_counts_as_alive(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr("tramai.holder._stat", lambda pid: None)  # as `hidepid` and ProtectProc do
    assert not replace(Holder.here(), start=start).known_dead()


def test_a_process_that_is_not_there_is_dead_whatever_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    monkeypatch.setattr("tramai.holder._stat", lambda pid: None)
    assert replace(Holder.here(), pid=child.pid, start="1").known_dead()


def test_whoever_cannot_tell_which_boot_it_is_declares_nobody_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = replace(Holder.here(), machine="m", start="1")
    monkeypatch.setattr("tramai.holder._boot_id", lambda: "")  # /proc is not there, as in some sandboxes
    assert not holder.known_dead()


@pytest.mark.parametrize(("machine", "dead"), [("m", True), ("another", False), ("", False)])
def test_only_the_same_machine_knows_what_a_boot_of_it_ended(
    monkeypatch: pytest.MonkeyPatch, machine: str, dead: bool
) -> None:
    monkeypatch.setattr("tramai.holder._machine", lambda: "m")
    holder = replace(Holder.here(), boot="an earlier boot", machine=machine)
    assert holder.known_dead() is dead


def test_a_container_takes_the_id_in_its_image_for_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tramai.holder._space", lambda: "pid:[4026532000]")
    assert Holder.here().machine == ""


def test_a_lease_that_an_earlier_version_wrote_is_believed_until_it_ends() -> None:
    here = Holder.here()
    old = {"host": here.host, "boot": here.boot, "pid": here.pid, "start": "1"}
    assert not msgspec.convert(old, Holder).known_dead()
