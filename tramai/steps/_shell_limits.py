"""Limits of resources: how a shell sets them before the program, and how it shows that one was met."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import duration, size
from ..step import Finding, StepError

if TYPE_CHECKING:
    from ._process import Finished
    from .shell import Resources

_BLOCK = 512
"""Bytes in which `ulimit -f` counts, as POSIX has it."""
_SAYS = {
    "memory": (
        r"cannot allocate|memoryerror|bad_alloc|out of memory|memory exhausted|enomem|failed to map segment",
        "memory ran out",
    ),
    "open_files": (r"too many open files|emfile", "too many files were open"),
    "file_size": (r"file too large|efbig|file size limit exceeded", "a file became too large"),
}


def findings(resources: Resources) -> Iterator[Finding]:
    """Limits that cannot be meant."""
    if resources == type(resources)():
        yield Finding(
            ("resources",), "TRM378", "`resources` names no limit", "write memory, cpu, open_files or file_size"
        )
    for name in ("memory", "file_size"):
        value = getattr(resources, name)
        if value is not None and size.parse(value) < 1:
            yield Finding(("resources", name), "TRM378", f"`{name}` is nothing", "write a size such as 512MiB")
    if resources.cpu is not None and resources.cpu < 1:
        yield Finding(
            ("resources", "cpu"), "TRM378", "`cpu` is less than a second", "it counts whole seconds: 1s or more"
        )


def front(resources: Resources) -> list[str]:
    """The words before the program's: a shell that sets the limits and is replaced by the program."""
    if resources.memory is not None and sys.platform == "darwin":
        hint = "leave `resources.memory` out here"
        raise StepError("refused", "macOS does not limit the memory of a process", hint=hint)
    return ["/bin/sh", "-c", " && ".join([*_commands(resources), 'exec "$@"']), "sh"]


def _commands(resources: Resources) -> Iterator[str]:
    import resource

    if resources.open_files is not None:
        yield f"ulimit -n {_at_most(resource.RLIMIT_NOFILE, resources.open_files)}"
    if resources.file_size is not None:
        yield f"ulimit -f {-(-_at_most(resource.RLIMIT_FSIZE, size.parse(resources.file_size)) // _BLOCK)}"
    if resources.cpu is not None:
        seconds = _at_most(resource.RLIMIT_CPU, -int(-resources.cpu // 1))
        # A signal first (SIGXCPU), which says what it is; who goes on all the same is killed five seconds later.
        yield f"ulimit -S -t {seconds} && ulimit -H -t {_at_most(resource.RLIMIT_CPU, seconds + 5)}"
    if resources.memory is not None:
        yield f"ulimit -v {max(_at_most(resource.RLIMIT_AS, size.parse(resources.memory)) // 1024, 1)}"


def _at_most(kind: int, wanted: int) -> int:
    """No more than this process may give: a limit of its own stays."""
    import resource

    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def not_set(finished: Finished) -> str | None:
    """What the shell said when it could not set a limit; the program has not been started then."""
    said = finished.stderr.text.strip()
    alone = not finished.stdout.size and "\n" not in said and re.match(r"(/bin/)?sh: .*\bulimit: ", said)
    return said.partition("ulimit: ")[2] if alone else None


def exceeded(resources: Resources, finished: Finished, how: str) -> tuple[str | None, str, str | None] | None:
    """Error type (None: that of the exit status), message and hint, if a limit is the reason or may be."""
    ended = finished.exit_code - 128
    if resources.cpu is not None and ended == signal.SIGXCPU:
        told = duration.spell(resources.cpu)
        return "limit", f"more time of computing than `resources.cpu` ({told}) was used", "raise it if that is right"
    if resources.file_size is not None and ended == signal.SIGXFSZ:
        told = _spelled(resources, "file_size")
        return "limit", f"a file grew beyond `resources.file_size` ({told})", "raise it if that is right"
    text = f"{finished.tail}\n{finished.stderr.text[-2000:]}".lower()
    for name, (pattern, what) in _SAYS.items():
        if getattr(resources, name) is not None and re.search(pattern, text):
            limit = f"`resources.{name}` is {_spelled(resources, name)}"
            return None, f"{how}; its output says that {what}, and {limit}", "raise the limit if that is right"
    if resources.memory is not None and ended in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGKILL):
        told = _spelled(resources, "memory")
        return None, how, f"a program that gets no more memory may end so: `resources.memory` is {told}"
    if resources.cpu is not None and ended == signal.SIGKILL:
        return None, how, "a program that goes on after its time of computing is killed so: look at `resources.cpu`"
    return None


def _spelled(resources: Resources, name: str) -> str:
    value = getattr(resources, name)
    return str(value) if name == "open_files" else size.spell(size.parse(value))
