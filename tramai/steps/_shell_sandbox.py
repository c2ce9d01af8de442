"""The sandbox of a shell step: what bubblewrap is told, and whether it can be used here."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..interrupt import Interrupt
from ..running import Context
from ..step import StepError
from ._spawn import search

if TYPE_CHECKING:
    from ._process import Finished
    from .shell import Sandbox

INSTALL = "install bubblewrap: apt install bubblewrap, dnf install bubblewrap or apk add bubblewrap"
_PLACES = "/usr/bin:/bin:/usr/local/bin"
PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - these are hidden, not used
"""Folders that are empty in every sandbox. /run has the sockets of the machine's services."""
PERSONAL = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".password-store",
    ".pypirc",
    ".npmrc",
    ".pgpass",
    ".vault-token",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".local/share/keyrings",
]
"""What is hidden in a home even where the home itself is seen, as when a run is started in it."""
_ALONE = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
# The switches of the kernel are files that root may write even without capabilities.
_BASE = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys"]
_usable: dict[str, str | None] = {}


def program() -> str | None:
    """Where bubblewrap is: on this process's own PATH or in its usual places, never on the child's."""
    own = os.pathsep.join(filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep)))
    return search("bwrap", f"{own}:{_PLACES}")


def trouble() -> tuple[str, str] | None:
    """What is missing and what to do, as far as it is seen without starting anything."""
    if sys.platform != "linux":
        return "a sandbox needs Linux", "run tramai in a Linux container, or leave `sandbox` out"
    if program() is None:
        return "a sandbox needs bubblewrap, and there is no program bwrap", INSTALL
    return None


def front(settings: Sandbox, ctx: Context, file: str, env: dict[str, str], cwd: str, handed: str) -> list[str]:
    """The words before the program's. `file` is the program, `handed` the folder of the values in files."""
    if found := trouble():
        raise StepError("refused", found[0], hint=found[1])
    bwrap = program() or ""
    _try_out(bwrap)
    env["TMPDIR"] = "/tmp"  # noqa: S108 - it is the sandbox's own
    mounts = _mounts(settings, ctx, handed)
    real = os.path.realpath(cwd)
    for path in (file, os.path.realpath(file)):
        _need(path, mounts, f"the program {file}")
    _need(real, mounts, f"the folder {cwd}")
    words = [bwrap, *_BASE]
    # From the outside to the inside, so that what lies deeper is not covered by what it lies in.
    for path, how in sorted(mounts.items(), key=lambda item: item[0].count("/")):
        words += _words(path, how)
    # Only now, since what lies in them had to be made.
    for path in (path for path, how in mounts.items() if how == "hidden" and os.path.isdir(path)):
        words += ["--remount-ro", path]
    return [*words, *_ALONE, *(["--share-net"] if settings.network else []), "--chdir", real, "--"]


def _words(path: str, how: str) -> list[str]:
    if how == "own":
        return []
    if how == "private":
        return ["--tmpfs", path]
    if how == "hidden":
        return ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    return ["--bind" if how == "write" else "--ro-bind", path, path]


def _mounts(settings: Sandbox, ctx: Context, handed: str) -> dict[str, str]:
    """Path and treatment: `own`, `private` (an empty folder), `hidden`, `read` or `write`."""
    homes = _homes()
    mounts = dict.fromkeys(("/dev", "/proc"), "own")  # made in any case
    mounts |= dict.fromkeys((*(path for path in PRIVATE if os.path.isdir(path)), *homes), "private")
    if settings.network:
        mounts |= dict.fromkeys(_resolver(), "read")
    if (folder := os.path.realpath(ctx.cwd)) != "/":
        mounts[folder] = "read"
    both = {"read": settings.read, "write": settings.write}
    given = {how: [_path(ctx, ctx.text(text), how) for text in texts] for how, texts in both.items()}
    mounts |= {path: how for how, paths in given.items() for path in paths}
    if handed:
        mounts[os.path.realpath(handed)] = "read"
    named = {path for paths in given.values() for path in paths}
    secret = (os.path.join(home, name) for home in homes for name in PERSONAL)
    mounts |= {path: "hidden" for path in _there(secret) if path not in named and _seen(path, mounts)}
    own = [os.path.join(ctx.cwd, ".tramai"), *_kept(ctx.log_path)]
    wanted = [_expanded(ctx, ctx.text(text)) for text in settings.hide]
    return mounts | {path: "hidden" for path in _there([*own, *wanted]) if _seen(path, mounts)}


def _homes() -> list[str]:
    """The homes of the user: what HOME says and what the system knows."""
    import pwd

    homes = [os.path.expanduser("~")]
    try:
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        pass  # a user without an entry, as in some containers
    return [path for path in dict.fromkeys(map(os.path.realpath, homes)) if path != "/" and os.path.isdir(path)]


def _resolver() -> Iterable[str]:
    """Where the names of hosts are looked up, if that is in a folder that is hidden."""
    file = os.path.realpath("/etc/resolv.conf")
    return [os.path.dirname(file)] if file.startswith("/run/") and os.path.exists(file) else []


def _kept(log: str | None) -> list[str]:
    """The folder in which tramai keeps its store and its logs: `.tramai/logs/RUN/FILE`."""
    folder = log and os.path.dirname(os.path.dirname(os.path.dirname(log)))
    return [folder] if folder and os.path.basename(folder) == ".tramai" else []


def _expanded(ctx: Context, text: str) -> str:
    return os.path.realpath(os.path.join(ctx.cwd, os.path.expanduser(text)))


def _path(ctx: Context, text: str, how: str) -> str:
    path = _expanded(ctx, text)
    if not os.path.exists(path):
        hint = f"make it first, or leave it out of sandbox.{how}"
        raise StepError("refused", f"{path} of sandbox.{how} does not exist", hint=hint)
    if path == "/":
        hint = f"name the folders that the step needs in sandbox.{how}"
        raise StepError("refused", f"sandbox.{how} may not be / itself: that would be no sandbox", hint=hint)
    folder = os.path.realpath(ctx.cwd)
    if _own(ctx, text) and not path.startswith(folder.rstrip("/") + "/"):
        # What an earlier child could write it could also replace by a link, to the home for instance.
        message = f"{text} of sandbox.{how} is a link that leads out of the run's folder, to {path}"
        raise StepError("refused", message, hint=f"name {path} itself, if the step may have it")
    return path


def _own(ctx: Context, text: str) -> bool:
    """Whether a path lies in the run's folder as it is written, whatever its links lead to."""
    written = os.path.normpath(os.path.join(ctx.cwd, os.path.expanduser(text)))
    return any(written.startswith(folder.rstrip("/") + "/") for folder in (ctx.cwd, os.path.realpath(ctx.cwd)))


def _there(paths: Iterable[str]) -> list[str]:
    return [os.path.realpath(path) for path in paths if os.path.exists(path)]


def _seen(path: str, mounts: dict[str, str]) -> bool:
    """Whether something at this path can be seen in the sandbox."""
    while path != "/":
        if path in mounts:
            return mounts[path] in ("read", "write")
        path = os.path.dirname(path)
    return True


def _need(path: str, mounts: dict[str, str], what: str) -> None:
    if not _seen(os.path.abspath(path), mounts):
        where = os.path.dirname(path) if os.path.isfile(path) else path
        message = f"{what} cannot be seen in the sandbox: {where} is hidden there"
        if os.path.basename(where) == "bin":
            where = os.path.dirname(where)  # a program is rarely alone
        raise StepError("refused", message, hint=f"add {where} to sandbox.read, if the step may see it")


def _try_out(bwrap: str) -> None:
    """Refuse once and for all where bubblewrap is not allowed to make a sandbox; looked at once in a process."""
    if bwrap not in _usable:
        _usable[bwrap] = tried(bwrap)
    if (said := _usable[bwrap]) is not None:
        hint = "allow user namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces, AppArmor's "
        hint += "restriction), or run tramai where they are; a step that asks for a sandbox is never run without one"
        raise StepError("refused", f"bubblewrap cannot make a sandbox here: {said}", hint=hint)


def tried(bwrap: str) -> str | None:
    """What bubblewrap says when it is not allowed to make a sandbox here; None when it is."""
    from . import _process

    stop = Interrupt()
    try:
        done = _process.run(
            [bwrap, *_BASE, *_ALONE, "--", "/bin/sh", "-c", ":"],
            env={},
            cwd="/",
            cookie=_process.cookie("sandbox", "", 1),
            interrupt=stop,
            deadline=time.monotonic() + 10.0,
            kill_after=0.0,
        )
    finally:
        stop.close()
    if done.exit_code == 0:
        return None
    return (done.stderr.text.strip().splitlines() or [f"exit status {done.exit_code}"])[-1]


def not_made(finished: Finished) -> str | None:
    """What bubblewrap said when it could not start the program."""
    said = finished.stderr.text.strip()
    alone = finished.exit_code == 1 and not finished.stdout.size and said.startswith("bwrap: ") and "\n" not in said
    return said.removeprefix("bwrap: ") if alone else None
