"""Starts a child process: finds its program, refuses what the system could not pass on, and hands over its files."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from ..step import StepError
from ._watchdog import open_to_children

LONGEST = 131_072
"""Bytes of one argument or one `NAME=value`, the NUL at its end included: Linux takes no more (MAX_ARG_STRLEN)."""

# sh goes to the folder, since posix_spawn cannot, and is replaced by the program.
_GO = 'cd -- "$1" && unset PWD OLDPWD && shift && exec "$@"'


def find_program(name: str, *, env: Mapping[str, str], cwd: str) -> str:
    """The file that a program's name means to the child; StepError if there is none that can be run."""
    if not name:
        raise StepError("refused", "the name of the program is empty")
    if "/" in name:
        path = os.path.join(cwd, name)
        if _runs(path):
            return path
        there = os.path.isfile(path)
        what = "is not executable" if there else "is a folder" if os.path.isdir(path) else "does not exist"
        import shlex

        hint = f"chmod +x {shlex.quote(path)}" if there else None
        raise StepError("refused", f"the program {name} {what}", hint=hint, details={"program": name})
    found = search(name, env.get("PATH", os.defpath), cwd)
    if found is None:
        raise StepError(
            "refused",
            f"there is no program {name} on PATH ({env.get('PATH', os.defpath)})",
            hint=f"install {name}, or write its path",
            details={"program": name},
        )
    return found


def search(name: str, path: str, cwd: str = "/") -> str | None:
    """The first executable file of that name in the folders of `path`; empty folders do not count."""
    for folder in path.split(os.pathsep):
        if folder and _runs(candidate := os.path.join(cwd, folder, name)):
            return candidate
    return None


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def encode(what: str, text: str, *, nul: bool = False) -> bytes:
    """A text as the system takes it (with NUL only if `nul`); StepError, naming `what`, for one that it cannot take."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise StepError("refused", f"{what} holds half of a surrogate pair, which UTF-8 cannot say") from None
    if b"\0" in data and not nul:
        raise StepError("refused", f"{what} holds a NUL character, which ends a text there", hint="use stdin")
    return data


def arguments(argv: Sequence[str], *, names: Mapping[int, str] | None = None) -> list[bytes]:
    """The arguments in bytes, each checked; `names` says how to call some of them in an error."""
    found = []
    for index, text in enumerate(argv):
        what = (names or {}).get(index, f"argument {index}")
        data = encode(what, text)
        if len(data) + 1 > LONGEST:
            raise _too_long(what, len(data))
        found.append(data)
    return found


def environment(env: Mapping[str, str]) -> dict[bytes, bytes]:
    """The environment in bytes, each variable checked."""
    found = {}
    for name, text in env.items():
        what = f"the environment variable {name}"
        if not name or "=" in name:
            raise StepError("refused", f"{name!r} cannot be the name of an environment variable")
        key, data = encode(what, name), encode(what, text)
        if len(key) + 1 + len(data) + 1 > LONGEST:
            raise _too_long(what, len(data))
        found[key] = data
    return found


def _too_long(what: str, size: int) -> StepError:
    return StepError(
        "limit",
        f"{what} has {size:,} bytes; the system takes at most {LONGEST:,} in one",
        hint="use stdin, or a file",
        details={"size": size, "limit": LONGEST},
    )


@cache
def _leash() -> tuple[bytes, ...]:
    """A prefix that lets the kernel kill the child when the thread that started it dies (Linux).

    A program does it (1 ms a child) because Python would have to fork for it (2 ms and more, growing with its memory)
    and to run code in the forked child, which is not safe beside other threads. BusyBox's setpriv cannot do it.
    """
    if sys.platform != "linux":
        return ()
    for path in ("/usr/bin/setpriv", "/bin/setpriv"):
        if _runs(path) and os.path.basename(os.path.realpath(path)) == "setpriv":
            return (path.encode(), b"--pdeathsig", b"KILL", b"--")
    return ()


def spawn(
    program: str,
    argv: Sequence[bytes],
    *,
    env: Mapping[bytes, bytes],
    cwd: str,
    stdin: int,
    stdout: int,
    stderr: int,
    front: Sequence[bytes] = (),
) -> int:
    """Start the program in a session of its own; its pid, which is also its group. `stdin` -1 is empty.

    `front` are the words of a program that starts it.

    A session rather than a group alone: a background group that asks the terminal for a password would be stopped for
    ever, while without a terminal it fails at once. `posix_spawn` rather than `subprocess`: half the time, no fork of
    our memory, safe beside threads.
    """
    line = [*front, program.encode(), *argv[1:]]
    # The name it was called by is lost to the prefixes; they are given the path.
    if cwd != os.getcwd():
        line = [b"/bin/sh", b"-c", _GO.encode(), b"sh", os.fsencode(cwd), *line]
    line = [*_leash(), *line]
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if stdin < 0 else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, number) for number in open_to_children()]
    try:
        return os.posix_spawn(
            line[0],
            line,
            env,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD],
        )
    except OSError as error:
        raise _not_started(program, error, argv, env) from error


def _not_started(program: str, error: OSError, argv: Sequence[bytes], env: Mapping[bytes, bytes]) -> StepError:
    import errno

    if error.errno == errno.E2BIG:
        size = sum(map(len, argv)) + sum(len(key) + len(value) + 2 for key, value in env.items())
        text = f"the arguments and the environment have {size:,} bytes together, more than the system takes"
        return StepError("limit", text, hint="use stdin, or a file")
    return StepError("refused", f"cannot start {program}: {error.strerror}", details={"program": program})
