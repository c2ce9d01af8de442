"""What a shell step may start, and where: `allow`, `deny` and the permits, by the file that a program's name means."""

# No annotations from the future here: it is in short runs.

import os
from collections.abc import Sequence

from ..codec import sha256
from ..permits import SHELLS, Permits, guard_program
from ..program import denied, named
from ..running import Context
from ..step import StepError


def guard(
    file: str, program: str | None, ctx: Context, *, allow: Sequence[str] | None, deny: Sequence[str], cwd: str
) -> None:
    """Refuse a file that may not be started. `program` is the name it was called by, None for a script."""
    shown = program if program is not None else os.path.basename(file)
    # Denied first: an entry there counts whatever is allowed.
    entry = denied(file, deny, ctx.cwd)
    if entry is None and program is None:
        entry = next((name for name in SHELLS if name in deny), None)
    if entry is not None:
        _tell(ctx, "deny", shown)
        raise StepError("refused", f"the program {shown} is in `deny`{_alias(entry, shown, file)}")
    if allow is not None and not named(file, _entries(allow, script=program is None), ctx.cwd):
        _tell(ctx, "allow", shown)
        raise _not_allowed(file, shown, allow)
    guard_program(ctx, program, file)
    for permits in ctx.permits:
        _guard_folder(ctx, permits, cwd)


def _entries(allow: Sequence[str], *, script: bool) -> Sequence[str]:
    """Either name of a shell allows scripts, whichever of them there is."""
    return (*allow, *SHELLS) if script and any(name in allow for name in SHELLS) else allow


def _alias(entry: str, shown: str, file: str) -> str:
    if os.path.basename(shown) == entry or shown == entry:
        return ""
    return f": {file} is {entry} under another name"


def _not_allowed(file: str, shown: str, allow: Sequence[str]) -> StepError:
    listed = ", ".join(allow) or "nothing"
    if any(os.path.basename(file) == os.path.basename(entry) for entry in allow):
        what = f"the program {shown} would be {file}, which is not the one that `allow` names ({listed})"
        hint = "an entry without a slash is what tramai's own PATH has by that name; write the path of another one"
        return StepError("refused", what, hint=hint)
    return StepError("refused", f"the program {shown} is not in `allow` ({listed})")


def _guard_folder(ctx: Context, permits: Permits, cwd: str) -> None:
    """With permits a child starts in the run's folder, in a folder below it, or in one that may be written."""
    real = os.path.realpath(cwd)
    folders = (os.path.realpath(os.path.join(ctx.cwd, name)) for name in (".", *permits.write))
    if not any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders):
        _tell(ctx, "permits", cwd)
        hint = f"stay in {ctx.cwd}, or add the folder to permits.write"
        raise StepError("refused", f"starting in {cwd} is not permitted: it is outside the run's folder", hint=hint)


def _tell(ctx: Context, policy: str, what: str) -> None:
    ctx.signal("security.command_denied", policy=policy, command_digest=sha256(what)[:16])
