"""The environment of a child process: a little of ours, the workflow's, the step's, and what tramai tells it."""

# No annotations from the future here: `shell` is in every short run.

import os
import re
from collections.abc import Iterable, Iterator

from ..errors import Pointer
from ..running import Context
from ..step import Finding

INHERITED = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")
"""What a child sees of tramai's own environment."""
OURS = ("TRAMAI_COOKIE", "TRAMAI_RUN_ID", "TRAMAI_STEP", "TRAMAI_ATTEMPT", "TRAMAI_IDEMPOTENCY_KEY")
"""What tramai tells a child; nothing else may set these."""


def environment(ctx: Context, own: dict[str, str]) -> dict[str, str]:
    """The whole environment of a child; `own` are the step's variables."""
    told = (ctx.run_id, ctx.path, str(ctx.attempt), ctx.idempotency_key)
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    given = {**ctx.env, **own}
    return {**inherited, **_traced(ctx, given), **given, **dict(zip(OURS[1:], told, strict=True))}


def _traced(ctx: Context, given: dict[str, str]) -> dict[str, str]:
    """Where the attempt stands in a trace, unless the file says so itself. What our caller's tracers added to its trace
    (`TRACESTATE`) goes along in that trace only; its BAGGAGE may hold anything, and stays here."""
    stands = ctx.traceparent
    if stands is None or "TRACEPARENT" in given:
        return {}
    found, ours = {"TRACEPARENT": stands}, os.environ.get("TRACEPARENT", "")
    if "TRACESTATE" in os.environ and ours.split("-")[1:2] == stands.split("-")[1:2]:
        found["TRACESTATE"] = os.environ["TRACESTATE"]
    return found


def findings(names: Iterable[str], at: Pointer) -> Iterator[Finding]:
    """Variables that cannot be set."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            text = f"{name!r} cannot be the name of an environment variable"
            yield Finding((*at, name), "TRM312", text, "use letters, digits and underscores")
        elif name in OURS:
            text = f"the variable {name} is set by tramai"
            yield Finding((*at, name), "TRM313", text, "choose another name; the child sees ours")
