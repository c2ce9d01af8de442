"""Fetches the secrets a workflow declares, from its sources and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from .definition import SecretSource
from .errors import ExtraMissing, SecretMissing, SecretTooShort
from .interrupt import Interrupt
from .redact import SHORTEST
from .step import Node

PATIENCE = 30.0
"""Seconds that a command has to print a secret."""
LONG_ENOUGH = 8
"""Characters. A shorter value may be a word that stands elsewhere too, and is masked there as well."""
_LONGEST = 1 << 20


def resolve(sources: Mapping[str, SecretSource], *, base: str, interrupt: Interrupt | None = None) -> dict[str, str]:
    """The value of every declared secret; SecretMissing, before anything runs, for the first that is not there, and
    SecretTooShort for one that could not be masked, unless its source says that it may be `short`.

    A relative `file` stands below `base`, the folder in which the run was started; a `command` runs there. One line
    break at the end is not part of a secret. An empty value counts as missing. `interrupt` ends the waiting.
    """
    return {name: _value(name, source, base, interrupt) for name, source in sources.items()}


def advice(name: str, source: SecretSource, *, base: str, value: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Code, message and hint of what speaks against a secret as it is: its length, and who may read its file.

    Without its `value` the length is known of variables alone: nothing is read.
    """
    if value is None and source.env is not None:
        value = os.environ.get(source.env)
    count = len(value or "") or LONG_ENOUGH
    if count < SHORTEST and not source.short:
        error = _too_short(name, source, count)
        yield error.code, error.message, error.hint or ""
    elif SHORTEST <= count < LONG_ENOUGH:
        hint = f"use a value of {LONG_ENOUGH} characters or more, which no other text contains by chance"
        yield "TRM605", f"secret `{name}` has only {count} characters: it is masked in other words, too", hint
    mode = _open_to(_path(source, base)) if source.file is not None else 0
    if mode:
        hint = f"chmod 600 {source.file}"
        yield "TRM606", f"the file of secret `{name}` is open to others (mode {mode:04o}): {source.file}", hint


def open_to_others(path: str) -> str | None:
    """What to say of a file with secrets that others may read, None when they may not."""
    mode = _open_to(path)
    if not mode:
        return None
    import shlex

    return f"{path} is open to others (mode {mode:04o}): chmod 600 {shlex.quote(path)}"


def _open_to(path: str) -> int:
    """The mode of a file of ours that others may read or write; 0 when they may not, or it is not ours to change."""
    try:
        found = os.stat(path)
    except OSError:
        return 0
    ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return found.st_mode & 0o777 if ours and found.st_mode & 0o066 else 0


def masked(secrets: Mapping[str, str], nodes: Iterable[Node]) -> Iterator[str]:
    """All that must not be kept or shown: the secrets, and with an `ai` step the keys of model services found here."""
    yield from secrets.values()
    if any(node.verb == "ai" for node in nodes):
        from .provider import KEYS

        names = {name for variables in KEYS.values() for name in variables}
        yield from (value for name in sorted(names) if (value := os.environ.get(name)))


def source_of(source: SecretSource) -> str:
    """Where the value comes from, for people."""
    if source.env is not None:
        return f"environment variable {source.env}"
    if source.command is not None:
        return f"command {source.command[0]}"
    return f"keyring entry {source.keyring}" if source.keyring is not None else f"file {source.file}"


def present(source: SecretSource, *, base: str) -> bool:
    """Whether the value is there, as far as can be told without fetching it."""
    if source.env is not None:
        return bool(os.environ.get(source.env))
    if source.command is not None:
        import shutil

        return shutil.which(source.command[0]) is not None
    if source.keyring is not None:
        import importlib.util

        return importlib.util.find_spec("keyring") is not None
    return os.path.isfile(_path(source, base))


def _value(name: str, source: SecretSource, base: str, interrupt: Interrupt | None) -> str:
    kind = source.given()[0]
    value, hint = _FETCH[kind](source, base, interrupt)
    if not value:
        raise SecretMissing(name=name, source=source_of(source), hint=hint)
    if len(value) < SHORTEST and not source.short:
        raise _too_short(name, source, len(value))
    return value


def _too_short(name: str, source: SecretSource, count: int) -> SecretTooShort:
    said = f"{count} character{'' if count == 1 else 's'}"
    hint = f"use a longer value, or accept that it is not masked: {{{source.given()[0]}: …, short: true}}"
    return SecretTooShort(name=name, count=said, source=source_of(source), hint=hint)


def _from_env(source: SecretSource, base: str, interrupt: Interrupt | None) -> tuple[str, str]:
    return os.environ.get(source.env or "", ""), f"set it: export {source.env}=…"


def _from_file(source: SecretSource, base: str, interrupt: Interrupt | None) -> tuple[str, str]:
    try:
        data = _read(_path(source, base), interrupt)
        # Line ends stay as they are; the mark with which some editors begin a file is no part of a secret.
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        return "", f"write its value to {source.file}"
    except OSError as error:
        return "", f"{source.file} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "", f"what is in {source.file} is not UTF-8"
    if len(data) > _LONGEST:
        return "", f"{source.file} has more than {_LONGEST:,} bytes"
    return _without_end(text), f"write its value to {source.file}"


def _read(path: str, interrupt: Interrupt | None) -> bytes:
    """What is in a file, up to a byte more than a secret may have; OSError also for a pipe into which nobody writes."""
    import errno
    import select
    import time

    until, data = time.monotonic() + PATIENCE, b""
    # Whoever waited in `open` for the other end of a pipe would hear no signal.
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        poller = select.poll()
        poller.register(number, select.POLLIN)
        if interrupt is not None:
            poller.register(interrupt.fileno(), select.POLLIN)
        while len(data) <= _LONGEST:
            if not poller.poll(max(0, int((until - time.monotonic()) * 1000))):
                raise OSError(errno.ETIMEDOUT, f"nothing was written to it within {PATIENCE:g}s")
            if interrupt is not None and interrupt.is_set:
                raise OSError(errno.EINTR, "we were asked to stop")
            try:
                piece = os.read(number, 1 << 16)
            except BlockingIOError:
                continue
            if not piece:
                break
            data += piece
    finally:
        os.close(number)
    return data


def _from_command(source: SecretSource, base: str, interrupt: Interrupt | None) -> tuple[str, str]:
    """What a program prints. Its errors are told by their last line, what it printed otherwise never."""
    import time

    from .step import StepError
    from .steps import _process

    program, stop = (source.command or ("",))[0], Interrupt()
    try:
        done = _process.run(
            source.command or (),
            env=dict(os.environ),
            cwd=base,
            cookie=_process.cookie("secret", program, 1),
            interrupt=interrupt or stop,
            deadline=time.monotonic() + PATIENCE,
            kill_after=1.0,
            max_output=_LONGEST,
        )
    except StepError as error:
        return "", error.message
    finally:
        stop.close()
    if done.reason not in (None, "timeout"):
        return "", f"we were asked to stop before {program} had answered"
    if done.reason is not None:
        return "", f"{program} had not answered after {PATIENCE:g}s"
    if done.exit_code != 0:
        said = done.stderr.text.strip().splitlines()
        last = f": {said[-1][:200]}" if said else ""
        return "", f"{program} ended with exit status {done.exit_code}{last}"
    if done.stdout.truncated or "\ufffd" in done.stdout.text:
        return "", f"what {program} printed is too long, or not UTF-8"
    return _without_end(done.stdout.text), f"{program} printed nothing"


def _from_keyring(source: SecretSource, base: str, interrupt: Interrupt | None) -> tuple[str, str]:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        hint = "pip install 'tramai[keyring]'"
        raise ExtraMissing(what=f"the {source_of(source)}", extra="keyring", hint=hint) from None
    service, _, entry = (source.keyring or "").rpartition("/")
    try:
        return keyring.get_password(service, entry) or "", f"set it: keyring set {service} {entry}"
    except KeyringError as error:
        return "", f"the keyring cannot be read: {error}"


_FETCH: dict[str, Callable[[SecretSource, str, Interrupt | None], tuple[str, str]]] = {
    "env": _from_env,
    "file": _from_file,
    "command": _from_command,
    "keyring": _from_keyring,
}


def _path(source: SecretSource, base: str) -> str:
    return os.path.join(base, os.path.expanduser(source.file or ""))


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
