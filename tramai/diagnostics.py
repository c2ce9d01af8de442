"""The other side of a safe failure: what really happened, for those who were given the right to know.

The text of a fault is fixed and safe to show. What stands behind it (a driver's words, a path, a traceback) is made
into a Diagnostic, with the same reference, and goes to the one place that was named for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import msgspec

from .errors import Fault
from .redact import MASK, Redactor

LONGEST = 8192
"""Bytes of a detail; of a longer one its head and its tail are kept."""
_CREDENTIALS = re.compile(
    r"(?i)(?<=://)[^\s/@]*:[^\s/]*(?=@)|(?<=://)(?=[^\s/]*@)[^\s/@]+|\b(?:password|passwd|pwd|secret|token|api_?key)['\"]?\s*[=:]\s*\S+"
)


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in full. `id` is the reference that its public text shows, `kind` the class of the original error.

    `detail` holds the original error with its traceback: declared secrets and what looks like a credential are
    masked, and it is no longer than LONGEST bytes.
    """

    id: str
    code: str
    message: str
    kind: str
    detail: str
    run_id: str | None = None


Sink = Callable[[Diagnostic], None]


def of(fault: Fault, redactor: Redactor | None = None, run_id: str | None = None) -> Diagnostic:
    """The diagnostic of a fault, from the errors behind it."""
    behind = list(_chain(fault))
    text = "\n".join([f"told: {fault.told}", *(_formatted(error) for error in reversed(behind))])
    text = (redactor or Redactor()).text(text)
    about = fault.details.get("run_id") or run_id
    return Diagnostic(
        id=fault.id,
        code=fault.code,
        message=fault.message,
        kind=type(behind[-1]).__name__,
        detail=_cut(_CREDENTIALS.sub(MASK, text)),
        run_id=str(about) if about else None,
    )


def append(path: str, diagnostic: Diagnostic) -> None:
    """Add a diagnostic to a file, one JSON document a line. The file is made for its owner alone, and no link is
    followed. OSError when that cannot be."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
        os.write(handle, msgspec.json.encode(diagnostic) + b"\n")
    finally:
        os.close(handle)


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """The fault and what it comes from, also where `from None` hides that."""
    seen: set[int] = set()
    error: BaseException | None = fault
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _formatted(error: BaseException) -> str:
    import traceback

    return "".join(traceback.TracebackException.from_exception(error).format(chain=False))


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= LONGEST:
        return data.decode()
    mark = "\n…\n"
    half = (LONGEST - len(mark.encode())) // 2
    return data[:half].decode("utf-8", "ignore") + mark + data[-half:].decode("utf-8", "ignore")
