"""Finds and ends what a child process left behind: its group, its descendants, and whatever carries its mark.

A descendant that moved to a session of its own and lost its parent is still known by the mark that it inherited in its
environment. Linux shows environments in /proc; elsewhere only the process group is known.

The standard library alone is used: the watchdog runs this file as a script when the runner is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection, Iterable

VARIABLE = "TRAMAI_COOKIE"
"""The environment variable that carries the marks: tokens without white space, separated by spaces."""

_ASSIGNED = b"\0" + VARIABLE.encode() + b"="
PROC = os.path.isdir("/proc/self/fd") and os.path.exists("/proc/self/environ")

Entry = tuple[int, int, int, int]
"""A living process: parent, group, session, start time in ticks."""
Table = dict[int, Entry]


def table() -> Table:
    """Every process that is not dead yet, this one included, by pid."""
    found: Table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    part = file.read(1024).rpartition(b")")[2].split()
            except OSError:
                continue
            if part[0] not in b"ZX":
                found[int(name)] = (int(part[1]), int(part[2]), int(part[3]), int(part[19]))
    return found


def marked(mark: str, pids: Iterable[int], *, prefix: bool = False) -> set[int]:
    """Those of `pids` that carry the mark; with `prefix` also those whose mark goes on after it with a colon."""
    token = mark.encode()
    ends = b" \0:" if prefix else b" \0"
    return {pid for pid in pids if _carries(_environment(pid), token, ends)}


def _environment(pid: int) -> bytes:
    """The marks of a process, a NUL at the end; nothing for one that is gone or belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            text = b"\0" + file.read()
    except OSError:
        return b""
    _, found, rest = text.partition(_ASSIGNED)
    return rest.partition(b"\0")[0] + b"\0" if found else b""


def _carries(value: bytes, token: bytes, ends: bytes) -> bool:
    at = value.find(token)
    while at >= 0:
        after = at + len(token)
        if (at == 0 or value[at - 1 : at] == b" ") and value[after : after + 1] in ends:
            return True
        at = value.find(token, at + 1)
    return False


def _writes(pid: int, links: set[str]) -> bool:
    folder = f"/proc/{pid}/fd/"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(folder + name) in links and os.lstat(folder + name).st_mode & 0o200:
                return True
        except OSError:
            continue
    return False


def newest() -> int:
    """The pid that was given out last in this pid namespace; 0 if the system does not say."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(128).split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


def find(group: int, mark: str, *, known: Table, pipes: Collection[int] = ()) -> Table:
    """What is alive of a child.

    That is the members of its group and its session, all that carry the mark, those of `known` that still live, all
    that can write to one of `pipes` (inodes), and every descendant of these. Without /proc it is the group
    as a negative pid while the group lives.
    """
    if not PROC:
        return {-group: (0, group, group, 0)} if group_lives(group) else {}
    all_ = table()
    mine = os.getpid()
    all_.pop(mine, None)
    found = {pid for pid, (_, its_group, session, _) in all_.items() if group in (its_group, session)}
    found |= {pid for pid, entry in known.items() if pid in all_ and all_[pid][3] == entry[3]}
    found |= marked(mark, all_.keys() - found)
    if pipes:
        links = {f"pipe:[{inode}]" for inode in pipes}
        # Our own forks may hold a pipe for the moment between their start and their exec.
        found |= {pid for pid in all_.keys() - found if all_[pid][0] != mine and _writes(pid, links)}
    children: dict[int, list[int]] = {}
    for pid, (parent, *_) in all_.items():
        children.setdefault(parent, []).append(pid)
    todo = list(found)
    while todo:
        new = [pid for pid in children.get(todo.pop(), ()) if pid not in found]
        found.update(new)
        todo.extend(new)
    return {pid: all_[pid] for pid in found}


def young(mark: str, *, since: int, full: bool) -> bool:
    """Whether something carries the mark. Unless `full`, only processes younger than `since` are looked at.

    Pids are given out in order, so that after a child that started nothing there is nothing to look at.
    """
    if not PROC:
        return False
    last = newest()
    if not full and 0 < since <= last and last - since <= 64:
        return bool(last - since and marked(mark, range(since + 1, last + 1)))
    pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    if not full and last:
        pids = {pid for pid in pids if (pid > since if last >= since else pid > since or pid <= last)}
    return bool(marked(mark, pids - {os.getpid()}))


def group_lives(group: int) -> bool:
    """Whether the process group has a member, a zombie included."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def send(pids: Iterable[int], number: int) -> None:
    """Send a signal to each; those that are gone do not matter. A negative number is a group."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def sweep(mark: str, *, prefix: bool = False, patience: float = 5.0) -> int:
    """Kill whatever carries the mark, and its descendants, until nothing does; how many there were.

    It looks until nothing was found twice, a while apart, because a process that is just being started shows the
    environment of its parent at first.
    """
    ended: set[int] = set()
    until, quiet = time.monotonic() + patience, 0
    while quiet < 2 and time.monotonic() < until:
        found = _with_descendants(mark, prefix)
        send(found, signal.SIGKILL)
        ended |= found
        quiet = 0 if found else quiet + 1
        time.sleep(0.05)
    return len(ended)


def _with_descendants(mark: str, prefix: bool) -> set[int]:
    all_ = table()
    all_.pop(os.getpid(), None)
    found = marked(mark, all_, prefix=prefix)
    size = -1
    while size != len(found):
        size = len(found)
        found |= {pid for pid, (parent, *_) in all_.items() if parent in found}
    return found


def end_survivors(cookie: str) -> int:
    """End every process that carries this cookie, or one that starts with it and a colon; how many there were.

    `run`, `run:path` and `run:path:attempt` are cookies. Called when a run is taken over, before anything starts.
    """
    cookie = cookie.rstrip(":")
    if not PROC or not _with_descendants(cookie, True):
        return 0
    return sweep(cookie, prefix=True)


if __name__ == "__main__":
    sweep(sys.argv[1])
