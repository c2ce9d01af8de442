"""What the shell steps of the chaos leave behind: a file per run, which only they write and no store knows of.

A line says that an attempt began, ended or failed, and carries a number of its own, so that an attempt that was carried
out twice shows. Times are the system's seconds since it was started: no clock that is set wrong reaches them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

# One `printf` is one write to a file that is opened for appending: lines of several processes do not mix.
PROGRAM = """\
read -r began rest < /proc/uptime
read -r nonce < /proc/sys/kernel/random/uuid
about="$TRAMAI_RUN_ID\t$TRAMAI_STEP\t$TRAMAI_ATTEMPT\t$$\t$nonce\t$TRAMAI_IDEMPOTENCY_KEY"
printf 'begin\t%s\t%s\n' "$about" "$began" >> "$EFFECTS/$TRAMAI_RUN_ID"
sleep "$PAUSE"
how=end
case "$1" in
always) how=fail ;;
first) [ "$TRAMAI_ATTEMPT" -gt 1 ] || how=fail ;;
esac
read -r ended rest < /proc/uptime
printf '%s\t%s\t%s\n' "$how" "$about" "$ended" >> "$EFFECTS/$TRAMAI_RUN_ID"
[ "$how" = end ] || exit 3
"""


class Effect(msgspec.Struct, frozen=True):
    """One carrying out of a step, as it says itself. `ended` is None where it was killed."""

    run: str
    path: str
    attempt: int
    pid: int
    nonce: str
    key: str
    began: float
    ended: float | None = None
    failed: bool = False


def read(lines: Iterable[str]) -> tuple[Effect, ...]:
    """What the lines of one file say; a line that is not whole is a ValueError."""
    found: dict[str, Effect] = {}
    for line in lines:
        how, run, path, attempt, pid, nonce, key, at = line.rstrip("\n").split("\t")
        if how == "begin":
            found[nonce] = Effect(run, path, int(attempt), int(pid), nonce, key, float(at))
        elif how in ("end", "fail"):
            found[nonce] = msgspec.structs.replace(found[nonce], ended=float(at), failed=how == "fail")
        else:
            raise ValueError(f"no line of ours: {line!r}")
    return tuple(found.values())


def of(folder: Path, run_id: str) -> tuple[Effect, ...]:
    """What the steps of a run have left."""
    try:
        return read((folder / run_id).read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        return ()
